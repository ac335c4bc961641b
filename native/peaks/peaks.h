/*
 * What a processor can do at most, measured: loops that read memory, multiply and add. Used by the program `peaks` only;
 * nothing of it is in the recorder.
 */
#ifndef GGML2PERFETTO_PEAKS_H
#define GGML2PERFETTO_PEAKS_H

#include <stdbool.h>
#include <stdint.h>

/* A loop for one instruction set. */
struct peaks_kernel {
    const char * name; /* of the instruction set, for people; NULL ends a list */
    bool (*usable)(void); /* here and now: the processor has it, and the system lets us use it */
    /* `at`: what is read, aligned to 64 bytes; rounds > 0. */
    void (*run)(const void * at, uint64_t rounds);
    uint32_t work; /* a round's: bytes read, or floating-point or integer operations; a power of 2 for reading */
};

/* The best first; the last one runs anywhere. */
extern const struct peaks_kernel peaks_read[], peaks_fp32[], peaks_int8[];

#endif
