/* What a program does around its calls: functions, sequences, tasks of a server, lines of its log. */
#pragma once

#include "ggtrace.h"

/* The structures have the fields of the record, after its first word. */
#define GGTRACE_WRITE_FIELDS(writer, time, type, fields)                                          \
    do {                                                                                          \
        uint8_t * room_ = ggtrace_begin((writer), 4 + sizeof(*(fields)), (time));                 \
        if (GGTRACE_UNLIKELY(!room_)) return;                                                     \
        memcpy(room_ + 4, (fields), sizeof(*(fields)));                                           \
        ggtrace_commit((writer), room_, (type), 4 + sizeof(*(fields)));                           \
    } while (0)

/* A function that is not a call, from entry to return: sampling, text, loading, state, waiting, speculation. */
GGTRACE_INLINE void ggtrace_function(struct ggtrace_writer * writer, const struct ggtrace_function * function) {
    GGTRACE_WRITE_FIELDS(writer, function->start, GGTRACE_FUNCTION, function);
}

/* Of the function or call that is written next, and starts at the same time. */
GGTRACE_INLINE void ggtrace_resources(struct ggtrace_writer * writer, const struct ggtrace_resources * resources) {
    GGTRACE_WRITE_FIELDS(writer, resources->time, GGTRACE_RESOURCES, resources);
}

/* A change of a sequence in a memory of llama.cpp. */
GGTRACE_INLINE void ggtrace_sequence(struct ggtrace_writer * writer, const struct ggtrace_sequence * sequence) {
    GGTRACE_WRITE_FIELDS(writer, sequence->time, GGTRACE_SEQUENCE, sequence);
}

/* A step of a server's task. */
GGTRACE_INLINE void ggtrace_task(struct ggtrace_writer * writer, const struct ggtrace_task * task) {
    GGTRACE_WRITE_FIELDS(writer, task->time, GGTRACE_TASK, task);
}

/* A line of the program's own log, without its end of line; level: ggml's. Longer texts are cut. */
void ggtrace_message(struct ggtrace_writer * writer, uint64_t time, uint32_t level, const char * text, size_t bytes);
