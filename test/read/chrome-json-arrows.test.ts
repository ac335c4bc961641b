import { describe, expect, test } from '@jest/globals'
import { openTrace } from '../../lib/node.ts'
import { converted, cut } from '../line/support.ts'
import { inLong } from '../long.ts'
import { ARROWS, documentOf, type JsonEvent, rowsOf, SLICES, toldOf } from './chrome-json/documents.ts'

/** Arrows of Chrome JSON, by SQL; and ids of asynchronous operations. */

const X = (name: string, ts: number, dur: number, more: JsonEvent = {}) => ({
  ph: 'X',
  cat: 'work',
  pid: 1,
  tid: 2,
  name,
  ts,
  dur,
  ...more,
})
const flow = (ph: 's' | 't' | 'f', ts: number, more: JsonEvent = {}) => ({
  ph,
  cat: 'go',
  name: 'go',
  id: 7,
  pid: 1,
  tid: 2,
  ts,
  ...(ph === 'f' && { bp: 'e' }),
  ...more,
})
const host = (i: number) => 10 + i * 10
const device = (i: number) => 14 + i * 10

/** Launches and work as Kineto writes them: an arrow's end behind its slice. */
const launches = (count: number, call: JsonEvent, work: JsonEvent) =>
  Array.from({ length: count }, (_, i) => {
    const args = { correlation: 100 + i, ...(work['cat'] === 'kernel' && { device: 0, stream: 5 }) }
    const place = { pid: 0, tid: 5 }
    return [
      X(`launch ${i}`, host(i), 2, { ...call, args }),
      flow('s', host(i), { cat: 'ac2g', name: 'ac2g', id: 100 + i }),
      X(`run ${i}`, device(i), 5, { ...place, ...work, args }),
      flow('f', device(i), { ...place, cat: 'ac2g', name: 'ac2g', id: 100 + i }),
    ]
  }).flat()

const joined = (count: number) => Array.from({ length: count }, (_, i) => [`launch ${i}`, `run ${i}`])

describe('from launches to work (ac2g)', () => {
  test('that is no GPU of ours are drawn', async () => {
    const events = launches(50, { cat: 'mtia_runtime' }, { cat: 'mtia_ccp_events' })
    expect((await rowsOf(events, ARROWS))[0]).toEqual(joined(50))
    // In whatever order: the work's events first.
    const isWork = ({ pid }: JsonEvent) => pid === 0
    const sorted = [...events.filter(isWork), ...events.filter((event) => !isWork(event))]
    expect((await rowsOf(sorted, ARROWS))[0]).toEqual(joined(50))
  })

  test('from a call of the GPU runtime to such work are drawn, all of those that one launch has', async () => {
    const events = launches(3, { cat: 'cuda_runtime' }, { cat: 'privateuse1_work' })
    const more = [
      X('more', 90, 5, { pid: 0, tid: 5, args: { correlation: 101 } }),
      flow('f', 90, { pid: 0, tid: 5, cat: 'ac2g', name: 'ac2g', id: 101 }),
    ]
    for (const all of [
      [...events, ...more],
      // The ends of arrows far from their slices.
      [...events.filter(({ ph }) => ph === 'X'), ...events.filter(({ ph }) => ph !== 'X'), ...more],
    ]) {
      expect((await rowsOf(all, ARROWS))[0]).toEqual([
        ['launch 0', 'run 0'],
        ['launch 1', 'run 1'],
        ['launch 1', 'more'],
        ['launch 2', 'run 2'],
      ])
    }
  })

  test('to work of a GPU are those of correlation ids, wherever they are in the file', async () => {
    const events = launches(20, { cat: 'cuda_runtime' }, { cat: 'kernel' })
    const apart = [...events.filter(({ ph }) => ph === 'X'), ...events.filter(({ ph }) => ph !== 'X')]
    for (const all of [events, apart]) {
      expect((await rowsOf(all, ARROWS))[0]).toEqual(joined(20))
      const { issues, leftOut } = await toldOf(all)
      expect([issues, leftOut]).toEqual([[], []])
    }
  })
})

