/*
 * write_all OUT: every kind of record, from several threads, always the same ones: only thread ids, process id and clocks
 * differ between runs. A small MoE model of two layers decodes a prompt and three tokens on two workers.
 */
#include "common/system.h"
#include "log/ggtrace-nvtx.h"
#include "log/ggtrace-requests.h"

#include <stdio.h>

enum { WORKERS = 2, CALLS = 4, LAYERS = 2, EXPERTS_USED = 2 };
enum { T0 = 1000000000 };
#define LONG 6000000000ull
enum name { CPU = 1, FILE_NAME, OP_MUL_MAT, OP_MUL_MAT_ID, OP_NONE, TYPE_F32, TYPE_Q4_0, TYPE_I32, BUFFER_NAME, RSS,
            TEXT, WHY, TENSOR_NAMES };
enum tensor { WEIGHT = 1, INPUT, IDS, OUT_FIRST }; /* then two nodes per layer */

static struct ggtrace * log_file;
static pthread_barrier_t step;

static void name(uint32_t id, const char * text) {
    ggtrace_define_name(log_file, id, text, strlen(text));
}

static void tensor(uint32_t id, const char * text, uint16_t op, uint16_t type, const uint32_t * sources,
                   uint16_t count) {
    name(TENSOR_NAMES + id, text);
    const struct ggtrace_tensor definition = {
        .id = id, .name = TENSOR_NAMES + id, .op = op, .type = type, .source_count = count,
        .flags = op ? 0 : GGTRACE_NOT_COMPUTED,
        .ne = {64, 32, 1, 1}, .nb = {4, 256, 8192, 8192}, .data = 0x10000 + id * 0x2000ull, .bytes = 8192, .buffer = 1,
        .view_source = id == IDS ? INPUT : 0, .view_offset = id == IDS ? 128 : 0,
    };
    ggtrace_define_tensor(log_file, &definition, sources);
}

static void define(void) {
    static const char * const names[] = {"", "CPU", "tiny.gguf", "MUL_MAT", "MUL_MAT_ID", "NONE", "f32", "q4_0", "i32",
                                         "weights", "rss", "prompt \xe2\x9c\x93", "a reason"};
    for (uint32_t id = CPU; id < TENSOR_NAMES; id++) name(id, names[id]);
    ggtrace_define_op(log_file, 0, OP_NONE);
    ggtrace_define_op(log_file, 29, OP_MUL_MAT);
    ggtrace_define_op(log_file, 30, OP_MUL_MAT_ID);
    ggtrace_define_type(log_file, 0, TYPE_F32);
    ggtrace_define_type(log_file, 2, TYPE_Q4_0);
    ggtrace_define_type(log_file, 26, TYPE_I32);
    ggtrace_define_buffer(log_file, &(struct ggtrace_buffer){.id = 1, .name = BUFFER_NAME, .backend = CPU,
        .usage = GGTRACE_USAGE_WEIGHTS, .base = 0x10000, .size = 0x100000, .time = T0 - 500});
    ggtrace_define_mapping(log_file, &(struct ggtrace_mapping){.file = FILE_NAME, .address = 0x10000, .size = 0x100000,
        .offset = 4096});
    ggtrace_define_counted(log_file, &(struct ggtrace_counted){.index = 2, .name = RSS, .unit = GGTRACE_BYTES});
    const uint32_t refusal[4 + 18] = {GGTRACE_SUPPORTS_OP, CPU, OP_MUL_MAT, 1, TEXT, TYPE_F32, 64, 0, 32, 0, 1, 0, 1};
    ggtrace_define_numbers(log_file, GGTRACE_REFUSAL, refusal, 4 + 18);
    const uint32_t weight[7 + 8] = {0, CPU, BUFFER_NAME, OP_MUL_MAT, 29, TEXT, TYPE_Q4_0, 64, 0, 30, 0, 1, 0, 1};
    ggtrace_define_numbers(log_file, GGTRACE_WEIGHT, weight, 7 + 8);
    tensor(WEIGHT, "blk.0.ffn_up.weight", 0, 2, NULL, 0);
    tensor(INPUT, "inp_embd", 0, 0, NULL, 0);
    tensor(IDS, "ffn_moe_topk-0", 0, 26, NULL, 0);
    for (uint32_t layer = 0; layer < LAYERS; layer++) {
        const uint32_t first = OUT_FIRST + 2 * layer;
        char text[32];
        snprintf(text, sizeof(text), "ffn_out-%u", layer);
        tensor(first, text, 29, 0, (const uint32_t[]){WEIGHT, INPUT}, 2);
        snprintf(text, sizeof(text), "ffn_moe_up-%u", layer);
        tensor(first + 1, text, 30, 0, (const uint32_t[]){WEIGHT, first, IDS}, 3);
    }
    ggtrace_define_graph(log_file, 1, CPU, (const uint32_t[]){OUT_FIRST, OUT_FIRST + 1, OUT_FIRST + 2, OUT_FIRST + 3},
                         2 * LAYERS);
}

