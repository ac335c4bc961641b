/*
 * A host program for the recorder's tests that does what its arguments say, step by step: loads and frees models, decodes
 * from several threads at once, forks, becomes another program, leaves without tidying up. Prints JSON lines as run.c does.
 * Weights stay as they are in the mapped file, and workers sleep between graphs.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ggml-cpu.h"
#include "llama.h"

enum { SLOTS = 4, CONTEXT_TOKENS = 512 };

static const char usage[] =
    "usage: hosts LIB STEP …\n"
    "  load SLOT FILE      a model into slot 0 … 3\n"
    "  floats SLOT         its next context has an F32 cache, which flash attention casts\n"
    "  open SLOT THREADS   a context of its model, with a thread pool of its own\n"
    "  decode SLOT CALLS   a prompt of two tokens, or one token greedily, in each call\n"
    "  prompt SLOT         its next call is a prompt again, with logits of both tokens\n"
    "  many SLOT CALLS     one token in each call, of which nothing is printed; a full context is cleared\n"
    "  overrun SLOT CALLS  one token in each call, whether calls fail (the context is full) or not\n"
    "  all CALLS           the same for all open slots, each in a thread of its own\n"
    "  times               prints the CPU time of each thread, and page faults and context switches of the process\n"
    "  switch COUNT        two threads on one CPU wake each other so often\n"
    "  evict               forgets the mapped files' pages: they are read from the disk again\n"
    "  raise SIGNAL        sends itself a signal\n"
    "  sleep MS            does nothing for so many milliseconds\n"
    "  recorder FUNCTION   calls ggml2perfetto_FUNCTION(), if somebody has it\n"
    "  close SLOT          frees the context\n"
    "  free SLOT           frees the model\n"
    "  fork, _Fork STEP … end   does these steps in a child, and waits for it; _Fork: libc's handlers do not run\n"
    "  while SLOT NODE STEP … end   a call, cut in two graphs behind the node of that name, and these steps in between\n"
    "  exec PROGRAM …      becomes another program\n"
    "  exit CODE           at once, with all workers alive. Without it: code 0\n";

struct slot {
    struct llama_model * model;
    struct llama_context * context;
    struct ggml_threadpool * pool;
    int number, calls, wanted;
    bool has_floats, is_prompted, wants_all, may_fail, is_silent;
    int nodes; /* that llama.cpp had to compute in this call */
    llama_token next;
    const char * cut_behind;
    char ** meanwhile; /* steps that wait for that */
    pthread_t thread;
};

static struct slot slots[SLOTS];
static uint64_t hashes[SLOTS];

static void fail(const char * what, const char * detail) {
    fprintf(stderr, "hosts: %s: %s\n", what, detail);
    _exit(1);
}

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

static void log_to_stderr(enum ggml_log_level level, const char * text, void * data) {
    (void) data;
    if (level == GGML_LOG_LEVEL_ERROR) fputs(text, stderr);
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

static void * cpu_function(const char * name) {
    ggml_backend_reg_t cpu = ggml_backend_dev_backend_reg(ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU));
    void * function = ggml_backend_reg_get_proc_address(cpu, name);
    if (!function) fail("the CPU backend has no function", name);
    return function;
}

static void load(struct slot * slot, const char * path) {
    struct llama_model_params params = llama_model_default_params();
    params.use_extra_bufts = false;
    slot->model = llama_model_load_from_file(path, params);
    if (!slot->model) fail("llama.cpp does not load the model", path);
}

static char ** run_steps(char ** at);

static bool is_computed(const struct ggml_tensor * node) {
    static const enum ggml_op empty[] = { GGML_OP_NONE, GGML_OP_RESHAPE, GGML_OP_VIEW, GGML_OP_PERMUTE, GGML_OP_TRANSPOSE };
    for (size_t i = 0; i < sizeof empty / sizeof *empty; i++) if (node->op == empty[i]) return false;
    return (node->flags & GGML_TENSOR_FLAG_COMPUTE) != 0;
}

