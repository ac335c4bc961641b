import { GgtraceWriter } from '../../lib/core.ts'

const ORIGIN_NS = 4_000_000_000_000n
const MUL_MAT = 29
const MS = 1e6

/** The log of a run of a prefill and decodes that take so long each. */
export function runOfCalls(pid: number, decodeMs: number, build = '0.25.1'): Uint8Array {
  const writer = new GgtraceWriter({ originNs: ORIGIN_NS })
  writer.type(0, 'f32')
  const clocks = { monotonic: ORIGIN_NS, boottime: ORIGIN_NS, realtime: 1_763_000_000_000_000_000n }
  writer.run({ pid: `${pid}`, boot_id: 'a', 'ggml.version': build }, clocks)
  writer.op(MUL_MAT, 'MUL_MAT')
  const nodes = ['Qcur-0', 'ffn_up-0'].map((name) => writer.tensor({ name, op: MUL_MAT }))
  const thread = writer.thread(pid, 0)
  let atNs = 0
  for (let call = 0; call < 12; call++) {
    const endNs = atNs + (call === 0 ? 40 : decodeMs) * MS
    thread.call = call
    const middleNs = call === 0 ? (atNs + endNs) / 2 : atNs + 5 * MS
    thread.operator({ tensor: nodes[0]!, startNs: atNs, endNs: middleNs })
    thread.operator({ tensor: nodes[1]!, startNs: middleNs, endNs })
    thread.token({ startNs: atNs, endNs, call, tokens: call === 0 ? 16 : 1, kind: 'decode' })
    atNs = endNs
  }
  writer.end(atNs)
  return writer.take()
}
