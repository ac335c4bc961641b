import type { EventInput, TraceEvent } from '../../lib/index.ts'

/** A call of 1000 ns with two matrix products on two workers, and a split on another backend. */
export const scenario = (): EventInput => ({
  name: 'scenario',
  *events(names) {
    const id = (text: string) => names.id(text)
    const tensor = (
      id_: number,
      name: string,
      op: string,
      type: string,
      ne: number[],
      sizeBytes: number,
      sources: number[],
    ): TraceEvent => ({
      kind: 'tensor',
      id: id_,
      name: id(name),
      layer: -1,
      op: id(op),
      type: id(type),
      ne,
      sources,
      sizeBytes,
      buffer: -1,
      offset: undefined,
      address: 0,
      structAddress: 0,
      inferred: 0,
    })
    const operator = (
      worker: number,
      tensor: number,
      startNs: number,
      endNs: number,
      waitEndNs: number,
    ): TraceEvent => ({
      kind: 'operator',
      tensor,
      worker,
      tid: 100 + worker,
      cpu: -1,
      call: 0,
      startNs,
      endNs,
      waitEndNs,
      experts: undefined,
      inferred: 0,
    })
    const graph = (backend: string, split: number, startNs: number, endNs: number): TraceEvent => ({
      kind: 'graph',
      backend: id(backend),
      nodes: 2,
      call: 0,
      split,
      startNs,
      endNs,
      inferred: 0,
    })
    yield [
      { kind: 'input', format: 'scenario', clock: 'MONOTONIC', originNs: 0n, attributes: {} },
      tensor(0, 'blk.0.attn_q.weight', '', 'q8_0', [32, 16], 16 * 34, []),
      tensor(1, 'blk.0.ffn_up.weight', '', 'q4_0', [32, 8], 8 * 18, []),
      tensor(2, 'norm-0', '', 'f32', [32, 4], 32 * 4 * 4, []),
      tensor(3, 'Qcur-0', 'MUL_MAT', 'f32', [16, 4], 16 * 4 * 4, [0, 2]),
      tensor(4, 'ffn_up-0', 'MUL_MAT', 'f32', [8, 4], 8 * 4 * 4, [1, 2]),
      { kind: 'part', what: 'allocate', startNs: 1010, endNs: 1050, call: 0 },
      // Worker 0: 200 of attention, 30 of barrier; 20 of neither; 300 of FFN, 50 of barrier.
      operator(0, 3, 1100, 1300, 1330),
      operator(0, 4, 1350, 1650, 1700),
      operator(1, 3, 1100, 1300, 1330),
      operator(1, 4, 1350, 1700, 1700),
      graph('CPU', 0, 1100, 1700),
      graph('Vulkan0', 1, 1750, 1850),
      { kind: 'token', call: 0, phase: 'prefill', tokens: 4, startNs: 1000, endNs: 2000, tid: 100, inferred: 0 },
    ]
  },
})
