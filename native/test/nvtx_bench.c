/* Measures the cost of a range that is announced (nvtx/emit.c) to our own listener: nvtx_bench LISTENER.so FILE. */
#include "common/system.h"

#include <stdio.h>

#include "nvtx/emit.h"
#include "nvtx/host.h"

struct ggtrace * nvtx_log(void) {
    return NULL;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double) time.tv_sec * 1e9 + (double) time.tv_nsec;
}

enum { RANGES = 200000, ROUNDS = 7 };

static double best(void (*push)(uint64_t index)) {
    double least = 1e18;
    for (int round = 0; round < ROUNDS; round++) {
        const double start = now();
        for (uint64_t i = 0; i < RANGES; i++) {
            push(i);
            nvtx_emit_pop();
        }
        const double each = (now() - start) / RANGES;
        if (each < least) least = each;
    }
    return least;
}

static void token(uint64_t index) {
    nvtx_emit_push(EMIT_TOKENS, "decode", index);
}

static void operator(uint64_t index) {
    nvtx_emit_operator("ffn_moe_gate-12", "MUL_MAT_ID", index);
}

int main(int count, char ** args) {
    if (count != 3) return 2;
    setenv("NVTX_INJECTION64_PATH", args[1], 1);
    setenv("GGML2PERFETTO_OUT", args[2], 1);
    setenv("GGML2PERFETTO_NVTX_EMIT", "tokens,operators", 1);
    unlink(args[2]);
    if (!nvtx_emits(EMIT_TOKENS)) {
        fprintf(stderr, "%s does not listen\n", args[1]);
        return 1;
    }
    printf("token     %6.0f ns a range\n", best(token));
    printf("operator  %6.0f ns a range\n", best(operator));
    unlink(args[2]);
    return 0;
}
