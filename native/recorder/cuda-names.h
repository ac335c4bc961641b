/* Ids of the names of kernels. All functions are thread-safe. */
#pragma once

#include "common/system.h"

/* Of a mangled name, which remains where it is: the readable one. */
uint32_t cuda_kernel_name(const char * text);

/* Of a grid and a block: `1,2,3 4,5,6`. */
uint32_t cuda_shape_name(const uint32_t sizes[6]);
