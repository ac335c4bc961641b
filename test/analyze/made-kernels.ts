import type { Analysis, KernelTimes, WhatIf, WhatIfPart } from '../../lib/analysis.ts'

/** What a measurement of the products of a run finds, if each takes `nsOf`. */
export function kernelsOf(
  { run, series, weight_memory }: Analysis,
  settings: readonly (readonly [type: string, tokens: number, threads: number])[],
  nsOf: (type: string, tokens: number, threads: number, elements: number) => number,
  facts: Partial<KernelTimes> = {},
): KernelTimes {
  const { groups, calls } = series!.steps!
  const matrices = groups.filter(({ type }) => type !== '')
  const bytesOf = (type: string, elements: number) => (elements / 32) * { q4_0: 18, q8_0: 34 }[type]!
  const products = settings.flatMap(([type, tokens, threads]) => {
    const repacked = weight_memory?.rows.find((row) => row.type === type && row.reason === 'repacked')
    const buffer = repacked?.buffer ?? 'CPU'
    const bytes = groups.reduce(
      (sum, group, i) =>
        group.type === '' ? sum : sum + calls.at(-1)!.steps[i]! * bytesOf(type, group.weight_elements),
      0,
    )
    return matrices.map(({ weight_columns: columns, weight_rows: rows }) => {
      const elements = columns * rows
      const ns = nsOf(type, tokens, threads, elements)
      const copies = Math.max(Math.round(bytes / bytesOf(type, elements)), 1)
      return { type, columns, rows, copies, buffer, tokens, threads, ns, best_ns: ns }
    })
  })
  const nodes = [1, 2].map((threads) => ({ threads, ns: 100 * threads, best_ns: 100 * threads }))
  const { cpu, build, cpus } = run
  return { schema: 'ggml2perfetto.kernels/1', cpu: cpu!, cpus: cpus!, build: build!, products, nodes, ...facts }
}

/** What products of so many elements take in decode calls of a run, less 5 %: those that are measured alone take less. */
export function ownNs({ series }: Analysis): (elements: number) => number {
  const { groups, calls } = series!.steps!
  const decode = new Set(series!.calls!.rows.filter(({ phase }) => phase === 'decode').map(({ call }) => call))
  const own = calls.filter(({ call }) => decode.has(call))
  return (elements) => {
    const alike = groups.flatMap((group, i) => (group.weight_columns * group.weight_rows === elements ? [i] : []))
    const sumOf = (list: 'steps' | 'undisturbed_ns') =>
      own.reduce((sum, call) => alike.reduce((part, i) => part + (call[list][i] ?? 0), sum), 0)
    return sumOf('undisturbed_ns') / sumOf('steps') / 1.05
  }
}

/** The time of all these operators of decoding after the change, by that before it. */
export function factorOf({ parts }: WhatIf, isPart: (part: WhatIfPart) => boolean): number {
  const all = parts.filter((part) => part.phase === 'decode' && part.what === 'operators' && isPart(part))
  const sumOf = (field: 'now_ns' | 'then_ns') => all.reduce((sum, part) => sum + part[field], 0)
  return sumOf('then_ns') / sumOf('now_ns')
}

/** The time of a group of operators after the change, by that before it. */
export const factorsOf = ({ parts }: WhatIf, isPart: (part: WhatIfPart) => boolean) =>
  parts
    .filter((part) => part.phase === 'decode' && part.what === 'operators' && isPart(part))
    .map(({ now_ns, then_ns }) => then_ns / now_ns)
