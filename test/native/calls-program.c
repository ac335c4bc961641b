/*
 * A program that makes five calls of a library that looks like llama.cpp, and does nothing else: for systems that llama.cpp's own
 * libraries are too new for, or are not built for. Counts its calls and their tokens. -DMODULE: that library.
 */
#include <stdio.h>

#include "../llama/stand-in.h"

#ifdef MODULE
int32_t llama_decode(struct llama_context * context, struct llama_batch batch) {
    return context && batch.n_tokens > 0 ? 0 : 1;
}
#else
int main(void) {
    int32_t tokens[3] = {1, 2, 3};
    int calls = 0, decoded = 0;
    for (int i = 0; i < 5; i++) {
        struct llama_batch batch = {.n_tokens = i ? 1 : 3, .token = tokens};
        if (llama_decode((void *) tokens, batch) != 0) return 1;
        calls++;
        decoded += batch.n_tokens;
    }
    printf("done: %d calls, %d tokens\n", calls, decoded);
    return 0;
}
#endif
