/* What a program does around its calls: functions, sequences, tasks of a server, lines of its log; and on which CPUs. */
#pragma once

#include "ggtrace.h"

/* A function that writes a record: `structure` has its fields, after its first word; `start`: the one with its time. */
#define GGTRACE_WRITES(name, structure, type, start)                                                     \
    GGTRACE_INLINE void name(struct ggtrace_writer * writer, const struct structure * fields) {          \
        uint8_t * room = ggtrace_begin(writer, 4 + sizeof(*fields), fields->start);                      \
        if (GGTRACE_UNLIKELY(!room)) return;                                                             \
        memcpy(room + 4, fields, sizeof(*fields));                                                       \
        ggtrace_commit(writer, room, type, 4 + sizeof(*fields));                                         \
    }

/* A function that is not a call, from entry to return: sampling, text, loading, state, waiting, speculation. */
GGTRACE_WRITES(ggtrace_function, ggtrace_function, GGTRACE_FUNCTION, start)

/* One side of a message of ggml-rpc. */
GGTRACE_WRITES(ggtrace_rpc, ggtrace_rpc, GGTRACE_RPC, start)

/* Of the function or call that is written next, and starts at the same time. */
GGTRACE_WRITES(ggtrace_resources, ggtrace_resources, GGTRACE_RESOURCES, time)

/* Where the thread of this writer's worker runs now; written where it differs from the last one. The default policy is left out. */
GGTRACE_INLINE void ggtrace_affinity(struct ggtrace_writer * writer, const struct ggtrace_affinity * fields) {
    const size_t bytes = fields->policy ? sizeof(*fields) : offsetof(struct ggtrace_affinity, policy);
    uint8_t * room = ggtrace_begin(writer, 4 + bytes, fields->time);
    if (GGTRACE_UNLIKELY(!room)) return;
    memcpy(room + 4, fields, bytes);
    ggtrace_commit(writer, room, GGTRACE_AFFINITY, 4 + bytes);
}

/* A change of a sequence in a memory of llama.cpp. */
GGTRACE_WRITES(ggtrace_sequence, ggtrace_sequence, GGTRACE_SEQUENCE, time)

/* A step of a server's task. */
GGTRACE_WRITES(ggtrace_task, ggtrace_task, GGTRACE_TASK, time)

/* A line of the program's own log, without its end of line; level: ggml's. Longer texts are cut. */
void ggtrace_message(struct ggtrace_writer * writer, uint64_t time, uint32_t level, const char * text, size_t bytes);
