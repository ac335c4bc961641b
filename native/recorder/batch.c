#include "recorder/batch.h"

/* The first fields have stood in this order since llama_batch exists. */
struct batch_head {
    int32_t tokens;
    const int32_t * token;
    const float * embd;
    const int32_t * pos;
    const int32_t * n_seq_id;
    const int32_t * const * seq_id;
};

/* llama.h says what a missing list stands for. */
uint32_t batch_spans(const struct any_batch * any, struct ggtrace_span spans[GGTRACE_SPANS_MAX]) {
    struct batch_head head;
    __builtin_memcpy(&head, any, sizeof(head));
    const struct batch_head * batch = &head;
    uint32_t count = 0;
    for (int32_t i = 0; i < batch->tokens; i++) {
        const bool has_sequence = batch->seq_id && batch->seq_id[i] && batch->n_seq_id && batch->n_seq_id[i] > 0;
        const uint32_t sequence = has_sequence ? (uint32_t) batch->seq_id[i][0] : 0;
        const uint32_t position = batch->pos ? (uint32_t) batch->pos[i] : GGTRACE_NO_POSITION;
        struct ggtrace_span * last = count ? &spans[count - 1] : NULL;
        if (last && last->sequence == sequence && (!batch->pos || last->position + last->tokens == position)) {
            last->tokens++;
        } else {
            if (count == GGTRACE_SPANS_MAX) break;
            spans[count++] = (struct ggtrace_span){.sequence = sequence, .position = position, .tokens = 1};
        }
    }
    return count;
}

bool batch_decodes(const struct any_batch * batch) {
    struct ggtrace_span spans[GGTRACE_SPANS_MAX];
    if (batch->tokens <= 1) return true;
    const uint32_t count = batch_spans(batch, spans);
    for (uint32_t i = 0; i < count; i++) if (spans[i].tokens > 1) return false;
    return true;
}
