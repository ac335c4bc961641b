import { gzipSync } from 'node:zlib'
import { describe, expect, test } from '@jest/globals'
import type { OwnSliceEvent } from '../../lib/core.ts'
import { type ByteSource, summarize } from '../../lib/index.ts'
import { converted, cut, eventsIn, randomOf } from '../line/support.ts'
import { inLong, inParts, someOf } from '../long.ts'

/** Documents of any length, of any order of their members, and with anything behind them: nothing of them is held whole. */

const encode = (text: string) => new TextEncoder().encode(text)
const MiB = 2 ** 20
const EVENT = '{"ph":"X","pid":1,"tid":2,"name":"a","ts":1751410836000001.5,"dur":2}'
const read = (source: ByteSource, from?: string) => summarize({ name: 'trace', source }, { from })
const found = async (text: string) => {
  const { issues, attributes } = await read(encode(text))
  return { holds: attributes['holds'], issues: issues.map(({ title, count }) => `${count} × ${title}`) }
}
const SOUND = { holds: '1 slice', issues: [] }

/** `text`, but with so many bytes of `filler` in place of the `…` in it; one chunk is handed out again and again. */
async function* filled(text: string, filler: string, bytes: number, seen: (bytes: number) => void = () => {}) {
  const [head, tail] = text.split('…') as [string, string]
  const chunk = encode(filler.repeat(Math.ceil(65_536 / filler.length)))
  yield encode(head)
  for (let pulled = 0; pulled < bytes; pulled += chunk.length) {
    seen(pulled)
    yield chunk
  }
  yield encode(tail)
}

/** Bytes of buffers that are held at most while a source is read, beyond those that were held before. */
async function heldBy(use: (seen: () => void) => Promise<unknown>): Promise<number> {
  const before = process.memoryUsage().arrayBuffers
  let most = 0
  await use(() => {
    most = Math.max(most, process.memoryUsage().arrayBuffers - before)
  })
  return most
}

