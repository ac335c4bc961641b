import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { convert, summarize } from '../../lib/index.ts'
import { openTrace } from '../../lib/node.ts'
import { altered, begun, blocksOf, fieldsOf, joined, read } from './ggtrace-logs.ts'

/** NVTX records, from our own writer to SQL. What real programs announce is in test/native/nvtx.test.ts. */

const PAYLOADS = [
  { type: 'u64', value: 2n ** 64n - 1n },
  { type: 'u64', value: 2n ** 63n - 1n },
  { type: 'i64', value: -(2n ** 63n) },
  { type: 'u64', value: 5 },
  { type: 'f64', value: Number.MIN_VALUE },
  { type: 'u32', value: 0xffffffff },
  { type: 'i32', value: -1 },
  { type: 'f32', value: 1.5 },
] as const

/** Two threads, the second of which ends what the first starts, and comes first in the file. */
function announced(): Uint8Array {
  const writer = begun({ command: 'app' })
  const domain = writer.nvtxDomain('io')
  writer.nvtxCategory(domain, 3, 'reads')
  writer.threadName(900, 'loader')
  const [load, open, sub] = ['load', 'open', 'sub'].map((name) => writer.name(name))
  const [one, two] = [writer.thread(900), writer.thread(901)]
  two.nvtxEnd(5000, 17)
  two.nvtxPush({ atNs: 5100, message: sub! })
  two.nvtxPop(5200)
  two.nvtxNamed(5300, 'CUstream', 0xffff_ffff_ffff_fff1n, load!)
  two.seal()
  one.nvtxStart(17, { atNs: 1000, domain, message: load!, category: 3, color: 0x80a0b0c0 })
  one.nvtxStart(18, { atNs: 1000, domain, message: open! })
  one.nvtxPush({ atNs: 1000, domain, message: load!, category: 4 })
  one.nvtxPush({ atNs: 1000, domain, message: sub! })
  one.nvtxPop(1000, domain)
  for (const [i, payload] of PAYLOADS.entries()) one.nvtxMark({ atNs: 1100 + i, domain, message: sub!, payload })
  one.nvtxPop(2000, domain)
  writer.end(6000)
  return writer.take()
}

async function sql(bytes: Uint8Array, query: string) {
  const trace = await openTrace(convert({ name: 'log', source: bytes }, { detail: 'full' }))
  try {
    expect(trace.problems()).toEqual([])
    return trace.query(query).rows
  } finally {
    trace.close()
  }
}

const args =
  "(select group_concat(substr(key, 7) || '=' || coalesce(string_value, int_value, real_value), ' ') from args a where a.arg_set_id = s.arg_set_id)"

