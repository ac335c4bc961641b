/* Blocks of the run and of definitions, which the writer CONTROL writes under the lock; and messages. */
#include "ggtrace-inside.h"
#include "ggtrace-nvtx.h"

#define GGTRACE_POISON
#include "ggtrace.h"
#include "ggtrace-requests.h"

bool ggtrace_put_locked(struct ggtrace * log, enum ggtrace_kind kind, enum ggtrace_type type, const struct part parts[],
                        int count) {
    struct ggtrace_writer * writer = &log->shared->writers[CONTROL];
    if (writer->kind != kind) ggtrace_seal(writer);
    writer->kind = kind;
    uint32_t size = 4;
    for (int i = 0; i < count; i++) size += ((uint32_t) parts[i].count + 3) & ~3u;
    uint8_t * record = ggtrace_begin(writer, size, ggtrace_now());
    if (record) {
        uint8_t * at = record + 4;
        for (int i = 0; i < count; i++) {
            if (parts[i].count) memcpy(at, parts[i].bytes, parts[i].count);
            at += (parts[i].count + 3) & ~(size_t) 3;
        }
        ggtrace_commit(writer, record, type, size);
    }
    if (kind == GGTRACE_DEFINITIONS) ADD(log->shared->definitions, 1); /* a lost definition has a serial too */
    return record;
}

static bool put(struct ggtrace * log, enum ggtrace_kind kind, enum ggtrace_type type, const struct part parts[],
                int count) {
    if (!is_alive(log)) return false;
    pthread_mutex_lock(&log->shared->lock);
    const bool done = is_alive(log) && ggtrace_put_locked(log, kind, type, parts, count);
    pthread_mutex_unlock(&log->shared->lock);
    return done;
}

#define PARTS(...) (const struct part[]){__VA_ARGS__}, sizeof((const struct part[]){__VA_ARGS__}) / sizeof(struct part)
#define PUT(log, kind, type, ...) put(log, kind, type, PARTS(__VA_ARGS__))

/* How many bytes of a text are kept: at most `most`, without a partial character. */
static uint32_t text_bytes(const char * text, size_t bytes, size_t most) {
    if (bytes <= most) return (uint32_t) bytes;
    while (most > 0 && ((uint8_t) text[most] & 0xc0) == 0x80) most--;
    return (uint32_t) most;
}

void ggtrace_message(struct ggtrace_writer * writer, uint64_t time, uint32_t level, const char * text, size_t bytes) {
    if (!writer->log) return;
    const uint32_t length = text_bytes(text, bytes, GGTRACE_TEXT_BYTES_MAX);
    const uint32_t size = (uint32_t) sizeof(struct ggtrace_message_record) + ((length + 3) & ~3u);
    struct ggtrace_message_record * record = ggtrace_begin(writer, size, time);
    if (!record) return;
    memset((uint8_t *) record + size - 4, 0, 4);
    *record = (struct ggtrace_message_record){.time = time, .level = level, .bytes = length};
    memcpy(record + 1, text, length);
    ggtrace_commit(writer, record, GGTRACE_MESSAGE, size);
}

bool ggtrace_fact(struct ggtrace * log, const char * key, const char * value) {
    const uint32_t key_bytes = text_bytes(key, strlen(key), GGTRACE_KEY_BYTES_MAX);
    const uint32_t value_bytes = text_bytes(value, strlen(value), GGTRACE_TEXT_BYTES_MAX);
    return PUT(log, GGTRACE_RUN, GGTRACE_FACT, {&key_bytes, 4}, {key, key_bytes}, {&value_bytes, 4},
               {value, value_bytes});
}

bool ggtrace_clocks(struct ggtrace * log) {
    static const clockid_t clocks[] = {CLOCK_MONOTONIC, CLOCK_BOOTTIME, CLOCK_REALTIME};
    struct timespec now[3];
    uint64_t times[3];
    for (int i = 0; i < 3; i++) ggtrace_clock(clocks[i], &now[i]);
    for (int i = 0; i < 3; i++) times[i] = (uint64_t) now[i].tv_sec * 1000000000u + (uint64_t) now[i].tv_nsec;
    return PUT(log, GGTRACE_RUN, GGTRACE_CLOCKS, {times, sizeof(times)});
}

bool ggtrace_define_name(struct ggtrace * log, uint32_t id, const char * text, size_t bytes) {
    const uint32_t head[] = {id, text_bytes(text, bytes, GGTRACE_TEXT_BYTES_MAX)};
    return PUT(log, GGTRACE_DEFINITIONS, GGTRACE_NAME, {head, sizeof(head)}, {text, head[1]});
}

bool ggtrace_define_op(struct ggtrace * log, uint32_t number, uint32_t name) {
    return PUT(log, GGTRACE_DEFINITIONS, GGTRACE_OP, {&number, 4}, {&name, 4});
}

bool ggtrace_define_type(struct ggtrace * log, uint32_t number, uint32_t name) {
    return PUT(log, GGTRACE_DEFINITIONS, GGTRACE_TYPE, {&number, 4}, {&name, 4});
}

bool ggtrace_define_buffer(struct ggtrace * log, const struct ggtrace_buffer * buffer) {
    return PUT(log, GGTRACE_DEFINITIONS, GGTRACE_BUFFER, {buffer, sizeof(*buffer)});
}

bool ggtrace_define_mapping(struct ggtrace * log, const struct ggtrace_mapping * mapping) {
    return PUT(log, GGTRACE_DEFINITIONS, GGTRACE_MAPPING, {mapping, sizeof(*mapping)});
}

bool ggtrace_define_counted(struct ggtrace * log, const struct ggtrace_counted * counted) {
    return PUT(log, GGTRACE_DEFINITIONS, GGTRACE_COUNTED, {counted, sizeof(*counted)});
}

bool ggtrace_define_numbers(struct ggtrace * log, enum ggtrace_type type, const uint32_t * numbers, uint32_t count) {
    return PUT(log, GGTRACE_DEFINITIONS, type, {numbers, 4u * count});
}

bool ggtrace_define_tensor(struct ggtrace * log, const struct ggtrace_tensor * tensor, const uint32_t * sources) {
    struct ggtrace_tensor fixed = *tensor;
    if (fixed.source_count > GGTRACE_SOURCES_MAX) fixed.source_count = GGTRACE_SOURCES_MAX;
    return PUT(log, GGTRACE_DEFINITIONS, GGTRACE_TENSOR, {&fixed, sizeof(fixed)}, {sources, 4u * fixed.source_count});
}

bool ggtrace_define_graph(struct ggtrace * log, uint32_t id, uint32_t backend, const uint32_t * nodes, uint32_t count) {
    if (!log) return false;
    const uint32_t fit = (log->record_max - 16) / 4, at_once = fit < GGTRACE_NODES_MAX ? fit : GGTRACE_NODES_MAX;
    bool done = true;
    for (uint32_t first = 0; first == 0 || first < count; first += at_once) {
        const uint32_t head[] = {id, backend, count - first < at_once ? count - first : at_once};
        done &= PUT(log, GGTRACE_DEFINITIONS, GGTRACE_GRAPH_NODES, {head, sizeof(head)}, {nodes + first, 4 * head[2]});
    }
    return done;
}
