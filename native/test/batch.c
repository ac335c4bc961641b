/* Tests the contents of llama_batch_ext: many batches, one after the other, at addresses that are reused. */
#include <stdio.h>
#include <stdlib.h>

#include "recorder/batch.h"

#define CHECK(is)                                             \
    do {                                                      \
        if (!(is)) return fprintf(stderr, "not so: %s\n", #is), 1; \
    } while (0)

int main(void) {
    enum { BATCHES = 5000 };
    static char places[BATCHES];
    struct batch batch;
    for (int n = 0; n < BATCHES; n++) { /* never freed, as far as the hooks can see */
        for (int i = 0; i < 3; i++) {
            batch_ext_added(&places[n], i, 7);
            batch_ext_placed(&places[n], i, 10 + i);
        }
        batch_ext_read(&batch, &places[n]);
        CHECK(batch.tokens == 3 && batch.span_count == 1);
        CHECK(batch.spans[0].sequence == 7 && batch.spans[0].position == 10 && batch.spans[0].tokens == 3);
    }
    batch_ext_cleared(&places[BATCHES - 1]); /* a new batch at the same address */
    batch_ext_added(&places[BATCHES - 1], 0, 1);
    batch_ext_added(&places[BATCHES - 1], -1, 1); /* refused */
    batch_ext_added(&places[BATCHES - 1], 1, 2);
    batch_ext_read(&batch, &places[BATCHES - 1]);
    CHECK(batch.tokens == 2 && batch.span_count == 2 && batch.spans[1].sequence == 2);
    CHECK(batch_decodes(&batch));
    return 0;
}