/* The scheduler asks of each node whether we want to see it; behind one that we want it cuts the graph. */
static bool on_eval(struct ggml_tensor * node, bool ask, void * data) {
    struct slot * slot = data;
    if (ask) {
        slot->nodes += is_computed(node);
        return slot->meanwhile && strcmp(node->name, slot->cut_behind) == 0;
    }
    char ** steps = slot->meanwhile;
    slot->meanwhile = NULL;
    run_steps(steps);
    return true;
}

static void open_context(struct slot * slot, int threads) {
    struct llama_context_params params = llama_context_default_params();
    params.n_ctx = CONTEXT_TOKENS;
    params.n_batch = params.n_ubatch = 2;
    params.n_threads = params.n_threads_batch = threads;
    params.cb_eval = on_eval;
    params.cb_eval_user_data = slot;
    if (slot->has_floats) {
        params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_ENABLED;
        params.type_k = params.type_v = GGML_TYPE_F32;
    }
    slot->calls = 0;
    slot->is_prompted = false;
    slot->context = llama_init_from_model(slot->model, params);
    if (!slot->context) fail("no context", "llama_init_from_model");
    __typeof__(ggml_threadpool_new) * create = cpu_function("ggml_threadpool_new");
    struct ggml_threadpool_params pool = ggml_threadpool_params_default(threads);
    pool.poll = 0;
    slot->pool = create(&pool);
    llama_attach_threadpool(slot->context, slot->pool, slot->pool);
}

static void close_context(struct slot * slot) {
    __typeof__(ggml_threadpool_free) * destroy = cpu_function("ggml_threadpool_free");
    llama_detach_threadpool(slot->context);
    destroy(slot->pool);
    llama_free(slot->context);
    slot->context = NULL;
}

static void decode(struct slot * slot) {
    llama_token prompt[] = { 1, 259 };
    const bool continues = slot->is_prompted;
    const int tokens = continues ? 1 : 2;
    slot->nodes = 0;
    slot->is_prompted = true;
    const int64_t start = now();
    struct llama_batch batch = llama_batch_get_one(continues ? &slot->next : prompt, tokens);
    int8_t all[] = { 1, 1 };
    if (slot->wants_all) batch.logits = all;
    const int result = llama_decode(slot->context, batch);
    const int64_t end = now();
    if (result != 0) {
        if (!slot->may_fail) fail("llama_decode", "failed");
        printf("{\"event\":\"failed\",\"result\":%d,\"start\":%" PRId64 ",\"end\":%" PRId64 "}\n", result, start, end);
        return;
    }
    const int count = llama_vocab_n_tokens(llama_model_get_vocab(slot->model));
    const float * logits = llama_get_logits_ith(slot->context, -1);
    slot->next = 0;
    for (int token = 1; token < count; token++) if (logits[token] > logits[slot->next]) slot->next = token;
    hashes[slot->number] = hash_words(hashes[slot->number] + 1, logits, count * sizeof *logits);
    slot->wants_all = false;
    slot->calls++;
    if (slot->is_silent) return;
    printf("{\"event\":\"call\",\"pid\":%d,\"tid\":%d,\"context\":%d,\"call\":%d,\"kind\":\"%s\",\"tokens\":%d,"
           "\"nodes\":%d,\"start\":%" PRId64 ",\"end\":%" PRId64 "}\n", getpid(), gettid(), slot->number, slot->calls - 1,
           continues ? "decode" : "prompt", tokens, slot->nodes, start, end);
}

static void decode_many(struct slot * slot, int calls) {
    slot->is_silent = true;
    for (int i = 0; i < calls; i++) {
        if (i % (CONTEXT_TOKENS / 2) == 0) llama_memory_clear(llama_get_memory(slot->context), true);
        decode(slot);
    }
    slot->is_silent = false;
}

static void * decode_wanted(void * data) {
    struct slot * slot = data;
    for (int i = 0; i < slot->wanted; i++) decode(slot);
    return NULL;
}

