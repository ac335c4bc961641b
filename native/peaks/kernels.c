/*
 * The loops are written in assembly, because they measure the CPU and not the compiler, which would remove loads and sums that
 * are not used. Each loop has enough independent chains that no unit waits for an earlier result (on x86, two units with a
 * latency of 4 or 5 need 10; on arm64, four units with a latency of 4 need 16).
 */
#include "peaks/peaks.h"

#include <stddef.h>

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

static bool always(void) {
    return true;
}

#if defined(__x86_64__) || defined(__aarch64__)
/* Ordinary values, as bytes and as floats: zeros would draw less power than a model does, denormals take longer. */
static const float numbers[16] __attribute__((aligned(64))) = {
    1.13f, -0.87f, 0.59f, -1.41f, 0.73f, -1.27f, 1.61f, -0.67f,
    1.19f, -0.53f, 0.91f, -1.73f, 0.61f, -1.09f, 1.37f, -0.79f,
};
#endif

#if defined(__x86_64__)

#define CHAINS(STEP) STEP(0) STEP(1) STEP(2) STEP(3) STEP(4) STEP(5) STEP(6) STEP(7) STEP(8) STEP(9) STEP(10) STEP(11)
enum { CHAIN_COUNT = 12 };

#define KERNEL(NAME, BEGIN, ROUND, END)                                                                                \
    static void NAME(const void * at, uint64_t rounds) {                                                               \
        __asm__ volatile(BEGIN ".p2align 6\n1:\n" ROUND "dec %1\njnz 1b\n" END                                         \
                         : "+r"(at), "+r"(rounds)                                                                      \
                         : "r"(numbers)                                                                                \
                         : "cc", "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8",     \
                           "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");                              \
    }

/* 14 and 15: factors; 13: a product; 0 to 11: sums. */
#define BEGIN_512 "vzeroall\nvmovups (%2), %%zmm14\nvmovups (%2), %%zmm15\n"
#define BEGIN_256 "vzeroall\nvmovups (%2), %%ymm14\nvmovups 32(%2), %%ymm15\n"
#define ZERO_128(I) "xorps %%xmm" #I ", %%xmm" #I "\n"
#define BEGIN_128 CHAINS(ZERO_128) "movups (%2), %%xmm14\nmovups 16(%2), %%xmm15\n"
#define END_AVX "vzeroupper\n"

#define LOADS(LOAD, SIZE)                                                                                              \
    LOAD(0, SIZE) LOAD(1, SIZE) LOAD(2, SIZE) LOAD(3, SIZE) LOAD(4, SIZE) LOAD(5, SIZE) LOAD(6, SIZE) LOAD(7, SIZE)
#define LOAD_512(I, SIZE) "vmovdqa64 " #I "*" SIZE "(%0), %%zmm" #I "\n"
#define LOAD_256(I, SIZE) "vmovdqa " #I "*" SIZE "(%0), %%ymm" #I "\n"
#define LOAD_128(I, SIZE) "movdqa " #I "*" SIZE "(%0), %%xmm" #I "\n"
KERNEL(read_512, "", LOADS(LOAD_512, "64") "add $512, %0\n", END_AVX)
KERNEL(read_256, "", LOADS(LOAD_256, "32") "add $256, %0\n", END_AVX)
KERNEL(read_128, "", LOADS(LOAD_128, "16") "add $128, %0\n", "")

#define FMA_512(I) "vfmadd231ps %%zmm14, %%zmm15, %%zmm" #I "\n"
#define FMA_256(I) "vfmadd231ps %%ymm14, %%ymm15, %%ymm" #I "\n"
#define MUL_ADD_256(I) "vmulps %%ymm14, %%ymm15, %%ymm13\nvaddps %%ymm13, %%ymm" #I ", %%ymm" #I "\n"
#define MUL_ADD_128(I) "movaps %%xmm14, %%xmm13\nmulps %%xmm15, %%xmm13\naddps %%xmm13, %%xmm" #I "\n"
KERNEL(fp32_512, BEGIN_512, CHAINS(FMA_512), END_AVX)
KERNEL(fp32_fma, BEGIN_256, CHAINS(FMA_256), END_AVX)
KERNEL(fp32_256, BEGIN_256, CHAINS(MUL_ADD_256), END_AVX)
KERNEL(fp32_128, BEGIN_128, CHAINS(MUL_ADD_128), "")