describe('NVTX in a log', () => {
  test('is read as it was written', async () => {
    const { of, names, issues } = await read(announced())
    expect(issues).toEqual([])
    const events = of('nvtx')
    expect(events.map(({ what }) => what)).toEqual([
      'end',
      'push',
      'pop',
      'start',
      'start',
      'push',
      'push',
      'pop',
      ...PAYLOADS.map(() => 'mark'),
      'pop',
    ])
    expect(events[3]).toMatchObject({ tid: 900, atNs: 1000, range: 17, color: 0x80a0b0c0 })
    expect(
      [events[3]!.domain, events[3]!.category, events[3]!.thread, events[5]!.category].map((id) => names.text(id)),
    ).toEqual(['io', 'reads', 'loader', '4'])
    expect(events.flatMap(({ payload }) => (payload ? [payload] : []))).toEqual(PAYLOADS)
    expect(of('nvtx-name')).toMatchObject([{ what: 'CUstream', handle: 0xffff_ffff_ffff_fff1n, atNs: 5300 }])
    expect(await summarize({ name: 'log', source: announced() })).toMatchObject({
      nvtx: 5 + PAYLOADS.length,
      duration_ns: 4200,
    })
  })

  test('is drawn: ranges nested by thread and domain, started ones on rows of their own, ends before their starts', async () => {
    const rows = await sql(
      announced(),
      `select p.name, t.name, s.ts - (select min(ts) from slice), s.dur, s.depth, s.name, ${args}
       from slice s join track t on t.id = s.track_id join track p on p.id = t.parent_id
       where s.category = 'nvtx' and s.name <> 'sub' or s.dur = 100 order by s.ts, s.track_id`,
    )
    expect(rows.sort((a, b) => `${a[1]}`.localeCompare(`${b[1]}`))).toEqual([
      ['LLM app', 'loader 900: NVTX io', 0, 1000, 0, 'load', 'domain=io category=4 tid=900'],
      [
        'NVTX',
        'Names',
        4300,
        0,
        0,
        'CUstream 0xfffffffffffffff1: load',
        'object=CUstream handle=0xfffffffffffffff1 name=load',
      ],
      ['io', 'Ranges', 0, 4000, 0, 'load', 'domain=io category=reads color=#a0b0c0 range_id=17 tid=900 end_tid=901'],
      ['io', 'Ranges (2)', 0, 4200, 0, 'open', 'domain=io range_id=18 tid=900 inferred=no end recorded'],
      ['LLM app', 'thread 901: NVTX', 4100, 100, 0, 'sub', 'tid=901'],
    ])
  })

  test('carries payloads of every type, exactly', async () => {
    const query = `select extract_arg(arg_set_id, 'debug.payload_type'), a.string_value, a.int_value, a.real_value
      from slice s join args a using (arg_set_id) where a.key = 'debug.payload' order by s.ts`
    expect(await sql(announced(), query)).toEqual([
      ['u64', '18446744073709551615', null, null],
      ['u64', null, 2n ** 63n - 1n, null],
      ['i64', null, -(2n ** 63n), null],
      ['u64', null, 5, null],
      ['f64', null, null, Number.MIN_VALUE],
      ['u32', null, 0xffffffff, null],
      ['i32', null, -1, null],
      ['f32', null, null, 1.5],
    ])
  })

  test('as Chrome JSON, too', async () => {
    let text = ''
    const decoder = new TextDecoder()
    for await (const piece of convert({ name: 'log', source: announced() }, { to: 'json' }))
      text += decoder.decode(piece)
    expect(text).toContain('"payload":-9223372036854775808')
    const { traceEvents } = JSON.parse(text) as { traceEvents: { cat?: string; ph: string }[] }
    expect(
      traceEvents
        .filter(({ cat }) => cat === 'nvtx')
        .map(({ ph }) => ph)
        .sort()
        .join(''),
    ).toMatch(/^B+i+$/i)
  })

  test('that does not match: pops and ends of nothing, pushes that stay open', async () => {
    const writer = begun()
    const [name, thread] = [writer.name('open'), writer.thread(5)]
    thread.nvtxPop(100)
    thread.nvtxEnd(200, 99)
    thread.nvtxPush({ atNs: 300, message: name })
    thread.nvtxPush({ atNs: 400, domain: 7, color: 0xffffffff })
    thread.nvtxMark({ atNs: 900 })
    writer.end(1000)
    const rows = await sql(
      writer.take(),
      `select s.name, s.dur, s.category, extract_arg(s.arg_set_id, 'debug.detail') from slice s order by s.category, s.ts, s.name`,
    )
    expect(
      rows.filter(([, , category]) => category === 'issue').map(([name, , , detail]) => `${name}: ${detail}`),
    ).toEqual([
      'end without a start: thread 5 pops an NVTX range that it never pushed',
      'end without a start: NVTX range 99 ends that never started',
      'id without a definition: expected a definition of domain 7 before its first use, found none',
      'range without an end: 1 range is never popped by thread 5 (default domain): drawn up to the last NVTX event',
      'range without an end: 1 range is never popped by thread 5 (domain 7): drawn up to the last NVTX event',
    ])
    expect(rows.filter(([, , category]) => category === 'nvtx')).toEqual([
      ['open', 600, 'nvtx', null],
      ['(no message)', 500, 'nvtx', null],
      ['(no message)', 0, 'nvtx', null],
    ])
  })

  test('whatever its blocks hold, the rest is read, and nothing throws', async () => {
    const blocks = blocksOf(announced())
    await fc.assert(
      fc.asyncProperty(fc.nat(), fc.nat(), fc.integer({ min: 1, max: 255 }), async (which, at, by) => {
        const index = which % blocks.length
        const damaged = blocks.map((block, i) =>
          i !== index || fieldsOf(block).kind === 1
            ? block
            : altered(block, (view) => {
                const place = 48 + (at % (block.length - 48))
                view.setUint8(place, view.getUint8(place) ^ by)
              }),
        )
        const { of } = await read(joined(damaged))
        expect(of('input')).toHaveLength(1)
        for await (const _ of convert({ name: 'log', source: joined(damaged) }, { detail: 'full' }));
      }),
      { numRuns: 200 },
    )
  })
})
