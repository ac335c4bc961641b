/*
 * What the NVTX listener needs of the process that it is in: the recorder's log where there is a recorder
 * (recorder/nvtx-host.c), or else one of its own (nvtx/alone.c).
 */
#ifndef GGML2PERFETTO_NVTX_HOST_H
#define GGML2PERFETTO_NVTX_HOST_H

#include <stddef.h>
#include <stdint.h>

struct ggtrace;

/* The log, opened if need be; NULL: nothing is to be recorded, or it cannot be. */
struct ggtrace * nvtx_log(void);

/* Defines a text in the log, and returns its new id. */
uint32_t nvtx_new_name(const char * text, size_t bytes);

#endif
