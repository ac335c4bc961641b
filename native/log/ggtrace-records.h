/* The .ggtrace format in C: numbers and layouts of docs/reference/ggtrace-format.md. Included by ggtrace.h. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define GGTRACE_MAGIC 0x30544747u
#define GGTRACE_NO_WORKER 0xffffffffu
#define GGTRACE_NO_CALL 0xffffffffu
#define GGTRACE_NO_SPLIT 0xffffffffu
#define GGTRACE_NO_POSITION 0xffffffffu
#define GGTRACE_NO_NUMBER 0xffffffffu

enum ggtrace_kind { GGTRACE_RUN = 1, GGTRACE_DEFINITIONS = 2, GGTRACE_EVENTS = 3, GGTRACE_RING = 4 };

enum ggtrace_type {
    GGTRACE_FACT = 1,
    GGTRACE_CLOCKS = 2,
    GGTRACE_END = 3,
    GGTRACE_NAME = 16,
    GGTRACE_OP = 17,
    GGTRACE_TYPE = 18,
    GGTRACE_BUFFER = 19,
    GGTRACE_MAPPING = 20,
    GGTRACE_TENSOR = 21,
    GGTRACE_GRAPH_NODES = 22, /* GRAPH among the definitions */
    GGTRACE_COUNTED = 23,
    GGTRACE_NVTX_DOMAIN = 24,
    GGTRACE_NVTX_CATEGORY = 25,
    GGTRACE_THREAD = 26,
    GGTRACE_REFUSAL = 27,
    GGTRACE_PAGES = 28,
    GGTRACE_WEIGHT = 29,
    GGTRACE_OPERATOR = 32,
    GGTRACE_OPERATOR_INNER = 33,
    GGTRACE_OPERATOR_FUSED = 34,
    GGTRACE_CURSOR = 35,
    GGTRACE_TOKEN = 36,
    GGTRACE_GRAPH = 37,
    GGTRACE_EXPERTS = 38,
    GGTRACE_COPY = 39,
    GGTRACE_FREE = 40,
    GGTRACE_COUNTER = 41,
    GGTRACE_RANGE_BEGIN = 42,
    GGTRACE_RANGE_END = 43,
    GGTRACE_LOSS = 44,
    GGTRACE_OPERATOR_LONG = 45,
    GGTRACE_STATE = 46,
    GGTRACE_COUNTS = 47,
    GGTRACE_COUNTS_SCALED = 48,
    GGTRACE_LEVEL = 49,
    GGTRACE_PART = 50,
    GGTRACE_NVTX_PUSH = 52,
    GGTRACE_NVTX_POP = 53,
    GGTRACE_NVTX_START = 54,
    GGTRACE_NVTX_END = 55,
    GGTRACE_NVTX_MARK = 56,
    GGTRACE_NVTX_NAMED = 57,
    GGTRACE_FUNCTION = 58,
    GGTRACE_SEQUENCE = 59,
    GGTRACE_TASK = 60,
    GGTRACE_MESSAGE = 61,
    GGTRACE_RESOURCES = 62,
    GGTRACE_AFFINITY = 63,
    GGTRACE_GPU_QUEUE = 64, /* among the definitions */
    GGTRACE_GPU_WORK = 65,
    GGTRACE_GPU_SUBMISSION = 66,
    GGTRACE_GPU_PIPELINE = 67,
    GGTRACE_GPU_WAIT = 68,
    GGTRACE_GPU_CLOCK = 69,
    GGTRACE_GPU_COMPLETE = 70,
    GGTRACE_OPERATOR_SMALL = 71,
    GGTRACE_OPERATOR_SMALL_INNER = 72,
    GGTRACE_OPERATOR_SMALL_FUSED = 73,
    GGTRACE_RPC = 74,
};

