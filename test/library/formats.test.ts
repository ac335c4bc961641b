import { describe, expect, test } from '@jest/globals'
import { LineCursor, UNKNOWN } from '../../lib/core.ts'
import {
  convert,
  type EventInput,
  eventsOf,
  type Format,
  FormatError,
  type Input,
  Names,
  summarize,
  type TraceEvent,
} from '../../lib/index.ts'
import { openTrace } from '../../lib/node.ts'
import { converted, storedBytes } from '../line/support.ts'

/** Formats that users bring along: `<start> <end> <op> <tensor>` per line. */

const INPUT = { kind: 'input', clock: 'MONOTONIC', originNs: 1000n, attributes: {} } as const

const mine: Format = {
  name: 'mine',
  title: 'start, end, op, tensor',
  sniff: (head) => new TextDecoder().decode(head).startsWith('mine\n'),
  async *read(source, { names }) {
    yield [{ ...INPUT, format: 'mine' }]
    const lines = new LineCursor(source, 'mine')
    let id = 0
    for (let isMore = true; isMore; ) {
      isMore = await lines.fill()
      const batch: TraceEvent[] = []
      while (lines.next()) {
        if (lines.line === 1) continue
        const [start, end, op, tensor] = lines.text.split(' ')
        if (tensor === undefined) {
          throw new FormatError('mine', { byte: lines.offset, line: lines.line }, 'four fields', `"${lines.text}"`)
        }
        const endNs = Number(end)
        batch.push(
          { ...UNKNOWN.tensor, id, name: names.id(tensor), op: names.id(op!) },
          { ...UNKNOWN.operator, tensor: id++, startNs: Number(start), endNs, waitEndNs: endNs },
        )
      }
      yield batch
    }
  },
}

const text = (content: string, name = 'a.log'): Input => ({ name, source: new TextEncoder().encode(content) })
const LOG = 'mine\n5 9 MUL_MAT ffn_up-3\n9 12 ADD l_out-3\n'

describe('a format of the user', () => {
  test('is detected, and what it reads is drawn as any other operator', async () => {
    const trace = await openTrace(convert(text(LOG), { formats: [mine] }))
    const { rows } = trace.query(`select ts, dur, slice.name, extract_arg(arg_set_id, 'debug.layer'), track.name
      from slice join track on slice.track_id = track.id where category = 'operator' order by ts`)
    expect(rows).toEqual([
      [1005, 4, 'ffn_up MUL_MAT', null, 'worker 0'],
      [1009, 3, 'l_out ADD', null, 'worker 0'],
    ])
    expect(trace.problems()).toEqual([])
    trace.close()
  })

  test('is summarised, and gives its events', async () => {
    const { format, operators, start_ns } = await summarize(text(LOG), { formats: [mine] })
    expect({ format, operators, start_ns }).toEqual({ format: 'mine', operators: 2, start_ns: '1005' })
    const kinds: string[] = []
    for await (const batch of eventsOf(text(LOG), new Names(), { formats: [mine] })) {
      kinds.push(...batch.map(({ kind }) => kind))
    }
    expect(kinds).toEqual(['input', 'tensor', 'operator', 'tensor', 'operator'])
  })

  test('comes before the ones we know, and leaves them what it does not want', async () => {
    const greedy: Format = { ...mine, name: 'greedy', sniff: () => true }
    expect((await summarize(text(LOG), { formats: [greedy] })).format).toBe('mine')
    const known = storedBytes('tensor-trace/tiny-v4.bin')
    expect(await converted(known, { formats: [mine] })).toEqual(await converted(known))
  })

  test('is named by `from`, and listed where nothing fits', async () => {
    const noisy: Format = { ...mine, sniff: () => false }
    expect((await summarize(text(LOG), { formats: [noisy], from: 'mine' })).operators).toBe(2)
    const unknown = summarize(text('something else\n'), { formats: [mine] })
    await expect(unknown).rejects.toThrow(/not a known format.*\nhint: [^\n]*--from[^\n]*$/)
    const other = summarize(text(LOG), { formats: [noisy], from: 'other' })
    await expect(other).rejects.toThrow(/known formats:\n {2}mine {2,}start, end, op, tensor\n/)
    await expect(summarize(text(LOG), { from: 'mine' })).rejects.toThrow('no format is called "mine"')
  })

  test('tells errors as ours do: input, format, place', async () => {
    await expect(converted(new TextEncoder().encode('mine\n1 2\n'), { formats: [mine] })).rejects.toThrow(
      'log: mine: line 2, byte 5 (0x5): expected four fields, found "1 2"',
    )
  })

  test('that does not begin with the input event is told so', async () => {
    async function* read(): AsyncGenerator<TraceEvent[]> {
      yield [{ kind: 'facts', attributes: {} }]
    }
    await expect(summarize(text(LOG), { formats: [{ ...mine, read }] })).rejects.toThrow(
      'a.log: expected an event of the kind "input" first, found "facts"',
    )
  })
})

describe('events of a program', () => {
  const events = (batches: TraceEvent[][]): EventInput => ({ name: 'program', events: () => batches })

  test("a log's events, passed on, give the very trace of the log", async () => {
    const log = storedBytes('tensor-trace/moe-2threads.bin.gz')
    const pieces: Uint8Array[] = []
    const passedOn: EventInput = { name: 'log', events: (names) => eventsOf({ name: 'log', source: log }, names) }
    for await (const piece of convert(passedOn)) pieces.push(piece)
    expect(Buffer.concat(pieces).equals(await converted(log))).toBe(true)
  })

  test('none at all, or without the input event, is an error', async () => {
    await expect(summarize(events([[], []]))).rejects.toThrow(
      'program: expected an input event, found no events at all',
    )
    const stray: TraceEvent = { kind: 'own-sample', track: 0, atNs: 0, value: 0 }
    await expect(summarize(events([[stray]]))).rejects.toThrow('of the kind "input" first, found "own-sample"')
  })

  test('an operator on a tensor that was not defined is told so', async () => {
    const stray = { ...UNKNOWN.operator, tensor: 3, startNs: 0, endNs: 1, waitEndNs: 1 }
    await expect(summarize(events([[{ ...INPUT, format: 'program' }, stray]]))).rejects.toThrow(
      '(operator): expected tensor: the id of a tensor event before it, found 3',
    )
  })

  test('on another clock than the log are not joined by guess', async () => {
    const realtime = events([[{ ...INPUT, clock: 'REALTIME', format: 'program' }]])
    const both = convert([text(LOG), realtime], { formats: [mine] })
    await expect(async () => {
      for await (const _ of both);
    }).rejects.toThrow('program: runs on CLOCK_REALTIME; no known relation to a.log (CLOCK_MONOTONIC)')
  })
})
