import { plural } from '../../model/units.ts'
import type { Analysis, Finding, KernelProfileRow } from '../analysis.ts'
import { type Confidence, found, type Limit, type Rule } from './rule.ts'
import { percent } from './words.ts'

// What the rules of kernels that Nsight Compute measured share.

/** Kernels whose function is a product of matrices, by the words that llama.cpp, cuBLAS, CUTLASS, Triton and attention use for them. */
const PRODUCT = /gemm|mul_?mat|matmul|cutlass|xmma|nvjet|wgmma|hmma|flash|fmha|attention/i
/** Products of a matrix and a vector: each weight is read once, for two operations. */
const VECTOR = /gemv|mul_mat_vec|mul_mat_v|mmvq?\b|matvec|dequantize_mul_mat_vec|splitk?reduce/i

/** Products of matrices, without those of a matrix and a vector. */
function productsOf({ kernel_profiles }: Analysis): KernelProfileRow[] {
  return (kernel_profiles?.kernels ?? []).filter(
    ({ name }) => PRODUCT.test(name.replace(/\(.*/, '')) && !VECTOR.test(name.replace(/[<(].*/, '')),
  )
}

/** Time of kernels in the logs, else in the profile. */
const timeOf = ({ gpu_time_ns, profile_time_ns }: KernelProfileRow) => gpu_time_ns || (profile_time_ns ?? 0)

/** The function without its arguments, for sentences. */
function functionOf({ name }: KernelProfileRow): string {
  const words = name.replace(/^void /, '').replace(/[<([].*/, '')
  return words.length > 48 ? `${words.slice(0, 47)}…` : words
}

/** Measured in a profile: high where the launches are those of the log, medium where they are like them. */
function confidenceOf({ kernel_profiles }: Analysis): Confidence {
  const { joined, launches } = kernel_profiles!
  const confidence_reason = `${plural(launches, 'kernel')} that Nsight Compute measured, each alone`
  if (!joined) return { confidence: 'medium', confidence_reason: `${confidence_reason}, without their time in a run` }
  return { confidence: joined.joined_time_ns > 0 ? 'high' : 'low', confidence_reason }
}

/** The table of profiled kernels has their time in the logs. */
const CHECK: Finding['check'] = { command: 'ggml2perfetto stats <logs> <profile>', evidence: 'time_ns' }

type Share = 'tensor_share' | 'sm_share' | 'l2_hit_share' | 'dram_share'

interface ProductsLook {
  /** The share that is too low, below `below`, where `high` shows that the kernel could be faster: from `from` on. */
  readonly low: Share
  readonly high: Share
  readonly below: Limit
  readonly from: Limit
  /** What is looked at where no product is found, of the low shares of all. */
  readonly figureOf: (lows: readonly number[]) => string
  /** After the name of the kernel that is found first. */
  readonly sentenceOf: (low: string, high: string) => string
}

/** Looks for products of matrices with one share that is low and one that is high. */
export function lookAtProducts({ low, high, below, from, figureOf, sentenceOf }: ProductsLook): Rule['look'] {
  return (analysis) => {
    const products = productsOf(analysis).filter((row) => row[low] !== null && row[high] !== null)
    if (products.length === 0) return []
    const slow = products.filter((row) => row[low]! < below.value && row[high]! >= from.value)
    const [first] = slow
    if (!first) return [{ figure: figureOf(products.map((row) => row[low]!)) }]
    const timeNs = slow.reduce((sum, row) => sum + timeOf(row), 0)
    const others = slow.length > 1 ? ` and ${slow.length - 1} more` : ''
    const sentence = `${functionOf(first)}${others}: ${sentenceOf(percent(first[low]!), percent(first[high]!))}`
    const evidence = {
      ...{ kernel: first.name, kernels: slow.length, time_ns: timeNs },
      ...{ [high]: first[high]!, [low]: first[low]! },
    }
    return found(sentence, { time_ns: timeNs, ...confidenceOf(analysis), evidence, check: CHECK })
  }
}
