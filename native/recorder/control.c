#include "recorder/control.h"

#include "common/environment.h"
#include "log/ggtrace.h"
#include "recorder/guard.h"

/* For the recorded program itself, which finds them with dlsym. */
__attribute__((visibility("default"))) void ggml2perfetto_pause(void);
__attribute__((visibility("default"))) void ggml2perfetto_resume(void);

static atomic_bool is_paused;
static uint32_t first_call, last_call = GGTRACE_NO_CALL, every = 1;
static const char * ops;

void ggml2perfetto_pause(void) {
    atomic_store(&is_paused, true);
}

void ggml2perfetto_resume(void) {
    atomic_store(&is_paused, false);
}

static void toggle(int signal) {
    (void) signal;
    bool was = atomic_load(&is_paused);
    while (!atomic_compare_exchange_weak(&is_paused, &was, !was)) {}
}

/* The number at the start of a text; advances the pointer to its end. */
static uint64_t number_at(const char ** at) {
    uint64_t number = 0;
    for (; **at >= '0' && **at <= '9'; (*at)++) number = number * 10 + (uint64_t) (**at - '0');
    return number;
}

static const char * wanted(const char * name, const char * key, void (*fact)(const char *, const char *)) {
    const char * value = environment(name);
    if (value && key) fact(key, value);
    return value;
}

static void read_calls(const char * text) {
    first_call = (uint32_t) number_at(&text);
    last_call = first_call;
    if (strncmp(text, "..", 2) != 0) return;
    text += 2;
    last_call = *text ? (uint32_t) number_at(&text) : GGTRACE_NO_CALL;
}

void control_read(void (*fact)(const char * key, const char * value)) {
    const char * calls = wanted(ENV_TOKENS, "recorded.tokens", fact);
    if (calls) read_calls(calls);
    const char * distance = wanted(ENV_EVERY, "recorded.every", fact);
    if (distance) every = (uint32_t) number_at(&distance);
    if (every == 0) every = 1;
    const char * guard = wanted(ENV_GUARD, "recorded.guard", fact);
    if (guard) guard_set((uint32_t) number_at(&guard));
    ops = wanted(ENV_OPS, "recorded.ops", fact);
    if (wanted(ENV_PAUSED, "recorded.from", fact)) ggml2perfetto_pause();
    const char * number = wanted(ENV_TOGGLE, NULL, fact);
    if (!number) return;
    struct sigaction action = {.sa_handler = toggle, .sa_flags = SA_RESTART};
    sigaction((int) number_at(&number), &action, NULL);
}

bool control_takes(uint32_t call) {
    if (atomic_load_explicit(&is_paused, memory_order_relaxed)) return false;
    if (call == GGTRACE_NO_CALL) return first_call == 0 && last_call == GGTRACE_NO_CALL;
    return call >= first_call && call <= last_call && (call - first_call) % every == 0;
}

bool control_takes_after(uint32_t call) {
    if (atomic_load_explicit(&is_paused, memory_order_relaxed)) return false;
    return call == GGTRACE_NO_CALL ? first_call == 0 : call >= first_call && call <= last_call;
}

bool control_takes_op(const char * op) {
    const size_t length = strlen(op);
    for (const char * at = ops; at; at = strchr(at, ',')) {
        if (*at == ',') at++;
        if (strncmp(at, op, length) == 0 && (at[length] == ',' || at[length] == 0)) return true;
    }
    return !ops;
}

bool control_takes_all_ops(void) {
    return !ops;
}

uint64_t control_bytes_max(void) {
    const char * bytes = environment(ENV_MAX_BYTES);
    return bytes ? number_at(&bytes) : 0;
}

uint64_t control_slow_ns(void) {
    const char * slow = environment(ENV_SLOW);
    return slow ? number_at(&slow) : 0;
}

bool control_keeps_last(void) {
    return environment(ENV_RING) || control_slow_ns();
}
