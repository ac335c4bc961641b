/* Where the scheduler of ggml places nodes: which devices there are, and what they refuse when it asks them. */
#pragma once

#include "common/system.h"

/* A device that the program looks at, and its type (of ggml; -1: not asked); from any thread, also before the log is opened. */
void placement_note_device(void * device, int type);

/* How much of its memory was free when the program asked, from any thread; its first answer counts: before the model is loaded. */
void placement_note_memory(void * device, const size_t * free_bytes);

/* Writes the devices that were noted since the last call as facts of the log. */
void placement_report_devices(void);

/* A device refused a node (GGTRACE_SUPPORTS_OP, GGTRACE_OFFLOAD_OP). Written once for each shape, for at most 16 of each op and its types. */
void placement_refused_node(uint32_t question, void * device, const void * node);

/* A device cannot use memory of this type. */
void placement_refused_memory(void * device, void * buffer_type);
