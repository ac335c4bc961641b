/*
 * What the NVTX listener needs from the process that contains it: the log of the recorder (recorder/nvtx-host.c), or its own
 * log (nvtx/alone.c).
 */
#pragma once

#include "common/system.h"

struct ggtrace;

/* The log, opened if necessary; NULL: recording is not requested or not possible. */
struct ggtrace * nvtx_log(void);

/* Defines a text in the log, and returns its new id. */
uint32_t nvtx_new_name(const char * text, size_t bytes);
