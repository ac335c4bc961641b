#include "recorder/sampling.h"

#include "recorder/contexts.h"
#include "recorder/frames.h"

static __thread struct {
    const void * context;
    int32_t output;
} last_read __attribute__((tls_model("initial-exec")));

/* In llama_sampler_accept. */
static __thread bool is_accepting __attribute__((tls_model("initial-exec")));

/* A sampler was applied since the last acceptance. */
static __thread bool has_applied __attribute__((tls_model("initial-exec")));

void sampling_reads(const void * context, int32_t output) {
    last_read.context = context;
    last_read.output = output;
}

/* The first fields of llama.h's struct llama_sampler and struct llama_sampler_i. */
struct sampler {
    const struct {
        const char * (*name)(const struct sampler * sampler);
    } * interface;
};

uint32_t sampling_name(const void * any) {
    const struct sampler * sampler = any;
    return sampler && sampler->interface && sampler->interface->name ? functions_name(sampler->interface->name(sampler)) : 0;
}

void sampling_begin(struct ggtrace_function * function, uint32_t what, const void * sampler) {
    functions_begin(function, what);
    if (!function->start) return;
    function->name = sampling_name(sampler);
    if (what == GGTRACE_SAMPLE) has_applied = true;
    if (what != GGTRACE_SAMPLE || !last_read.context) return;
    function->context = (uint64_t) (uintptr_t) last_read.context;
    function->output = last_read.output < 0 ? contexts_last_output(last_read.context) : (uint32_t) last_read.output;
}

static void leave(uint32_t before) {
    is_accepting = before;
}

bool sampling_accepts(uintptr_t here) {
    if (is_accepting) return true;
    is_accepting = true;
    frames_begin(here, leave, false);
    return false;
}

void sampling_accepted(uintptr_t here, struct ggtrace_function * function) {
    if (!frames_end(here)) return;
    is_accepting = false;
    if (has_applied) functions_end(function);
    else functions_end_long(function, NULL);
    has_applied = false;
}
