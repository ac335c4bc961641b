/* Ends the recording: when the program ends, and in the child of a fork, which is not recorded. */
#include "recorder/ends.h"

#include "common/clock.h"
#include "common/process.h"
#include "common/program-clock.h"
#include "common/report.h"
#include "nvtx/emit.h"
#include "nvtx/listen.h"
#include "recorder/calls.h"
#include "recorder/cuda-events.h"
#include "recorder/cupti.h"
#include "recorder/functions.h"
#include "recorder/losses.h"
#include "recorder/numa.h"
#include "recorder/operators.h"
#include "recorder/own-threads.h"
#include "recorder/recorder.h"
#include "recorder/rpc.h"
#include "recorder/server.h"
#include "recorder/states.h"
#include "recorder/surroundings.h"
#include "recorder/thread-runtimes.h"

static void in_child(void) {
    own_threads_forked();
    cupti_forked();
    cuda_events_forked();
    if (!recording.log) return;
    atomic_store(&recording.level, LEVEL_OFF);
    operators_forked();
    states_forked();
    nvtx_emit_forked();
    nvtx_listen_forked();
    ggtrace_abandon(recording.log);
}

__attribute__((constructor)) static void watch_forks(void) {
    pthread_atfork(NULL, NULL, in_child);
}

static void fact(const char * key, const char * value) {
    ggtrace_fact(recording.log, key, value);
}

static void record_clocks(void) {
    const uint64_t error = clock_largest_error();
    if (error != UINT64_MAX) {
        char text[NUMBER_BYTES];
        number_text(text, error);
        fact("clock.error_ns", text);
    }
    program_clock_finish(fact);
    ggtrace_clocks(recording.log);
}

/* A destructor too, in case that the handler could not be registered. */
__attribute__((destructor)) static void finish(void) {
    if (!recorder_end()) return;
    cupti_finish();
    cuda_events_finish();
    calls_finish();
    functions_finish();
    operators_finish();
    numa_finish(fact);
    rpc_finish();
    losses_report(true);
    nvtx_emit_finish();
    states_stop();
    server_finish(fact);
    surroundings_finish(fact);
    thread_runtimes_finish(fact);
    record_clocks();
    ggtrace_close(recording.log);
    if (ggtrace_totals(recording.log).dropped && ggtrace_full(recording.log) == GGTRACE_FULL_DISK) report_problem(REPORT_DISK_FULL, ENOSPC);
}

_Atomic uint32_t ends_registered;

void ends_register_once(uint32_t when) {
    const uint32_t bit = 1u << when;
    if (recording.log && !(atomic_fetch_or(&ends_registered, bit) & bit)) atexit(finish);
}