describe('of overlays (critical_path)', () => {
  const cp = (ph: 's' | 'f', ts: number, id: number, more: JsonEvent = {}) =>
    flow(ph, ts, { cat: 'critical_path', name: 'critical_path', id, ...more })
  const events = [
    X('aten::mm', 10, 50, { cat: 'cpu_op' }),
    X('aten::empty', 12, 5, { cat: 'cpu_op' }),
    X('aten::add', 70, 10, { cat: 'cpu_op' }),
    X('cudaLaunchKernel', 30, 5, { cat: 'cuda_runtime', args: { correlation: 9 } }),
    X('cudaDeviceSynchronize', 100, 50, { cat: 'cuda_runtime', args: { correlation: 10 } }),
    X('gemm', 40, 20, { pid: 0, tid: 7, cat: 'kernel', args: { correlation: 9, device: 0, stream: 7 } }),
    X('step', 40, 20, { pid: 0, tid: 7, cat: 'gpu_user_annotation', args: { device: 0, stream: 7 } }),
  ]

  test('join operators and calls of one thread, whichever rows they are on', async () => {
    const overlay = [cp('s', 17, 0), cp('f', 30, 0), cp('s', 60, 1), cp('f', 70, 1), cp('s', 35, 2), cp('f', 100, 2)]
    expect((await rowsOf([...events, ...overlay], ARROWS))[0]).toEqual([
      ['aten::mm', 'cudaLaunchKernel'],
      ['aten::mm', 'aten::add'],
      ['cudaLaunchKernel', 'gemm'], // by its correlation id
      ['cudaLaunchKernel', 'cudaDeviceSynchronize'],
    ])
  })

  test('at work of a GPU cannot be drawn, which is counted', async () => {
    const overlay = [
      cp('s', 30, 0),
      cp('f', 40, 0, { pid: 0, tid: 7 }),
      cp('s', 59, 1, { pid: 0, tid: 7 }),
      cp('f', 100, 1),
    ]
    expect((await rowsOf([...events, ...overlay], ARROWS))[0]).toEqual([['cudaLaunchKernel', 'gemm']])
    expect((await toldOf([...events, ...overlay])).leftOut).toEqual(['2 ends of arrows at GPU work'])
  })
})

describe('between slices', () => {
  const slices = [X('a', 10, 10), X('b', 30, 10), X('c', 50, 10), X('d', 70, 10, { tid: 3 })]

  test('an id that is used again begins anew', async () => {
    const events = Array.from({ length: 69 }, (_, i) => [
      X(`s${i}`, 10 + i * 20, 5),
      X(`t${i}`, 20 + i * 20, 5, { tid: 3 }),
      flow('s', 11 + i * 20),
      flow('t', 21 + i * 20, { tid: 3 }),
    ]).flat()
    const expected = Array.from({ length: 69 }, (_, i) => [`s${i}`, `t${i}`])
    const byThread = [...events].sort((a, b) => Number(b.tid) - Number(a.tid))
    for (const all of [events, byThread, [...events].reverse()]) {
      expect((await rowsOf(all, ARROWS))[0]).toEqual(expected)
    }
  })

  test('go through steps, over steps that have no slice, and to the slice around an end', async () => {
    const events = [...slices, flow('s', 15), flow('t', 25), flow('t', 35), flow('f', 75, { tid: 3 })]
    expect((await rowsOf(events, ARROWS))[0]).toEqual([
      ['a', 'b'],
      ['b', 'd'],
    ])
    expect((await toldOf(events)).leftOut).toEqual(['1 ends of arrows outside of slices'])
  })

  test('without a binding point end at the next slice, and at none where there is none', async () => {
    const next = (id: number, ts: number, more: JsonEvent = {}) => flow('f', ts, { id, bp: undefined, ...more })
    const starts = [1, 2, 3].map((id) => flow('s', 15, { id }))
    expect((await rowsOf([...slices, ...starts, next(1, 35), next(2, 50), next(3, 55)], ARROWS))[0]).toEqual([
      ['a', 'c'],
      ['a', 'c'],
    ])
    // As catapult has it: in these categories, at the slice around.
    const input = [flow('s', 15, { cat: 'input' }), next(7, 35, { cat: 'input' })]
    expect((await rowsOf([...slices, ...input], ARROWS))[0]).toEqual([['a', 'b']])
  })

  test('a start outside of slices is not moved to the next one', async () => {
    const events = [...slices, flow('s', 25), flow('f', 55)]
    expect((await rowsOf(events, ARROWS))[0]).toEqual([])
    expect((await toldOf(events)).leftOut).toEqual(['1 ends of arrows outside of slices'])
  })

  test('are told apart by name, category and process of a local id', async () => {
    const ids: JsonEvent[] = [{ name: 'x' }, { cat: 'y' }, { scope: 'z' }, { id: undefined, id2: { local: 7 } }, {}]
    const events = ids.flatMap((id, i) => [
      X(`from ${i}`, 10 + i * 20, 5),
      X(`to ${i}`, 300 - i * 20, 5, { tid: 3 }),
      flow('s', 11 + i * 20, id),
      flow('f', 301 - i * 20, { tid: 3, ...id }),
    ])
    const expected = ids.map((_, i) => [`from ${i}`, `to ${i}`])
    expect((await rowsOf(events, ARROWS))[0]).toEqual(expected)
    const [local, global] = [{ local: 1 }, { global: 1 }].map((id2) => [
      X('from', 10, 5),
      X('to', 20, 5, { pid: 5 }),
      flow('s', 11, { id: undefined, id2 }),
      flow('f', 21, { id: undefined, id2, pid: 5 }),
    ])
    expect((await rowsOf(local!, ARROWS))[0]).toEqual([])
    expect((await rowsOf(global!, ARROWS))[0]).toEqual([['from', 'to']])
  })

  test('one start with several ends', async () => {
    const events = [...slices, flow('s', 15), flow('f', 35), flow('f', 55), flow('f', 75, { tid: 3 })]
    expect((await rowsOf(events, ARROWS))[0]).toEqual([
      ['a', 'b'],
      ['a', 'c'],
      ['a', 'd'],
    ])
  })
})

