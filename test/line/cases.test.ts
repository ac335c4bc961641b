import { describe, expect, test } from '@jest/globals'
import { Inferred, type OperatorEvent } from '../../lib/core.ts'
import { type Summary, summarize, type TraceEvent } from '../../lib/index.ts'
import { openTrace } from '../../lib/node.ts'
import { converted, eventsIn, plainBytes } from './support.ts'

/** What each fixture is about: the peculiarity that it has is read as it should be. */

const summaryOf = (fixture: string, opTable?: string): Promise<Summary> =>
  summarize({ name: fixture, source: plainBytes(fixture) }, { opTable })

const titles = ({ issues }: Summary) => issues.map(({ title, count }) => `${count} × ${title}`)

const opsOf = ({ ops }: Summary) => Object.fromEntries(ops.map(({ op, count }) => [op, count]))

const operatorsOf = (events: readonly TraceEvent[]) =>
  events.filter((event): event is OperatorEvent => event.kind === 'operator')

const text = (fixture: string) => new TextDecoder().decode(plainBytes(fixture))
const bytes = (lines: string) => new TextEncoder().encode(lines)

describe('tensor-trace', () => {
  test('version 4: experts, buffers, offsets from data pointers', async () => {
    const { names, events } = await eventsIn(plainBytes('tensor-trace/tiny-v4.bin'))
    const experts = operatorsOf(events).map((operator) => operator.experts)
    expect(experts.filter(Boolean)).toEqual([
      [5, 2],
      [5, 2],
      [2, 7],
      [2, 7],
    ])
    const buffers = events.filter((event) => event.kind === 'buffer')
    expect(new Set(buffers.map(({ usage }) => usage))).toEqual(new Set(['weights', 'compute', 'kv-cache']))
    const found = new Map(
      events.flatMap((event) => (event.kind === 'tensor' ? [[names.text(event.name), event] as const] : [])),
    )
    expect(found.get('blk.0.attn_q.weight')).toMatchObject({ offset: 131072, layer: 0, sizeBytes: 16384 })
    expect(found.get('cache_v_l0 (view)')).toMatchObject({ offset: 32768, address: 0x7e20_0000_8000 })
    expect(found.get('KQ_mask')).toMatchObject({ offset: 16384, layer: -1 })
    const summary = await summaryOf('tensor-trace/tiny-v4.bin')
    expect(opsOf(summary)).toEqual({
      ...{ GET_ROWS: 2, MUL_MAT: 2, SET_ROWS: 2, FLASH_ATTN_EXT: 2, MUL_MAT_ID: 2, ADD_ID: 2 },
    })
    expect(titles(summary)).toEqual([])
  })

  test('the JSON of a token contains the same as the records that it is made of', async () => {
    const contentsOf = async (fixture: string) => {
      const { names, events } = await eventsIn(plainBytes(fixture))
      return events.slice(1).map((event) => {
        if (event.kind === 'graph') return { ...event, backend: names.text(event.backend) }
        if (event.kind !== 'tensor') return event
        return { ...event, name: names.text(event.name), op: names.text(event.op), inferred: 0 }
      })
    }
    expect(await contentsOf('tensor-trace-json/tiny.json')).toEqual(await contentsOf('tensor-trace/tiny-v4.bin'))
  })

  test('version 3 has no experts', async () => {
    const summary = await summaryOf('tensor-trace/tiny-v3.bin')
    expect(summary).toMatchObject({ with_experts: 0, operators: 6, graphs: 2, issues: [] })
  })

  test('a first call of two prompt tokens before another prompt is the warm-up', async () => {
    const { calls, issues } = await summaryOf('tensor-trace/warm-up.bin')
    expect(calls.by_phase).toEqual({
      'warm-up': { calls: 1, tokens: 2 },
      prefill: { calls: 1, tokens: 5 },
      decode: { calls: 1, tokens: 1 },
    })
    expect(issues).toEqual([])
    const open = await openTrace(await converted(plainBytes('tensor-trace/warm-up.bin')))
    const phases = open.query(`SELECT name FROM slice WHERE category = 'phase' ORDER BY ts`).rows.flat()
    open.close()
    expect(phases).toEqual(['warm-up', 'idle', 'prefill', 'decode'])
  })

  test('batches of two threads are put in order of time', async () => {
    const { events } = await eventsIn(plainBytes('tensor-trace/two-threads-out-of-order.bin'))
    const operators = operatorsOf(events)
    expect(operators.map(({ tid }) => tid)).toEqual([501, 501, 501, 502, 502, 502])
    for (const [i, next] of operators.slice(1).entries()) {
      expect(next.startNs).toBeGreaterThan(operators[i]!.startNs)
      expect(operators[i]!.inferred & Inferred.NoEnd ? next.startNs : operators[i]!.endNs).toBe(next.startNs)
    }
    expect(events.some(({ kind }) => kind === 'issue')).toBe(false)
  })

  test.each([
    ['hole.bin', '1 × hole in the log', 'expected records, found 2 empty ones', 5 * 1024, 4],
    ['torn-tail.bin', '1 × torn record', 'expected 1024 bytes, found the first 700', 4 * 1024, 4],
    ['unknown-op.bin', '1 × unknown op', expect.stringMatching(/^op number 250 is not in llama.cpp/), 4 * 1024 + 16, 6],
  ])('%s: %s', async (file, title, detail, byte, operators) => {
    const summary = await summaryOf(`tensor-trace/${file}`)
    expect(titles(summary)).toEqual([title])
    expect(summary.issues[0]!.first).toMatchObject({ detail, at: { byte } })
    expect(summary.operators).toBe(operators)
  })

  test('numbers that tables name differently stay numbers, until a table is told', async () => {
    const summary = await summaryOf('tensor-trace/ambiguous-ops.bin')
    expect(titles(summary)).toEqual(['1 × op table unclear'])
    expect(opsOf(summary)).toEqual({ 'op 68': 1, MUL_MAT: 1, 'op 73': 1, 'op 94': 1 })
    const told = await summaryOf('tensor-trace/ambiguous-ops.bin', '2026-01')
    expect(titles(told)).toEqual([])
    expect(opsOf(told)).toEqual({ ARGSORT: 1, MUL_MAT: 1, FLASH_ATTN_EXT: 1, GLU: 1 })
    const { names, events } = await eventsIn(plainBytes('tensor-trace/ambiguous-ops.bin'), { opTable: ['A', 'B'] })
    const ops = events.flatMap((event) => (event.kind === 'tensor' && event.op !== 0 ? names.text(event.op) : []))
    expect(ops).toEqual(['op 68', 'op 29', 'op 73', 'op 94'])
    await expect(summaryOf('tensor-trace/ambiguous-ops.bin', 'v9')).rejects.toThrow(
      /^no op table is called "v9"; known/,
    )
  })

  test('records after empty ones are read however many these were; the hole is told', async () => {
    const log = plainBytes('tensor-trace/tiny-v3.bin')
    const withHole = (records: number) =>
      summarize({ name: 'log', source: [log, new Uint8Array(1024 * records), log.subarray(0, 1024)] })
    expect(titles(await withHole(1))).toEqual(['1 × hole in the log'])
    expect(titles(await withHole(700))).toEqual(['1 × hole in the log'])
    expect((await withHole(700)).operators).toBe(7)
  })

  test('a record more than 2 048 records late is told and drawn without an end', async () => {
    const record = plainBytes('tensor-trace/tiny-v3.bin').subarray(1024, 2048)
    const first = new DataView(record.buffer, record.byteOffset).getBigUint64(0, true)
    const records = Array.from({ length: 2100 }, (_, i) => {
      const copy = record.slice()
      new DataView(copy.buffer).setBigUint64(0, first + BigInt(i === 2099 ? 5 : 1000 * i), true)
      return copy
    })
    const { events } = await eventsIn(records)
    const late = operatorsOf(events).find(({ startNs }) => startNs === 5)
    expect(late).toMatchObject({ endNs: 5 })
    expect(late!.inferred & Inferred.NoEnd).toBe(Inferred.NoEnd)
    const [issue] = events.filter((event) => event.kind === 'issue')
    expect(issue).toMatchObject({ title: 'record out of order', at: { byte: 2099 * 1024 } })
    expect(issue!.detail).toBe('expected at most 2048 records out of order, found one 49995 ns late')
  })
})

