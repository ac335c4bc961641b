/*
 * A host program for the recorder's tests: decodes a prompt and then greedily, with llama.cpp's public API only. Its
 * options alone decide what it does: two runs give the same logits. Prints JSON lines; the last one is the result.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ggml-cpu.h"
#include "ggml-rpc.h"
#include "gguf.h"
#include "llama.h"

enum { MAX_CONTEXTS = 8, MAX_PARALLEL = 16 };

static const char usage[] =
    "usage: run --lib DIR --model FILE [options]\n"
    "  --threads N         threads of each context (1)\n"
    "  --prompt N          tokens of the prompt, of each sequence (8)\n"
    "  --decode N          tokens decoded after it, of each sequence (8)\n"
    "  --parallel N        sequences decoded in one batch (1)\n"
    "  --contexts N        contexts that decode at once, each from a thread of its own (1)\n"
    "  --batch N           tokens at most in a call, split up from there by the program (512)\n"
    "  --ubatch N          tokens at most in a graph, split up from there by llama.cpp (512)\n"
    "  --seed N            of the prompt (1)\n"
    "  --change-threads    each call from a fresh thread\n"
    "  --callers N         so many threads make the calls, by turns (the program's main thread)\n"
    "  --threadpool        workers live as long as the context, as in llama.cpp's own tools\n"
    "  --pool-cpu N        with --threadpool: all threads of it, and the one that calls, on this CPU\n"
    "  --flash-attention N 1: always, 0: never (as llama.cpp chooses)\n"
    "  --type-k NAME       of the KV cache's keys (f16), --type-v NAME of its values\n"
    "  --gpu-layers N      layers that a GPU computes, counted from the last (0)\n"
    "  --on-cpu REGEX      weights that remain on the CPU whatever computes their layer, as llama-cli's --override-tensor\n"
    "  --split-mode N      of the model over GPUs: 0 none, 1 by layers, 2 by rows, 3 by tensors (1)\n"
    "  --no-mmap           read the weights instead of mapping them\n"
    "  --no-repack         leave the weights as they are in the file\n"
    "  --warmup            a warm-up call first, through all experts\n"
    "  --times             print when each call began and ended\n"
    "  --perf              print what llama.cpp measured of the first context\n"
    "  --step              wait for a line on stdin before each call\n"
    "  --pause-us N        sleep before each call that decodes, as a program that waits for something else (0)\n"
    "  --sample            after each call, apply a chain of six samplers to its outputs, and make text of the result\n"
    "  --dlsym             find llama_decode by dlsym, as ctypes and llama-cpp-python do\n"
    "  --synchronize       wait for the work of each call before its end\n"
    "  --topk              print the experts that the router chose (through cb_eval)\n"
    "  --nodes             print the nodes of each graph, and what each reads (through cb_eval)\n"
    "  --each-node         compute node by node, and print each before it is computed (through cb_eval)\n"
    "  --tensors           print what gguf_* says of the file's tensors, and do nothing else\n"
    "  --verbose           llama.cpp's log on stderr\n"
    "  --slow-log          each message for the log takes 100 µs\n"
    "  --rpc ADDRESS       with --gpu-layers: a server of ggml-rpc computes these layers\n"
    "  --serve ADDRESS     serve the CPU by ggml-rpc until the end of stdin, and do nothing else\n";

struct options {
    const char *lib, *model, *type_k, *type_v, *on_cpu, *rpc, *serve;
    int flash_attention, threads, prompt, decode, parallel, contexts, batch, ubatch, seed, gpu_layers, split_mode, callers, pool_cpu, pause_us;
    bool change_threads, threadpool, no_mmap, no_repack, warmup, times, step, sample, synchronize, dlsym, topk, nodes, each_node, tensors, verbose, slow_log, perf;
};

static struct options options = {
    .threads = 1, .prompt = 8, .decode = 8, .parallel = 1, .contexts = 1, .batch = 512, .ubatch = 512, .seed = 1, .flash_attention = LLAMA_FLASH_ATTN_TYPE_AUTO,
    .split_mode = LLAMA_SPLIT_MODE_LAYER, .pool_cpu = -1,
};

/* llama_decode, as the program found it. */
static __typeof__(llama_decode) * decode_function = llama_decode;