#define DOT_512(I) "vpdpbusd %%zmm14, %%zmm15, %%zmm" #I "\n"
/* {vex} vpdpbusd %ymm14, %ymm15, %ymm<I>: as bytes, because assemblers before 2021 do not support it. */
#define DOT_256(I) ".byte 0xc4, 0xc2 - (" #I "/8)*128, 0x05, 0x50, 0xc6 + (" #I "&7)*8\n"
#define MADD_512(I)                                                                                                    \
    "vpmaddubsw %%zmm14, %%zmm15, %%zmm13\nvpmaddwd %%zmm14, %%zmm13, %%zmm13\nvpaddd %%zmm13, %%zmm" #I ", %%zmm" #I "\n"
#define MADD_256(I)                                                                                                    \
    "vpmaddubsw %%ymm14, %%ymm15, %%ymm13\nvpmaddwd %%ymm14, %%ymm13, %%ymm13\nvpaddd %%ymm13, %%ymm" #I ", %%ymm" #I "\n"
#define MADD_128(I)                                                                                                    \
    "movdqa %%xmm15, %%xmm13\npmaddubsw %%xmm14, %%xmm13\npmaddwd %%xmm14, %%xmm13\npaddd %%xmm13, %%xmm" #I "\n"
KERNEL(int8_vnni_512, BEGIN_512, CHAINS(DOT_512), END_AVX)
KERNEL(int8_vnni_256, BEGIN_256, CHAINS(DOT_256), END_AVX)
KERNEL(int8_512, BEGIN_512, CHAINS(MADD_512), END_AVX)
KERNEL(int8_256, BEGIN_256, CHAINS(MADD_256), END_AVX)
KERNEL(int8_128, BEGIN_128, CHAINS(MADD_128), "")

#define HAS(NAME, FEATURE)                                                                                             \
    static bool NAME(void) {                                                                                           \
        return __builtin_cpu_supports(FEATURE);                                                                        \
    }
HAS(has_avx512f, "avx512f")
HAS(has_avx512bw, "avx512bw")
HAS(has_avx512vnni, "avx512vnni")
HAS(has_avx2, "avx2")
HAS(has_fma, "fma")
HAS(has_avx, "avx")
HAS(has_ssse3, "ssse3")

/* Older compilers do not know the name of this feature. */
static bool has_avxvnni(void) {
    unsigned eax, ebx, ecx, edx;
    return has_avx2() && __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) && (eax & 1u << 4);
}

#define READ_KERNELS                                                                                                   \
    {"AVX-512", has_avx512f, read_512, 512}, {"AVX", has_avx, read_256, 256}, {"SSE2", always, read_128, 128},
#define FP32_KERNELS                                                                                                   \
    {"AVX-512", has_avx512f, fp32_512, 32 * CHAIN_COUNT}, {"AVX FMA", has_fma, fp32_fma, 16 * CHAIN_COUNT},            \
        {"AVX", has_avx, fp32_256, 16 * CHAIN_COUNT}, {"SSE", always, fp32_128, 8 * CHAIN_COUNT},
#define INT8_KERNELS                                                                                                   \
    {"AVX-512 VNNI", has_avx512vnni, int8_vnni_512, 128 * CHAIN_COUNT},                                                \
        {"AVX-VNNI", has_avxvnni, int8_vnni_256, 64 * CHAIN_COUNT},                                                    \
        {"AVX-512BW", has_avx512bw, int8_512, 128 * CHAIN_COUNT}, {"AVX2", has_avx2, int8_256, 64 * CHAIN_COUNT},      \
        {"SSSE3", has_ssse3, int8_128, 32 * CHAIN_COUNT},

#elif defined(__aarch64__)

#define CHAINS(STEP)                                                                                                   \
    STEP(0) STEP(1) STEP(2) STEP(3) STEP(4) STEP(5) STEP(6) STEP(7) STEP(8) STEP(9) STEP(10) STEP(11)                  \
    STEP(12) STEP(13) STEP(14) STEP(15) STEP(16) STEP(17) STEP(18) STEP(19) STEP(20) STEP(21) STEP(22) STEP(23)
enum { CHAIN_COUNT = 24 };

