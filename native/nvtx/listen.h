/* Listens to a program's NVTX calls. */
#ifndef GGML2PERFETTO_NVTX_LISTEN_H
#define GGML2PERFETTO_NVTX_LISTEN_H

#include "nvtx/abi.h"

/* Subscribes to one of a process' copies of NVTX; any number of them, any time. 1, or 0: nothing to listen to, or no log. */
int nvtx_listen(nvtx_get_table get);

/* In the child of a fork, of which nothing is written. */
void nvtx_listen_forked(void);

#endif
