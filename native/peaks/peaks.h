/*
 * Measures the peak rates of a processor: loops that read memory, multiply and add; and what ggml's own matrix products take. Only the
 * program `peaks` uses them; the recorder does not contain them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* A loop for one instruction set. */
struct peaks_kernel {
    const char * name; /* of the instruction set, for display; NULL ends a list */
    bool (*usable)(void); /* the processor has it, and the system permits it */
    /* `at`: the data to read, aligned to 64 bytes; rounds > 0. */
    void (*run)(const void * at, uint64_t rounds);
    uint32_t work; /* per round: bytes read, or floating-point or integer operations; a power of 2 for reading */
};

/* The best first; the last one runs anywhere. */
extern const struct peaks_kernel peaks_read[], peaks_fp32[], peaks_int8[];

/* Times ggml's products with the libraries in a folder: jobs on stdin, results on stdout. Returns the exit status. */
int measure_ggml(const char * folder);
