/* On which CPUs the threads of workers run, and may run. */
#pragma once

#include "common/system.h"

struct ggtrace_writer;

/* This thread begins a graph of a call: records its CPU and its affinity if they differ from those that it recorded last. */
void affinity_look(struct ggtrace_writer * writer, uint64_t now, uint32_t call);
