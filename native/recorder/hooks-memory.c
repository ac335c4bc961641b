/* Interposed functions that change a context's memory (KV cache), save it or restore it, or free the context. */
#include "recorder/calls.h"
#include "recorder/contexts.h"
#include "recorder/functions.h"
#include "recorder/hook.h"
#include "recorder/sequences.h"

/* ---- Sequences ---- */

HOOK_AFTER(void *, llama_get_memory, if (result && functions_are_recorded()) contexts_set_memory(context, result),
    const void * context, context)

HOOK_AFTER(bool, llama_memory_seq_rm,
    sequences_changed(memory, &(struct ggtrace_sequence){.what = GGTRACE_REMOVE, .sequence = sequence, .to = -1, .from = from, .end = end, .is_done = result}),
    LIST(void * memory, int32_t sequence, int32_t from, int32_t end), memory, sequence, from, end)

HOOK_AFTER_VOID(llama_memory_seq_cp,
    sequences_changed(memory, &(struct ggtrace_sequence){.what = GGTRACE_COPY_SEQUENCE, .sequence = sequence, .to = to, .from = from, .end = end, .is_done = true}),
    LIST(void * memory, int32_t sequence, int32_t to, int32_t from, int32_t end), memory, sequence, to, from, end)

HOOK_AFTER_VOID(llama_memory_seq_keep,
    sequences_changed(memory, &(struct ggtrace_sequence){.what = GGTRACE_KEEP, .sequence = sequence, .to = -1, .from = -1, .end = -1, .is_done = true}),
    LIST(void * memory, int32_t sequence), memory, sequence)

HOOK_AFTER_VOID(llama_memory_seq_add,
    sequences_changed(memory, &(struct ggtrace_sequence){.what = GGTRACE_SHIFT, .sequence = sequence, .to = -1, .from = from, .end = end, .delta = delta, .is_done = true}),
    LIST(void * memory, int32_t sequence, int32_t from, int32_t end, int32_t delta), memory, sequence, from, end, delta)

/* The context of a memory. Asks that with the held calls itself: the program may have got its memory before it was known. */
static const void * context_of(const void * memory, const void * caller) {
    static _Atomic(void *) known;
    const void * context = calls_held();
    void * found = atomic_load_explicit(&known, memory_order_relaxed);
    if (context && !found) atomic_store_explicit(&known, found = library_resolve("llama_get_memory", caller), memory_order_relaxed);
    void * (*get_memory)(const void *);
    *(void **) &get_memory = found;
    if (!context || !found || get_memory(context) != memory) return contexts_of_memory(memory);
    contexts_set_memory(context, memory);
    return context;
}

/* Older functions call newer ones, and restoring a state clears the memory: only the outermost is recorded. */
static __thread bool has_state __attribute__((tls_model("initial-exec")));
static __thread bool is_clearing __attribute__((tls_model("initial-exec")));

static void leave_clear(uint32_t before) {
    is_clearing = before;
}

static void clear(void * memory, bool data, void (*real)(void *, bool), uintptr_t here, const void * caller) {
    const bool is_inner = is_clearing || has_state || calls_inside();
    if (is_inner) {
        real(memory, data);
        return;
    }
    is_clearing = true;
    frames_begin(here, leave_clear, false);
    calls_cleared(context_of(memory, caller), functions_are_recorded());
    real(memory, data);
    frames_end(here);
    sequences_changed(memory, &(struct ggtrace_sequence){
        .what = GGTRACE_CLEAR, .sequence = -1, .to = -1, .from = -1, .end = -1, .is_done = true});
    is_clearing = false;
}

#define CLEAR(name)                                \
    HOOK(void, name, void * memory, bool data) {   \
        REAL(name);                                \
        clear(memory, data, real, HERE, CALLER);   \
    }
CLEAR(llama_memory_clear)
/* It calls these methods, also where the program itself contains llama.cpp: they are virtual. */
CLEAR(_ZN14llama_kv_cache5clearEb)
CLEAR(_ZN19llama_kv_cache_iswa5clearEb)
CLEAR(_ZN22llama_memory_recurrent5clearEb)
CLEAR(_ZN19llama_memory_hybrid5clearEb)
CLEAR(_ZN24llama_memory_hybrid_iswa5clearEb)