describe('members beside the events, of any size', () => {
  const stacks = (bytes: number) => {
    const frames = Array.from({ length: Math.ceil(bytes / 40) }, (_, i) => `"${i}":{"name":"f \\"}]${i}","parent":"1"}`)
    return `{${frames.join(',')}}`
  }
  const text = (bytes: number) => JSON.stringify(`"traceEvents":[{"ph":"X","ts":5}],\\ `.repeat(Math.ceil(bytes / 30)))

  inParts(test).each(someOf([1.3, 2, 2.6, 5, 20], 5, 2))(
    '%d MiB, behind the events and ahead of them',
    async (size) => {
      for (const member of [stacks(size * MiB), text(size * MiB), `[${'17,'.repeat((size * MiB) / 3)}17]`]) {
        expect(await found(`{"traceEvents":[${EVENT}],"otherData":${member}}`)).toEqual(SOUND)
        expect(await found(`{"otherData":${member},"traceEvents":[${EVENT}]}`)).toEqual(SOUND)
      }
    },
  )

  test.each([
    'displayTimeUnit',
    'systemTraceEvents',
    'powerTraceAsString',
    'otherData',
    'stackFrames',
    'metadata',
    'schemaVersion',
  ])('%s first: the head shows nothing else', async (key) => {
    const member = `"${key}":${text(6000)}`
    expect(await found(`{${member},"traceEvents":[${EVENT}]}`)).toEqual(expect.objectContaining({ holds: '1 slice' }))
    expect(await found(`{"displayTimeUnit":"ms",${member},"traceEvents":[${EVENT}]}`)).toMatchObject({
      holds: '1 slice',
    })
  })

  test('other JSON is not taken for a trace', async () => {
    for (const other of [`{"name":${text(6000)}}`, `{"a":{"otherData":${text(6000)}}}`, `{"name":"otherData","x":1}`]) {
      await expect(read(encode(other))).rejects.toThrow('not a known format')
    }
  })

  test('cut into pieces anywhere, they are passed alike; so is what is wrong in them', async () => {
    const random = randomOf(7)
    const values = ['-12.5e3', '"\\\\\\"\\\\"', '[[],{"a":[1,"]"]}]', 'null', '{"a":"}","b":{}}', '""', '[1 2,@]', '{]']
    for (const value of values) {
      const bytes = encode(`{"otherData" : ${value} ,"traceEvents":[${EVENT},${EVENT}],"stackFrames":${value}} `)
      const whole = await eventsIn(cut(bytes, 1 << 20), { from: 'chrome-json' })
      for (const size of [1, 2, 3, 5, 17, 1 + Math.floor(random() * bytes.length)]) {
        expect((await eventsIn(cut(bytes, size), { from: 'chrome-json' })).events).toEqual(whole.events)
      }
    }
  })

  inLong(test)('hundreds of megabytes of them are passed in little memory', async () => {
    for (const [document, filler] of [
      [`{"otherData":"…","traceEvents":[${EVENT}]}`, 'systemd-1 [000] \\"x\\"\\\\ '],
      [`{"traceEvents":[${EVENT}],"stackFrames":{"1":{}…}}`, ',"2":{"name":"f"}'],
      [`{"traceEvents":[${EVENT}]…}`, ' \n'],
    ] as const) {
      const held = await heldBy(async (seen) => {
        const summary = await read(filled(document, filler, 120 * MiB, seen), 'chrome-json')
        expect([summary.attributes['holds'], summary.issues]).toEqual(['1 slice', []])
      })
      expect(held).toBeLessThan(64 * MiB)
    }
  })

  test('when the profiler began is found ahead of a large member, in a file and in a compressed one', async () => {
    const event = EVENT.replace('1751410836000001.5', '1000.5')
    const base = '"schemaVersion":1,"deviceProperties":[]'
    const bytes = encode(
      `{${base},"traceEvents":[${event}],"baseTimeNanoseconds":1751410836000000000,"stackFrames":${stacks(2 * MiB)}}`,
    )
    for (const source of [bytes, new Uint8Array(gzipSync(bytes))]) {
      const { clock, start_ns, issues } = await read(source)
      expect({ clock, start_ns, issues }).toEqual({ clock: 'REALTIME', start_ns: '1751410836001000500', issues: [] })
    }
  })
})