/* One context and what its thread needs. */
struct session {
    int index;
    int calls;
    struct llama_sampler * chain; /* with --sample */
    int vocabulary; /* tokens in it */
    struct llama_context * context;
    struct llama_batch batch;
    struct ggml_threadpool * pool;
    uint64_t hash;
    llama_token * decoded[MAX_PARALLEL];
    int positions[MAX_PARALLEL];
    int outputs[MAX_PARALLEL]; /* where in the batch a sequence's logits were asked for */
    pthread_t thread;
};

static void fail(const char * what, const char * detail) {
    fprintf(stderr, "run: %s%s%s\n", what, detail ? ": " : "", detail ? detail : "");
    exit(1);
}

static void * allocate(size_t count, size_t size) {
    void * memory = calloc(count, size);
    if (!memory) fail("out of memory", NULL);
    return memory;
}

static int64_t now(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

/* FNV-1a over words of 4 bytes. */
static uint64_t hash_words(uint64_t hash, const void * data, size_t size) {
    for (size_t at = 0; at + 4 <= size; at += 4) {
        uint32_t word;
        memcpy(&word, (const char *) data + at, sizeof word);
        hash = (hash ^ word) * UINT64_C(0x100000001b3);
    }
    return hash;
}

static void log_to_stderr(enum ggml_log_level level, const char * text, void * data) {
    (void) data;
    if (options.verbose || level == GGML_LOG_LEVEL_ERROR) fputs(text, stderr);
    if (options.slow_log) usleep(100);
}

/* The chosen experts of each token that the layer computes, in the batch's order; the last layer: outputs only. */
static void print_topk(const struct session * session, const struct ggml_tensor * tensor) {
    const int layer = atoi(tensor->name + strlen("ffn_moe_topk-"));
    int32_t * ids = allocate(tensor->ne[0], sizeof *ids);
    flockfile(stdout);
    printf("{\"event\":\"topk\",\"context\":%d,\"call\":%d,\"layer\":%d,\"ids\":[", session->index,
           session->calls, layer);
    for (int64_t token = 0; token < tensor->ne[1]; token++) {
        /* A view of the sorted experts: rows lie further apart than they are long. */
        ggml_backend_tensor_get(tensor, ids, token * tensor->nb[1], tensor->ne[0] * sizeof *ids);
        for (int64_t i = 0; i < tensor->ne[0]; i++) {
            printf("%s%d", i ? "," : token ? ",[" : "[", ids[i]);
        }
        printf("]");
    }
    printf("]}\n");
    funlockfile(stdout);
    free(ids);
}

static void print_tensor(const struct ggml_tensor * tensor) {
    printf("{\"id\":\"%p\",\"name\":\"%s\",\"op\":\"%s\"}", (const void *) tensor, tensor->name,
           tensor->op == GGML_OP_NONE ? "" : ggml_op_desc(tensor));
}

/* A node, in the order of the graph, with its source list as ggml has it. */
static void print_node(const struct session * session, const struct ggml_tensor * tensor) {
    flockfile(stdout);
    printf("{\"event\":\"node\",\"context\":%d,\"call\":%d,\"node\":", session->index, session->calls);
    print_tensor(tensor);
    printf(",\"sources\":[");
    bool is_first = true;
    for (int i = 0; i < GGML_MAX_SRC; i++) {
        if (!tensor->src[i]) continue;
        if (!is_first) printf(",");
        is_first = false;
        print_tensor(tensor->src[i]);
    }
    printf("]}\n");
    funlockfile(stdout);
}

static bool on_eval(struct ggml_tensor * tensor, bool ask, void * data) {
    if (ask && (options.nodes || options.each_node)) print_node(data, tensor);
    if (options.each_node) return true;
    if (!options.topk) return !ask;
    const bool wanted = strncmp(tensor->name, "ffn_moe_topk-", strlen("ffn_moe_topk-")) == 0;
    if (wanted && !ask) print_topk(data, tensor);
    return wanted || !ask;
}

struct call {
    struct session * session;
    const char * kind;
    int status;
};

/* As programs do it; the time of the call contains it. The tokens are not decoded. */
static void sample(struct session * session) {
    char text[64];
    if (!session->chain) {
        session->chain = llama_sampler_chain_init(llama_sampler_chain_default_params());
        llama_sampler_chain_add(session->chain, llama_sampler_init_top_n_sigma(3));
        llama_sampler_chain_add(session->chain, llama_sampler_init_top_k(40));
        llama_sampler_chain_add(session->chain, llama_sampler_init_top_p(0.95f, 1));
        llama_sampler_chain_add(session->chain, llama_sampler_init_min_p(0.05f, 1));
        llama_sampler_chain_add(session->chain, llama_sampler_init_temp(0.8f));
        llama_sampler_chain_add(session->chain, llama_sampler_init_dist(1));
    }
    const struct llama_vocab * vocabulary = llama_model_get_vocab(llama_get_model(session->context));
    for (int sequence = 0; sequence < options.parallel; sequence++) {
        const llama_token token = llama_sampler_sample(session->chain, session->context, session->outputs[sequence]);
        llama_token_to_piece(vocabulary, token, text, sizeof text, 0, false);
    }
}

static void * decode(void * data) {
    struct call * call = data;
    struct session * session = call->session;
    const int64_t cpu = now(CLOCK_THREAD_CPUTIME_ID);
    const int64_t start = now(CLOCK_MONOTONIC);
    call->status = decode_function(session->context, session->batch);
    if (options.synchronize) llama_synchronize(session->context);
    if (options.sample && call->status == 0 && strcmp(call->kind, "decode") == 0) sample(session);
    const int64_t end = now(CLOCK_MONOTONIC);
    const int64_t used = now(CLOCK_THREAD_CPUTIME_ID) - cpu;
    if (options.times) {
        printf("{\"event\":\"call\",\"context\":%d,\"call\":%d,\"kind\":\"%s\",\"tokens\":%d,\"start\":%" PRId64
               ",\"end\":%" PRId64 ",\"cpu\":%" PRId64 ",\"tid\":%d}\n",
               session->index, session->calls, call->kind, session->batch.n_tokens, start, end, used, gettid());
    }
    return NULL;
}

/* Threads that make the calls by turns, as those of a server do. */
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turned = PTHREAD_COND_INITIALIZER;
static struct call * next_call;
static int next_caller = -1;

static void * call_by_turns(void * data) {
    pthread_mutex_lock(&turn);
    for (;;) {
        while (next_caller != (int) (intptr_t) data) pthread_cond_wait(&turned, &turn);
        decode(next_call);
        next_caller = -1;
        pthread_cond_broadcast(&turned);
    }
    return NULL;
}

static void decode_by_turns(struct call * call) {
    static int started;
    pthread_t thread;
    for (; started < options.callers; started++) {
        if (pthread_create(&thread, NULL, call_by_turns, (void *) (intptr_t) started) != 0) fail("no thread for calls", NULL);
    }
    pthread_mutex_lock(&turn);
    next_call = call;
    next_caller = call->session->calls % options.callers;
    pthread_cond_broadcast(&turned);
    while (next_caller >= 0) pthread_cond_wait(&turned, &turn);
    pthread_mutex_unlock(&turn);
}

static void decode_batch(struct session * session, const char * kind) {
    struct call call = { .session = session, .kind = kind };
    while (options.step && getchar() != '\n') if (feof(stdin)) fail("no line on stdin", kind);
    if (options.change_threads) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, decode, &call) != 0) fail("no thread for a call", NULL);
        pthread_join(thread, NULL);
    } else if (options.callers) {
        decode_by_turns(&call);
    } else {
        decode(&call);
    }
    if (call.status != 0) fail("llama_decode failed", kind);
    session->calls++;
}