enum ggtrace_usage { GGTRACE_USAGE_ANY = 0, GGTRACE_USAGE_WEIGHTS = 1, GGTRACE_USAGE_COMPUTE = 2 };
enum ggtrace_token_kind { GGTRACE_DECODE = 0, GGTRACE_ENCODE = 1, GGTRACE_WARM_UP = 2, GGTRACE_COMPUTE = 3 };
#define GGTRACE_KIND 0xffu
/* Flags of `kind`: */
#define GGTRACE_LEFT_OUT 0x100u   /* the events inside the call were not recorded */
#define GGTRACE_ALL_OUTPUT 0x200u /* each of several tokens has an output, as in the verification of drafts */
#define GGTRACE_EMBEDS 0x400u     /* llama_decode was called to compute embeddings, not to decode */
#define GGTRACE_BY_GRAPH 0x800u   /* no call was observed: kind and tokens come from the inputs of a scheduled graph */
#define GGTRACE_INFERRED_KIND 0x1000u /* a warm-up follows from what the program did after it */
#define GGTRACE_MAY_WARM_UP 0x2000u   /* if it turns out to be a warm-up, a second record of the call says so */
#define GGTRACE_FOLLOWS_UNREAD 0x4000u /* no output of the context's call before it was read, as in benchmarks */
/* `result` of a call from which no function returned: an exception or longjmp left it. Its end is unknown: `end` is its start. */
#define GGTRACE_LEFT INT32_MIN
enum ggtrace_direction { GGTRACE_GET = 0, GGTRACE_SET = 1, GGTRACE_BETWEEN = 2 };
enum ggtrace_part { GGTRACE_ALLOCATE = 0, GGTRACE_RESERVE = 1, GGTRACE_RECORDER = 2 };
enum ggtrace_state { GGTRACE_RUNNING = 0, GGTRACE_RUNNABLE = 1, GGTRACE_BLOCKED = 2, GGTRACE_ENDED = 3 };
enum ggtrace_question { GGTRACE_SUPPORTS_OP = 0, GGTRACE_OFFLOAD_OP = 1, GGTRACE_SUPPORTS_MEMORY = 2 };
enum ggtrace_unit { GGTRACE_COUNT = 0, GGTRACE_NANOSECONDS = 1, GGTRACE_BYTES = 2 };
#define GGTRACE_NOT_COMPUTED 1u /* flag of a tensor */
#define GGTRACE_UNKNOWN_VALUE UINT64_MAX /* `value` of a FUNCTION, times of a RESOURCES */
/* `what` of a FUNCTION, a SEQUENCE and a TASK: docs/reference/ggtrace-format.md explains them. */
enum ggtrace_purpose {
    GGTRACE_SAMPLE, GGTRACE_ACCEPT, GGTRACE_CREATE_SAMPLER, GGTRACE_TOKENIZE, GGTRACE_DETOKENIZE, GGTRACE_TOKEN_TO_PIECE,
    GGTRACE_SYNCHRONIZE, GGTRACE_LOAD_MODEL, GGTRACE_READ_HEADER, GGTRACE_MAP, GGTRACE_COPY_WEIGHTS, GGTRACE_CREATE_CONTEXT,
    GGTRACE_RESERVE_GRAPHS, GGTRACE_SAVE_STATE, GGTRACE_RESTORE_STATE, GGTRACE_LOAD_LORA, GGTRACE_SET_LORA,
    GGTRACE_GET_EMBEDDINGS, GGTRACE_TOKENIZE_MEDIA, GGTRACE_ENCODE_MEDIA, GGTRACE_DECODE_MEDIA, GGTRACE_DRAFT, GGTRACE_VERIFY,
    GGTRACE_ACCEPT_DRAFT, GGTRACE_WRITE_LOG, GGTRACE_WAIT_TO_SEND,
};
enum ggtrace_change { GGTRACE_REMOVE, GGTRACE_SHIFT, GGTRACE_COPY_SEQUENCE, GGTRACE_KEEP, GGTRACE_CLEAR };
enum ggtrace_step {
    GGTRACE_POST, GGTRACE_DEFER, GGTRACE_RESUME, GGTRACE_LAUNCH, GGTRACE_PROMPT, GGTRACE_REUSE, GGTRACE_REPROCESS,
    GGTRACE_PROGRESS, GGTRACE_DRAFTED, GGTRACE_CHECKPOINT, GGTRACE_TIMINGS, GGTRACE_RELEASE, GGTRACE_SEND, GGTRACE_CANCEL,
    GGTRACE_ERROR,
};

struct ggtrace_block {
    uint32_t magic, size, checksum;
    uint16_t kind, writer;
    uint32_t sequence, tid;
    uint64_t base;
    uint32_t needs, dropped, worker, call;
};

/* Records are aligned to 4 bytes and contain 8-byte fields: packed, so that the compiler assumes no larger alignment. */
#define GGTRACE_RECORD __attribute__((packed, aligned(4), may_alias))

