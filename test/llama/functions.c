/*
 * functions LIB MODEL FOLDER: calls llama.cpp's functions around calls, and prints each as a line of JSON, in order: what a recorder
 * must have seen. Then the sampled tokens, which a recorder must not change. FOLDER: for a saved state.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ggml-backend.h"
#include "llama.h"

enum { PROMPT = 8, PIECES = 1100, STATE_BYTES = 1 << 22 };

static struct llama_context * context;
static const struct llama_vocab * vocabulary;
static llama_token sampled[64];
static int sampled_count;

static void quiet(enum ggml_log_level level, const char * text, void * user) {
    (void) level, (void) text, (void) user;
}

static void fail(const char * what) {
    fprintf(stderr, "%s\n", what);
    exit(1);
}

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

/* -1: not known, as in the reader's events. */
static void did(const char * what, const char * name, int sequence, int output, int64_t value) {
    printf("{\"event\":\"function\",\"what\":\"%s\",\"name\":\"%s\",\"sequence\":%d,\"output\":%d,\"value\":%" PRId64 "}\n", what, name, sequence,
           output, value);
}

static void changed(const char * what, int sequence, int to, int from, int end, int delta, bool done) {
    printf("{\"event\":\"change\",\"what\":\"%s\",\"sequence\":%d,\"to\":%d,\"from\":%d,\"end\":%d,\"delta\":%d,\"isDone\":%s}\n", what, sequence,
           to, from, end, delta, done ? "true" : "false");
}

/* A batch of tokens of one sequence, or of a second one after them; the last token of each has an output. */
static void decode(int sequence, int position, int count, int second, int second_count) {
    struct llama_batch batch = llama_batch_init(count + second_count, 0, 1);
    for (int i = 0; i < count + second_count; i++) {
        const bool is_second = i >= count;
        batch.token[i] = 3 + i;
        batch.pos[i] = is_second ? i - count : position + i;
        batch.n_seq_id[i] = 1;
        batch.seq_id[i][0] = is_second ? second : sequence;
        batch.logits[i] = i == count - 1 || i == count + second_count - 1;
    }
    batch.n_tokens = count + second_count;
    if (llama_decode(context, batch) != 0) fail("llama_decode");
    llama_batch_free(batch);
}

static void applied(struct llama_sampler * sampler, int output) {
    did("sample", llama_sampler_name(sampler), -1, output, -1);
    for (int i = 0; i < llama_sampler_chain_n(sampler); i++) {
        did("sample", llama_sampler_name(llama_sampler_chain_get(sampler, i)), -1, output, -1);
    }
}

/* As llama_sampler_sample does it; `place`: where the output is in the batch. */
static void sample(struct llama_sampler * chain, int output, int place) {
    sampled[sampled_count++] = llama_sampler_sample(chain, context, output);
    applied(chain, place);
    did("accept", "chain", -1, -1, -1);
}

/* As llama-server does it: a grammar, then the chain. */
static void sample_with_grammar(struct llama_sampler * grammar, struct llama_sampler * chain, int output) {
    const int count = llama_vocab_n_tokens(vocabulary);
    const float * logits = llama_get_logits_ith(context, output);
    struct llama_token_data * data = malloc((size_t) count * sizeof(*data));
    for (int i = 0; i < count; i++) data[i] = (struct llama_token_data) {i, logits[i], 0};
    struct llama_token_data_array candidates = {data, (size_t) count, -1, false};
    llama_sampler_apply(grammar, &candidates);
    did("sample", "grammar", -1, output, -1);
    llama_sampler_apply(chain, &candidates);
    applied(chain, output);
    sampled[sampled_count++] = candidates.data[candidates.selected].id;
    free(data);
}

static void change_sequences(void) {
    llama_memory_t memory = llama_get_memory(context);
    llama_memory_seq_cp(memory, 0, 2, -1, -1);
    changed("copy", 0, 2, -1, -1, 0, true);
    changed("remove", 1, -1, 2, -1, 0, llama_memory_seq_rm(memory, 1, 2, -1));
    llama_memory_seq_add(memory, 0, 4, -1, 3);
    changed("shift", 0, -1, 4, -1, 3, true);
    llama_memory_seq_keep(memory, 0);
    changed("keep", 0, -1, -1, -1, 0, true);
}

