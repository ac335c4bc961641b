/* Loading of models in stages: which of them this thread is in, and the bytes that it copied to tensors. */
#pragma once

#include "common/system.h"
#include "recorder/functions.h"

/* A stage that has begun. Stages of one purpose do not nest: older functions call newer ones, and only the outermost is recorded. */
struct stage {
    struct ggtrace_function function;
    struct ggtrace_resources resources;
    uint32_t outer;
    uintptr_t at; /* of the hook, see frames.h */
    uint64_t copied_before;
};

/* A stage begins (GGTRACE_LOAD_MODEL etc.) in the hook of that frame address. `path`: of the file that it reads; NULL: none. */
void loading_begin(struct stage * stage, uintptr_t here, uint32_t what, const char * path);
void loading_end(struct stage * stage);

/* `stage`, from here to the end of the block. */
#define STAGE(what, path)                                     \
    struct stage stage __attribute__((cleanup(loading_end))); \
    loading_begin(&stage, HERE, (what), (path))

/* The bytes that were copied to tensors since the stage began. */
uint64_t loading_copied(const struct stage * stage);

/* This thread copies bytes to a tensor: returns the start, or 0 if it loads nothing. */
uint64_t loading_copy_begin(void);
void loading_copy_end(uint64_t start, uint64_t bytes);