struct ggtrace_operator_record { uint32_t head, tensor, start, compute, wait; } GGTRACE_RECORD;
struct ggtrace_operator_extra_record { uint32_t head, tensor, start, compute, wait, extra; } GGTRACE_RECORD;
/* Of an operator that starts at the cursor, and whose numbers need no more bits than these. `packed`: tensor, wait, compute, from the lowest bit on. */
enum { GGTRACE_SMALL_TENSOR_BITS = 20, GGTRACE_SMALL_WAIT_BITS = 20, GGTRACE_SMALL_COMPUTE_BITS = 24 };
struct ggtrace_operator_small_record { uint32_t head; uint64_t packed; } GGTRACE_RECORD;
struct ggtrace_operator_small_extra_record { uint32_t head; uint64_t packed; uint32_t extra; } GGTRACE_RECORD;
struct ggtrace_operator_long_record {
    uint32_t head;
    uint64_t start, compute_end, end;
    uint32_t tensor, inner, last;
} GGTRACE_RECORD;
struct ggtrace_cursor_record { uint32_t head; uint64_t time; uint32_t call; } GGTRACE_RECORD;
struct ggtrace_graph_record {
    uint32_t head;
    uint64_t start, end;
    uint32_t graph, call;
    int32_t status;
    uint32_t backend, split;
} GGTRACE_RECORD;
struct ggtrace_experts_record { uint32_t head; uint64_t time; uint32_t tensor, tokens, k, call; } GGTRACE_RECORD;
struct ggtrace_free_record { uint32_t head; uint64_t time; uint32_t buffer; } GGTRACE_RECORD;
struct ggtrace_counter_record { uint32_t head; uint64_t time; double value; uint32_t name; } GGTRACE_RECORD;
struct ggtrace_range_begin_record { uint32_t head; uint64_t time; uint32_t name; } GGTRACE_RECORD;
struct ggtrace_range_end_record { uint32_t head; uint64_t time; } GGTRACE_RECORD;
struct ggtrace_loss_record { uint32_t head; uint64_t time; uint32_t records, why; } GGTRACE_RECORD;
struct ggtrace_state_record { uint32_t head; uint64_t time; uint32_t tid, cpu, state; } GGTRACE_RECORD;
struct ggtrace_level_record { uint32_t head; uint64_t time; uint32_t level, percent; uint64_t with, without; } GGTRACE_RECORD;
struct ggtrace_part_record { uint32_t head; uint64_t start, end; uint32_t call, what; } GGTRACE_RECORD;
struct ggtrace_message_record { uint32_t head; uint64_t time; uint32_t level, bytes; } GGTRACE_RECORD;
struct ggtrace_clocks_record { uint32_t head; uint64_t monotonic, boottime, realtime; } GGTRACE_RECORD;
struct ggtrace_end_record { uint32_t head; uint64_t time, written, dropped; uint32_t full; } GGTRACE_RECORD;

/* Parameters of the writing functions. Their fields have the same places as in the record, after its first word. */

struct ggtrace_token {
    uint64_t start, end;
    uint32_t call, tokens, kind; /* kind: enum ggtrace_token_kind */
    int32_t result;
    uint64_t context;
};

/* Consecutive tokens of a batch that belong to one sequence, at consecutive positions. */
struct ggtrace_span {
    uint32_t sequence, position, tokens; /* position: of the first token; GGTRACE_NO_POSITION: llama.cpp assigns positions */
};

struct ggtrace_copy {
    uint64_t start, end, bytes;
    uint32_t source, target, tensor, kind; /* kind: enum ggtrace_direction */
};

struct ggtrace_function {
    uint64_t start, end;
    uint32_t what, name; /* what: enum ggtrace_purpose */
    uint64_t context;
    uint32_t sequence, output; /* GGTRACE_NO_NUMBER: not known */
    uint64_t value; /* GGTRACE_UNKNOWN_VALUE: not known */
};

/* What the kernel counted during the next call or function of the thread, which starts at `time`. */
struct ggtrace_resources {
    uint64_t time, minor_faults, major_faults, bytes_read, process_cpu; /* of the process; its CPU time in ns */
    uint64_t cpu, waiting; /* of the thread, ns; GGTRACE_UNKNOWN_VALUE: not known */
};

/*
 * A worker begins a graph on this CPU; `allowed`: name with the list of CPUs on which its thread may run, 0: not known; `policy`: name of
 * its NUMA policy, 0: the default one.
 */
struct ggtrace_affinity {
    uint64_t time;
    uint32_t cpu, allowed, policy;
};

struct ggtrace_sequence {
    uint64_t time, context;
    uint32_t what; /* enum ggtrace_change */
    int32_t sequence, to, from, end, delta; /* as in llama.h */
    uint32_t is_done, reserved;
};

struct ggtrace_task {
    uint64_t time;
    uint32_t what; /* enum ggtrace_step */
    int32_t task, slot; /* -1: not known */
    uint32_t detail; /* reserved: 0 */
};

/*
 * One side of a message of ggml-rpc. A client: from when it begins to send the request, `sent` when that is sent, `answered` at the answer's first
 * byte, `end` at its last one. A server: from the request's first byte, `sent` at its last one, `answered` when it begins to send the answer, `end`
 * when that is sent. `answered` 0: there is no answer; then `end` is `sent` on a client, and on a server when it waits for the next message.
 */
