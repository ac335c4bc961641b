import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { traceStart } from '../../lib/bytes/trace-start.ts'
import { inspect } from '../../lib/index.ts'
import { checkTrace } from '../../lib/node.ts'
import { walkJson } from '../../lib/query/check-json.ts'
import { converted, cut, plainBytes } from '../line/support.ts'
import { cutAt, joined, packets, smallTrace } from './helpers.ts'

/** What `check` finds in Chrome's JSON by walking through it. */

const bytes = (text: string) => new TextEncoder().encode(text)
const walk = (text: string) => walkJson([bytes(text)])

describe('walkJson', () => {
  test('whatever JSON.stringify writes is sound, however it is cut', () => {
    return fc.assert(
      fc.asyncProperty(fc.array(fc.dictionary(fc.string(), fc.json())), fc.array(fc.nat(500)), async (events, cuts) => {
        const list = bytes(JSON.stringify(events))
        const object = bytes(JSON.stringify({ a: [1, { b: [] }], traceEvents: events, metadata: { c: [[{}]] } }))
        for (const [whole, count] of [[list, events.length] as const, [object, events.length + 1] as const]) {
          const result = await walkJson(cutAt(whole, cuts))
          expect(result).toEqual({ packets: count, bytes: whole.length, problem: undefined })
        }
      }),
    )
  })

  test('a file of ours is truncated wherever it is cut', async () => {
    const whole = await converted(plainBytes('profinfer-csv/tiny.csv'), { to: 'json' })
    expect((await walkJson([whole])).problem).toBeUndefined()
    for (let length = 1; length < whole.length - 1; length++) {
      const { problem } = await walkJson([whole.subarray(0, length)])
      expect({ length, kind: problem?.kind }).toEqual({ length, kind: 'truncated' })
    }
  })

  test.each([
    ['', 'truncated', 0, 'event 0, byte 0: the file ends with nothing open'],
    ['[{"a":1},{"b":', 'truncated', 9, 'event 1, byte 9: the file ends with [{ open'],
    ['{"traceEvents":[{"a":"b', 'truncated', 16, 'event 0, byte 16: the file ends within a text'],
    ['{"traceEvents":[]}]', 'garbage', 18, 'event 0, byte 18: the JSON is over, but there is 0x5d'],
    ['x', 'garbage', 0, 'event 0, byte 0: expected { or ['],
    ['[{"a":1}}', 'malformed', 8, 'event 1, byte 8: there is } where none was opened'],
    ['[{"a":"\n"}]', 'malformed', 7, 'event 0, byte 7: a text holds the control character 0x0a'],
    ['['.repeat(1001), 'malformed', 1000, 'event 0, byte 1000: more than 1000 brackets are open'],
  ] as const)('%j is %s', async (text, kind, offset, message) => {
    expect((await walk(text)).problem).toMatchObject({ kind, offset, message })
  })

  test('an array may lack its end, as the format allows', async () => {
    expect(await walk('[{"ph":"i"},\n{"ph":"i"},\n')).toMatchObject({ packets: 2, problem: undefined })
  })
})

describe('checkTrace', () => {
  test('walks JSON as JSON, and asks trace_processor', async () => {
    const sound = await converted(plainBytes('profinfer-csv/tiny.csv'), { to: 'json' })
    const { kind, walk, problems } = await checkTrace(sound)
    expect({ kind, walk }).toMatchObject({ kind: 'json', walk: { bytes: sound.length, problem: undefined } })
    expect(walk.packets).toBe(JSON.parse(new TextDecoder().decode(sound)).traceEvents.length)
    expect(problems).toEqual([])
    const stray = '{"traceEvents":[{"ph":"B","pid":1,"tid":1,"ts":5,"name":"a"}]}'
    expect((await checkTrace(bytes(stray))).problems).toMatchObject([{ name: 'slice_without_end', value: 1 }])
    expect((await checkTrace(sound.subarray(0, -9))).walk.problem).toMatchObject({ kind: 'truncated' })
  })
})

describe('the kind of a trace is found by more than its first bytes', () => {
  const rest = joined(smallTrace.filter((packet) => packet !== packets.beginAgain))
  /** A packet of so many bytes: one field of this tag, of which `of` is the content. */
  const packet = (size: number, tag: number, of = 0) =>
    joined([Uint8Array.of(0x0a, size, tag, size - 2), new Uint8Array(size - 2).fill(of)])
  const inspected = async (bytes: Uint8Array) => {
    const { source, kind, isTrace } = await inspect(cut(bytes, bytes.length))
    await source.return()
    return { kind, isTrace }
  }
  /** A field that trace_processor does not know. */
  const UNKNOWN = 0x7a

  test('a first packet of any size', async () => {
    for (let size = 3; size < 128; size++) {
      const trace = joined([packet(size, UNKNOWN), rest])
      expect([size, await inspected(trace)]).toEqual([size, { kind: 'trace', isTrace: true }])
      if (size % 16 !== 11) continue
      expect([size, await checkTrace(trace)]).toMatchObject([
        size,
        { kind: 'perfetto', walk: { problem: undefined }, problems: [] },
      ])
    }
  })

  test('a first packet that begins as JSON does', async () => {
    // `{"`, `{\n"`, `[\n{`, `["`: the letters are tags of fields, and the first byte of what is in them.
    for (const [size, tag, of] of [
      [123, 0x22, 0x79],
      [123, 0x0a, 0x22],
      [91, 0x0a, 0x7b],
      [91, 0x22, 0x22],
    ] as const) {
      const trace = joined([packet(size, tag, of), rest])
      expect([size, tag, traceStart(trace)]).toEqual([size, tag, 'perfetto'])
      expect([size, tag, await inspected(trace)]).toEqual([size, tag, { kind: 'trace', isTrace: true }])
    }
  })

  test('JSON that begins with an empty line; a text that does is no trace', async () => {
    for (const json of [
      '\n{"traceEvents":[]}',
      '\n[\n{"ph":"i"}]',
      '\n{\n"traceEvents": []}',
      '\n[]',
      ' { }',
      '[',
      '\n{',
    ])
      expect([json, traceStart(bytes(json))]).toEqual([json, 'json'])
    for (const text of ['\n# A heading\n\nand a text', '\n\n\n  a text of several words', '{a', '[x]', '{1', ''])
      expect([text, traceStart(bytes(text))]).toEqual([text, undefined])
  })
})