static void save_states(const char * folder) {
    static uint8_t state[STATE_BYTES];
    char path[4096];
    const size_t bytes = llama_state_seq_get_data(context, state, sizeof(state), 0);
    did("save-state", "", 0, -1, (int64_t) bytes);
    did("restore-state", "", 3, -1, (int64_t) llama_state_seq_set_data_ext(context, state, bytes, 3, 0));
    snprintf(path, sizeof(path), "%s/state", folder);
    const llama_token tokens[] = {1, 2, 3};
    did("save-state", "", 3, -1, (int64_t) llama_state_seq_save_file(context, path, 3, tokens, 3));
}

static void convert_texts(void) {
    llama_token tokens[64];
    char text[256];
    const int count = llama_tokenize(vocabulary, "hello world", 11, tokens, 64, false, false);
    did("tokenize", "", -1, -1, count);
    if (llama_tokenize(vocabulary, "hello world", 11, tokens, 1, false, false) >= 0) fail("llama_tokenize");
    did("tokenize", "", -1, -1, -1);
    llama_detokenize(vocabulary, tokens, count, text, sizeof(text), false, false);
    did("detokenize", "", -1, -1, count);
    for (int i = 0; i < PIECES; i++) {
        llama_token_to_piece(vocabulary, tokens[i % count], text, sizeof(text), 0, false);
        if (i < 1024) did("token-to-piece", "", -1, -1, 1);
    }
}

static struct llama_sampler * create_chain(void) {
    struct llama_sampler * chain = llama_sampler_chain_init(llama_sampler_chain_default_params());
    llama_sampler_chain_add(chain, llama_sampler_init_top_k(40));
    llama_sampler_chain_add(chain, llama_sampler_init_temp(0.8f));
    llama_sampler_chain_add(chain, llama_sampler_init_dist(7));
    return chain;
}

static struct llama_model * load(const char * path) {
    const int64_t start = now();
    struct llama_model * model = llama_model_load_from_file(path, llama_model_default_params());
    if (!model) fail("no model");
    printf("{\"event\":\"load\",\"start\":%" PRId64 ",\"end\":%" PRId64 "}\n", start, now());
    struct llama_context_params params = llama_context_default_params();
    params.n_ctx = 512;
    params.n_seq_max = 4;
    params.n_threads = params.n_threads_batch = 2;
    params.kv_unified = true;
    context = llama_init_from_model(model, params);
    if (!context) fail("no context");
    vocabulary = llama_model_get_vocab(model);
    return model;
}

int main(int count, char ** args) {
    if (count != 4) fail("functions LIB MODEL FOLDER");
    llama_log_set(quiet, NULL);
    ggml_backend_load_all_from_path(args[1]);
    struct llama_model * model = load(args[2]);
    char text[64];
    llama_token_to_piece(vocabulary, 3, text, sizeof(text), 0, false); /* before the first call: left out */
    llama_memory_clear(llama_get_memory(context), true); /* before the first call, too */
    changed("clear", -1, -1, -1, -1, 0, true);
    struct llama_sampler * chain = create_chain();
    struct llama_sampler * grammar = llama_sampler_init_grammar(vocabulary, "root ::= [a-z ]+", "root");
    did("create-sampler", "grammar", -1, -1, -1);
    decode(0, 0, PROMPT, 0, 0);
    sample(chain, -1, PROMPT - 1);
    decode(0, PROMPT, 1, 1, 4);
    sample(chain, 0, 0);
    sample(chain, 4, 4);
    sample_with_grammar(grammar, chain, 4);
    change_sequences();
    save_states(args[3]);
    convert_texts();
    llama_memory_clear(llama_get_memory(context), true);
    changed("clear", -1, -1, -1, -1, 0, true);
    printf("{\"event\":\"result\",\"pid\":0,\"tokens\":[[[");
    for (int i = 0; i < sampled_count; i++) printf("%s%d", i ? "," : "", sampled[i]);
    printf("]]]}\n");
    llama_sampler_free(grammar);
    llama_sampler_free(chain);
    llama_free(context);
    llama_model_free(model);
    return 0;
}
