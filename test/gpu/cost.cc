/* How long work lasts: FLOP and bytes against the rates of a small GPU, so that an analysis has something to find. */
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "bed.h"

namespace bed {

static const double FLOP_PER_NS = 10000, BYTES_PER_NS = 400, HOST_BYTES_PER_NS = 16;
static const uint64_t LEAST_NS = 1500;

static uint64_t cost(double flop, double bytes, double rate) {
    return LEAST_NS + (uint64_t) std::max(flop / FLOP_PER_NS, bytes / rate);
}

/* The program reads the ids of experts, and ends if they are none: those of each row are 0, 1, 2 … */
static std::function<void()> ids(int32_t * to, size_t rows, int32_t used, size_t stride) {
    return [=] {
        for (size_t row = 0; row < rows; row++) {
            for (int32_t i = 0; i < used; i++) to[row * stride + (size_t) i] = i;
        }
    };
}

static std::function<void()> effect_of(const std::string & name, const uint32_t grid[3], void ** arguments) {
    const auto pointer = [&](int i) { return *(int32_t **) arguments[i]; };
    const auto number = [&](int i) { return *(int32_t *) arguments[i]; };
    /* (const float * x, int * to, int columns, …): a block for each row. */
    if (name.find("k_argsort_f32_i32") != std::string::npos) return ids(pointer(1), (size_t) grid[0] * grid[1], number(2), (size_t) number(2));
    /* <int experts, …>(const float * logits, float * weights, int * ids, float * bias, int rows, int used, …) */
    int experts = 0;
    if (sscanf(name.c_str(), "_Z13topk_moe_cudaILi%dE", &experts) == 1) return ids(pointer(2), (size_t) number(4), number(5), (size_t) experts);
    return nullptr;
}

Work kernel(const std::string & name, const uint32_t grid[3], const uint32_t block[3], void ** arguments) {
    Work work;
    work.effect = effect_of(name, grid, arguments);
    work.kind = Work::KERNEL;
    work.name = name;
    std::copy(grid, grid + 3, work.grid);
    std::copy(block, block + 3, work.block);
    const double threads = (double) grid[0] * grid[1] * grid[2] * block[0] * block[1] * block[2];
    /* Kernels of matrices: each thread reads some hundred bytes of weights; others: a value or two. */
    const bool is_matrix = name.find("mul_mat") != std::string::npos || name.find("flash_attn") != std::string::npos;
    work.cost = cost(threads * (is_matrix ? 400 : 4), threads * (is_matrix ? 100 : 8), BYTES_PER_NS);
    return work;
}

Work gemm(int64_t m, int64_t n, int64_t k, int64_t batch, int bytes) {
    Work work;
    work.kind = Work::KERNEL;
    work.name = "bed_gemm_" + std::to_string(bytes * 8) + "_64x64";
    work.grid[0] = (uint32_t) ((m + 63) / 64);
    work.grid[1] = (uint32_t) ((n + 63) / 64);
    work.grid[2] = (uint32_t) batch;
    work.block[0] = 256;
    work.block[1] = work.block[2] = 1;
    const double elements = (double) (m * k + k * n + m * n) * (double) batch;
    work.cost = cost(2.0 * (double) m * (double) n * (double) k * (double) batch, elements * bytes, BYTES_PER_NS);
    return work;
}

Work copy(int kind, uint64_t bytes) {
    Work work;
    work.kind = Work::COPY;
    work.copy_kind = kind;
    work.bytes = bytes;
    work.cost = cost(0, (double) bytes, kind == 3 ? BYTES_PER_NS : HOST_BYTES_PER_NS); /* 3: device to device */
    return work;
}

Work fill(uint64_t bytes) {
    Work work;
    work.kind = Work::FILL;
    work.bytes = bytes;
    work.cost = cost(0, (double) bytes, BYTES_PER_NS);
    return work;
}

} // namespace bed
