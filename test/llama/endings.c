/*
 * A host program that computes a little, and then ends in the way that its argument names. All of its output is the same
 * in each run, but for threads that compute while it exits. The handlers of exit and quick_exit print a line, and a handler of SIGTERM
 * where the way asks for one. Handlers from the time when ggml makes its objects also print whether a log is still open.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "llama.h"

/* Ways that create contexts or load models, one after the other, and then print how much memory that took. */
#define CONTEXTS "contexts"
#define MODELS "models"
#define AT_ONCE "contexts at once"
#define TRUNCATE "truncate %ld"
#define BUS_HANDLER "SIGBUS, handler"
static const char usage[] = "usage: endings LIB MODEL WAY\n";
#define OF_LOADING "exit, objects of loading"
#define OF_GRAPH "exit, objects of a graph"
enum { CONTEXTS_COUNT = 2000, MODELS_COUNT = 200, FIRST = 50, CALLS_AFTER = 10, AT_ONCE_COUNT = 80 };
enum { CONTEXT_TOKENS = 64, THREADS = 3,  CODE = 3, CODE_OF_THREAD = 5, CODE_OF_HANDLER = 7 };

static struct llama_model * model;
static struct llama_context * context;
static int vocabulary, calls;
static pthread_t main_thread;

/* Everything goes out by write(2): there is no buffer that one way flushes and another does not. */
static void say(const char * text) {
    if (write(STDOUT_FILENO, text, strlen(text)) < 0) _exit(1);
}

static void fail(const char * what) {
    perror(what);
    _exit(1);
}

static void decode(void) {
    llama_token token = 1 + calls++;
    if (llama_decode(context, llama_batch_get_one(&token, 1)) != 0) fail("llama_decode");
    const float * logits = llama_get_logits_ith(context, -1);
    uint64_t hash = 0;
    for (int i = 0; i < vocabulary; i++) {
        uint32_t word;
        memcpy(&word, logits + i, sizeof word);
        hash = (hash ^ word) * UINT64_C(0x100000001b3);
    }
    char line[64];
    snprintf(line, sizeof line, "call %d: %016" PRIx64 "\n", calls, hash);
    say(line);
}

static void at_exit(void) {
    say("exit handler\n");
}

static void at_quick_exit_too(void) {
    say("quick_exit handler\n");
}

/* Runs when objects that ggml made before are destroyed: threads that compute must not live much longer. */
static void look_for_log(void) {
    static const char end[] = ".ggtrace";
    DIR * folder = opendir("/proc/self/fd");
    for (const struct dirent * entry; folder && (entry = readdir(folder));) {
        char path[4096];
        const ssize_t length = readlinkat(dirfd(folder), entry->d_name, path, sizeof path);
        const size_t from = (size_t) length - strlen(end);
        if (length > (ssize_t) strlen(end) && memcmp(path + from, end, strlen(end)) == 0) say("a log is open\n");
    }
    if (folder) closedir(folder);
}

static bool on_load(float progress, void * data) {
    (void) progress, (void) data;
    static bool is_registered;
    if (!is_registered) atexit(look_for_log);
    return is_registered = true;
}

static bool on_node(struct ggml_tensor * tensor, bool ask, void * data) {
    (void) tensor;
    on_load(0, data);
    return !ask;
}

static void on_bus(int signal) {
    (void) signal;
    say("SIGBUS handler\n");
    _exit(CODE_OF_HANDLER);
}

static void on_term(int signal) {
    (void) signal;
    say("SIGTERM handler\n");
    _exit(CODE_OF_HANDLER);
}

/* The main thread has ended when this thread computes. */
static void * work_alone(void * unused) {
    pthread_join(main_thread, NULL);
    decode();
    return unused;
}

static void * exit_alone(void * unused) {
    work_alone(unused);
    exit(CODE_OF_THREAD);
}

/* The signal is for the process; this is the only thread that it can go to. */
static void * wait_for_signal(void * unused) {
    work_alone(unused);
    kill(getpid(), SIGTERM);
    while (pause() != 0) {}
    return NULL;
}

static _Atomic int computing;

