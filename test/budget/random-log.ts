import fc from 'fast-check'
import { GgtraceWriter } from '../../lib/core.ts'

/** Random logs of calls on several workers, and what they contain. */

export interface RandomCall {
  readonly tokens: number
  /** Time of each step of each worker: computing, the wait after it. */
  readonly nodes: readonly (readonly [computeNs: number, waitNs: number])[]
  readonly pauseNs: number
  readonly slowNs: number
}

export interface RandomLog {
  readonly workers: number
  readonly calls: readonly RandomCall[]
  /** Operators that are written before another worker's follow. */
  readonly blockBytes: number
  readonly counted: boolean
}

const NODES = ['attn_norm-0', 'Qcur-0', 'ffn_up-0', 'attn_norm-1', 'Qcur-1', 'ffn_up-1', 'result_output'] as const
const OPS = [1, 2, 2, 1, 2, 2, 2] as const

const callArbitrary: fc.Arbitrary<RandomCall> = fc.record({
  tokens: fc.oneof({ weight: 6, arbitrary: fc.constant(1) }, { weight: 1, arbitrary: fc.integer({ min: 2, max: 64 }) }),
  nodes: fc.array(
    fc.tuple(fc.integer({ min: 0, max: 90_000 }), fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 9000 }))),
    {
      minLength: 0,
      maxLength: NODES.length,
    },
  ),
  pauseNs: fc.oneof(fc.constant(2000), fc.constant(0), fc.constant(150_000_000)),
  slowNs: fc.oneof(
    { weight: 9, arbitrary: fc.constant(0) },
    { weight: 1, arbitrary: fc.integer({ min: 1, max: 5_000_000 }) },
  ),
})

export const randomLog: fc.Arbitrary<RandomLog> = fc.record({
  workers: fc.integer({ min: 1, max: 4 }),
  calls: fc.array(callArbitrary, { minLength: 1, maxLength: 300, size: 'max' }),
  blockBytes: fc.constantFrom(4096, 8192, 65_536),
  counted: fc.boolean(),
})

/** The log as the recorder writes it: each worker in blocks of its own, calls and graphs by the first worker's thread. */
export function bytesOf({ workers, calls, blockBytes, counted }: RandomLog): Uint8Array {
  const writer = new GgtraceWriter({ originNs: 1_000_000_000n, blockBytes })
  writer.type(0, 'f32')
  writer.run({ command: 'random' })
  writer.op(1, 'RMS_NORM')
  writer.op(2, 'MUL_MAT')
  const cycles = counted ? writer.counted('cycles') : -1
  const nodes = NODES.map((name, i) => writer.tensor({ name, op: OPS[i]!, ne: [8, 1, 1, 1], sizeBytes: 32 }))
  const graph = writer.graph('CPU', nodes)
  const threads = Array.from({ length: workers }, (_, worker) => writer.thread(700 + worker, worker))
  let now = 1000
  for (const [call, { tokens, nodes: times, pauseNs, slowNs }] of calls.entries()) {
    const startNs = now
    now += 500
    for (const [i, [computeNs, waitNs]] of times.entries()) {
      for (const [worker, thread] of threads.entries()) {
        thread.call = call
        const endNs = now + Math.round(computeNs / (worker + 1))
        const waitEndNs = now + computeNs + waitNs
        const counts = counted ? { counts: Object.assign([], { [cycles]: computeNs + worker }) } : {}
        thread.operator({ tensor: nodes[i]!, startNs: now, endNs, waitEndNs, ...counts })
      }
      now += computeNs + waitNs
    }
    now += 300 + slowNs
    const host = threads[0]!
    if (times.length > 0) host.graph({ startNs: startNs + 400, endNs: now - 100, graph, call, backend: 0 })
    host.token({ startNs, endNs: now, call, tokens, spans: [{ sequence: 0, position: call, tokens }], context: 0x7000 })
    if (call % 7 === 0) host.state(now, 700, 1, call % 2 === 0 ? 'blocked' : 'running')
    now += pauseNs
  }
  writer.end(now)
  return writer.take()
}
