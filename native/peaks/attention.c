/*
 * Measures ggml's flash attention, of a prompt or of decoding, for `peaks --ggml FOLDER`:
 *
 *     attention HEADS KV_HEADS HEAD_SIZE VALUE_SIZE K_TYPE V_TYPE COPIES   chooses a shape, types by ggml's numbers, and how many caches are read by turns
 *     attend TOKENS CONTEXT CACHE THREADS [SEQUENCES]   times it for so many tokens after others, in a cache of so many places; of several sequences, one token of
 *                                                       each after so many of its own
 *
 * As in llama.cpp, a cache has the heads of a place side by side, and a mask hides what is no token, later than the token, or of another sequence.
 */
#include "peaks/libraries.h"

#include <stdio.h>
#include <stdlib.h>

enum { COPIES_MAX = 4096, SIZES_MAX = 4096, PLACES_MAX = 1 << 20, TOKENS_MAX = 1 << 14, MASK_ROWS = 64 };
/* More than this is in no cache of a CPU. */
#define CACHES_MAX ((size_t) 512 << 20)
#define HALF_OF_MINUS_INFINITY 0xfc00
/* Any: the time does not depend on it. */
#define SCALE 0.1f

/* What attends to what. */
struct piece {
    int tokens, context, cache, sequences;
};

/* The latest job. */
static struct {
    int heads, kv_heads, head_size, value_size, k_type, v_type, copies;
} shape;

static void * (*flash)(void * context, void * q, void * k, void * v, void * mask, float scale, float max_bias, float softcap);

bool choose_attention(const char * line) {
    if (sscanf(line, "attention %d %d %d %d %d %d %d", &shape.heads, &shape.kv_heads, &shape.head_size, &shape.value_size, &shape.k_type,
               &shape.v_type, &shape.copies) != 7)
        return false;
    const int sizes[] = {shape.heads, shape.kv_heads, shape.head_size, shape.value_size};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i] < 1 || sizes[i] > SIZES_MAX) fail("wrong attention", line);
    const bool are_types = shape.k_type >= 0 && shape.k_type < TYPES_MAX && shape.v_type >= 0 && shape.v_type < TYPES_MAX;
    if (!are_types || shape.heads % shape.kv_heads != 0 || shape.copies < 1 || shape.copies > COPIES_MAX) fail("wrong attention", line);
    *(void **) &flash = library_function("ggml_flash_attn_ext");
    if (!flash) fail("this version of ggml has no function", "ggml_flash_attn_ext");
    return true;
}

/* Places, with the heads of each side by side, as attention reads them. */
static void * cache_of(void * context, int type, int size, int places) {
    return ggml.permute(context, ggml.tensor_3d(context, type, size, shape.kv_heads, places), 0, 2, 1, 3);
}

static void set_zero(void * tensor) {
    const size_t size = ggml.nbytes(tensor);
    void * zeros = allocate(1, size);
    ggml.set(tensor, zeros, 0, size);
    free(zeros);
}

/* Each token sees those before it, and itself. The places of a sequence follow those of the one before it. */
static void set_mask(void * mask, const struct piece * piece) {
    const int tokens = piece->tokens, cache = piece->cache;
    const size_t rows = ggml.nbytes(mask) / ((size_t) cache * sizeof(uint16_t));
    uint16_t * halves = allocate(rows * (size_t) cache, sizeof *halves);
    for (size_t row = 0; row < rows; row++) {
        const bool is_own = piece->sequences > 1;
        const int first = is_own ? (int) row * (piece->context + 1) : 0;
        const int seen = (int) row >= tokens ? 0 : is_own ? piece->context + 1 : piece->context + (int) row + 1;
        for (int place = 0; place < cache; place++)
            if (place < first || place >= first + seen) halves[row * (size_t) cache + (size_t) place] = HALF_OF_MINUS_INFINITY;
    }
    ggml.set(mask, halves, 0, rows * (size_t) cache * sizeof *halves);
    free(halves);
}

static struct times times_with(const struct piece * piece, int copies) {
    const int tokens = piece->tokens, cache = piece->cache;
    void * context = new_context(6 * (size_t) copies + 3);
    void * graph = ggml.graph(context, 3 * (size_t) copies + 8, false); /* each with two permuted caches */
    void * q = ggml.tensor_3d(context, F32, shape.head_size, shape.heads, tokens);
    void * turned = ggml.permute(context, q, 0, 2, 1, 3);
    void * mask = ggml.tensor_2d(context, F16, cache, (tokens + MASK_ROWS - 1) / MASK_ROWS * MASK_ROWS);
    void ** caches = allocate(2 * (size_t) copies, sizeof *caches);
    void ** attended = allocate((size_t) copies, sizeof *attended);
    for (int i = 0; i < copies; i++) {
        void * k = caches[2 * i] = cache_of(context, shape.k_type, shape.head_size, cache);
        void * v = caches[2 * i + 1] = cache_of(context, shape.v_type, shape.value_size, cache);
        attended[i] = flash(context, turned, k, v, mask, SCALE, 0, 0);
        ggml.expand(graph, attended[i]);
    }
    const struct results results = place_results(attended, copies);
    void * buffer = place_tensors(context, ggml.device_buffer_type(cpu_device), "attention");
    fill_tensor(q);
    set_mask(mask, piece);
    for (int i = 0; i < 2 * copies; i++) set_zero(caches[i]);
    time_of(graph);
    const struct times times = times_of(graph, copies);
    ggml.free_buffer(buffer);
    free_results(results);
    ggml.free(context);
    free(caches);
    free(attended);
    return times;
}

bool measure_attention(const char * line) {
    struct piece piece = {.sequences = 1};
    int threads;
    if (sscanf(line, "attend %d %d %d %d %d", &piece.tokens, &piece.context, &piece.cache, &threads, &piece.sequences) < 4) return false;
    if (!flash) fail("attend without attention", NULL);
    const int tokens = piece.tokens, context = piece.context, cache = piece.cache, sequences = piece.sequences;
    if (tokens < 1 || tokens > TOKENS_MAX || cache > PLACES_MAX || context < 0 || context > cache) fail("wrong attention", line);
    if (sequences < 1 || (sequences > 1 && sequences != tokens) || (int64_t) context * sequences + tokens > cache) fail("wrong attention", line);
    const size_t place = ggml.row_size(shape.k_type, shape.head_size) + ggml.row_size(shape.v_type, shape.value_size);
    const size_t most = CACHES_MAX / (place * (size_t) shape.kv_heads * (size_t) cache);
    const int copies = most < 1 ? 1 : most < (size_t) shape.copies ? (int) most : shape.copies;
    void * pool = start_threads(threads);
    const struct times times = times_with(&piece, copies);
    end_threads(pool);
    printf("{\"attention\": true, \"heads\": %d, \"kv_heads\": %d, \"head_size\": %d, \"value_size\": %d, \"k_type\": %d, \"v_type\": %d, "
           "\"copies\": %d, \"tokens\": %d, \"context\": %d, \"cache\": %d, \"sequences\": %d, \"threads\": %d, \"repeats\": %d, \"ns\": %.0f, "
           "\"best_ns\": %.0f}\n",
           shape.heads, shape.kv_heads, shape.head_size, shape.value_size, shape.k_type, shape.v_type, shape.copies, tokens, context, cache,
           sequences, threads, times.repeats, times.median, times.best);
    return true;
}
