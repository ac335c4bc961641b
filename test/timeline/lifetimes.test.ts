import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { convert, inputOf, type OpenTrace, openTrace } from '../../lib/index.ts'
import { drawn } from '../printing-sink.ts'
import { expectPossible, livesIn, overlaps, traced } from './lives.ts'
import { type ArenaOp, runsOf, simulate } from './simulated-arena.ts'

const EXAMPLE = 'examples/moe.ggtrace.gz'
const open = (options = {}): Promise<OpenTrace> =>
  openTrace(convert(inputOf(EXAMPLE), { memory: 'lifetimes', ...options }))

describe('lifetimes of a recorded run', () => {
  let trace: OpenTrace
  beforeAll(async () => {
    trace = await open()
  })
  afterAll(() => trace.close())

  test('no two live tensors share an address, none lies outside of the arena, live bytes are their sum', () => {
    // 161 operators of each graph, but for 12 that write to the KV cache; 6 inputs; 9 calls.
    expect(expectPossible(trace)).toEqual({ 'compute buffer': 9 * (161 - 12 + 6) })
  })

  test('last from the first worker that writes to the last that reads', () => {
    const rows = trace.query(`with op as (select ts, ts + dur as te, extract_arg(arg_set_id, 'debug.tensor') as tensor,
        extract_arg(arg_set_id, 'debug.op') as op from slice where category = 'operator')
      select min(iif(tensor = 'Qcur-3' and op = 'MUL_MAT', ts, null)), max(iif(tensor = 'Qcur-3' and op = 'ROPE', te, null))
      from op where ts < (select min(te) from op where tensor = 'result_output')`).rows
    const [[startNs, endNs]] = rows as [[number, number]]
    const [life] = livesIn(trace).filter(({ tensor }) => tensor === 'Qcur-3')
    expect(life).toMatchObject({ startNs, endNs, lastReader: 'Qcur-3', inferred: null })
  })

  test('an op in place ends its source where it begins, fused nodes leave nothing between them', () => {
    const lives = livesIn(trace)
    expect(lives.some(({ tensor }) => tensor.startsWith('norm-'))).toBe(false) // RMS_NORM+MUL
    const probs = lives.filter(({ tensor }) => tensor === 'ffn_moe_probs-0')
    const logits = lives.filter(({ tensor }) => tensor === 'ffn_moe_logits-0')
    expect(logits.map(({ endNs, offset }) => [endNs, offset])).toEqual(
      probs.map(({ startNs, offset }) => [startNs, offset]),
    )
    expect(probs).toHaveLength(9)
  })

  test('logits live until they were fetched; inputs from when they were set, where that was recorded', () => {
    const lives = livesIn(trace)
    const copies = (name: string) =>
      trace.query(`select ts, ts + dur from slice where category = 'copy' and name = '${name}' order by ts`).rows
    expect(lives.filter(({ tensor }) => tensor === 'result_output').map(({ endNs }) => endNs)).toEqual(
      copies('get result_output').map(([, endNs]) => endNs),
    )
    expect(lives.filter(({ tensor }) => tensor === 'inp_tokens').map(({ startNs }) => startNs)).toEqual(
      copies('set inp_tokens').map(([startNs]) => startNs),
    )
    expect(lives.filter(({ tensor, inferred }) => tensor === 'attn_inp_kq_mask' && inferred)).toHaveLength(9)
  })

  test('say at each detail what that promises', async () => {
    const keysIn = (trace: OpenTrace) => {
      const found = trace.query(`select distinct a.key from slice s join args a using (arg_set_id)
        where s.category = 'tensor' order by 1`).rows
      return found.map(([key]) => String(key).replace('debug.', ''))
    }
    const shapes = ['bytes', 'inferred', 'last_reader', 'layer', 'offset', 'op', 'tensor']
    const [names, full] = [await open({ detail: 'names' }), await open({ detail: 'full' })]
    expect([names, trace, full].map(keysIn)).toEqual([[], shapes, ['address', ...shapes]])
    names.close()
    full.close()
  })

  test('are drawn on request only; live bytes always', async () => {
    const lines = await drawn(inputOf(EXAMPLE), { memory: 'counters' }, { rows: /^Memory\/.*compute buffer: / })
    expect(lines.filter((line) => line.includes(': tensors'))).toEqual([])
    expect(lines.filter((line) => line.includes('compute buffer: live | ')).length).toBeGreaterThan(1000)
  })

  test('two tensors at one place are found by the sweep', () => {
    const life = {
      arena: 'a',
      tensor: 't',
      startNs: 0,
      endNs: 10,
      offset: 0,
      bytes: 8,
      lastReader: null,
      inferred: null,
    }
    expect(overlaps([life, { ...life, startNs: 9, endNs: 12, offset: 7 }])).toHaveLength(1)
    expect(overlaps([life, { ...life, startNs: 10, endNs: 12 }])).toHaveLength(0)
    expect(overlaps([life, { ...life, offset: 8 }])).toHaveLength(0)
  })
})

const arenaOp: fc.Arbitrary<ArenaOp> = fc.record({
  kind: fc.constantFrom('plain', 'plain', 'in place', 'view', 'write into'),
  sources: fc.array(fc.nat(1000), { minLength: 1, maxLength: 3 }),
  bytes: fc.integer({ min: 1, max: 400 }),
})

describe('lifetimes of any graph', () => {
  test('are those that the allocator had in mind', async () => {
    const graphs = fc.array(fc.array(arenaOp, { minLength: 1, maxLength: 40 }), { minLength: 1, maxLength: 3 })
    await fc.assert(
      fc.asyncProperty(graphs, fc.integer({ min: 1, max: 4 }), async (graphs, workers) => {
        const simulated = graphs.map(simulate)
        const { log, expected } = runsOf(simulated, workers)
        const trace = await traced(log)
        expectPossible(trace)
        const shown = livesIn(trace).map(({ tensor, startNs, endNs, offset, bytes }) => ({
          tensor,
          startNs,
          endNs,
          offset,
          bytes,
        }))
        const order = (a: { tensor: string; startNs: number }, b: typeof a) =>
          a.startNs - b.startNs || (a.tensor < b.tensor ? -1 : 1)
        expect(shown.sort(order)).toEqual(expected.sort(order))
        trace.close()
      }),
      { numRuns: 20 },
    )
  })
})