static void add(struct session * session, llama_token token, int sequence, bool output) {
    struct llama_batch * batch = &session->batch;
    const int at = batch->n_tokens++;
    batch->token[at] = token;
    batch->pos[at] = session->positions[sequence]++;
    batch->n_seq_id[at] = 1;
    batch->seq_id[at][0] = sequence;
    batch->logits[at] = output;
    if (output) session->outputs[sequence] = at;
}

static void decode_prompt(struct session * session) {
    const int words = session->vocabulary - 259; /* after three special tokens and the bytes */
    uint32_t random = (uint32_t) options.seed * 2654435761u + (uint32_t) session->index;
    session->batch.n_tokens = 0;
    for (int sequence = 0; sequence < options.parallel; sequence++) {
        for (int i = 0; i < options.prompt; i++) {
            random = random * 1664525u + 1013904223u;
            add(session, i ? 259 + (int) ((random >> 8) % (uint32_t) words) : 1, sequence, i == options.prompt - 1);
            const bool last = sequence == options.parallel - 1 && i == options.prompt - 1;
            if (session->batch.n_tokens < options.batch || last) continue;
            /* A full call that is not the last: outputs of it would be lost. */
            if (options.parallel > 1) fail("--batch must hold the prompts of all sequences", NULL);
            decode_batch(session, "prompt");
            session->batch.n_tokens = 0;
        }
    }
    decode_batch(session, "prompt");
}

