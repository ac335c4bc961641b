import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { importProblems, walkPackets } from '../../lib/query/check.ts'
import { bytes, cutAt, joined, open, packets, smallTrace } from './helpers.ts'

const whole = joined(smallTrace)
const starts = smallTrace.map((_, index) => joined(smallTrace.slice(0, index)).length)

test('a sound file', async () => {
  expect(await walkPackets(smallTrace)).toEqual({ packets: 9, bytes: whole.length, problem: undefined })
  expect(await walkPackets([])).toEqual({ packets: 0, bytes: 0, problem: undefined })
  expect(await walkPackets([new Uint8Array([0x0a, 0, 0x0a, 0])])).toMatchObject({ packets: 2, problem: undefined })
})

test('a file cut anywhere but between packets', async () => {
  for (let length = 1; length < whole.length; length++) {
    const { packets, bytes, problem } = await walkPackets([whole.subarray(0, length)])
    const index = starts.findLastIndex((start) => start < length)
    const start = starts[index]!
    expect(bytes).toBe(length)
    if (start + smallTrace[index]!.length === length) {
      expect([packets, problem]).toEqual([index + 1, undefined])
    } else {
      const expected = length - start < 2 ? undefined : smallTrace[index]!.length - 2
      const found = Math.max(0, length - start - 2)
      expect([packets, problem]).toMatchObject([
        index,
        { kind: 'truncated', offset: start, packet: index, expected, found },
      ])
    }
  }
  expect((await walkPackets([whole.subarray(0, 30)])).problem?.message).toBe(
    'packet 1, byte 22: the file ends within a packet: it should have 27 bytes and has 6',
  )
})

test('where the file is cut into chunks makes no difference', async () => {
  const places = fc.array(fc.nat(whole.length))
  const damage = fc.record({ at: fc.nat(whole.length - 1), byte: fc.integer({ min: 0, max: 255 }) })
  await fc.assert(
    fc.asyncProperty(places, damage, async (at, { at: position, byte }) => {
      const damaged = whole.with(position, byte)
      expect(await walkPackets(cutAt(damaged, at))).toEqual(await walkPackets([damaged]))
    }),
    { numRuns: 500 },
  )
})

test.each([
  [
    'garbage between packets',
    [...packets.clocks, 0x1f, 0x8b],
    'garbage',
    22,
    'packet should start here with 0x0a, but there is 0x1f',
  ],
  ['a long length', [0x0a, 0x81, 0x80, 0x80, 0x80, 0x01, 0], 'oversize', 0, 'claims to have 268435457 bytes'],
  ['an endless length', [0x0a, ...new Array(10).fill(0x80)], 'malformed', 0, 'a number of more than ten bytes'],
  ['a field that is too long', [0x0a, 4, 0x08, 1, 0x12, 1, 0], 'malformed', 4, 'beyond the end of its packet'],
  ['a fixed64 that is too long', [0x0a, 8, 0x09, 0, 0, 0, 0, 0, 0, 0], 'malformed', 2, 'beyond the end of its packet'],
  ['a number that is too long', [0x0a, 2, 0x08, 0x80, 0x01], 'malformed', 2, 'beyond the end of its packet'],
  ['field 0', [0x0a, 2, 0x00, 0], 'malformed', 2, 'field of number 0'],
  ['a group', [0x0a, 1, 0x0b], 'malformed', 2, 'wire type 3'],
])('%s', async (_, bytes, kind, offset, message) => {
  const { problem } = await walkPackets([new Uint8Array(bytes)])
  expect(problem).toMatchObject({ kind, offset, message: expect.stringContaining(message) })
})

test('the source is left at the first problem', async () => {
  let closed = false
  async function* source() {
    try {
      yield new Uint8Array([0])
      yield packets.clocks
    } finally {
      closed = true
    }
  }
  expect((await walkPackets(source())).problem?.kind).toBe('garbage')
  expect(closed).toBe(true)
})

const problemsOf = async (trace: Uint8Array[]) => {
  const tp = await open(trace)
  const problems = importProblems(tp)
  tp.close()
  return problems
}

/** A packet on the sequence of `packets.sequence`, one tick later, with this track event. */
const event = (...fields: number[]) =>
  new Uint8Array([0x0a, fields.length + 6, 0x40, 1, 0x50, 1, 0x5a, fields.length, ...fields])
const [beginNamed, end, beginUnnamed] = [
  [0x48, 1, 0xba, 0x01, 1, 0x41],
  [0x48, 2],
  [0x48, 1],
]
const flag = (name: string) => {
  const text = [...new TextEncoder().encode(name)]
  return [0x22, text.length + 4, 0x52, text.length, ...text, 0x10, 1]
}
const { clocks, process, thread } = packets
// As packets.sequence, without the extra counter.
const sequence = bytes(
  '0a 22 50 01 68 01 da 03 07 d0 03 40 5a 02 58 02 32 12 0a 08 08 40 10 c0 84 3d 18 01 0a 06 08 03 10 c0 84 3d',
)
const prologue = [clocks, process, thread, sequence]

test('a sound trace has no problems', async () => {
  expect(await problemsOf([...prologue, event(...beginNamed), event(...end)])).toEqual([])
})

test('a slice without an end', async () => {
  expect(await problemsOf(smallTrace)).toEqual([
    {
      name: 'slice_without_end',
      idx: null,
      severity: 'error',
      value: 1,
      description: 'slices that never end and are not marked as open or inferred, the first at 1031400 ns',
    },
  ])
  expect(await problemsOf([...prologue, event(...beginNamed, ...flag('open'))])).toEqual([])
  expect(await problemsOf([...prologue, event(...beginNamed, ...flag('inferred'))])).toEqual([])
  expect(await problemsOf([...prologue, event(...beginNamed, ...flag('other'))])).toHaveLength(1)
})

test('a slice without a name', async () => {
  expect(await problemsOf([...prologue, event(...beginUnnamed), event(...end)])).toMatchObject([
    { name: 'slice_without_name', value: 1 },
  ])
})

test('an event that needs what was never sent', async () => {
  // Its name is number 9, which no packet defines; trace_processor calls that mere information.
  const problems = await problemsOf([...prologue, event(0x48, 1, 0x50, 9), event(...end)])
  expect(problems).toMatchObject([
    { name: 'interned_data_tokenizer_errors', severity: 'info', value: 1 },
    { name: 'slice_without_name' },
  ])
})

test('a track whose parent was never described', async () => {
  const orphan = bytes('0a 0e e2 03 0b 08 07 28 09 12 05 6c 6f 73 74 21')
  const [begin, finish] = [event(...beginNamed, 0x58, 7), event(...end, 0x58, 7)]
  const names = (await problemsOf([...prologue, orphan, begin, finish])).map(({ name }) => name)
  expect(names).toEqual(['track_event_parser_errors', 'track_hierarchy_missing_uuid'])
})
