/*
 * A host program for the recorder's tests whose calls of llama_decode pass no hook, for another reason each. Built three times: as a
 * library that has what the recorder interposes of libllama (LIBRARY), as one that imports llama_decode (USER), and as the program.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "llama.h"

#ifdef LIBRARY

/* int llama_context::decode(const llama_batch &) */
int _ZN13llama_context6decodeERK11llama_batch(void * context, const struct llama_batch * batch);

int _ZN13llama_context6decodeERK11llama_batch(void * context, const struct llama_batch * batch) {
    (void) context;
    return batch->n_tokens == 1 ? 0 : -1;
}

__attribute__((noipa)) int32_t llama_decode(struct llama_context * context, struct llama_batch batch) {
    volatile int result = _ZN13llama_context6decodeERK11llama_batch(context, &batch); /* no jump: this function is on the stack */
    return result;
}

__attribute__((visibility("hidden"), alias("llama_decode"))) int32_t bound_inside(struct llama_context * context, struct llama_batch batch);

int run_inside(struct llama_batch batch);
int run_inside(struct llama_batch batch) {
    volatile int result = bound_inside(NULL, batch);
    return result;
}

#elif defined(USER)

int run_user(struct llama_batch batch);
int run_user(struct llama_batch batch) {
    volatile int result = llama_decode(NULL, batch);
    return result;
}

#else

int main(int count, char ** arguments) {
    llama_token token = 1;
    const struct llama_batch batch = { .n_tokens = 1, .token = &token };
    if (count != 4) return 2;
    const char * way = arguments[1];
    /* First, so that its own calls are bound as usual. */
    if (!dlopen(arguments[3], RTLD_NOW)) return fputs(dlerror(), stderr), 1;
    const int deep = strcmp(way, "deep") == 0 ? RTLD_DEEPBIND : 0;
    void * library = dlopen(arguments[2], RTLD_NOW | deep);
    if (!library) return fputs(dlerror(), stderr), 1;
    volatile int result = -1;
    if (strcmp(way, "address") == 0) {
        __typeof__(llama_decode) * decode;
        *(void **) &decode = dlsym(library, "llama_decode");
        result = decode(NULL, batch);
    } else {
        int (*run)(struct llama_batch);
        *(void **) &run = dlsym(library, strcmp(way, "inside") == 0 ? "run_inside" : "run_user");
        result = run(batch);
    }
    return result;
}

#endif