static void decode_all(int calls) {
    for (struct slot * slot = slots; slot < slots + SLOTS; slot++) {
        slot->wanted = calls;
        if (!slot->context) continue;
        if (pthread_create(&slot->thread, NULL, decode_wanted, slot) != 0) fail("no thread", "pthread_create");
    }
    for (struct slot * slot = slots; slot < slots + SLOTS; slot++) if (slot->context) pthread_join(slot->thread, NULL);
}

static void print_result(void) {
    const uint64_t hash = hash_words(0, hashes, sizeof hashes);
    printf("{\"event\":\"result\",\"pid\":%d,\"hash\":\"%016" PRIx64 "\",\"tokens\":[]}\n", getpid(), hash);
    fflush(stdout);
}

/* The step behind the `end` that belongs to this one. */
static char ** behind_end(char ** at) {
    for (int depth = 1; *at; at++) {
        if (strcmp(*at, "fork") == 0 || strcmp(*at, "_Fork") == 0 || strcmp(*at, "while") == 0) depth++;
        if (strcmp(*at, "end") == 0 && --depth == 0) return at + 1;
    }
    fail("a step has no", "end");
    return at;
}

static char ** run_in_child(pid_t child, char ** steps) {
    if (child < 0) fail("no child", "fork");
    if (child == 0) {
        memset(hashes, 0, sizeof hashes);
        run_steps(steps);
        print_result();
        exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    printf("{\"event\":\"child\",\"pid\":%d,\"code\":%d,\"signal\":%d}\n", child,
           WIFEXITED(status) ? WEXITSTATUS(status) : -1, WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    return behind_end(steps);
}

static struct slot * slot_of(const char * text) {
    const int number = text ? atoi(text) : -1;
    if (number < 0 || number >= SLOTS) fail("no such slot", text ? text : "");
    slots[number].number = number;
    return &slots[number];
}

/* CLOCK_THREAD_CPUTIME_ID of all threads, read from here. */
static void print_times(void) {
    DIR * tasks = opendir("/proc/self/task");
    const char * comma = "";
    if (!tasks) fail("cannot list", "threads");
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("{\"event\":\"times\",\"at\":%" PRId64 ",\"minor\":%ld,\"major\":%ld,\"switches\":%ld,\"cpu\":{", now(),
           usage.ru_minflt, usage.ru_majflt, usage.ru_nvcsw + usage.ru_nivcsw);
    for (struct dirent * entry; (entry = readdir(tasks));) {
        const int tid = atoi(entry->d_name);
        struct timespec time;
        if (tid == 0 || clock_gettime((clockid_t) (~(unsigned) tid << 3 | 6), &time) != 0) continue;
        printf("%s\"%d\":%" PRId64, comma, tid, time.tv_sec * INT64_C(1000000000) + time.tv_nsec);
        comma = ",";
    }
    printf("}}\n");
    closedir(tasks);
}

struct end {
    int from, to, count;
};

static void * answer(void * data) {
    struct end * end = data;
    char byte = 0;
    for (int i = 0; i < end->count; i++) if (read(end->from, &byte, 1) != 1 || write(end->to, &byte, 1) != 1) fail("switch", "read");
    return NULL;
}

/* Each of the threads is blocked and runs again, `count` times. */
static void switch_threads(int count) {
    int there[2], back[2];
    pthread_t threads[2];
    cpu_set_t before, one;
    char byte = 0;
    if (pipe(there) != 0 || pipe(back) != 0 || sched_getaffinity(0, sizeof before, &before) != 0) fail("switch", "pipe");
    CPU_ZERO(&one);
    for (int cpu = 0; CPU_COUNT(&one) == 0; cpu++) if (CPU_ISSET(cpu, &before)) CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
    struct end ends[] = { { there[0], back[1], count }, { back[0], there[1], count } };
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, answer, &ends[i]);
    if (write(there[1], &byte, 1) != 1) fail("switch", "write");
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < 2; i++) close(there[i]), close(back[i]);
    sched_setaffinity(0, sizeof before, &before);
}

