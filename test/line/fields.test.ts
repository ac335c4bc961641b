import { describe, expect, test } from '@jest/globals'
import { inLong, inParts, isLong, someOf } from '../long.ts'
import { attempt, expectFaithful, importFaults, type Outcome, spread } from './hostile.ts'
import { converted, cut, plainBytes } from './support.ts'
import { VALUES, valuesFor } from './values.ts'

/** Fields that say how long, which or when, swept over their range: bad values are told, and nothing else goes wrong. */

const RECORD = 1024
const TT = 'tensor-trace/tiny-v4.bin'
const CSV = 'profinfer-csv/tiny.csv'
const BYTE = Array.from({ length: 256 }, (_, value) => value)
const U16 = [0, 1, 2, 254, 255, 256, 0x7fff, 0x8000, 0xfffe, 0xffff]
const U32 = [0, 1, 0x7fffffff, 0x80000000, 0xffffffff]
const U64 = [
  0n,
  1n,
  2n ** 32n,
  2n ** 52n,
  2n ** 53n - 1n,
  2n ** 53n,
  2n ** 53n + 1n,
  2n ** 62n,
  2n ** 63n - 1n,
  2n ** 63n,
]
const EXTREMES = [...U64, 2n ** 64n - 1n]

const titles = (outcome: Outcome) => (outcome.trace ? outcome.summary.issues.map(({ title }) => title) : ['refused'])

