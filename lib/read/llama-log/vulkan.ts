import type { DeviceOperator } from '../common/device-work.ts'

/** The line before the rows of a graph, and the one after them (ggml-vulkan.cpp, vk_perf_logger::print_timings). */
export const VULKAN_HEAD = 'Vulkan Timings:'
/** `Total time: 345438 us.` */
export const VULKAN_TOTAL = /^Total time: [\d.e+]+ (?:us|ms)\.?\r?$/
/** `NAME: 97 x 376.031 us = 36475 us (0.0216152 GFLOPS/s)`; the sum is missing in versions before 2025-12. */
const ROW = /^(.+): (\d+) x ([\d.e+-]+) (us|ms)(?: = ([\d.e+-]+) (us|ms))?(?: \(([\d.e+-]+) GFLOPS\/s\))?\r?$/
const COUNT_MAX = 1e9
const NAME_MAX = 1000

const UNIT_NS = { us: 1e3, ms: 1e6 } as const

/** A row of the Vulkan logger: all operators of one kind in one graph; undefined for another line. */
export function sumOf(text: string): DeviceOperator | undefined {
  const [, name, count, each, unit, sum, sumUnit, rate] = ROW.exec(text) ?? []
  if (name === undefined) return undefined
  const n = Number(count)
  const eachNs = Number(each) * UNIT_NS[unit as keyof typeof UNIT_NS]
  const timeNs = Math.round(sum === undefined ? eachNs * n : Number(sum) * UNIT_NS[sumUnit as keyof typeof UNIT_NS])
  if (!(n >= 1) || n > COUNT_MAX || !(timeNs >= 0) || !Number.isSafeInteger(timeNs)) return undefined
  const gflops = Number(rate ?? NaN)
  return {
    name: name.slice(0, NAME_MAX),
    timeNs,
    count: n,
    facts: { mean_ns: Math.round(eachNs), ...(gflops >= 0 && { gflop_per_s: gflops }) },
  }
}
