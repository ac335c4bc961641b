import { beforeAll, describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { convert } from '../../lib/index.ts'
import { inputOf, openTrace } from '../../lib/node.ts'
import { drawn } from '../printing-sink.ts'
import { expectPossible, livesIn, memoryOf, overlaps } from './lives.ts'
import { type ArenaOp, runsOf, simulate } from './simulated-arena.ts'

const EXAMPLE = 'examples/moe.ggtrace.gz'

describe('lifetimes of a recorded run', () => {
  let memory: string[]
  let others: string[]
  beforeAll(async () => {
    memory = await memoryOf(inputOf(EXAMPLE).source)
    others = await drawn(inputOf(EXAMPLE), {}, { rows: /^worker|^Copies/, args: ['tensor', 'op'] })
  })
  /** Start and end of each slice whose line contains the text, in order of time. */
  const timesOf = (text: string) =>
    others
      .filter((line) => line.includes(text))
      .map((line) => /(\d+)–(\d+)/.exec(line)!.slice(1).map(Number) as [startNs: number, endNs: number])
      .sort((a, b) => a[0] - b[0])

  test('no two live tensors share an address, none lies outside of the arena, live bytes are their sum', () => {
    // 161 operators of each graph, but for 12 that write to the KV cache; 6 inputs; 9 calls.
    expect(expectPossible(memory)).toEqual({ 'compute buffer': 9 * (161 - 12 + 6) })
  })

  test('last from the first worker that writes to the last that reads', () => {
    // The first graph's, of both workers.
    const written = timesOf('MUL_MAT {tensor: Qcur-3}').slice(0, 2)
    const read = timesOf('ROPE {tensor: Qcur-3}').slice(0, 2)
    expect(Math.max(...written.concat(read).map(([, endNs]) => endNs))).toBeLessThan(
      timesOf('{tensor: result_output')[0]![1],
    )
    const startNs = Math.min(...written.map(([startNs]) => startNs))
    const endNs = Math.max(...read.map(([, endNs]) => endNs))
    const [life] = livesIn(memory).filter(({ tensor }) => tensor === 'Qcur-3')
    expect(life).toMatchObject({ startNs, endNs, lastReader: 'Qcur-3', inferred: undefined })
  })

  test('an op in place ends its source where it begins, fused nodes leave nothing between them', () => {
    const lives = livesIn(memory)
    expect(lives.some(({ tensor }) => tensor.startsWith('norm-'))).toBe(false) // RMS_NORM+MUL
    const probs = lives.filter(({ tensor }) => tensor === 'ffn_moe_probs-0')
    const logits = lives.filter(({ tensor }) => tensor === 'ffn_moe_logits-0')
    expect(logits.map(({ endNs, offset }) => [endNs, offset])).toEqual(
      probs.map(({ startNs, offset }) => [startNs, offset]),
    )
    expect(probs).toHaveLength(9)
  })

  test('logits live until they were fetched; inputs from when they were set, where that was recorded', () => {
    const lives = livesIn(memory)
    expect(lives.filter(({ tensor }) => tensor === 'result_output').map(({ endNs }) => endNs)).toEqual(
      timesOf(' get result_output ').map(([, endNs]) => endNs),
    )
    expect(lives.filter(({ tensor }) => tensor === 'inp_tokens').map(({ startNs }) => startNs)).toEqual(
      timesOf(' set inp_tokens ').map(([startNs]) => startNs),
    )
    expect(lives.filter(({ tensor, inferred }) => tensor === 'attn_inp_kq_mask' && inferred)).toHaveLength(9)
  })

  test('say at each detail what that promises', async () => {
    const keysIn = async (detail: 'names' | 'shapes' | 'full') => {
      const lines = await drawn(inputOf(EXAMPLE), { memory: 'lifetimes', detail }, { rows: /: tensors/, args: 'all' })
      return [...new Set(lines.flatMap((line) => line.match(/(?<=[{,] ?)\w+(?=: )/g) ?? []))].sort()
    }
    const shapes = ['bytes', 'inferred', 'last_reader', 'layer', 'offset', 'op', 'tensor']
    expect(await keysIn('names')).toEqual([])
    expect(await keysIn('shapes')).toEqual(shapes)
    expect(await keysIn('full')).toEqual(['address', ...shapes])
  })

  test('are slices of a row each, which none is nested in', async () => {
    const trace = await openTrace(convert(inputOf(EXAMPLE), { memory: 'lifetimes' }))
    expect(trace.problems()).toEqual([])
    const { rows } = trace.query("select count(*), sum(depth > 0 or dur < 0) from slice where category = 'tensor'")
    expect(rows).toEqual([[livesIn(memory).length, 0]])
    trace.close()
  })

  test('are drawn on request only; live bytes always', async () => {
    const lines = await drawn(inputOf(EXAMPLE), { memory: 'counters' }, { rows: /compute buffer: / })
    expect(lines.filter((line) => line.includes(': tensors'))).toEqual([])
    expect(lines.filter((line) => line.includes('compute buffer: live | ')).length).toBeGreaterThan(100)
  })

  test('two tensors at one place are found by the sweep', () => {
    const life = {
      row: 'a: tensors/at 0',
      arena: 'a',
      tensor: 't',
      startNs: 0,
      endNs: 10,
      offset: 0,
      bytes: 8,
      lastReader: undefined,
      inferred: undefined,
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
  test.each([255, 256, 257, 512])('a graph of %i nodes, most of which write to its input', async (count) => {
    // Fewer lives than steps: the columns are as long as the powers of two.
    const ops = Array.from({ length: count }, (_, i): ArenaOp => {
      return i % 2 === 0 ? { kind: 'plain', sources: [0], bytes: 64 } : { kind: 'write into', sources: [0], bytes: 64 }
    })
    const { log, expected } = runsOf([simulate(ops)], 1)
    expect(livesIn(await memoryOf(log))).toHaveLength(expected.length)
  })

  test('are in rows with rounded offsets, exact ones where another row has that name', async () => {
    const plain = (bytes: number, ...sources: number[]): ArenaOp => ({ kind: 'plain', sources, bytes })
    // The input has 64 bytes; the last operator reads all before it, so that none is in place of another.
    const ops = [plain(2 ** 20 - 64, 0), plain(32, 1), plain(32, 2), plain(32, 0, 1, 2, 3)]
    const { log } = runsOf([simulate(ops)], 1)
    const rows = livesIn(await memoryOf(log)).map(({ row, offset }) => [offset, row.split('/').at(-1)])
    expect(Object.fromEntries(rows)).toEqual({
      0: 'at 0',
      64: 'at 64',
      [2 ** 20]: 'at 1.05 MB',
      [2 ** 20 + 32]: 'at 1.048608 MB',
      [2 ** 20 + 64]: 'at 1.04864 MB',
    })
  })

  test('are those that the allocator had in mind', async () => {
    const graphs = fc.array(fc.array(arenaOp, { minLength: 1, maxLength: 40 }), { minLength: 1, maxLength: 3 })
    await fc.assert(
      fc.asyncProperty(graphs, fc.integer({ min: 1, max: 4 }), async (graphs, workers) => {
        const simulated = graphs.map(simulate)
        const { log, expected } = runsOf(simulated, workers)
        const lines = await memoryOf(log)
        expectPossible(lines)
        const shown = livesIn(lines).map(({ tensor, startNs, endNs, offset, bytes }) => ({
          tensor,
          startNs,
          endNs,
          offset,
          bytes,
        }))
        const order = (a: { tensor: string; startNs: number }, b: typeof a) =>
          a.startNs - b.startNs || (a.tensor < b.tensor ? -1 : 1)
        expect(shown.sort(order)).toEqual(expected.sort(order))
      }),
      { numRuns: 20 },
    )
  })
})
