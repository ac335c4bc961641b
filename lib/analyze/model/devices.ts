import type { PeakFigures } from './figures.ts'

/** Peaks of a device that its maker publishes: dense products of 16-bit floating-point numbers, and bandwidth of its memory. */
interface Device {
  /** In the names that CUDA reports. */
  readonly name: RegExp
  readonly flopPerS: number
  readonly bytesPerS: number
  readonly source: string
}

const A100 = 'NVIDIA A100 Tensor Core GPU datasheet (nvidia-a100-datasheet-us-nvidia-1758950-r4-web.pdf)'
const H100 = 'NVIDIA H100 Tensor Core GPU datasheet, half of the figure with sparsity'
const H200 = 'NVIDIA H200 Tensor Core GPU datasheet, half of the figure with sparsity'
const L4 = 'NVIDIA L4 Tensor Core GPU datasheet, half of the figure with sparsity'
const T4 = 'NVIDIA T4 Tensor Core GPU datasheet'
const AMPERE = 'NVIDIA Ampere GA102 GPU architecture whitepaper: FP16 tensor with FP32 accumulation'
const ADA = 'NVIDIA Ada GPU architecture whitepaper: FP16 tensor with FP32 accumulation'
const BLACKWELL = 'NVIDIA RTX Blackwell GPU architecture whitepaper: FP16 tensor with FP32 accumulation'

/** Devices with published peaks. Others are given by options or measured. */
const DEVICES: readonly Device[] = [
  { name: /\bA100-SXM4-40GB\b/, flopPerS: 312e12, bytesPerS: 1555e9, source: A100 },
  { name: /\bA100-SXM4-80GB\b/, flopPerS: 312e12, bytesPerS: 2039e9, source: A100 },
  { name: /\bH100 80GB HBM3\b/, flopPerS: 989.4e12, bytesPerS: 3350e9, source: H100 },
  { name: /\bH200$/, flopPerS: 989.5e12, bytesPerS: 4800e9, source: H200 },
  { name: /\bL4$/, flopPerS: 121e12, bytesPerS: 300e9, source: L4 },
  { name: /\bT4$/, flopPerS: 65e12, bytesPerS: 320e9, source: T4 },
  { name: /\bRTX 3090$/, flopPerS: 71e12, bytesPerS: 936e9, source: AMPERE },
  { name: /\bRTX 4090$/, flopPerS: 165.2e12, bytesPerS: 1008e9, source: ADA },
  { name: /\bRTX 5090$/, flopPerS: 209.5e12, bytesPerS: 1792e9, source: BLACKWELL },
]

/** The peaks of the GPUs of a log, as its profiler names them; undefined where one is not known, or they differ. */
export function knownPeaks(gpus: string | null): PeakFigures | undefined {
  if (gpus === null) return undefined
  const names = gpus.split(/[,;]/)
  const found = names.map((name) => DEVICES.find((device) => device.name.test(name)))
  const [device] = found
  // Which of several GPUs did the work is not known here.
  if (!device || found.length > 1) return undefined
  const { flopPerS, bytesPerS, source } = device
  const rates = { flop_per_s: flopPerS, flop_type: 'f16', int8_op_per_s: null, bytes_per_s: bytesPerS }
  return { device: gpus, ...rates, origin: 'known', source }
}
