/*
 * Interposed functions that are not calls: sampling, text, waiting, adapters, images, speculation. An exception may pass through
 * them: then nothing is recorded. hooks-loading.c contains those of loading, hooks-memory.c those of sequences and states.
 */
#include "recorder/calls.h"
#include "recorder/functions.h"
#include "recorder/hook.h"
#include "recorder/recording.h"
#include "recorder/sampling.h"

/* ---- Sampling ---- */

HOOK_BEFORE(float *, llama_get_logits_ith, calls_read(context); sampling_reads(context, output),
    LIST(void * context, int32_t output), context, output)

/* The outputs of all tokens. */
HOOK_BEFORE(float *, llama_get_logits, calls_read(context), void * context, context)
HOOK_BEFORE(float *, llama_get_embeddings, calls_read(context), void * context, context)

HOOK_BEFORE(int32_t, llama_get_sampled_token_ith, calls_read(context); sampling_reads(context, output),
    LIST(void * context, int32_t output), context, output)

HOOK(void, llama_sampler_apply, void * sampler, void * candidates) {
    REAL(llama_sampler_apply);
    if (!sampler) return;
    struct ggtrace_function function;
    sampling_begin(&function, GGTRACE_SAMPLE, sampler);
    real(sampler, candidates);
    functions_end(&function);
}

/* A chain's members accept the token inside: only the outermost sampler is recorded. Each token of a prompt is accepted, too. */
HOOK(void, llama_sampler_accept, void * sampler, int32_t token) {
    REAL(llama_sampler_accept);
    if (!sampler || !functions_are_recorded() || sampling_accepts(HERE)) {
        real(sampler, token);
        return;
    }
    struct ggtrace_function function;
    sampling_begin(&function, GGTRACE_ACCEPT, sampler);
    real(sampler, token);
    sampling_accepted(HERE, &function);
}

/* `note` adds to the record of the function what its `result` shows. */
#define RECORDS(type, name, what, note, parameters, ...) \
    HOOK(type, name, parameters) {                       \
        REAL(name);                                      \
        RECORDED(what);                                  \
        type result = real(__VA_ARGS__);                 \
        note;                                            \
        return result;                                   \
    }

#define NAME_SAMPLER if (function.start) function.name = sampling_name(result)
RECORDS(void *, llama_sampler_init_grammar, GGTRACE_CREATE_SAMPLER, NAME_SAMPLER,
    LIST(const void * vocabulary, const char * grammar, const char * root), vocabulary, grammar, root)

#define LAZY_GRAMMAR(init)                                                                                             \
    RECORDS(void *, init, GGTRACE_CREATE_SAMPLER, NAME_SAMPLER,                                                        \
        LIST(const void * vocabulary, const char * grammar, const char * root, const char ** triggers,                 \
             size_t trigger_count, const int32_t * tokens, size_t token_count),                                        \
        vocabulary, grammar, root, triggers, trigger_count, tokens, token_count)
LAZY_GRAMMAR(llama_sampler_init_grammar_lazy)
LAZY_GRAMMAR(llama_sampler_init_grammar_lazy_patterns)

/* ---- Text ---- */

RECORDS(int32_t, llama_tokenize, GGTRACE_TOKENIZE, if (result >= 0) function.value = (uint64_t) result,
    LIST(const void * vocabulary, const char * text, int32_t bytes, int32_t * tokens, int32_t tokens_max, bool add_special, bool parse_special),
    vocabulary, text, bytes, tokens, tokens_max, add_special, parse_special)
RECORDS(int32_t, llama_detokenize, GGTRACE_DETOKENIZE, if (result >= 0) function.value = (uint64_t) count,
    LIST(const void * vocabulary, const int32_t * tokens, int32_t count, char * text, int32_t bytes_max, bool remove_special, bool unparse_special),
    vocabulary, tokens, count, text, bytes_max, remove_special, unparse_special)

HOOK(int32_t, llama_token_to_piece, const void * vocabulary, int32_t token, char * text, int32_t bytes_max, int32_t skip, bool special) {
    REAL(llama_token_to_piece);
    RECORDED(GGTRACE_TOKEN_TO_PIECE);
    if (function.start && !functions_take_piece()) function.start = 0;
    const int32_t bytes = real(vocabulary, token, text, bytes_max, skip, special);
    if (bytes >= 0) function.value = 1;
    return bytes;
}

/* ---- Waiting ---- */

/* Does the recorder itself make the scheduler wait (--sync)? */
static bool is_own_wait(void) {
    return recording.synchronises && calls_inside();
}

