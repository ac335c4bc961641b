/* Times of CUDA's devices, by NVIDIA's CUPTI, if it is installed: loaded by dlopen, never linked. */
#pragma once

#include "common/system.h"

/* Who is called: a node of a graph was made, or cloned, on the thread that does it; records are complete, with a number of lost ones; the last came. */
struct cupti_listener {
    void (*created)(uint64_t node);
    void (*cloned)(uint64_t original, uint64_t node);
    void (*take)(uint8_t * buffer, size_t valid, size_t dropped);
    void (*end)(void);
};

/* Once, before the program's first use of a device. Returns why there is no CUPTI; NULL: it is used. */
const char * cupti_start(const struct cupti_listener * listener);

/* The fact `gpu.missing`. */
void cupti_missing(const char * why);

/* In the child of a fork: there are no devices. */
void cupti_forked(void);

/* The next record of a buffer, the first if `*record` is NULL; false: there is none. */
bool cupti_next(uint8_t * buffer, size_t valid, uint8_t ** record);

/* Are there times of devices? */
bool cupti_is_on(void);

/* What this thread launches from here on belongs to the launch with this id; 0: to none. */
void cupti_launch_begins(uint32_t id);
void cupti_launch_ends(void);

/* Its number of a stream of the current device; 0: unknown. */
uint32_t cupti_stream(void * stream);

/* When the program ends: writes what devices have completed. Waits for a stuck device for a second at most. */
void cupti_finish(void);