static void evict(void) {
    FILE * maps = fopen("/proc/self/maps", "r");
    char line[1024], path[512];
    unsigned long begin, end;
    while (maps && fgets(line, sizeof line, maps)) {
        if (sscanf(line, "%lx-%lx %*s %*s %*s %*s %511s", &begin, &end, path) != 3 || !strstr(path, ".gguf")) continue;
        madvise((void *) begin, end - begin, MADV_DONTNEED);
        const int file = open(path, O_RDONLY);
        posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
        close(file);
    }
    if (maps) fclose(maps);
}

static void call_recorder(const char * name) {
    char symbol[64];
    snprintf(symbol, sizeof symbol, "ggml2perfetto_%s", name);
    void (*function)(void);
    *(void **) &function = dlsym(RTLD_DEFAULT, symbol);
    if (function) function();
}

/* Does one step; returns the next one, or NULL where these steps end. */
static char ** run_step(char ** at) {
    const char * step = *at++;
    fflush(stdout); /* a child must not print again what waits to be printed */
    if (strcmp(step, "end") == 0) return NULL;
    if (strcmp(step, "times") == 0) return print_times(), at;
    if (strcmp(step, "fork") == 0) return run_in_child(fork(), at);
    if (strcmp(step, "_Fork") == 0) return run_in_child((pid_t) syscall(SYS_fork), at);
    if (strcmp(step, "all") == 0 && at[0]) return decode_all(atoi(at[0])), at + 1;
    if (strcmp(step, "exec") == 0 && at[0]) {
        print_result();
        execvp(at[0], at);
        fail("cannot become", at[0]);
    }
    if (strcmp(step, "switch") == 0 && at[0]) return switch_threads(atoi(at[0])), at + 1;
    if (strcmp(step, "evict") == 0) return evict(), at;
    if (strcmp(step, "sleep") == 0 && at[0]) return usleep((useconds_t) atoi(at[0]) * 1000), at + 1;
    if (strcmp(step, "raise") == 0 && at[0]) return raise(atoi(at[0])), at + 1;
    if (strcmp(step, "recorder") == 0 && at[0]) return call_recorder(at[0]), at + 1;
    if (strcmp(step, "exit") == 0 && at[0]) {
        print_result();
        exit(atoi(at[0]));
    }
    struct slot * slot = slot_of(at[0]);
    if (strcmp(step, "close") == 0) return close_context(slot), at + 1;
    if (strcmp(step, "free") == 0) return llama_model_free(slot->model), at + 1;
    if (strcmp(step, "floats") == 0) return slot->has_floats = true, at + 1;
    if (strcmp(step, "prompt") == 0) return slot->is_prompted = false, slot->wants_all = true, at + 1;
    if (!at[1]) fail("no argument for", step);
    if (strcmp(step, "while") == 0) {
        slot->cut_behind = at[1];
        slot->meanwhile = at + 2;
        decode(slot);
        return behind_end(at + 2);
    }
    if (strcmp(step, "load") == 0) return load(slot, at[1]), at + 2;
    if (strcmp(step, "open") == 0) return open_context(slot, atoi(at[1])), at + 2;
    if (strcmp(step, "many") == 0) return decode_many(slot, atoi(at[1])), at + 2;
    slot->may_fail = strcmp(step, "overrun") == 0;
    if (slot->may_fail || strcmp(step, "decode") == 0) {
        slot->wanted = atoi(at[1]);
        return decode_wanted(slot), at + 2;
    }
    fail("no such step", step);
    return NULL;
}

static char ** run_steps(char ** at) {
    while (at && *at) at = run_step(at);
    return at;
}

int main(int count, char ** arguments) {
    if (count < 3) {
        fputs(usage, stderr);
        return 2;
    }
    llama_log_set(log_to_stderr, NULL);
    ggml_backend_load_all_from_path(arguments[1]);
    llama_backend_init();
    run_steps(arguments + 2);
    print_result();
    for (int i = 0; i < SLOTS; i++) if (slots[i].context) close_context(&slots[i]);
    llama_backend_free();
    return 0;
}