/* Hashes the logits that the last call gave for the sequence and returns the token that they favour. */
static llama_token choose(struct session * session, int sequence) {
    const float * logits = llama_get_logits_ith(session->context, session->outputs[sequence]);
    int best = 0;
    if (!logits) fail("no logits", NULL);
    session->hash = hash_words(session->hash, logits, session->vocabulary * sizeof *logits);
    for (int token = 1; token < session->vocabulary; token++) {
        if (logits[token] > logits[best]) best = token;
    }
    return best;
}

/* As llama.cpp's tools did it until v0.5.0: with all experts of every layer. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
static void warm_up(struct session * session) {
    llama_set_warmup(session->context, true);
    session->batch.n_tokens = 0;
    add(session, 1, 0, true);
    decode_batch(session, "warmup");
    llama_memory_clear(llama_get_memory(session->context), true);
    llama_synchronize(session->context);
    llama_set_warmup(session->context, false);
    session->positions[0] = 0;
}

static void * run_session(void * data) {
    struct session * session = data;
    if (options.warmup) warm_up(session);
    decode_prompt(session);
    for (int step = 0; step < options.decode; step++) {
        for (int sequence = 0; sequence < options.parallel; sequence++) {
            session->decoded[sequence][step] = choose(session, sequence);
        }
        session->batch.n_tokens = 0;
        for (int sequence = 0; sequence < options.parallel; sequence++) {
            add(session, session->decoded[sequence][step], sequence, true);
        }
        if (options.pause_us) usleep(options.pause_us);
        decode_batch(session, "decode");
    }
    for (int sequence = 0; sequence < options.parallel; sequence++) choose(session, sequence);
    return NULL;
}

static void * cpu_function(const char * name) {
    ggml_backend_reg_t cpu = ggml_backend_dev_backend_reg(ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU));
    void * function = ggml_backend_reg_get_proc_address(cpu, name);
    if (!function) fail("the CPU backend has no function", name);
    return function;
}

/* The CPU backend is loaded at run time: its functions are reached through its registry. */
static void attach_pool(struct session * session) {
    struct ggml_threadpool_params params = ggml_threadpool_params_default(options.threads);
    __typeof__(ggml_threadpool_new) * create = cpu_function("ggml_threadpool_new");
    if (options.pool_cpu >= 0) {
        cpu_set_t cpus;
        CPU_ZERO(&cpus);
        CPU_SET(options.pool_cpu, &cpus);
        if (sched_setaffinity(0, sizeof cpus, &cpus) != 0) fail("cannot bind", "--pool-cpu");
        params.cpumask[options.pool_cpu] = true;
    }
    session->pool = create(&params);
    if (!session->pool) fail("no thread pool", NULL);
    llama_attach_threadpool(session->context, session->pool, session->pool);
}

