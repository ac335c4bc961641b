import { CHECK, confidenceOf, functionOf, productsOf, timeOf } from './profiled-kernels.ts'
import { found, type Limit, type Rule } from './rule.ts'
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
  look: (analysis) => {
    const products = productsOf(analysis).filter(
      ({ tensor_share, sm_share }) => tensor_share !== null && sm_share !== null,
    )
    if (products.length === 0) return []
    const unused = products.filter((row) => row.tensor_share! < TENSOR.value && row.sm_share! >= SM.value)
    if (unused.length === 0) {
      const most = Math.max(...products.map(({ tensor_share }) => tensor_share!))
      return [{ figure: `tensor cores are active for up to ${percent(most)} of the cycles of matrix products` }]
    }
    const timeNs = unused.reduce((sum, row) => sum + timeOf(row), 0)
    const [first] = unused
    const others = unused.length > 1 ? ` and ${unused.length - 1} more` : ''
    const sentence = `${functionOf(first!)}${others}: the multiprocessors are ${percent(first!.sm_share!)} busy, the tensor cores ${percent(first!.tensor_share!)}`
    const evidence = {
      ...{ kernel: first!.name, kernels: unused.length, time_ns: timeNs },
      ...{ sm_share: first!.sm_share!, tensor_share: first!.tensor_share! },
    }
    return found(sentence, { time_ns: timeNs, ...confidenceOf(analysis), evidence, check: CHECK })
  },
}
