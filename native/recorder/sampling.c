#include "recorder/sampling.h"

#include "recorder/contexts.h"

static __thread struct {
    const void * context;
    int32_t output;
} last_read __attribute__((tls_model("initial-exec")));

/* The stack frame of the outermost llama_sampler_accept; NULL: none. After an exception it is that of a function that has ended. */
static __thread uintptr_t accepting __attribute__((tls_model("initial-exec")));

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

/* The stack grows downwards: an inner function has a lower frame. */
bool sampling_accepts(const void * frame) {
    const uintptr_t address = (uintptr_t) frame;
    if (accepting && address < accepting) return true;
    accepting = address;
    return false;
}

void sampling_accepted(struct ggtrace_function * function) {
    accepting = 0;
    if (has_applied) functions_end(function);
    else functions_end_long(function, NULL);
    has_applied = false;
}
