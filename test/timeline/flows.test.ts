import { expect, test } from '@jest/globals'
import type { TensorEvent } from '../../lib/core.ts'
import { convert, eventsOf, Names } from '../../lib/index.ts'
import { inputOf, openTrace } from '../../lib/node.ts'
import { drawn } from '../printing-sink.ts'

/** Arrows of one call, beside the edges that its graph has. */

const EXAMPLE = 'test/recorded/outside-graphs.ggtrace.gz'

/** Who reads what whom wrote, `<writer's tensor>><reader's>`, from the log's definitions alone. */
async function edgesOf(call: number): Promise<string[]> {
  const names = new Names()
  const tensors: TensorEvent[] = []
  const edges: string[] = []
  const writers = new Map<string, string>()
  // Views are known by their memory here, not by what they are views of.
  const place = ({ buffer, offset }: TensorEvent) => `${buffer}@${offset}`
  for await (const batch of eventsOf(inputOf(EXAMPLE), names)) {
    for (const event of batch) {
      if (event.kind === 'tensor') tensors[event.id] = event
      if (event.kind !== 'operator' || event.worker !== 0 || event.call !== call) continue
      const [first, last] = [tensors[event.tensor]!, tensors[event.fusedTo ?? event.tensor]!]
      const sources = [...first.sources, ...(first === last ? [] : last.sources)].filter((id) => id !== first.id)
      const written = new Set(sources.map((id) => writers.get(place(tensors[id]!))))
      for (const writer of written) if (writer !== undefined) edges.push(`${writer}>${names.text(first.name)}`)
      writers.set(place(last), names.text(first.name))
    }
  }
  return edges.sort()
}

test.each([0, 5])('call %i: an arrow for each operator and each operator that reads its result', async (call) => {
  const trace = await openTrace(convert(inputOf(EXAMPLE), { flows: { token: call } }))
  expect(trace.problems()).toEqual([])
  const { rows } = trace.query(`select extract_arg(a.arg_set_id, 'debug.tensor') || '>' ||
      extract_arg(b.arg_set_id, 'debug.tensor'), ta.name, tb.name, a.ts + a.dur <= b.ts, a.category, b.category
    from flow f join slice a on f.slice_out = a.id join slice b on f.slice_in = b.id
    join track ta on a.track_id = ta.id join track tb on b.track_id = tb.id where b.category = 'operator'`)
  // Two views of one tensor, at different offsets, are read by one operator in each layer: by memory it is one edge, too.
  const expected = await edgesOf(call)
  expect(rows.map(([edge]) => String(edge)).sort()).toEqual(expected)
  expect(expected.length).toBeGreaterThan(200)
  expect(new Set(rows.map((row) => row.slice(1).join()))).toEqual(new Set(['worker 0,worker 0,1,operator,operator']))
  const [[begin, end]] = trace.query(`select min(a.ts), max(b.ts + b.dur) from flow f
    join slice a on f.slice_out = a.id join slice b on f.slice_in = b.id where b.category = 'operator'`).rows as [
    [number, number],
  ]
  const calls = trace.query(`select extract_arg(arg_set_id, 'debug.call') from slice where category = 'token'
    and ts <= ${begin} and ts + dur >= ${end}`).rows
  expect(calls).toEqual([[call]])
  trace.close()
})

test('arrows change nothing else, and none are drawn unasked', async () => {
  const linesOf = (flows?: { token: number }) => drawn(inputOf(EXAMPLE), { flows }, { args: ['tensor'] })
  const [plain, some, none] = [await linesOf(), await linesOf({ token: 3 }), await linesOf({ token: 99 })]
  const isArrow = / →\d+\|?/g
  const isFlow = / →2814\d{11}\|?/g // from 2^48 on; others lead to waits
  expect(some.join('\n').match(isFlow)!.length).toBeGreaterThan(2 * 200)
  for (const lines of [plain, none]) expect(lines.join('\n')).not.toMatch(isFlow)
  // Operators are drawn later: rows come in another order, and ids of arrows to waits are others.
  const toWaits = (lines: readonly string[]) =>
    lines.map((line) => line.replace(isFlow, '').replace(isArrow, ' →')).sort()
  expect(toWaits(some)).toEqual(toWaits(plain))
  expect(toWaits(none)).toEqual(toWaits(plain))
  expect(plain.join('\n').match(isArrow)!.length).toBeGreaterThan(4)
  expect(plain.length).toBeGreaterThan(3000)
})

test('a call that is no number is refused', async () => {
  await expect(convert(inputOf(EXAMPLE), { flows: { token: -1 } }).next()).rejects.toThrow(/flows: expected the number/)
})
