/* On machines with several NUMA nodes: the nodes of the pages of buffers, and policies. On one node, nothing of it does anything. */
#pragma once

#include "common/system.h"

/* Has the machine several nodes? */
bool numa_has_nodes(void);

/* Facts of the machine and of the program's first thread. Its topology was read before. */
void numa_facts(void (*fact)(const char * key, const char * value));

/* A buffer will be freed: its pages are recorded once more. Under no lock. */
void numa_end_buffer(uint32_t id);

/* After a graph was computed: records the pages of buffers that were not looked at yet. */
void numa_look(void);

/* The program chose a mode of ggml (`--numa`). */
void numa_note_mode(int mode);

/* Records the pages of all buffers again, and the nodes of the other memory. */
void numa_finish(void (*fact)(const char * key, const char * value));