static void detach_pool(struct session * session) {
    __typeof__(ggml_threadpool_free) * destroy = cpu_function("ggml_threadpool_free");
    llama_detach_threadpool(session->context);
    destroy(session->pool);
}

static enum ggml_type type_of(const char * name, enum ggml_type otherwise) {
    for (int type = 0; name && type < GGML_TYPE_COUNT; type++) {
        if (strcmp(ggml_type_name(type), name) == 0) return type;
    }
    if (name) fail("no type", name);
    return otherwise;
}

static void open_session(struct session * session, struct llama_model * model, int index) {
    struct llama_context_params params = llama_context_default_params();
    params.n_ctx = options.parallel * (options.prompt + options.decode + 1);
    params.n_batch = options.batch;
    params.n_ubatch = options.ubatch;
    params.n_seq_max = options.parallel;
    params.n_threads = options.threads;
    params.n_threads_batch = options.threads;
    params.kv_unified = true;
    params.flash_attn_type = options.flash_attention;
    params.type_k = type_of(options.type_k, params.type_k);
    params.type_v = type_of(options.type_v, params.type_v);
    params.no_perf = false;
    if (options.topk || options.nodes || options.each_node) {
        params.cb_eval = on_eval;
        params.cb_eval_user_data = session;
    }
    session->index = index;
    session->vocabulary = llama_vocab_n_tokens(llama_model_get_vocab(model));
    session->hash = UINT64_C(0xcbf29ce484222325);
    session->context = llama_init_from_model(model, params);
    if (!session->context) fail("no context", options.model);
    session->batch = llama_batch_init(options.batch, 0, 1);
    for (int sequence = 0; sequence < options.parallel; sequence++) {
        session->decoded[sequence] = allocate(options.decode + 1, sizeof(llama_token));
    }
    if (options.threadpool) attach_pool(session);
}

static void print_result(const struct session * sessions) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (int i = 0; i < options.contexts; i++) hash = hash_words(hash, &sessions[i].hash, sizeof sessions[i].hash);
    printf("{\"event\":\"result\",\"pid\":%d,\"hash\":\"%016" PRIx64 "\",\"tokens\":[", getpid(), hash);
    for (int i = 0; i < options.contexts; i++) {
        printf("%s[", i ? "," : "");
        for (int sequence = 0; sequence < options.parallel; sequence++) {
            printf("%s[", sequence ? "," : "");
            for (int step = 0; step < options.decode; step++) {
                printf("%s%d", step ? "," : "", sessions[i].decoded[sequence][step]);
            }
            printf("]");
        }
        printf("]");
    }
    printf("]}\n");
}

static void print_perf(struct llama_context * context) {
    const struct llama_perf_context_data perf = llama_perf_context(context);
    printf("{\"event\":\"perf\",\"promptMs\":%f,\"prompt\":%d,\"decodeMs\":%f,\"decode\":%d}\n", perf.t_p_eval_ms, perf.n_p_eval,
           perf.t_eval_ms, perf.n_eval);
}

static void print_tensors(void) {
#ifndef EARLIER
    struct gguf_context * file = gguf_init_from_file(options.model, (struct gguf_init_params) { .no_alloc = true });
    if (!file) fail("no GGUF file", options.model);
    for (int64_t i = 0; i < gguf_get_n_tensors(file); i++) {
        const int64_t * shape = gguf_get_tensor_ne(file, i);
        printf("{\"event\":\"tensor\",\"name\":\"%s\",\"type\":\"%s\",\"shape\":[%" PRId64 ",%" PRId64 ",%" PRId64
               ",%" PRId64 "],\"offset\":%zu,\"size\":%zu}\n",
               gguf_get_tensor_name(file, i), ggml_type_name(gguf_get_tensor_type(file, i)), shape[0], shape[1],
               shape[2], shape[3], gguf_get_data_offset(file) + gguf_get_tensor_offset(file, i),
               gguf_get_tensor_size(file, i));
    }
    gguf_free(file);
#endif
}

