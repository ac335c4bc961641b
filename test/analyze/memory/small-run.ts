import { UNKNOWN } from '../../../lib/core.ts'
import type { EventInput, TraceEvent } from '../../../lib/index.ts'

/**
 * One decode call of five operators, each of 100 ns from 100 ns on, on one worker:
 *
 *   a = w0 × inp     a-0 at 100, 400 bytes
 *   b = w1 × inp     b-0 at 500, 300 bytes
 *   cache ← a        into the KV cache, through a view of a
 *   c = relu(b)      in place of b
 *   d = sum(c)       d-0 at 800, 50 bytes: the result, which the program fetches after the call
 *
 * `counts`: values of counters, by operator.
 */
export const smallRun = (counts: Readonly<Record<string, readonly number[]>> = {}): EventInput => ({
  name: 'small',
  *events(names) {
    const id = (text: string) => names.id(text)
    const at = (buffer: number, offset: number, sizeBytes: number) => ({ buffer, offset, sizeBytes })
    const tensor = (number: number, name: string, of: object): TraceEvent => {
      return { ...UNKNOWN.tensor, type: id('f32'), ...of, id: number, name: id(name) }
    }
    const buffer = (
      number: number,
      usage: 'weights' | 'kv-cache' | 'compute',
      name: string,
      sizeBytes?: number,
    ): TraceEvent => {
      const label = `buffer ${number}`
      return { kind: 'buffer', id: number, usage, label, offsetsFrom: 'its base', name: id(name), sizeBytes }
    }
    const counters = Object.keys(counts)
    const nodes = [3, 4, 7, 8, 9]
    const allocation = (name: string, atNs: number, bytes: number, isEarlier?: true): TraceEvent => {
      return { kind: 'allocation', buffer: id(name), atNs, bytes, ...(isEarlier && { isEarlier }) }
    }
    yield [
      { kind: 'input', format: 'small', clock: 'MONOTONIC', originNs: 0n, attributes: {} },
      ...counters.map((name, index): TraceEvent => ({ kind: 'counted', index, name: id(name), unit: 'count' })),
      buffer(0, 'weights', ''),
      buffer(1, 'kv-cache', 'CPU', 640),
      buffer(2, 'compute', 'CPU', 1000),
      tensor(0, 'blk.0.w0.weight', { ...at(0, 0, 1000), ne: [25, 10] }),
      tensor(1, 'blk.0.w1.weight', { ...at(0, 1000, 1000), ne: [25, 10] }),
      tensor(2, 'inp', { ...at(2, 0, 100), ne: [25] }),
      tensor(3, 'a-0', { ...at(2, 100, 400), ne: [10], op: id('MUL_MAT'), sources: [0, 2] }),
      tensor(4, 'b-0', { ...at(2, 500, 300), ne: [10], op: id('MUL_MAT'), sources: [1, 2] }),
      tensor(5, 'cache_k_l0', { ...at(1, 0, 640), ne: [5, 64], type: id('f16') }),
      tensor(6, 'a-0 (view)', { ...at(2, 100, 400), ne: [10], op: id('VIEW'), sources: [3], viewOf: 3 }),
      tensor(7, 'cache_k_l0 (view)', { ...at(1, 0, 640), op: id('SET_ROWS'), sources: [6, 5], viewOf: 5 }),
      tensor(8, 'c-0', { ...at(2, 500, 300), ne: [10], op: id('RELU'), sources: [4] }),
      tensor(9, 'd-0', { ...at(2, 800, 50), ne: [1], op: id('SUM'), sources: [8] }),
      allocation('CPU', 10, 600, true),
      allocation('CPU', 20, 1000),
      ...nodes.map((node, i): TraceEvent => {
        const startNs = 100 * (i + 1)
        const own = counters.map((name) => counts[name]![i]!)
        const times = { startNs, endNs: startNs + 100, waitEndNs: startNs + 100 }
        return {
          ...UNKNOWN.operator,
          tensor: node,
          tid: 1,
          call: 0,
          ...times,
          counts: own.length > 0 ? own : undefined,
        }
      }),
      { kind: 'copy', what: 'get', startNs: 650, endNs: 660, bytes: 50, from: id('CPU'), to: 0, tensor: 9, tid: 1 },
      {
        ...{ kind: 'token', call: 0, phase: 'decode', tokens: 1, startNs: 50, endNs: 700, tid: 1, inferred: 0 },
        batch: {
          ...{ function: 'llama_decode', areAllOutput: false, isLeftOut: false, result: 0, context: 77 },
          spans: [{ sequence: 0, position: 61, tokens: 1 }],
        },
      },
      allocation('CPU', 900, -1000),
      allocation('Other', 950, 300),
    ] as TraceEvent[]
  },
})