describe('tensor-trace', () => {
  const log = plainBytes(TT)
  const records = log.length / RECORD - 1
  /** The third record has two sources, the fourth four, the fifth three and experts. */
  const [ROWS, ATTENTION, MOE] = [2, 3, 4]

  const damaged = (change: (view: DataView) => void): Uint8Array => {
    const copy = log.slice()
    change(new DataView(copy.buffer))
    return copy
  }
  const field = (record: number, offset: number) => record * RECORD + offset
  const source = (i: number, offset: number) => 152 + 160 * i + offset

  inParts(test).each([
    ['num_sources', 18, (value: number) => (value > 4 ? 'damaged record' : undefined)],
    ['num_experts', 856, (value: number) => (value > 16 ? 'too many experts' : undefined)],
    ['phase', 17, (value: number) => (value > 1 ? 'unknown phase' : undefined)],
    ['memory_source', source(0, 142), (value: number) => (value > 1 ? 'damaged record' : undefined)],
    ['operation_type', 16, (value: number) => (value > 94 ? 'unknown op' : undefined)],
  ])('%s, every value', async (name, offset, issueOf) => {
    for (const [nth, record] of [0, ATTENTION, MOE, records - 1].entries()) {
      const values = BYTE.filter((byte) => byte < 32 || byte > 250 || byte % 4 === nth)
      for (const value of someOf(values, 16, nth)) {
        const bytes = damaged((view) => view.setUint8(field(record, offset), value))
        const outcome = await attempt(bytes, `${name} ${value} in record ${record}`)
        const issue = issueOf(value)
        if (issue !== undefined) expect(titles(outcome)).toContain(issue)
        else if (name !== 'operation_type') expect(titles(outcome)).not.toContain('damaged record')
      }
    }
  })

  inParts(test).each([
    ['layer', 12],
    ['thread', 14],
    ['layer of a source', source(0, 140)],
  ])('%s', async (name, offset) => {
    for (let record = 0; record < records; record++) {
      for (const value of someOf(U16, 5, record)) {
        const bytes = damaged((view) => view.setUint16(field(record, offset), value, true))
        expect(titles(await attempt(bytes, `${name} ${value}`))).toEqual([])
      }
    }
  })

  inParts(test)('sizes, offsets, buffers and pointers: what is drawn is what was told', async () => {
    const faithful: Uint8Array[] = []
    for (const record of [ROWS, ATTENTION, MOE]) {
      for (const i of [0, 1]) {
        const logs = [
          ...U32.map((value) => damaged((view) => view.setUint32(field(record, source(i, 136)), value, true))),
          ...EXTREMES.flatMap((value) =>
            [128, 144].map((at) => damaged((view) => view.setBigUint64(field(record, source(i, at)), value, true))),
          ),
        ]
        for (const [nth, bytes] of someOf([...logs.entries()], 6, record))
          expect((await attempt(bytes, `value ${nth}`)).trace).toBeDefined()
        faithful.push(...spread(logs, 2))
      }
    }
    await expectFaithful(faithful)
  })

  test('expert ids of any value', async () => {
    const ids = [-0x80000000, -1, 0, 31, 32, 0x7fffffff]
    await expectFaithful(ids.map((id) => damaged((view) => view.setInt32(field(MOE, 792), id, true))))
  })

  inParts(test)('one timestamp of any value: told where it cannot be', async () => {
    for (let record = 0; record < records; record++) {
      for (const value of someOf(EXTREMES.slice(1), 5, record)) {
        const bytes = damaged((view) => view.setBigUint64(field(record, 0), value, true))
        const found = titles(await attempt(bytes, `timestamp ${value} in record ${record}`))
        if (found[0] === 'refused') expect(record).toBe(0)
        else expect(found).toContain('impossible time')
      }
      const zero = damaged((view) => view.setBigUint64(field(record, 0), 0n, true))
      const found = titles(await attempt(zero, `no timestamp in record ${record}`))
      if (record > 0 && record < records - 1) expect(found).toEqual(['hole in the log'])
    }
  })

  inLong(test)('all timestamps far away: exact up to where no clock has come', async () => {
    const first = new DataView(log.buffer).getBigUint64(0, true)
    for (const base of EXTREMES) {
      const bytes = damaged((view) => {
        for (let record = 0; record < records; record++) {
          const stamp = view.getBigUint64(field(record, 0), true) - first + base
          view.setBigUint64(field(record, 0), BigInt.asUintN(64, stamp), true)
        }
      })
      const what = `timestamps from ${base}`
      const outcome = await attempt(bytes, what, { from: 'tensor-trace' })
      const isPossible = base > 0n && base < 2n ** 62n - 2n ** 40n
      if (base > 0n) expect(`${what}: ${titles(outcome).length === 0}`).toBe(`${what}: ${isPossible}`)
      if (isPossible) await expectFaithful([bytes])
      else if (outcome.trace) expect(await importFaults(outcome.trace)).toEqual([])
    }
  })

  test('two records in a row from the end of time are not believed', async () => {
    for (const value of [2n ** 63n, 2n ** 64n - 9n]) {
      const bytes = damaged((view) => {
        for (const record of [3, 4, 5]) view.setBigUint64(field(record, 0), value + BigInt(record), true)
      })
      const outcome = await attempt(bytes, `three timestamps of about ${value}`)
      expect(titles(outcome)).toEqual(['impossible time'])
    }
  })

  test('a name of 128 bytes without its end, and names that are no text', async () => {
    const places = [24, source(0, 0), source(3, 0)].map((offset) => field(3, offset))
    const logs = [0x61, 0xff, 0xc3, 0x80, 0x01].flatMap((fill) =>
      places.map((at) => damaged((view) => new Uint8Array(view.buffer).fill(fill, at, at + 128))),
    )
    await expectFaithful(logs)
  })
})

