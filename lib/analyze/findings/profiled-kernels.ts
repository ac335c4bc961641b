import { plural } from '../../model/units.ts'
import type { Analysis, Finding, KernelProfileRow } from '../analysis.ts'
import type { Confidence } from './rule.ts'

// What the rules of kernels that Nsight Compute measured share.

/** Kernels whose function is a product of matrices, by the words that llama.cpp, cuBLAS, CUTLASS, Triton and attention use for them. */
const PRODUCT = /gemm|mul_?mat|matmul|cutlass|xmma|nvjet|wgmma|hmma|flash|fmha|attention/i
/** Products of a matrix and a vector: each weight is read once, for two operations. */
const VECTOR = /gemv|mul_mat_vec|mul_mat_v|mmvq?\b|matvec|dequantize_mul_mat_vec|splitk?reduce/i

/** Products of matrices, without those of a matrix and a vector. */
export function productsOf({ kernel_profiles }: Analysis): KernelProfileRow[] {
  return (kernel_profiles?.kernels ?? []).filter(
    ({ name }) => PRODUCT.test(name.replace(/\(.*/, '')) && !VECTOR.test(name.replace(/[<(].*/, '')),
  )
}

/** Time of kernels in the logs, else in the profile. */
export const timeOf = ({ gpu_time_ns, profile_time_ns }: KernelProfileRow) => gpu_time_ns || (profile_time_ns ?? 0)

/** The function without its arguments, for sentences. */
export function functionOf({ name }: KernelProfileRow): string {
  const words = name.replace(/^void /, '').replace(/[<([].*/, '')
  return words.length > 48 ? `${words.slice(0, 47)}…` : words
}

/** Measured in a profile: high where the launches are those of the log, medium where they are like them. */
export function confidenceOf({ kernel_profiles }: Analysis): Confidence {
  const { joined, launches } = kernel_profiles!
  const confidence_reason = `${plural(launches, 'kernel')} that Nsight Compute measured, each alone`
  if (!joined) return { confidence: 'medium', confidence_reason: `${confidence_reason}, without their time in a run` }
  return { confidence: joined.joined_time_ns > 0 ? 'high' : 'low', confidence_reason }
}

/** The table of profiled kernels has their time in the logs. */
export const CHECK: Finding['check'] = { command: 'ggml2perfetto stats <logs> <profile>', evidence: 'time_ns' }