describe('among the fields of slices (bind_id)', () => {
  const out = { bind_id: '0x1f', flow_out: true }
  const both = { bind_id: '0x1f', flow_in: true, flow_out: true }
  const into = { bind_id: '0x1f', flow_in: true }

  test('from out to in, through what is both, of any kind of slice', async () => {
    const events = [
      X('made', 10, 5, out),
      X('passed on', 20, 5, { tid: 3, ...both }),
      { ph: 'B', pid: 1, tid: 4, name: 'used', ts: 30, ...into },
      { ph: 'E', pid: 1, tid: 4, ts: 40 },
      X('other', 50, 5, { ...out, bind_id: 2 }),
      { ph: 'b', cat: 'c', pid: 1, id: 1, name: 'operation', ts: 60, ...into, bind_id: 2 },
      { ph: 'e', cat: 'c', pid: 1, id: 1, name: 'operation', ts: 70 },
    ]
    for (const all of [events, [...events].reverse()]) {
      expect((await rowsOf(all, ARROWS))[0]).toEqual([
        ['made', 'passed on'],
        ['passed on', 'used'],
        ['other', 'operation'],
      ])
    }
  })

  test('one slice that several others use', async () => {
    const events = [X('made', 10, 5, out), ...[20, 30, 40].map((ts) => X(`used ${ts}`, ts, 5, { tid: ts, ...into }))]
    const expected = [20, 30, 40].map((ts) => ['made', `used ${ts}`])
    for (const all of [events, [...events].reverse()]) expect((await rowsOf(all, ARROWS))[0]).toEqual(expected)
  })

  test('of calls of the GPU API', async () => {
    const call = { cat: 'cuda_runtime', args: { correlation: 1 } }
    const events = [X('made', 10, 5, out), X('cudaFree', 20, 5, { ...call, ...into })]
    expect((await rowsOf(events, ARROWS))[0]).toEqual([['made', 'cudaFree']])
  })
})

inLong(test)('arrows of files larger than what is held back: the ends are far behind the starts', async () => {
  const count = 30_000
  const calls = Array.from({ length: count }, (_, i) => [
    X('launch', host(i), 2, { cat: 'mtia_runtime' }),
    flow('s', host(i), { cat: 'ac2g', name: 'ac2g', id: 100 + i }),
  ])
  const work = Array.from({ length: count }, (_, i) => [
    X('run', device(i), 5, { pid: 0, tid: 5, cat: 'mtia_ccp_events' }),
    flow('f', device(i), { pid: 0, tid: 5, cat: 'ac2g', name: 'ac2g', id: 100 + i }),
  ])
  const bytes = documentOf([...calls, ...work].flat())
  const trace = await openTrace(await converted(cut(bytes, 1 << 16)))
  const sql = `SELECT count(*), sum(b.ts - a.ts = 4000), sum(a.name = 'launch' AND b.name = 'run')
    FROM flow JOIN slice a ON a.id = slice_out JOIN slice b ON b.id = slice_in`
  expect(trace.query(sql).rows).toEqual([[count, count, count]])
  trace.close()
})

describe('ids of asynchronous operations', () => {
  const edge = (ph: string, ts: number, more: JsonEvent) => ({ ph, cat: 'c', name: 'op', pid: 1, tid: 2, ts, ...more })
  const durations = async (events: readonly JsonEvent[]) => {
    const [rows] = await rowsOf(events, SLICES)
    return [rows!.map(([, ts, dur]) => [ts, dur]), (await toldOf(events)).issues]
  }

  test('a global one is the same in all processes', async () => {
    for (const id of [{ id2: { global: '0x5' } }, { id: '0x5' }]) {
      expect(await durations([edge('b', 10, id), edge('e', 30, { ...id, pid: 9 })])).toEqual([[[10_000, 20_000]], []])
    }
  })

  test('a local one is its process’s', async () => {
    const id = { id2: { local: '0x5' } }
    const events = [
      edge('b', 10, id),
      edge('b', 20, { ...id, pid: 9 }),
      edge('e', 30, id),
      edge('e', 50, { ...id, pid: 9 }),
    ]
    expect(await durations(events)).toEqual([
      [
        [10_000, 20_000],
        [20_000, 30_000],
      ],
      [],
    ])
  })

  test('the scope tells equal ones apart', async () => {
    const [a, b] = [
      { id: 1, scope: 'A' },
      { id: 1, scope: 'B' },
    ]
    expect(await durations([edge('b', 10, a), edge('b', 20, b), edge('e', 30, a), edge('e', 50, b)])).toEqual([
      [
        [10_000, 20_000],
        [20_000, 30_000],
      ],
      [],
    ])
  })
})