struct ggtrace_rpc {
    uint64_t start, sent, answered, end, request_bytes, answer_bytes;
    uint32_t number, command, is_server; /* number: of the connection's messages, from 0 */
    uint32_t client, server, call; /* names of the ends of the connection, `127.0.0.1:50052`; 0: not known */
};

struct ggtrace_buffer {
    uint32_t id, name, backend, usage; /* usage: enum ggtrace_usage */
    uint64_t base, size, time; /* time: of its allocation; 0: unknown */
};

struct ggtrace_mapping {
    uint32_t file, buffer; /* buffer: the mapping applies to this buffer only; 0: to all */
    uint64_t address, size, offset;
};

/* Defines the value with this index in COUNTS records. */
struct ggtrace_counted {
    uint32_t index, name, unit; /* unit: enum ggtrace_unit */
};

struct ggtrace_tensor {
    uint32_t id, name;
    uint16_t op, type, flags, source_count;
    uint64_t ne[4], nb[4], data, bytes;
    uint32_t buffer, view_source;
    uint64_t view_offset;
};

#define GGTRACE_AT(structure, field, offset) \
    _Static_assert(offsetof(struct structure, field) == (offset), #structure "." #field " is not where the page says")
#define GGTRACE_SIZE(structure, bytes) \
    _Static_assert(sizeof(struct structure) == (bytes), #structure " is not as long as the page says")

GGTRACE_SIZE(ggtrace_block, 48);
GGTRACE_AT(ggtrace_block, checksum, 8);
GGTRACE_AT(ggtrace_block, kind, 12);
GGTRACE_AT(ggtrace_block, sequence, 16);
GGTRACE_AT(ggtrace_block, base, 24);
GGTRACE_AT(ggtrace_block, needs, 32);
GGTRACE_AT(ggtrace_block, worker, 40);
GGTRACE_AT(ggtrace_block, call, 44);
GGTRACE_SIZE(ggtrace_operator_record, 20);
GGTRACE_SIZE(ggtrace_operator_extra_record, 24);
GGTRACE_SIZE(ggtrace_operator_long_record, 40);
GGTRACE_SIZE(ggtrace_operator_small_record, 12);
GGTRACE_SIZE(ggtrace_operator_small_extra_record, 16);
GGTRACE_AT(ggtrace_operator_long_record, tensor, 28);
GGTRACE_SIZE(ggtrace_cursor_record, 16);
GGTRACE_SIZE(ggtrace_graph_record, 40);
GGTRACE_AT(ggtrace_graph_record, status, 28);
GGTRACE_SIZE(ggtrace_experts_record, 28);
GGTRACE_SIZE(ggtrace_free_record, 16);
GGTRACE_SIZE(ggtrace_counter_record, 24);
GGTRACE_SIZE(ggtrace_range_begin_record, 16);
GGTRACE_SIZE(ggtrace_range_end_record, 12);
GGTRACE_SIZE(ggtrace_loss_record, 20);
GGTRACE_SIZE(ggtrace_state_record, 24);
GGTRACE_SIZE(ggtrace_level_record, 36);
GGTRACE_SIZE(ggtrace_part_record, 28);
GGTRACE_SIZE(ggtrace_clocks_record, 28);
GGTRACE_SIZE(ggtrace_end_record, 32);
GGTRACE_SIZE(ggtrace_token, 44 - 4);
GGTRACE_SIZE(ggtrace_span, 12);
GGTRACE_AT(ggtrace_token, context, 36 - 4);
GGTRACE_SIZE(ggtrace_copy, 44 - 4);
GGTRACE_AT(ggtrace_copy, source, 28 - 4);
GGTRACE_SIZE(ggtrace_function, 52 - 4);
GGTRACE_AT(ggtrace_function, value, 44 - 4);
GGTRACE_SIZE(ggtrace_sequence, 52 - 4);
GGTRACE_AT(ggtrace_sequence, sequence, 24 - 4);
GGTRACE_SIZE(ggtrace_task, 28 - 4);
GGTRACE_SIZE(ggtrace_resources, 60 - 4);
GGTRACE_SIZE(ggtrace_rpc, 76 - 4);
GGTRACE_AT(ggtrace_rpc, number, 52 - 4);
GGTRACE_AT(ggtrace_affinity, policy, 20 - 4);
GGTRACE_SIZE(ggtrace_message_record, 20);
GGTRACE_SIZE(ggtrace_buffer, 40);
GGTRACE_SIZE(ggtrace_mapping, 32);
GGTRACE_SIZE(ggtrace_counted, 12);
GGTRACE_SIZE(ggtrace_tensor, 112);
GGTRACE_AT(ggtrace_tensor, ne, 16);
GGTRACE_AT(ggtrace_tensor, data, 80);
GGTRACE_AT(ggtrace_tensor, buffer, 96);
GGTRACE_AT(ggtrace_tensor, view_offset, 104);
