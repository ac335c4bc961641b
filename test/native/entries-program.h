/* What the generated functions of entries.test.ts, their hooks and entries-program.c share. */
#pragma once

typedef long test_call(long a, long b, long c);

struct test_function {
    const char * name;
    test_call * function, * hook, ** real;
    long * hits;
};
extern const struct test_function test_functions_list[];
extern const int test_count;
extern volatile long test_state;

/* Changes every register that a call may change, and needs a stack that is aligned as the ABI has it. */
static inline void test_spoil(void) {
#ifdef __x86_64__
    char aligned[16] __attribute__((aligned(16)));
    __asm__ volatile("mov $-1, %%rax\nmov %%rax, %%rcx\nmov %%rax, %%rdx\nmov %%rax, %%rsi\nmov %%rax, %%rdi\nmov %%rax, %%r8\n"
                     "mov %%rax, %%r9\nmov %%rax, %%r10\nmov %%rax, %%r11\npcmpeqb %%xmm0, %%xmm0\n"
                     "movaps %%xmm0, %0\nmovaps %%xmm0, %%xmm1\nmovaps %%xmm0, %%xmm2\nmovaps %%xmm0, %%xmm3\nmovaps %%xmm0, %%xmm4\n"
                     "movaps %%xmm0, %%xmm5\nmovaps %%xmm0, %%xmm6\nmovaps %%xmm0, %%xmm7\nmovaps %%xmm0, %%xmm8\nmovaps %%xmm0, %%xmm9\n"
                     "movaps %%xmm0, %%xmm10\nmovaps %%xmm0, %%xmm11\nmovaps %%xmm0, %%xmm12\nmovaps %%xmm0, %%xmm13\n"
                     "movaps %%xmm0, %%xmm14\nmovaps %%xmm0, %%xmm15\n"
                     : "=m"(aligned)
                     :
                     : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5",
                       "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
#endif
}