static void * compute(void * unused) {
    struct llama_context_params params = llama_context_default_params();
    params.n_ctx = CONTEXT_TOKENS;
    params.n_threads = params.n_threads_batch = 1;
    struct llama_context * own = llama_init_from_model(model, params);
    if (!own) fail("llama_init_from_model");
    for (int i = 0;; i++) {
        llama_token token = 1 + i % CONTEXT_TOKENS;
        if (i % CONTEXT_TOKENS == 0) llama_memory_clear(llama_get_memory(own), true);
        if (llama_decode(own, llama_batch_get_one(&token, 1)) != 0) fail("llama_decode");
        if (i == 0) computing++;
    }
    return unused;
}

/* Whose code faults: the innermost object but libc, whose functions are called with what others give them. */
static void on_fault(int signal) {
    void * frames[64];
    const int count = backtrace(frames, 64);
    /* 0 and 1: this function, and what the kernel returns to from it. */
    for (int i = 2; i < count; i++) {
        Dl_info object;
        if (dladdr(frames[i], &object) && !strstr(object.dli_fname, "libc.so")) {
            say("a fault in ");
            say(object.dli_fname);
            say("\n");
            break;
        }
    }
    kill(getpid(), signal);
}

static void exit_beside_threads(void) {
    pthread_t thread;
    void * frame;
    backtrace(&frame, 1); /* loads what it needs */
    struct sigaction action = {.sa_handler = on_fault, .sa_flags = (int) SA_RESETHAND};
    sigaction(SIGSEGV, &action, NULL);
    for (int i = 0; i < THREADS; i++) if (pthread_create(&thread, NULL, compute, NULL) != 0) fail("pthread_create");
    while (computing < THREADS) usleep(1000);
    exit(CODE);
}

/* The process's own memory: not files. */
static long memory_kb(void) {
    char line[256];
    long kb = 0;
    FILE * file = fopen("/proc/self/smaps_rollup", "r");
    while (file && fgets(line, sizeof line, file)) sscanf(line, "Anonymous: %ld", &kb);
    if (file) fclose(file);
    return kb;
}

static void again(const char * path, int count) {
    long before = 0;
    for (int i = 0; i < count; i++) {
        struct llama_context_params params = llama_context_default_params();
        params.n_ctx = CONTEXT_TOKENS;
        params.n_threads = params.n_threads_batch = 1;
        struct llama_model * of = path ? llama_model_load_from_file(path, llama_model_default_params()) : model;
        struct llama_context * own = of ? llama_init_from_model(of, params) : NULL;
        if (!own) fail("llama_init_from_model");
        for (llama_token token = 1; token < 3; token++) if (llama_decode(own, llama_batch_get_one(&token, 1)) != 0) fail("llama_decode");
        llama_free(own);
        if (path) llama_model_free(of);
        if (i == FIRST) before = memory_kb();
    }
    char text[64];
    snprintf(text, sizeof text, "%ld KB more\n", memory_kb() - before);
    say(text);
}

/* More contexts than the recorder knows. */
static int at_once(void) {
    struct llama_context_params params = llama_context_default_params();
    params.n_ctx = CONTEXT_TOKENS;
    params.n_threads = params.n_threads_batch = 1;
    for (int i = 0; i < AT_ONCE_COUNT; i++) {
        context = llama_init_from_model(model, params);
        if (!context) fail("llama_init_from_model");
        decode();
    }
    return CODE;
}

/* Another program truncates the log; here without one, so that it is the same time in each run. */
static int truncate_log(long bytes) {
    const char * log = getenv("GGML2PERFETTO_OUT");
    if (log && truncate(log, bytes) != 0) fail("truncate");
    for (int i = 0; i < CALLS_AFTER; i++) decode();
    return CODE;
}

/* A fault of the program's own, in a page of a file that is too short. */
static void fault(void) {
    FILE * file = tmpfile();
    volatile char * page = file ? mmap(NULL, 1, PROT_READ, MAP_SHARED, fileno(file), 0) : MAP_FAILED;
    if (page == MAP_FAILED) fail("mmap");
    (void) *page;
}

static void leave_to(void * (*work)(void *)) {
    pthread_t thread;
    main_thread = pthread_self();
    if (pthread_create(&thread, NULL, work, NULL) != 0) fail("pthread_create");
    pthread_exit(NULL);
}