describe('profinfer-csv', () => {
  const lines = new TextDecoder().decode(plainBytes(CSV)).split('\n')
  const encode = (text: string) => new TextEncoder().encode(text)
  /** Of the first call: its start, its graph, a start and an end of an operator. */
  const ROWS = { call: 1, graph: 2, start: 3, end: 5 }

  const withCell = (line: number, column: number, value: string): Uint8Array => {
    const cells = lines[line]!.split(',')
    cells[column] = value
    return encode(lines.with(line, cells.join(',')).join('\n'))
  }

  inParts(test).each(Object.entries(ROWS))('every column of a row (%s), with values of every kind', async (_, line) => {
    const columns = lines[0]!.split(',').length
    const traces: Uint8Array[] = []
    for (let column = 0; column < columns; column++) {
      for (const value of valuesFor(column)) {
        const outcome = await attempt(withCell(line, column, value), `${JSON.stringify(value)} in ${line}:${column}`)
        expect(outcome.trace).toBeDefined()
        traces.push(outcome.trace!)
        const isNumber = /^"?\d{1,15}(\.0*)?"?$/.test(value)
        if (column > 0 && column < 4 && !isNumber && !/^([ +]|0x|1e3|-0$|-1$|0{9})/.test(value)) {
          expect(`${column} ${value}: ${titles(outcome)}`).not.toBe(`${column} ${value}: `)
        }
      }
    }
    for (const trace of spread(traces, 2)) expect(await importFaults(trace)).toEqual([])
  })

  inLong(test)('values of every kind are drawn as they were read', async () => {
    const cells: [number, number][] = [
      [ROWS.start, 7],
      [ROWS.start, 8],
      [ROWS.start, 9],
      [ROWS.start, 12],
      [ROWS.end, 3],
    ]
    // Texts end at their first NUL in trace_processor's SQL.
    const values = VALUES.filter((value) => !value.includes('\0'))
    for (const [line, column] of cells) {
      await expectFaithful(spread(values, 4).map((value) => withCell(line, column, value)))
    }
  })

  inParts(test)('rows of any number of fields', async () => {
    for (let count = 0; count <= 70; count += isLong || count < 3 ? 1 : 3) {
      const row = Array.from({ length: count }, (_, i) => `${i}`).join(',')
      const outcome = await attempt(encode(lines.with(4, row).join('\n')), `a row of ${count} fields`)
      const isRight = count === lines[0]!.split(',').length
      if (!isRight && count > 0) expect(titles(outcome)).toContain('unreadable row')
    }
  })

  inParts(test)('a header of any number of columns, in any order, with any name twice', async () => {
    const names = lines[0]!.split(',')
    for (let column = 0; column < names.length; column++) {
      const headers = [
        names.with(column, ''),
        names.with(column, 'ts'),
        names.with(column, '"op"'),
        names.toSpliced(column, 1),
      ]
      for (const header of someOf(headers, 3, column)) {
        const bytes = encode(lines.with(0, header.join(',')).join('\n'))
        await attempt(bytes, `header ${header}`)
        await attempt(bytes, `header ${header}, told`, { from: 'profinfer-csv' })
      }
    }
    const reversed = lines.map((line) => line.split(',').toReversed().join(','))
    const outcome = await attempt(encode(reversed.join('\n')), 'reversed', { from: 'profinfer-csv' })
    expect(outcome.trace && outcome.summary).toMatchObject({ operators: 12, graphs: 2, workers: 2, issues: [] })
  })

  test('a line of more than 1 MiB is refused, however it comes', async () => {
    const long = (length: number) => withCell(ROWS.start, 7, 'x'.repeat(length))
    expect(titles(await attempt(long(900_000), 'a name of 900 kB'))).toEqual([])
    const logs = [
      long(2 << 20),
      encode(`${lines[0]}\n${'7,'.repeat(3 << 20)}`),
      encode(`${lines[0]}${',x'.repeat(1 << 20)}`),
    ]
    for (const bytes of logs) {
      for (const size of [bytes.length, 1 << 18, 100_003]) {
        const failed = converted(cut(bytes, size))
        await expect(failed).rejects.toMatchObject({
          name: 'FormatError',
          message: expect.stringMatching(/line \d, byte/),
        })
      }
    }
  })

  test('bytes that are no UTF-8 and a torn last row', async () => {
    const bytes = encode(lines.join('\n'))
    for (const [at, byte] of [
      [300, 0xff],
      [301, 0xc3],
      [302, 0x00],
      [420, 0xed],
    ] as const) {
      const copy = bytes.slice()
      copy[at] = byte
      expect((await attempt(copy, `byte ${byte} at ${at}`)).trace).toBeDefined()
    }
    const torn = await attempt(bytes.subarray(0, bytes.length - 12), 'a torn row')
    expect(titles(torn)).toContain('torn record')
  })
})