/* Start time of a call. After the second call there is a pause longer than a u32 of nanoseconds; in the last call there is such an operator. */
static uint64_t call_start(uint32_t call) {
    return T0 + call * 1000000ull + (call > 1 ? 5000000000ull : 0) + (call >= CALLS ? LONG : 0);
}

static void work(uint32_t ith) {
    struct ggtrace_writer * writer = ggtrace_writer_of_thread(log_file, ith);
    for (uint32_t call = 0; call < CALLS; call++) {
        uint64_t time = call_start(call) + 1000 + ith;
        ggtrace_call(writer, time, call);
        for (uint32_t layer = 0; layer < LAYERS; layer++, time += 4000) {
            const uint32_t first = OUT_FIRST + 2 * layer;
            const uint64_t end = time + 2000, start = end + layer; /* the second layer has gaps */
            ggtrace_operator(writer, first, time, time + 1500 + 100 * ith, end, 70);
            if (call == CALLS - 1 && layer == 1) time += LONG;
            if (call == 1) ggtrace_operator_fused(writer, first, start, time + 2900, time + 3000, first + 1);
            else ggtrace_operator(writer, first + 1, start, time + 2900 - 50 * ith, time + 3000, 0);
        }
        if (ith) continue;
        static const int32_t ids[] = {3, 1, 0, 2};
        const uint32_t tokens = call ? 1 : 2;
        ggtrace_experts(writer, time, IDS, tokens, EXPERTS_USED, call, ids);
    }
}

/* Threads run one after the other, so that the file is the same each time; none ends early, or two would share a writer. */
static void * thread(void * argument) {
    for (uint32_t turn = 0; turn < WORKERS; turn++) {
        if (turn == (uint32_t) (uintptr_t) argument) work(turn);
        pthread_barrier_wait(&step);
    }
    return NULL;
}

static void announce(struct ggtrace_writer * writer, uint64_t time) {
    static const uint32_t domain[] = {1, TEXT}, category[] = {1, 7, WHY}, thread_name[] = {77, RSS};
    ggtrace_define_numbers(log_file, GGTRACE_NVTX_DOMAIN, domain, 2);
    ggtrace_define_numbers(log_file, GGTRACE_NVTX_CATEGORY, category, 3);
    ggtrace_define_numbers(log_file, GGTRACE_THREAD, thread_name, 2);
    struct ggtrace_nvtx_record event = {.time = time, .domain = 1, .message = TEXT, .category = 7, .color = 0xff00ff00,
        .color_type = 1, .payload_type = 1, .payload = LONG, .range = 9};
    ggtrace_nvtx(writer, GGTRACE_NVTX_PUSH, &event);
    ggtrace_nvtx(writer, GGTRACE_NVTX_MARK, &event);
    ggtrace_nvtx(writer, GGTRACE_NVTX_START, &event);
    ggtrace_nvtx_pop(writer, time, 1);
    ggtrace_nvtx_end(writer, time, 9);
    ggtrace_nvtx_named(writer, time, GGTRACE_CUDA_STREAM, 0xc0ffee, RSS);
}