static void wait_begin(struct ggtrace_function * function) {
    functions_begin(function, GGTRACE_SYNCHRONIZE);
    if (is_own_wait()) function->start = 0;
}

/* llama_synchronize calls this method, and so do functions that read results. */
HOOK_AROUND(_ZN13llama_context11synchronizeEv, struct ggtrace_function function; wait_begin(&function); function.context = CONTEXT(context),
    functions_end_long(&function, NULL),
    void * context, context)

HOOK_AROUND(ggml_backend_synchronize, struct ggtrace_function function; wait_begin(&function), functions_end_long(&function, backend),
    void * backend, backend)

HOOK_AROUND(ggml_backend_event_synchronize, struct ggtrace_function function; wait_begin(&function), functions_end_long(&function, NULL),
    void * event, event)

HOOK_AROUND(ggml_backend_event_wait, struct ggtrace_function function; wait_begin(&function), functions_end_long(&function, backend),
    LIST(void * backend, void * event), backend, event)

#define READ_EMBEDDINGS(name)                                         \
    HOOK(float *, name, void * context, int32_t which) {              \
        REAL(name);                                                   \
        calls_read(context);                                          \
        struct ggtrace_function function;                             \
        functions_begin(&function, GGTRACE_GET_EMBEDDINGS);           \
        function.context = CONTEXT(context);                          \
        float * embeddings = real(context, which);                    \
        functions_end_long(&function, NULL);                          \
        return embeddings;                                            \
    }
READ_EMBEDDINGS(llama_get_embeddings_ith)
READ_EMBEDDINGS(llama_get_embeddings_seq)

/* ---- Adapters ---- */

HOOK_BEFORE(int32_t, llama_set_adapters_lora, RECORDED(GGTRACE_SET_LORA); function.context = CONTEXT(context),
    LIST(void * context, void ** adapters, size_t count, float * scales), context, adapters, count, scales)

/* Until 2025. */
HOOK_BEFORE(int32_t, llama_set_adapter_lora, RECORDED(GGTRACE_SET_LORA); function.context = CONTEXT(context),
    LIST(void * context, void * adapter, float scale), context, adapter, scale)

/* ---- Images and sound ---- */

HOOK_BEFORE(int32_t, mtmd_tokenize, RECORDED(GGTRACE_TOKENIZE_MEDIA),
    LIST(const void * media, void * chunks, const void * text, const void * const * bitmaps, size_t count), media, chunks, text, bitmaps, count)

HOOK_BEFORE(int32_t, mtmd_encode_chunk, RECORDED(GGTRACE_ENCODE_MEDIA), LIST(void * media, const void * chunk), media, chunk)

HOOK_BEFORE(int32_t, mtmd_batch_encode, RECORDED(GGTRACE_ENCODE_MEDIA), void * batch, batch)

/* Later versions have two more parameters: a function that is called after each call, and its data. */
HOOK(int32_t, mtmd_helper_decode_image_chunk, void * media, void * context, const void * chunk, float * embeddings, int32_t position,
     int32_t sequence, int32_t batch_size, int32_t * next_position, void * callback, void * data) {
    REAL(mtmd_helper_decode_image_chunk);
    RECORDED(GGTRACE_DECODE_MEDIA);
    function.context = CONTEXT(context);
    function.sequence = (uint32_t) sequence;
    return real(media, context, chunk, embeddings, position, sequence, batch_size, next_position, callback, data);
}

/* ---- Speculative decoding ---- */

/* void common_speculative_draft(common_speculative *) */
HOOK_BEFORE_VOID(_Z24common_speculative_draftP18common_speculative, RECORDED(GGTRACE_DRAFT), void * speculation, speculation)

/* bool common_speculative_process(common_speculative *, const llama_batch &), (…, const common_batch &) */
HOOK_BEFORE(bool, _Z26common_speculative_processP18common_speculativeRK11llama_batch, RECORDED(GGTRACE_VERIFY),
    LIST(void * speculation, const void * batch), speculation, batch)
HOOK_BEFORE(bool, _Z26common_speculative_processP18common_speculativeRK12common_batch, RECORDED(GGTRACE_VERIFY),
    LIST(void * speculation, const void * batch), speculation, batch)

/* void common_speculative_accept(common_speculative *, llama_seq_id, uint16_t) */
HOOK(void, _Z25common_speculative_acceptP18common_speculativeit, void * speculation, int32_t sequence, uint16_t accepted) {
    REAL(_Z25common_speculative_acceptP18common_speculativeit);
    RECORDED(GGTRACE_ACCEPT_DRAFT);
    function.sequence = (uint32_t) sequence;
    function.value = accepted;
    real(speculation, sequence, accepted);
}
