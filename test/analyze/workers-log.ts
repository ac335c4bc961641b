import { type Phase, UNKNOWN } from '../../lib/core.ts'
import type { EventInput, Names, TraceEvent } from '../../lib/index.ts'

/** Hand-made logs of calls that workers compute. */

/** Thread of a worker. */
export const tidOf = (worker: number): number => 101 + worker

/** A worker's part of a step: start, end, end of the barrier wait. */
export interface Part {
  readonly worker: number
  readonly node: string
  readonly at: readonly [number, number, number]
  readonly cpu?: number
}

export interface Call {
  readonly phase: Phase
  readonly at: readonly [number, number]
  readonly parts: readonly Part[]
}

export const stateOf = (
  tid: number,
  atNs: number,
  state: 'running' | 'runnable' | 'blocked' | 'woken' | 'ended',
  cpu = 0,
): TraceEvent => ({ kind: 'state', tid, atNs, state, cpu })

/** Nodes are `role-layer`, matrix products. */
export function eventsOf(names: Names, calls: readonly Call[]): TraceEvent[] {
  const nodes = new Map<string, number>()
  const tensors: TraceEvent[] = []
  const idOf = (node: string) => {
    const known = nodes.get(node)
    if (known !== undefined) return known
    const id = nodes.size
    nodes.set(node, id)
    tensors.push({ ...UNKNOWN.tensor, id, name: names.id(node), op: names.id('MUL_MAT') })
    return id
  }
  const events = calls.flatMap(({ phase, at: [startNs, endNs], parts }, call): TraceEvent[] => {
    const operators = parts.map(({ worker, node, at: [startNs, endNs, waitEndNs], cpu = -1 }): TraceEvent => {
      const times = { startNs, endNs, waitEndNs }
      return { ...UNKNOWN.operator, tensor: idOf(node), worker, tid: tidOf(worker), cpu, call, ...times }
    })
    const starts = parts.map(({ at }) => at[0])
    const ends = parts.map(({ at }) => at[2])
    const graph = { ...UNKNOWN.graph, call, startNs: Math.min(...starts), endNs: Math.max(...ends) }
    return [
      ...operators,
      { ...graph, backend: names.id('CPU') },
      { ...UNKNOWN.token, call, phase, tokens: 1, startNs, endNs, tid: tidOf(0) },
    ]
  })
  return [...tensors, ...events]
}

/** Consecutive parts of these sizes, the last one for the rest. */
export function batched<T>(all: readonly T[], sizes: readonly number[]): T[][] {
  const batches: T[][] = []
  let from = 0
  for (const size of sizes) {
    if (from >= all.length) break
    batches.push(all.slice(from, from + size))
    from += size
  }
  if (from < all.length) batches.push(all.slice(from))
  return batches
}

/** A log; its first event is the input's. */
export const logOf = (
  make: (names: Names) => TraceEvent[],
  { name = 'log', attributes = {}, sizes = [] as readonly number[], clock = 'MONOTONIC', capabilities = {} } = {},
): EventInput => ({
  name,
  events: (names) =>
    batched(
      [
        { kind: 'input', format: 'test', clock, originNs: 5_000_000_000n, attributes, capabilities } as TraceEvent,
        ...make(names),
      ],
      sizes,
    ),
})
