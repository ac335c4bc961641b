/* The current recording: its log, its level, and the layout of ggml's tensors. recorder.c begins and ends it. */
#pragma once

#include "common/system.h"
#include "log/ggtrace.h"
#include "recorder/layout.h"

/* What is recorded: each level includes the lower ones. */
enum recording_level { LEVEL_AHEAD = -1, LEVEL_OFF, LEVEL_TOKEN, LEVEL_GRAPH, LEVEL_OPERATOR };

struct recording {
    /* The current level: LEVEL_AHEAD before the log is opened; LEVEL_OFF in a forked child, after the end, and on failure. */
    _Atomic int level;
    /* NULL if there is none. */
    struct ggtrace * log;
    struct ggml_api api;
    struct tensor_layout layout;
    /* Nodes of backends without an operator hook are computed and timed one by one. */
    bool synchronises;
};

extern HIDDEN struct recording recording;

static inline int recording_level(void) {
    return atomic_load_explicit(&recording.level, memory_order_relaxed);
}

/* This thread's writer; NULL if there is none. */
static inline struct ggtrace_writer * recording_writer(uint32_t worker) {
    return recording.log ? ggtrace_writer_of_thread(recording.log, worker) : NULL;
}
