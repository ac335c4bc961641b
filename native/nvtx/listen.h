/* Receives a program's NVTX calls. */
#pragma once

#include "common/system.h"
#include "nvtx/abi.h"

/* Subscribes to one of a process's copies of NVTX, any number of them, at any time. Returns 1, or 0 if there is no NVTX or no log. */
int nvtx_listen(nvtx_get_table get);

/* For the child of a fork, which is not recorded. */
void nvtx_listen_forked(void);
