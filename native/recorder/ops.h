/* The ops of tensors, by ggml's names: their numbers differ between versions. */
#pragma once

#include "common/system.h"

/* Those that the recorder distinguishes. OP_VIEW are all that need no computing. */
enum op { OP_UNKNOWN, OP_OTHER, OP_NONE, OP_VIEW, OP_RMS_NORM, OP_MUL, OP_MUL_MAT_ID };
enum op op_of(const void * tensor);

bool op_has_elements(const void * tensor);

/* ggml skips nodes that need no computing (ggml-cpu.c: ggml_op_is_empty, the compute flag). */
bool op_is_computed(const void * node);
