#include "recorder/batch.h"

#include "common/hold.h"

/* The first fields of llama_batch have been in this order in all versions. */
struct batch_head {
    int32_t tokens;
    const int32_t * token;
    const float * embd;
    const int32_t * pos;
    const int32_t * n_seq_id;
    const int32_t * const * seq_id;
    const int8_t * logits;
};

static void add(struct batch * batch, uint32_t sequence, uint32_t position) {
    struct ggtrace_span * last = batch->span_count ? &batch->spans[batch->span_count - 1] : NULL;
    batch->tokens++;
    const bool follows = last && last->sequence == sequence &&
                         (position == GGTRACE_NO_POSITION ? last->position == position : last->position + last->tokens == position);
    if (follows) last->tokens++;
    else if (batch->span_count < GGTRACE_SPANS_MAX) {
        batch->spans[batch->span_count++] = (struct ggtrace_span){.sequence = sequence, .position = position, .tokens = 1};
    }
}

/* llama.h documents the meaning of each missing list. */
void batch_read(struct batch * batch, const struct any_batch * any) {
    struct batch_head head;
    memcpy(&head, any, sizeof(head));
    batch->tokens = batch->span_count = 0;
    batch->outputs = head.tokens > 0 && !head.logits; /* the last token has an output */
    batch->last_output = batch->outputs ? (uint32_t) head.tokens - 1 : GGTRACE_NO_NUMBER;
    for (int32_t i = 0; i < head.tokens; i++) {
        const bool has_sequence = head.seq_id && head.seq_id[i] && head.n_seq_id && head.n_seq_id[i] > 0;
        if (head.logits && head.logits[i]) {
            batch->outputs++;
            batch->last_output = (uint32_t) i;
        }
        add(batch, has_sequence ? (uint32_t) head.seq_id[i][0] : 0, head.pos ? (uint32_t) head.pos[i] : GGTRACE_NO_POSITION);
    }
}

bool batch_decodes(const struct batch * batch) {
    for (uint32_t i = 0; i < batch->span_count; i++) if (batch->spans[i].tokens > 1 || batch->spans[i].position == 0) return false;
    return true;
}

/* ---- llama_batch_ext ---- */

/*
 * The contents of the batches used last. The hooks miss the end of some batches (programs that use dlsym), so a new batch replaces
 * the least recently used one. The position of the latest entry is set after the entry was added.
 */
enum { EXTS = 64 };
struct ext {
    const void * any;
    uint64_t touched;
    struct batch batch;
    uint32_t sequence;
    bool has_unplaced;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct ext exts[EXTS];
static uint64_t touches;

static void empty(struct ext * ext) {
    ext->batch.tokens = ext->batch.outputs = ext->batch.span_count = 0;
    ext->batch.last_output = GGTRACE_NO_NUMBER;
    ext->has_unplaced = false;
}

/* Under the lock. */
static struct ext * ext_of(const void * any) {
    struct ext * oldest = &exts[0];
    touches++;
    for (int i = 0; i < EXTS; i++) {
        if (exts[i].any == any) {
            exts[i].touched = touches;
            return &exts[i];
        }
        if (exts[i].touched < oldest->touched) oldest = &exts[i];
    }
    oldest->any = any;
    oldest->touched = touches;
    empty(oldest);
    return oldest;
}

static void settle(struct ext * ext, uint32_t position) {
    if (ext->has_unplaced) add(&ext->batch, ext->sequence, position);
    ext->has_unplaced = false;
}

void batch_ext_added(const void * any, int32_t index, int32_t sequence) {
    if (index < 0) return;
    HOLD(&lock);
    struct ext * ext = ext_of(any);
    settle(ext, GGTRACE_NO_POSITION);
    ext->sequence = (uint32_t) sequence;
    ext->has_unplaced = true;
}

void batch_ext_placed(const void * any, int32_t index, int32_t position) {
    HOLD(&lock);
    struct ext * ext = ext_of(any);
    if (index >= 0 && (uint32_t) index == ext->batch.tokens) settle(ext, (uint32_t) position);
}

void batch_ext_output(const void * any, int32_t index) {
    HOLD(&lock);
    struct batch * batch = &ext_of(any)->batch;
    batch->outputs++;
    if (batch->last_output == GGTRACE_NO_NUMBER || (uint32_t) index > batch->last_output) batch->last_output = (uint32_t) index;
}

void batch_ext_cleared(const void * any) {
    HOLD(&lock);
    empty(ext_of(any));
}

void batch_ext_read(struct batch * batch, const void * any) {
    HOLD(&lock);
    struct ext * ext = ext_of(any);
    settle(ext, GGTRACE_NO_POSITION);
    batch->tokens = ext->batch.tokens;
    batch->outputs = ext->batch.outputs;
    batch->last_output = ext->batch.last_output;
    batch->span_count = ext->batch.span_count;
    memcpy(batch->spans, ext->batch.spans, batch->span_count * sizeof(*batch->spans));
}