static int end(const char * way) {
    if (strcmp(way, "return") == 0) return CODE;
    if (strcmp(way, "exit") == 0) exit(CODE);
    if (strcmp(way, OF_LOADING) == 0 || strcmp(way, OF_GRAPH) == 0) exit(CODE);
    if (strcmp(way, "exit beside threads") == 0) exit_beside_threads();
    if (strcmp(way, "_exit") == 0) _exit(CODE);
    if (strcmp(way, "quick_exit") == 0) quick_exit(CODE);
    if (strcmp(way, "abort") == 0) abort();
    if (strcmp(way, "pthread_exit") == 0) pthread_exit(NULL);
    if (strcmp(way, "pthread_exit, a thread works") == 0) leave_to(work_alone);
    if (strcmp(way, "pthread_exit, a thread exits") == 0) leave_to(exit_alone);
    if (strcmp(way, "pthread_exit, SIGTERM") == 0) leave_to(wait_for_signal);
    if (strcmp(way, "pthread_exit, SIGTERM handler") == 0) {
        signal(SIGTERM, on_term);
        leave_to(wait_for_signal);
    }
    if (strcmp(way, "chroot, pthread_exit") == 0) {
        if (chroot("/usr/share") != 0) fail("chroot");
        leave_to(work_alone);
    }
    if (strcmp(way, "SYS_exit") == 0) syscall(SYS_exit, CODE);
    if (strcmp(way, "exec") == 0) execl("/bin/echo", "echo", "another program", NULL), fail("exec");
    if (strcmp(way, "SIGTERM") == 0) raise(SIGTERM);
    if (strcmp(way, "SIGINT") == 0) raise(SIGINT);
    if (strcmp(way, "SIGKILL") == 0) raise(SIGKILL);
    if (strcmp(way, "SIGSEGV") == 0) raise(SIGSEGV);
    if (strcmp(way, "SIGBUS, sent") == 0) raise(SIGBUS);
    if (strncmp(way, "SIGBUS", strlen("SIGBUS")) == 0) fault();
    if (strcmp(way, AT_ONCE) == 0) return at_once();
    long bytes;
    if (sscanf(way, TRUNCATE, &bytes) == 1) return truncate_log(bytes);
    if (strcmp(way, "daemon") == 0) {
        if (daemon(1, 1) != 0) fail("daemon");
        decode();
        exit(CODE);
    }
    fputs(usage, stderr);
    return 2;
}

static void log_to_stderr(enum ggml_log_level level, const char * text, void * data) {
    (void) data;
    if (level == GGML_LOG_LEVEL_ERROR) fputs(text, stderr);
}

int main(int count, char ** arguments) {
    if (count < 4) {
        fputs(usage, stderr);
        return 2;
    }
    if (strcmp(arguments[3], BUS_HANDLER) == 0) signal(SIGBUS, on_bus);
    llama_log_set(log_to_stderr, NULL);
    ggml_backend_load_all_from_path(arguments[1]);
    llama_backend_init();
    struct llama_model_params model_params = llama_model_default_params();
    if (strcmp(arguments[3], OF_LOADING) == 0) model_params.progress_callback = on_load;
    model = llama_model_load_from_file(arguments[2], model_params);
    if (!model) fail(arguments[2]);
    struct llama_context_params params = llama_context_default_params();
    params.n_ctx = CONTEXT_TOKENS;
    params.n_threads = params.n_threads_batch = 2;
    if (strcmp(arguments[3], OF_GRAPH) == 0) params.cb_eval = on_node;
    context = llama_init_from_model(model, params);
    if (!context) fail("llama_init_from_model");
    vocabulary = llama_vocab_n_tokens(llama_model_get_vocab(model));
    atexit(at_exit);
    at_quick_exit(at_quick_exit_too);
    decode();
    decode();
    if (strcmp(arguments[3], CONTEXTS) == 0) return again(NULL, CONTEXTS_COUNT), CODE;
    if (strcmp(arguments[3], MODELS) == 0) return again(arguments[2], MODELS_COUNT), CODE;
    return end(arguments[3]);
}