static int number(const char * name, const char * value, int least, int most) {
    char * end = NULL;
    const long found = value ? strtol(value, &end, 10) : 0;
    if (!value || end == value || *end || found < least || found > most) fail("wrong or no number", name);
    return (int) found;
}

static void parse(char ** arguments) {
    const int any = 1 << 20;
    const struct { const char * name; int * value; int least, most; } numbers[] = {
        { "--threads", &options.threads, 1, 512 },       { "--prompt", &options.prompt, 1, any },
        { "--decode", &options.decode, 0, any },         { "--parallel", &options.parallel, 1, MAX_PARALLEL },
        { "--contexts", &options.contexts, 1, MAX_CONTEXTS }, { "--batch", &options.batch, 1, any },
        { "--ubatch", &options.ubatch, 1, any },         { "--seed", &options.seed, 0, any },
        { "--gpu-layers", &options.gpu_layers, 0, any },  { "--flash-attention", &options.flash_attention, 0, 1 },
        { "--split-mode", &options.split_mode, 0, 3 },     { "--callers", &options.callers, 1, MAX_PARALLEL },
        { "--pool-cpu", &options.pool_cpu, 0, GGML_MAX_N_THREADS - 1 }, { "--pause-us", &options.pause_us, 0, any },
    };
    const struct { const char * name, ** value; } texts[] = {
        { "--lib", &options.lib },                       { "--model", &options.model },
        { "--type-k", &options.type_k },                 { "--type-v", &options.type_v },
        { "--on-cpu", &options.on_cpu },                 { "--rpc", &options.rpc },
        { "--serve", &options.serve },
    };
    const struct { const char * name; bool * value; } flags[] = {
        { "--change-threads", &options.change_threads }, { "--threadpool", &options.threadpool },
        { "--no-mmap", &options.no_mmap },               { "--no-repack", &options.no_repack },
        { "--warmup", &options.warmup },                 { "--times", &options.times },
        { "--perf", &options.perf },
        { "--dlsym", &options.dlsym },                   { "--topk", &options.topk },
        { "--each-node", &options.each_node },
        { "--nodes", &options.nodes },                   { "--tensors", &options.tensors },
        { "--verbose", &options.verbose },               { "--step", &options.step },
        { "--slow-log", &options.slow_log },
        { "--sample", &options.sample },                 { "--synchronize", &options.synchronize },
    };
    for (; *arguments; arguments++) {
        const char * name = *arguments;
        bool known = false;
        if (strcmp(name, "--help") == 0) exit(puts(usage) < 0);
        for (size_t i = 0; i < sizeof texts / sizeof *texts && arguments[1] && !known; i++) {
            if (strcmp(name, texts[i].name) != 0) continue;
            *texts[i].value = *++arguments;
            known = true;
        }
        for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
            if (strcmp(name, flags[i].name) == 0) known = *flags[i].value = true;
        }
        for (size_t i = 0; i < sizeof numbers / sizeof *numbers && !known; i++) {
            if (strcmp(name, numbers[i].name) != 0) continue;
            *numbers[i].value = number(name, *++arguments, numbers[i].least, numbers[i].most);
            known = true;
        }
        if (!known) fail("unknown option", name);
    }
    if (!options.lib || (!options.model && !options.serve)) fail("--lib and --model must be given", NULL);
}