#define KERNEL(NAME, BEGIN, ROUND)                                                                                     \
    static void NAME(const void * at, uint64_t rounds) {                                                               \
        __asm__ volatile(BEGIN ".p2align 6\n1:\n" ROUND "subs %1, %1, #1\nb.ne 1b\n"                                   \
                         : "+r"(at), "+r"(rounds)                                                                      \
                         : "r"(numbers)                                                                                \
                         : "cc", "memory", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11",   \
                           "v12", "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v29",  \
                           "v30", "v31");                                                                              \
    }

/* 30 and 31: factors; 29: a product; 0 to 23: sums. */
#define ZERO(I) "movi v" #I ".16b, #0\n"
#define BEGIN CHAINS(ZERO) "ldp q30, q31, [%2]\n"

KERNEL(read_neon, "",
       "ldp q0, q1, [%0]\nldp q2, q3, [%0, #32]\nldp q4, q5, [%0, #64]\nldp q6, q7, [%0, #96]\n"
       "ldp q8, q9, [%0, #128]\nldp q10, q11, [%0, #160]\nldp q12, q13, [%0, #192]\nldp q14, q15, [%0, #224]\n"
       "add %0, %0, #256\n")

#define FMLA(I) "fmla v" #I ".4s, v30.4s, v31.4s\n"
KERNEL(fp32_neon, BEGIN, CHAINS(FMLA))

/* sdot v<I>.4s, v30.16b, v31.16b: as a number, because each assembler has its own option that permits the instruction. */
#define SDOT(I) ".inst 0x4e9f97c0 + " #I "\n"
#define MULL(I) "smull v29.8h, v30.8b, v31.8b\nsmlal2 v29.8h, v30.16b, v31.16b\nsadalp v" #I ".4s, v29.8h\n"
KERNEL(int8_sdot, BEGIN, CHAINS(SDOT))
KERNEL(int8_neon, BEGIN, CHAINS(MULL))

#define ASIMDDP (1ul << 20) /* HWCAP_ASIMDDP, missing in older headers */
static bool has_dotprod(void) {
    return getauxval(AT_HWCAP) & ASIMDDP;
}

#define READ_KERNELS {"NEON", always, read_neon, 256},
#define FP32_KERNELS {"NEON", always, fp32_neon, 8 * CHAIN_COUNT},
#define INT8_KERNELS                                                                                                   \
    {"NEON dotprod", has_dotprod, int8_sdot, 32 * CHAIN_COUNT}, {"NEON", always, int8_neon, 32 * CHAIN_COUNT},

#else
#define READ_KERNELS
#define FP32_KERNELS
#define INT8_KERNELS
#endif

/* Plain C, for other processors. */

enum { PLAIN_BYTES = 64, PLAIN_CHAINS = 8, PLAIN_PRODUCTS = 256 };

static void read_plain(const void * at, uint64_t rounds) {
    const volatile uint64_t * words = at;
    for (; rounds; rounds--, words += PLAIN_BYTES / 8) {
        for (int i = 0; i < PLAIN_BYTES / 8; i++) (void) words[i];
    }
}

typedef float plain_vector __attribute__((vector_size(16)));

static void fp32_plain(const void * at, uint64_t rounds) {
    (void) at;
    const plain_vector factor = {0.9f, 0.8f, 0.7f, 0.6f}, summand = {0.1f, 0.2f, 0.3f, 0.4f};
    plain_vector a = factor, b = a + a, c = b + a, d = c + a, e = d + a, f = e + a, g = f + a, h = g + a;
    for (; rounds; rounds--) {
        /* Depends on the round before, so that the compiler cannot move a product out of the loop. */
        a = a * factor + summand, b = b * factor + summand, c = c * factor + summand, d = d * factor + summand;
        e = e * factor + summand, f = f * factor + summand, g = g * factor + summand, h = h * factor + summand;
    }
    const plain_vector sum = a + b + c + d + e + f + g + h;
    __asm__ volatile("" : : "m"(sum));
}

static void int8_plain(const void * at, uint64_t rounds) {
    (void) at;
    int8_t left[PLAIN_PRODUCTS], right[PLAIN_PRODUCTS];
    for (int i = 0; i < PLAIN_PRODUCTS; i++) left[i] = (int8_t) i, right[i] = (int8_t) (3 * i);
    uint32_t sum = 0;
    for (; rounds; rounds--) {
        /* The compiler must assume that the values have changed. */
        __asm__ volatile("" : : "r"(left), "r"(right) : "memory");
        for (int i = 0; i < PLAIN_PRODUCTS; i++) sum += (uint32_t) (left[i] * right[i]);
    }
    __asm__ volatile("" : : "r"(sum));
}

const struct peaks_kernel peaks_read[] = {READ_KERNELS{"plain C", always, read_plain, PLAIN_BYTES}, {0}};
const struct peaks_kernel peaks_fp32[] = {FP32_KERNELS{"plain C", always, fp32_plain, 8 * PLAIN_CHAINS}, {0}};
const struct peaks_kernel peaks_int8[] = {INT8_KERNELS{"plain C", always, int8_plain, 2 * PLAIN_PRODUCTS}, {0}};
