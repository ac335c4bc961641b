import { lookAtProducts } from './profiled-kernels.ts'
import type { Limit, Rule } from './rule.ts'
import { percent } from './words.ts'

const TENSOR: Limit = {
  value: 0.01,
  why: 'a product that uses the tensor cores keeps their pipe active for several percent of the cycles at least, most 20 to 90 %',
}
const SM: Limit = {
  value: 0.5,
  why: 'below half of what the multiprocessors can do, memory or waiting is the limit: tensor cores would not make the kernel faster',
}

/** Matrix products that are limited by arithmetic compute without tensor cores. */
export const unusedTensorCores: Rule = {
  id: 'unused-tensor-cores',
  title: 'Matrix products do not use the tensor cores',
  limits: { tensor: TENSOR, sm: SM },
  advice:
    'Use types that tensor cores compute with: f16, bf16 or int8 activations, or TF32 for f32 (cuBLAS: CUBLAS_COMPUTE_32F_FAST_TF32; PyTorch: ' +
    'torch.set_float32_matmul_precision("high"); llama.cpp: GGML_CUDA_FORCE_CUBLAS or its MMQ kernels, built for the architecture of this GPU). ' +
    'Sizes and leading dimensions that are no multiples of 8 (f16) or 16 (int8) prevent them too',
  look: lookAtProducts({
    low: 'tensor_share',
    below: TENSOR,
    high: 'sm_share',
    from: SM,
    figureOf: (lows) =>
      `tensor cores are active for up to ${percent(Math.max(...lows))} of the cycles of matrix products`,
    sentenceOf: (low, high) => `the multiprocessors are ${high} busy, the tensor cores ${low}`,
  }),
}