static struct llama_model * load(void) {
    struct llama_model_params params = llama_model_default_params();
#ifdef EARLIER /* than llama.cpp v0.5.0 */
    params.use_mmap = !options.no_mmap;
#else
    params.load_mode = options.no_mmap ? LLAMA_LOAD_MODE_NONE : LLAMA_LOAD_MODE_MMAP;
#endif
    params.use_extra_bufts = !options.no_repack;
    params.n_gpu_layers = options.gpu_layers;
    params.split_mode = options.split_mode;
    const struct llama_model_tensor_buft_override overrides[] = { { options.on_cpu, ggml_backend_cpu_buffer_type() }, { NULL, NULL } };
    if (options.on_cpu) params.tensor_buft_overrides = overrides;
    const int64_t start = now(CLOCK_MONOTONIC);
    struct llama_model * model = llama_model_load_from_file(options.model, params);
    if (!model) fail("llama.cpp does not load the model", options.model);
    if (options.times) {
        printf("{\"event\":\"load\",\"start\":%" PRId64 ",\"end\":%" PRId64 "}\n", start, now(CLOCK_MONOTONIC));
    }
    return model;
}

/* libllama as it is loaded already; its handle finds its own functions, whoever stands in front of them for others. */
static void find_decode(void) {
    char path[4096];
    snprintf(path, sizeof(path), "%s/libllama.so", options.lib);
    void * library = dlopen(path, RTLD_NOW);
    void * found = library ? dlsym(library, "llama_decode") : NULL;
    if (!found) fail("no llama_decode", path);
    *(void **) &decode_function = found;
}

/* A function of ggml-rpc, which is loaded as a backend. */
static void * rpc_function(const char * name) {
    ggml_backend_reg_t backend = ggml_backend_reg_by_name("RPC");
    void * function = backend ? ggml_backend_reg_get_proc_address(backend, name) : NULL;
    if (!function) fail("no ggml-rpc in --lib", name);
    return function;
}

static void use_server(void) {
    __typeof__(ggml_backend_rpc_add_server) * add_server;
    *(void **) &add_server = rpc_function("ggml_backend_rpc_add_server");
    ggml_backend_register(add_server(options.rpc));
}

static void * wait_for_end(void * unused) {
    while (getchar() != EOF) {}
    exit(0);
    return unused;
}

/* What llama.cpp's ggml-rpc-server calls. */
static void serve(void) {
    __typeof__(ggml_backend_rpc_start_server) * start;
    ggml_backend_dev_t device = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    pthread_t thread;
    *(void **) &start = rpc_function("ggml_backend_rpc_start_server");
    if (pthread_create(&thread, NULL, wait_for_end, NULL) != 0) fail("no thread", NULL);
    start(options.serve, NULL, options.threads, 1, &device);
    fail("no server at", options.serve);
}

int main(int count, char ** arguments) {
    static struct session sessions[MAX_CONTEXTS];
    (void) count;
    parse(arguments + 1);
    if (options.step || options.times || options.each_node) setvbuf(stdout, NULL, _IOLBF, 0);
    llama_log_set(log_to_stderr, NULL);
    ggml_backend_load_all_from_path(options.lib);
    if (options.serve) serve();
    if (options.rpc) use_server();
    if (options.tensors) return print_tensors(), 0;
    llama_backend_init();
    if (options.dlsym) find_decode();
    struct llama_model * model = load();
    for (int i = 0; i < options.contexts; i++) open_session(&sessions[i], model, i);
    for (int i = 1; i < options.contexts; i++) {
        if (pthread_create(&sessions[i].thread, NULL, run_session, &sessions[i]) != 0) fail("no thread", NULL);
    }
    run_session(&sessions[0]);
    for (int i = 1; i < options.contexts; i++) pthread_join(sessions[i].thread, NULL);
    if (options.perf) print_perf(sessions[0].context);
    print_result(sessions);
    for (int i = 0; i < options.contexts; i++) {
        if (options.threadpool) detach_pool(&sessions[i]);
        llama_batch_free(sessions[i].batch);
        llama_sampler_free(sessions[i].chain);
        llama_free(sessions[i].context);
        for (int sequence = 0; sequence < options.parallel; sequence++) free(sessions[i].decoded[sequence]);
    }
    llama_model_free(model);
    llama_backend_free();
    return 0;
}
