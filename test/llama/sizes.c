/* Bytes of the structures that a program without llama.h passes by value. */
#include <stdio.h>

#include "llama.h"

int main(void) {
    printf("%zu %zu\n", sizeof(struct llama_model_params), sizeof(struct llama_context_params));
    return 0;
}
