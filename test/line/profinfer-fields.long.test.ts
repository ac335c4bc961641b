import { describe, expect, test } from '@jest/globals'
import { attempt, expectFaithful, importFaults, type Outcome, spread } from './hostile.ts'
import { converted, plainBytes } from './support.ts'
import { VALUES, valuesFor } from './values.ts'

/** Every cell of each kind of row of ProfInfer's older logs, with values of every kind: told, or drawn as they are. */

const encode = (text: string) => new TextEncoder().encode(text)
const titles = (outcome: Outcome) => (outcome.trace ? outcome.summary.issues.map(({ title }) => title) : ['refused'])
const isNumber = (value: string) => /^"?\d{1,15}(\.0*)?"?$/.test(value) || /^([ +]|0x|1e3|-0$|-1$|0{9})/.test(value)

/** A log whose cells can be changed. */
interface Sweep {
  readonly fixture: string
  /** Lines that are swept: of a call, a graph, an operator's start and its end. */
  readonly rows: readonly number[]
  readonly cells: (line: string) => string[]
  readonly join: (cells: readonly string[]) => string
  /** What a cell becomes. */
  readonly change: (cell: string, value: string) => string
  /** Cells that must be numbers. */
  readonly needed: (cell: number) => boolean
}

const SWEEPS: readonly Sweep[] = [
  {
    fixture: 'profinfer-text/tiny.txt',
    rows: [0, 1, 2, 4],
    cells: (line) => line.split(','),
    join: (cells) => cells.join(','),
    change: (cell, value) => `${cell.split(':')[0]}:${value}`,
    needed: (cell) => cell < 4,
  },
  {
    fixture: 'profinfer-openharmony/tiny.csv',
    rows: [1, 2, 3, 5],
    cells: (line) => line.split(','),
    join: (cells) => cells.join(','),
    change: (_, value) => value,
    needed: (cell) => [1, 4, 5].includes(cell),
  },
  {
    fixture: 'profinfer-ktrace/tiny.txt',
    rows: [0, 1, 2, 4],
    cells: (line) => line.split(/([^\s[\]]+)/),
    join: (cells) => cells.join(''),
    change: (cell, value) => (/^[\s[\]]*$/.test(cell) ? cell : value),
    needed: () => false,
  },
]

describe.each(SWEEPS)('$fixture', ({ fixture, rows, cells, join, change, needed }) => {
  const format = fixture.split('/')[0]!
  const lines = new TextDecoder().decode(plainBytes(fixture)).split('\n')
  const withCell = (line: number, cell: number, value: string) => {
    const row = cells(lines[line]!)
    return encode(lines.with(line, join(row.with(cell, change(row[cell]!, value)))).join('\n'))
  }

  test.each(rows)('line %i: every cell, with values of every kind', async (line) => {
    const traces: Uint8Array[] = []
    for (let cell = 0; cell < cells(lines[line]!).length; cell++) {
      for (const value of valuesFor(cell)) {
        const what = `${JSON.stringify(value)} in ${line}:${cell}`
        const outcome = await attempt(withCell(line, cell, value), what, { from: format })
        expect(outcome.trace).toBeDefined()
        traces.push(outcome.trace!)
        if (needed(cell) && !isNumber(value)) expect(`${what}: ${titles(outcome)}`).not.toBe(`${what}: `)
      }
    }
    for (const trace of spread(traces, 2)) expect(await importFaults(trace)).toEqual([])
  })

  test('values of every kind are drawn as they were read', async () => {
    const line = rows[2]!
    // Texts end at their first NUL in trace_processor's SQL.
    const values = VALUES.filter((value) => !value.includes('\0'))
    const logs: Uint8Array[] = []
    for (let cell = 1; cell < cells(lines[line]!).length; cell += 4) {
      logs.push(withCell(line, cell, values[(cell * 5) % values.length]!))
    }
    await expectFaithful(logs, format)
  })

  test('rows cut to any number of cells', async () => {
    for (const line of rows) {
      const row = cells(lines[line]!)
      for (let count = 0; count < row.length; count++) {
        const bytes = encode(lines.with(line, join(row.slice(0, count))).join('\n'))
        await attempt(bytes, `line ${line} of ${count} cells`, { from: format })
      }
    }
  })

  test('a line of more than 1 MiB is refused', async () => {
    const bytes = encode(lines.with(rows[2]!, `${lines[rows[2]!]}${'7'.repeat(1 << 20)}`).join('\n'))
    await expect(converted(bytes)).rejects.toMatchObject({
      name: 'FormatError',
      message: expect.stringMatching(/line \d, byte/),
    })
  })

  test('one timestamp of any value is told where it cannot be', async () => {
    for (const line of rows.slice(1)) {
      const stamp = /\d{13}/.exec(lines[line]!)![0]
      for (const value of ['4503599627370496', '9007199254740993', '18446744073709551615', '9'.repeat(20)]) {
        const bytes = encode(lines.with(line, lines[line]!.replace(stamp, value)).join('\n'))
        const [first] = titles(await attempt(bytes, `timestamp ${value}`))
        expect(first).toMatch(Number.isSafeInteger(Number(value)) ? /^impossible time$/ : /^(impossible|unreadable)/)
      }
    }
  })
})

test('a header of any number of columns, in any order, with any name twice', async () => {
  const lines = new TextDecoder().decode(plainBytes('profinfer-openharmony/tiny.csv')).split('\n')
  const names = lines[0]!.split(',')
  for (let column = 0; column < names.length; column++) {
    for (const header of [names.with(column, ''), names.with(column, 'Type'), names.toSpliced(column, 1)]) {
      const bytes = encode(lines.with(0, header.join(',')).join('\n'))
      await attempt(bytes, `header ${header}`)
      await attempt(bytes, `header ${header}, told`, { from: 'profinfer-openharmony' })
    }
  }
  const reversed = lines.map((line) => line.split(',').toReversed().join(','))
  const outcome = await attempt(encode(reversed.join('\n')), 'reversed', { from: 'profinfer-openharmony' })
  expect(outcome.trace && outcome.summary).toMatchObject({ operators: 12, graphs: 2, workers: 2, issues: [] })
})
