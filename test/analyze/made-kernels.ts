import type { Analysis, KernelTimes, WhatIf, WhatIfPart } from '../../lib/analysis.ts'

/** What a measurement of the products of a run finds, if each takes `nsOf`. */
export function kernelsOf(
  { run, series }: Analysis,
  settings: readonly (readonly [type: string, tokens: number, threads: number])[],
  nsOf: (type: string, tokens: number, threads: number, elements: number) => number,
  facts: Partial<KernelTimes> = {},
): KernelTimes {
  const { groups, calls } = series!.steps!
  const matrices = groups.filter(({ type }) => type !== '')
  const bytesOf = (type: string, elements: number) => (elements / 32) * { q4_0: 18, q8_0: 34 }[type]!
  const products = settings.flatMap(([type, tokens, threads]) => {
    const bytes = groups.reduce(
      (sum, group, i) =>
        group.type === '' ? sum : sum + calls.at(-1)!.steps[i]! * bytesOf(type, group.weight_elements),
      0,
    )
    return matrices.map(({ weight_columns: columns, weight_rows: rows }) => {
      const elements = columns * rows
      const ns = nsOf(type, tokens, threads, elements)
      const copies = Math.max(Math.round(bytes / bytesOf(type, elements)), 1)
      return { type, columns, rows, copies, buffer: 'CPU', tokens, threads, ns, best_ns: ns }
    })
  })
  const nodes = [1, 2].map((threads) => ({ threads, ns: 100 * threads, best_ns: 100 * threads }))
  const { cpu, build, cpus } = run
  return { schema: 'ggml2perfetto.kernels/1', cpu: cpu!, cpus: cpus!, build: build!, products, nodes, ...facts }
}

/** About what the products of the run take. */
export const NS = (elements: number) => 2000 + elements / 60

/** The time of a group of operators after the change, by that before it. */
export const factorsOf = ({ parts }: WhatIf, isPart: (part: WhatIfPart) => boolean) =>
  parts
    .filter((part) => part.phase === 'decode' && part.what === 'operators' && isPart(part))
    .map(({ now_ns, then_ns }) => then_ns / now_ns)
