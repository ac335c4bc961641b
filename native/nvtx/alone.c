/*
 * libggml2perfetto-nvtx.so: the NVTX listener for a process without the recorder. The recorder cannot be loaded into a running
 * process, because its thread-local variables need more static TLS than libc reserves. The process needs only the variable
 * NVTX_INJECTION64_PATH. The log is $GGML2PERFETTO_OUT, or <program>-<pid>.ggtrace in the working directory.
 */

#include "common/clock.h"
#include "common/environment.h"
#include "common/hold.h"
#include "log/ggtrace-file.h"
#include "nvtx/abi.h"
#include "nvtx/host.h"
#include "nvtx/listen.h"
#include "common/process.h"
#include "common/program-clock.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct ggtrace * own;
static _Atomic uint32_t name_count;

static void fact(const char * key, const char * value) {
    if (*value) ggtrace_fact(own, key, value);
}

static void in_child(void) {
    nvtx_listen_forked();
    ggtrace_abandon(own);
}

static void default_path(char path[PATH_BYTES]) {
    const char * program = program_invocation_short_name;
    const size_t length = strnlen(program, 200);
    memcpy(path, program, length);
    path[length] = '-';
    number_text(path + length + 1, (uint64_t) getpid());
    strcat(path, ".ggtrace");
}

/* Prints to stderr: a process without the recorder has no other place for messages. */
static void complain(const char * path) {
    const char * const parts[] = {"ggml2perfetto: ", path, ": cannot write: ", strerror(errno), "\n"};
    char text[PATH_BYTES + 256] = "";
    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) strncat(text, parts[i], sizeof(text) - strlen(text) - 1);
    struct stat output; /* a file is written at its end */
    const bool is_file = fstat(STDERR_FILENO, &output) == 0 && S_ISREG(output.st_mode);
    if (is_file && !ggtrace_may_reach((uint64_t) output.st_size + strlen(text))) return;
    if (write(STDERR_FILENO, text, strlen(text)) < 0) { /* nothing else can be done */ }
}

static void finish(void);

static void open_own(void) {
    char path[PATH_BYTES];
    const char * wanted = environment(ENV_OUT);
    if (!wanted) default_path(path);
    own = process_open_log(wanted ? wanted : path, NULL);
    if (!own) {
        complain(wanted ? wanted : path);
        return;
    }
    fact("recorder", "libggml2perfetto-nvtx.so 0.1.0 (NVTX_INJECTION64_PATH)");
    process_facts(fact);
    program_clock_open(fact);
    clock_start();
    pthread_atfork(NULL, NULL, in_child);
    atexit(finish); /* before objects that were created earlier are destroyed: other threads may use them until the process ends */
}

struct ggtrace * nvtx_log(void) {
    static bool is_tried;
    HOLD(&lock);
    const int kept = errno;
    if (!is_tried) open_own();
    is_tried = true;
    errno = kept;
    return own;
}

uint32_t nvtx_new_name(const char * text, size_t bytes) {
    const uint32_t id = atomic_fetch_add(&name_count, 1) + 1;
    ggtrace_define_name(own, id, text, bytes);
    return id;
}

#define EXPORTED __attribute__((visibility("default")))
int InitializeInjectionNvtx2(nvtx_get_table get);
int InitializeInjectionNvtx(nvtx_get_table get);

/* If the process contains the recorder, the log is the recorder's. */
EXPORTED int InitializeInjectionNvtx2(nvtx_get_table get) {
    nvtx_initialize recorder;
    *(void **) &recorder = dlsym(RTLD_DEFAULT, "ggml2perfetto_nvtx_listen");
    return recorder ? recorder(get) : nvtx_listen(get);
}

/* The function that NVTX before version 3 looks for. */
EXPORTED int InitializeInjectionNvtx(nvtx_get_table get) {
    return InitializeInjectionNvtx2(get);
}

__attribute__((constructor)) static void begin(void) {
    program_clock_prepare();
    clock_prepare();
}

/* Closed already: nothing happens. */
__attribute__((destructor)) static void finish(void) {
    if (!own) return;
    program_clock_finish(fact);
    ggtrace_clocks(own);
    ggtrace_close(own);
}