HOOK_BEFORE_VOID(llama_free, calls_forget(context); contexts_forget(context), void * context, context)

/* ---- States ---- */

struct state { struct ggtrace_function function; bool is_inner; uintptr_t at; };

static void leave_state(uint32_t before) {
    has_state = before;
}

static void state_begin(struct state * state, uintptr_t here, uint32_t what, const void * context, int32_t sequence) {
    state->is_inner = has_state;
    state->at = here;
    frames_begin(here, leave_state, has_state);
    calls_used(context);
    has_state = true;
    functions_begin(&state->function, what);
    if (state->is_inner) state->function.start = 0;
    state->function.context = CONTEXT(context);
    state->function.sequence = (uint32_t) sequence;
}

/* What is restored is not empty: changes of it are recorded, although the context had no call. */
static void state_end(struct state * state, const void * context, uint64_t bytes) {
    if (!frames_end(state->at)) return;
    has_state = state->is_inner;
    if (state->function.what == GGTRACE_RESTORE_STATE && bytes) calls_note_restored(context);
    state->function.value = bytes;
    functions_end(&state->function);
}

#define STATE(what, result, name, known_bytes, sequence, parameters, ...)         \
    HOOK(result, name, parameters) {                                              \
        REAL(name);                                                               \
        struct state state;                                                       \
        state_begin(&state, HERE, what, context, sequence);                       \
        const result done = real(__VA_ARGS__);                                    \
        state_end(&state, context, known_bytes);                                  \
        return done;                                                              \
    }
/* A function that returns only whether it succeeded. */
#define UNKNOWN_BYTES (done ? GGTRACE_UNKNOWN_VALUE : 0)

STATE(GGTRACE_SAVE_STATE, size_t, llama_state_get_data, done, -1,
      LIST(void * context, void * data, size_t size), context, data, size)
STATE(GGTRACE_RESTORE_STATE, size_t, llama_state_set_data, done, -1,
      LIST(void * context, const void * data, size_t size), context, data, size)
STATE(GGTRACE_SAVE_STATE, bool, llama_state_save_file, UNKNOWN_BYTES, -1,
      LIST(void * context, const char * path, const int32_t * tokens, size_t count), context, path, tokens, count)
STATE(GGTRACE_RESTORE_STATE, bool, llama_state_load_file, UNKNOWN_BYTES, -1,
      LIST(void * context, const char * path, int32_t * tokens, size_t capacity, size_t * count), context, path, tokens, capacity, count)
STATE(GGTRACE_SAVE_STATE, size_t, llama_state_seq_get_data, done, sequence,
      LIST(void * context, void * data, size_t size, int32_t sequence), context, data, size, sequence)
STATE(GGTRACE_RESTORE_STATE, size_t, llama_state_seq_set_data, done, sequence,
      LIST(void * context, const void * data, size_t size, int32_t sequence), context, data, size, sequence)
STATE(GGTRACE_SAVE_STATE, size_t, llama_state_seq_get_data_ext, done, sequence,
      LIST(void * context, void * data, size_t size, int32_t sequence, uint32_t flags), context, data, size, sequence, flags)
STATE(GGTRACE_RESTORE_STATE, size_t, llama_state_seq_set_data_ext, done, sequence,
      LIST(void * context, const void * data, size_t size, int32_t sequence, uint32_t flags), context, data, size, sequence, flags)
STATE(GGTRACE_SAVE_STATE, size_t, llama_state_seq_save_file, done, sequence,
      LIST(void * context, const char * path, int32_t sequence, const int32_t * tokens, size_t count),
      context, path, sequence, tokens, count)
STATE(GGTRACE_RESTORE_STATE, size_t, llama_state_seq_load_file, done, sequence,
      LIST(void * context, const char * path, int32_t sequence, int32_t * tokens, size_t capacity, size_t * count),
      context, path, sequence, tokens, capacity, count)