describe('profinfer-csv', () => {
  /** The events, but for where in the file they were. */
  const eventsOfText = async (lines: string) => (await eventsIn(bytes(lines))).events

  test('two workers in two graphs; the second worker is another thread each time', async () => {
    const { events } = await eventsIn(plainBytes('profinfer-csv/tiny.csv'))
    const threads = operatorsOf(events).map(({ call, worker, tid }) => `call ${call} worker ${worker}: ${tid}`)
    const expected = ['call 0 worker 0: 700', 'call 0 worker 1: 701', 'call 1 worker 0: 700', 'call 1 worker 1: 702']
    expect([...new Set(threads)].sort()).toEqual(expected)
    expect(threads).toHaveLength(12)
  })

  test('floats, as pandas writes columns with gaps, say the same as integers', async () => {
    const floats = text('profinfer-csv/tiny-float.csv')
    expect(floats).toContain(',40.0,embd,139973885326560.0,')
    const integers = floats.replace(/(\d)\.0\b/g, '$1')
    expect(await eventsOfText(floats)).toEqual(await eventsOfText(integers))
  })

  test('line breaks of either kind say the same; so does a byte order mark', async () => {
    const lines = text('profinfer-csv/crlf.csv')
    expect(lines).toContain('\r\n')
    const expected = await eventsOfText(lines.replaceAll('\r\n', '\n'))
    expect(await eventsOfText(lines)).toEqual(expected)
    expect(await eventsOfText(`\ufeff${lines}`)).toEqual(expected)
    expect(await eventsOfText(lines.trimEnd())).toEqual(expected)
    expect(await eventsOfText(lines.replaceAll('\r\n', '\n\n'))).toEqual(expected)
  })

  test('rows may come in any order', async () => {
    const [header, ...rows] = text('profinfer-csv/unsorted.csv').trimEnd().split('\n')
    const sorted = rows.toSorted((a, b) => Number(a.split(',')[1]) - Number(b.split(',')[1]))
    expect(rows).not.toEqual(sorted)
    const inOrder = await eventsOfText([header, ...sorted].join('\n'))
    // The origin is the first row's time, whichever that is.
    const absolute = (events: readonly TraceEvent[]) => {
      const [input] = events
      const origin = input?.kind === 'input' ? input.originNs : 0n
      return operatorsOf(events).map((event) => ({ ...event, startNs: origin + BigInt(event.startNs) }))
    }
    const found = absolute(await eventsOfText(text('profinfer-csv/unsorted.csv')))
    expect(found.map(({ startNs, worker, tensor }) => [startNs, worker, tensor])).toEqual(
      absolute(inOrder).map(({ startNs, worker, tensor }) => [startNs, worker, tensor]),
    )
    expect(found.length).toBe(6)
  })

  test('hardware counters become one series per worker: the difference over each operator', async () => {
    const { names, events } = await eventsIn(plainBytes('profinfer-csv/pmc.csv'))
    const counters = events.filter((event) => event.kind === 'counter')
    expect(new Set(counters.map(({ name }) => names.text(name)))).toEqual(
      new Set([0, 1].flatMap((i) => [0, 1].map((worker) => `pmc_${i} of worker ${worker}, per operator`))),
    )
    const rows = text('profinfer-csv/pmc.csv')
      .split('\n')
      .slice(1, -1)
      .map((row) => row.split(','))
    const expected = rows.flatMap(([, , type, tid, , refills], i) => {
      if (type !== '20') return []
      const end = rows.slice(i).find(([, , endType, endTid]) => endType === '25' && endTid === tid)!
      return [Number(end[5]) - Number(refills)]
    })
    const refills = counters.filter(({ name, value }) => names.text(name).startsWith('pmc_0') && value !== 0)
    expect(refills.map(({ value }) => value).sort()).toEqual(expected.sort())
    expect(counters.length).toBe(12 * 2 * 2)
  })

  test('without addresses and shapes there are still operators by name', async () => {
    const summary = await summaryOf('profinfer-csv/no-struct.csv')
    expect(opsOf(summary)).toEqual({ GET_ROWS: 4, MUL_MAT: 4, GLU: 4 })
    expect(summary.calls.by_phase).toMatchObject({ prefill: { calls: 1, tokens: 0 }, decode: { calls: 1 } })
  })

  test('an end that was lost is told, and what it ended lasts until the next start', async () => {
    const { events } = await eventsIn(plainBytes('profinfer-csv/lost-ends.csv'))
    const issues = events.filter((event) => event.kind === 'issue')
    expect(issues.map(({ title }) => title)).toEqual(Array.from({ length: 5 }, () => 'range without an end'))
    const endless = operatorsOf(events).filter(({ inferred }) => inferred & Inferred.NoEnd)
    expect(endless).toHaveLength(3)
    for (const { tid, endNs } of endless) {
      expect(operatorsOf(events).some((event) => event.tid === tid && event.startNs === endNs)).toBe(true)
    }
    const calls = events.filter((event) => event.kind === 'token')
    expect(calls.map(({ inferred }) => (inferred & Inferred.NoEnd) !== 0)).toEqual([false, true, false])
    const graphs = events.filter((event) => event.kind === 'graph')
    expect(graphs.map(({ inferred }) => (inferred & Inferred.NoEnd) !== 0)).toEqual([true, false, false])
  })

  test('a log of calls and graphs only', async () => {
    const summary = await summaryOf('profinfer-csv/graph-only.csv')
    expect(summary).toMatchObject({ operators: 0, workers: 0, graphs: 3, issues: [] })
    expect(summary.calls.by_phase).toMatchObject({ prefill: { calls: 1 }, decode: { calls: 2 } })
  })

  test('names may hold commas and quotes', async () => {
    const { names, events } = await eventsIn(plainBytes('profinfer-csv/quoted-names.csv'))
    const found = events.flatMap((event) => (event.kind === 'tensor' && event.op !== 0 ? names.text(event.name) : []))
    expect(found).toEqual(['embd', 'Qcur, v-0', 'say "hi"-1', 'ffn_swiglu-0'])
  })
})

test('strict stops at the first issue, with its place', async () => {
  const broken = ['hole.bin', 'torn-tail.bin', 'unknown-op.bin'].map((file) => `tensor-trace/${file}`)
  for (const fixture of [...broken, 'profinfer-csv/lost-ends.csv']) {
    const failed = converted(plainBytes(fixture), { strict: true })
    await expect(failed).rejects.toMatchObject({
      name: 'FormatError',
      message: expect.stringMatching(/^log: .*byte \d+/),
    })
  }
  expect((await converted(plainBytes('tensor-trace/tiny-v3.bin'), { strict: true })).length).toBeGreaterThan(1000)
})
