/* Devices of CUDA or HIP, and their streams. */
#pragma once

#include "common/system.h"
#include "log/ggtrace-gpu.h"

/* The process computes with this API of GPUs. False: it does so with another one. */
bool cuda_use(enum ggtrace_gpu_api api);

/* The queue of a stream, by CUPTI's number of it or by its handle, defined in the log now if necessary. */
uint32_t cuda_queue(uint32_t device, uint32_t number);
uint32_t cuda_stream_queue(uint32_t device, void * stream);

/* This thread's current device; the name of a device. */
void cuda_set_device(int device);
uint32_t cuda_device(void);
void cuda_name_device(uint32_t device, const char * name);
