#include "recorder/calls.h"

#include <stdatomic.h>
#include <stddef.h>

#include "common/clock.h"
#include "nvtx/emit.h"
#include "recorder/control.h"
#include "recorder/guard.h"
#include "recorder/recording.h"

static _Atomic uint32_t call_count;
static _Atomic bool is_warming_up;
static __thread uint32_t current __attribute__((tls_model("initial-exec"))) = GGTRACE_NO_CALL;
static __thread bool is_inside __attribute__((tls_model("initial-exec")));
/* Of the call: what happens in it is not recorded, only that it was made. */
static __thread bool is_left_out __attribute__((tls_model("initial-exec")));

void calls_set_warm_up(bool warm_up) {
    atomic_store_explicit(&is_warming_up, warm_up, memory_order_relaxed);
}

uint32_t calls_current(void) {
    return current;
}

bool calls_inside(void) {
    return is_inside;
}

bool calls_take(void) {
    return is_inside ? !is_left_out : control_takes(GGTRACE_NO_CALL);
}

/* Announces a call; true where its range has to be ended. */
static bool announce(const struct call * call) {
    if (!nvtx_emits(EMIT_PHASES | EMIT_TOKENS)) return false;
    const bool is_warm_up = call->kind == GGTRACE_WARM_UP;
    const char * phase = is_warm_up ? "warm-up" : call->kind == GGTRACE_DECODE && batch_decodes(&call->batch) ? "decode" : "prefill";
    if (nvtx_emits(EMIT_PHASES)) nvtx_emit_phase(phase);
    if (!nvtx_emits(EMIT_TOKENS)) return false;
    nvtx_emit_push(EMIT_TOKENS, phase, current == GGTRACE_NO_CALL ? EMIT_NO_INDEX : current);
    return true;
}

void calls_begin(struct call * call, void * context, uint32_t kind) {
    const bool is_warm_up = atomic_load_explicit(&is_warming_up, memory_order_relaxed);
    call->context = context;
    call->kind = is_warm_up ? GGTRACE_WARM_UP : kind;
    is_inside = true;
    current = is_warm_up ? GGTRACE_NO_CALL : atomic_fetch_add_explicit(&call_count, 1, memory_order_relaxed);
    is_left_out = !control_takes(current) || guard_begin(call->batch.tokens);
    clock_correct();
    call->is_announced = announce(call);
    call->start = clock_now();
}

void calls_end(const struct call * call, int result) {
    const uint64_t end = clock_now();
    if (call->is_announced) nvtx_emit_pop();
    struct ggtrace_writer * writer = recording_writer(GGTRACE_NO_WORKER);
    if (writer) {
        ggtrace_token(writer, &(struct ggtrace_token){
            .start = call->start,
            .end = end,
            .call = current,
            .tokens = call->batch.tokens,
            .kind = call->kind | (is_left_out ? GGTRACE_LEFT_OUT : 0),
            .result = result,
            .context = (uint64_t) (uintptr_t) call->context,
        }, call->batch.spans, call->batch.span_count);
    }
    guard_end(call->start, end);
    current = GGTRACE_NO_CALL;
    is_inside = false;
}