/* A request to a server: its task, its text, what it reuses, how its token is sampled. */
static void serve(struct ggtrace_writer * writer, uint64_t time) {
    static const char line[] = "slot launch_slot_: id  0 | task 7 | processing task";
    ggtrace_task(writer, &(struct ggtrace_task){.time = time, .what = GGTRACE_LAUNCH, .task = 7, .slot = 0});
    ggtrace_rpc(writer, &(struct ggtrace_rpc){.start = time, .sent = time + 2, .answered = time + 5, .end = time + 6, .request_bytes = LONG,
        .answer_bytes = 32, .number = 3, .command = 8, .is_server = 1, .client = TEXT, .server = RSS, .call = GGTRACE_NO_CALL});
    ggtrace_message(writer, time, 2, line, sizeof(line) - 1);
    ggtrace_sequence(writer, &(struct ggtrace_sequence){.time = time + 1, .context = 0xc0ffee, .what = GGTRACE_REMOVE, .to = -1,
        .from = 3, .end = -1, .is_done = 1});
    ggtrace_function(writer, &(struct ggtrace_function){.start = time + 2, .end = time + 9, .what = GGTRACE_SAMPLE, .name = TEXT,
        .context = 0xc0ffee, .sequence = GGTRACE_NO_NUMBER, .output = 1, .value = GGTRACE_UNKNOWN_VALUE});
}

static void host(void) {
    struct ggtrace_writer * writer = ggtrace_writer_of_thread(log_file, GGTRACE_NO_WORKER);
    ggtrace_range_begin(writer, T0 - 100, TEXT);
    ggtrace_copy(writer, &(struct ggtrace_copy){.start = T0 - 90, .end = T0 - 50, .bytes = 8192, .target = 1,
        .tensor = INPUT, .kind = GGTRACE_SET});
    for (uint32_t call = 0; call < CALLS; call++) {
        const uint64_t start = call_start(call), end = call_start(call + 1) - 1000;
        ggtrace_counter(writer, start, RSS, 1e6 + 0.5 * call);
        ggtrace_graph(writer, start + 500, end - 500, 1, call, 0, CPU, 0);
        const struct ggtrace_span span = {.sequence = 0, .position = call ? call + 1 : 0, .tokens = call ? 1 : 2};
        ggtrace_token(writer, &(struct ggtrace_token){.start = start, .end = end, .call = call, .tokens = call ? 1 : 2,
            .kind = GGTRACE_DECODE, .context = 0xc0ffee}, &span, 1);
    }
    ggtrace_state(writer, call_start(CALLS), 77, 1, GGTRACE_BLOCKED);
    ggtrace_counts(writer, call_start(CALLS), (const uint64_t[]){1, 0, LONG}, 3, false);
    ggtrace_counts(writer, call_start(CALLS), (const uint64_t[]){1, 2}, 2, true);
    ggtrace_loss(writer, call_start(CALLS), 3, WHY);
    ggtrace_level(writer, call_start(CALLS), 2, 10, 1300000, 1000000);
    ggtrace_part(writer, call_start(CALLS), call_start(CALLS) + 1, GGTRACE_NO_CALL, GGTRACE_RECORDER);
    ggtrace_free(writer, call_start(CALLS) + 1, 1);
    announce(writer, call_start(CALLS));
    serve(writer, call_start(CALLS));
    ggtrace_range_end(writer, call_start(CALLS) + 2);
}

int main(int count, char ** args) {
    if (count != 2) return 2;
    log_file = ggtrace_open(args[1], &(struct ggtrace_options){.replace = true, .segment_bytes = 4096});
    if (!log_file) {
        perror(args[1]);
        return 1;
    }
    ggtrace_fact(log_file, "command", "write_all");
    define();
    host();
    pthread_t threads[WORKERS];
    pthread_barrier_init(&step, NULL, WORKERS);
    for (uintptr_t i = 0; i < WORKERS; i++) pthread_create(&threads[i], NULL, thread, (void *) i);
    for (int i = 0; i < WORKERS; i++) pthread_join(threads[i], NULL);
    ggtrace_clocks(log_file);
    ggtrace_close(log_file);
    return 0;
}