describe('what comes ahead of the first time', () => {
  const NAME = `{"ph":"M","pid":1,"tid":2,"ts":0,"name":"thread_name","args":{"name":"main","x":"${'y'.repeat(4000)}"}},`

  inLong(test)('hundreds of megabytes of names are passed in little memory, and count', async () => {
    const held = await heldBy(async (seen) => {
      const { events } = await eventsIn(filled(`[…${EVENT}]`, NAME, 300 * MiB, seen), { from: 'chrome-json' })
      expect(events.find(({ kind }) => kind === 'input')).toMatchObject({ originNs: 1751410836000001500n })
      expect(events.filter(({ kind }) => kind === 'own-slice')).toMatchObject([{ startNs: 0, endNs: 2000 }])
      expect(events.flatMap((event) => (event.kind === 'own-track' ? event.name : []))).toContain('main 2')
    })
    expect(held).toBeLessThan(64 * MiB)
  })

  inLong(test)('a text longer than any string costs its event, and little memory', async () => {
    const huge = EVENT.replace('"a"', '"…"')
    const documents = [
      [`[${huge},${EVENT}]`, 560],
      [`{"traceEvents":[${EVENT},${huge},${EVENT}]}`, 200],
      [`{"…":1}`, 200],
    ] as const
    for (const [document, size] of documents) {
      const held = await heldBy(async (seen) => {
        const summary = read(filled(document, 'abcdefgh', size * MiB, seen), 'chrome-json')
        if (document === `{"…":1}`) await expect(summary).rejects.toThrow('expected a list called "traceEvents"')
        else {
          const { issues, attributes } = await summary
          expect(issues).toMatchObject([{ code: 'json-large-event', count: 1 }])
          expect(attributes['holds']).toBe(document.startsWith('[') ? '1 slice' : '2 slices')
        }
      })
      expect(held).toBeLessThan(128 * MiB)
    }
  })

  const FILLED: readonly (readonly [what: string, document: string, filler: string, isRead: boolean])[] = [
    ['blanks in the list', `[…${EVENT}]`, ' ', true],
    ['blanks ahead of it', `…[${EVENT}]`, '\n\t ', true],
    ['zeros in the list', `[…${EVENT}]`, '\0', true],
    ['zeros ahead of it', `…[${EVENT}]`, '\0', false],
    ['blanks behind a key', `{"traceEvents" …:[${EVENT}]}`, ' ', true],
  ]
  inParts(test).each(someOf(FILLED, 3, 1))('%s', async (_, document, filler, isRead) => {
    const held = await heldBy(async (seen) => {
      const summary = await read(filled(document, filler, 150 * MiB, seen), 'chrome-json').catch(
        ({ message }) => message,
      )
      if (!isRead) expect(summary).toMatch(/^trace: chrome-json: byte \d+ .*expected /)
      else expect(summary.attributes['holds']).toBe('1 slice')
      const damage = filler === '\0' || document.includes('" …') ? ['damaged document'] : []
      if (isRead) expect(summary.issues.map(({ title }: { title: string }) => title)).toEqual(damage)
    })
    expect(held).toBeLessThan(64 * MiB)
  })

  test('events without a time are refused after a thousand, and not read to the end', async () => {
    let pulled = 0
    const document = filled(`{"traceEvents":[…${EVENT}]}`, '{"ph":"X","name":"x"},', 300 * MiB, (bytes) => {
      pulled = bytes
    })
    await expect(read(document, 'chrome-json')).rejects.toThrow(
      /^trace: chrome-json: byte \d+ .*expected an event with a time, found 1000 /,
    )
    expect(pulled).toBeLessThan(MiB)
  })

  test('damage in the first event does not take the times of the others away', async () => {
    const damaged = `[${EVENT.replace('"pid":1', '"pid":@')},${EVENT},${EVENT}]`
    const { events } = await eventsIn(encode(damaged), { from: 'chrome-json' })
    const slices = events.filter((event): event is OwnSliceEvent => event.kind === 'own-slice')
    expect(slices.map(({ startNs, endNs }) => [startNs, endNs])).toEqual([
      [0, 2000],
      [0, 2000],
    ])
  })

  test('the first events may be far apart', async () => {
    const late = EVENT.replace('1751410836000001.5', '1751410836000009')
    const bytes = encode(`[${EVENT},${' '.repeat(3 * MiB)}${late}]`)
    const [whole, pieces] = await Promise.all([1 << 30, 4096].map((size) => converted(cut(bytes, size))))
    expect(Buffer.compare(whole!, pieces!)).toBe(0)
  })
})

describe('what comes behind the end', () => {
  test.each([
    ['another document', `{"traceEvents":[${EVENT}]}`, `{"traceEvents":[${EVENT}]}`],
    ['further events', `[${EVENT}]`, `,${EVENT}]`],
    ['zeros', `[${EVENT}]\n`, '\0\0\0\0'],
    ['a word', `{"traceEvents":[${EVENT}]} \r\n`, 'done'],
  ])('%s: an issue, once, where it begins', async (_, document, more) => {
    const bytes = encode(document + more)
    for (const source of [bytes, cut(bytes, 7)]) {
      const { issues, attributes } = await read(source)
      expect(issues).toMatchObject([{ code: 'json-behind-end', count: 1, first: { at: { byte: document.length } } }])
      expect(attributes['holds']).toBe('1 slice')
    }
  })

  test('white space is nothing', async () => {
    expect(await found(`{"traceEvents":[${EVENT}]} \r\n\t${' '.repeat(200_000)}`)).toEqual(SOUND)
  })
})
