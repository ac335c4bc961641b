import { describe, expect, test } from '@jest/globals'
import { findings, lookedAt } from '../../lib/analysis.ts'
import type { AccessEvent } from '../../lib/core.ts'
import { type Analysis, analyze, type EventInput, type Names, type TraceEvent } from '../../lib/index.ts'
import { reportHtml } from '../../lib/report.ts'
import { plainBytes, storedBytes } from '../line/support.ts'
import { drawingsOf, figuresOf, marksOf, tableOf } from '../report/svg.ts'

/** Page faults in weights during calls: counts, the finding, and the part of the report. */

const PID = 7
const [FIRST, PAGE, CALLS] = [0x100000, 4096, 8]
/** Each weight has 64 pages and a half: one page is of both. */
const BYTES = 64.5 * PAGE
const SECOND = FIRST + BYTES

/** Eight decode calls of 1000 ns, from 1000 on; each has one operator, which reads two weights. */
const log: EventInput = {
  name: 'log',
  *events(names: Names) {
    const tensor = (id: number, name: string, address: number, sources: readonly number[], op = ''): TraceEvent => ({
      ...{ kind: 'tensor', id, name: names.id(name), op: names.id(op), type: names.id('f32'), ne: [64, 1, 1, 1] },
      ...{ sizeBytes: BYTES, structAddress: 0, inferred: 0, layer: id, buffer: id === 2 ? 1 : 0 },
      ...{ address, offset: address, sources },
    })
    const buffer = (id: number, usage: 'weights' | 'compute'): TraceEvent => ({
      ...{ kind: 'buffer', id, usage, label: `/m/${usage}`, offsetsFrom: 'its base' as const },
    })
    const call = (i: number): TraceEvent[] => {
      const [startNs, endNs] = [1000 + 1000 * i, 2000 + 1000 * i]
      const none = { experts: undefined, inferred: 0, cpu: -1 }
      const of = { kind: 'operator', tensor: 2, worker: 0, tid: 70, call: i, waitEndNs: endNs, ...none } as const
      return [
        { ...of, startNs, endNs },
        { kind: 'token', call: i, phase: 'decode', tokens: 1, startNs, endNs, tid: 70, inferred: 0 },
      ]
    }
    yield [
      { kind: 'input', format: 'test', clock: 'MONOTONIC', originNs: 0n, attributes: { pid: `${PID}` } },
      ...[buffer(0, 'weights'), buffer(1, 'compute')],
      ...[tensor(0, 'blk.0.a.weight', FIRST, []), tensor(1, 'blk.1.b.weight', SECOND, [])],
      tensor(2, 'c-2', 0x300000, [0, 1], 'MUL_MAT'),
      ...Array.from({ length: CALLS }, (_, i) => call(i)).flat(),
    ]
  },
}

type Fault = readonly [atNs: number, address: number, what?: AccessEvent['what']]

const faultsAt = (faults: readonly Fault[]): Promise<Analysis> => {
  const samples: EventInput = {
    name: 'samples',
    *events(names: Names) {
      const attributes = {}
      const capabilities = { accesses: true, switches: false }
      yield [{ kind: 'input', format: 'perf-data', clock: 'MONOTONIC', originNs: 0n, attributes, capabilities }]
      yield faults.map(([atNs, address, what = 'fault']): TraceEvent => {
        const event = names.id(what === 'fault' ? 'page-faults' : `${what}s`)
        return { kind: 'access', atNs, address, what, pid: PID, tid: 70, cpu: 0, node: -1, count: 1, event }
      })
    },
  }
  return analyze([log, samples])
}

const pages = (atNs: number, address: number, count: number): [number, number][] =>
  Array.from({ length: count }, (_, i) => [atNs + i, address + i * PAGE])
const inCalls = (of: (call: number) => readonly Fault[]) => Array.from({ length: CALLS }, (_, i) => of(i)).flat()
const rule = ({ findings }: Analysis) => findings.find(({ rule }) => rule === 'weight-faults')
const figures = (analysis: Analysis) =>
  lookedAt(analysis)
    .find(({ rule }) => rule === 'weight-faults')!
    .figures.map(({ figure }) => figure)

describe('weights that are not in memory', () => {
  test('pages that were in memory before, in a call after a call, are a finding', async () => {
    const analysis = await faultsAt([
      ...pages(10, FIRST, 64),
      ...inCalls((i) => [...pages(1100 + 1000 * i, FIRST, 20), ...(i === 0 ? pages(1500, SECOND, 4) : [])]),
    ])
    expect(analysis.page_faults!.weights_in_calls).toEqual([
      {
        ...{ phase: 'decode', events: 164, again: 160, major: null },
        by_tensor: [
          { tensor: 'blk.0.a.weight', layer: 0, events: 160 },
          { tensor: 'blk.1.b.weight', layer: 1, events: 4 },
        ],
      },
    ])
    expect(rule(analysis)).toMatchObject({
      sentence:
        'decode has page faults in weights that were in memory before: 20 a call, most in blk.0.a.weight (98 %)',
      evidence: { phase: 'decode', weight_faults: 164, again: 160, calls: 8 },
      advice: expect.stringContaining('--mlock'),
    })
    expect(findings(analysis)).toEqual(analysis.findings)
  })

  test('a page of two weights that one of them was read from is in memory for both', async () => {
    const analysis = await faultsAt([...pages(10, FIRST, 65), ...inCalls((i) => [[1100 + 1000 * i, SECOND] as const])])
    expect(analysis.page_faults!.weights_in_calls).toMatchObject([
      { events: 8, again: 8, by_tensor: [{ tensor: 'blk.1.b.weight', events: 8 }] },
    ])
  })

  test('pages that are first used in a call are none', async () => {
    const analysis = await faultsAt(inCalls((i) => pages(1100 + 1000 * i, FIRST + 8 * i * PAGE, 8)))
    expect(analysis.page_faults!.weights_in_calls).toMatchObject([{ events: 64, again: 0 }])
    expect([rule(analysis), figures(analysis)]).toEqual([undefined, ['decode: 8 page faults in weights a call']])
  })

  test('major faults are a finding, and a fault that two events recorded is one', async () => {
    const both = inCalls((i) =>
      pages(1100 + 1000 * i, FIRST + 16 * (i % 4) * PAGE, 16).flatMap(([atNs, address]): Fault[] => [
        [atNs, address],
        [atNs, address, 'major-fault'],
      ]),
    )
    const analysis = await faultsAt(both)
    expect(analysis.page_faults!.weights_in_calls).toMatchObject([{ events: 128, again: 64, major: 128 }])
    expect(rule(analysis)!.sentence).toBe(
      'decode waits for weights that are read from a disk: 16 major page faults a call, most in blk.0.a.weight (100 %)',
    )
  })

  test('faults while the model loads, and in other memory, are none', async () => {
    const analysis = await faultsAt([...pages(10, FIRST, 64), ...inCalls((i) => pages(1100 + 1000 * i, 0x900000, 20))])
    expect(analysis.page_faults!.weights_in_calls).toEqual([])
    expect([rule(analysis), figures(analysis)]).toEqual([undefined, ['decode: 0 page faults in weights a call']])
  })
})

describe('the report', () => {
  test('has the faults of a real run by role and layer, and when they were', async () => {
    const analysis = await analyze([
      { name: 'nano.ggtrace', source: plainBytes('memory-samples/nano.ggtrace.gz') },
      { name: 'nano.data', source: storedBytes('memory-samples/nano.data.gz') },
    ])
    const faults = analysis.page_faults!
    const sum = (cells: readonly { readonly events: number }[]) => cells.reduce((sum, { events }) => sum + events, 0)
    expect(sum(faults.by_role_layer)).toBe(faults.in_tensors)
    for (const { role, usage, layer, events } of faults.by_role_layer) {
      const same = faults.by_tensor.filter((of) => of.role === role && of.usage === usage && of.layer === layer)
      expect(sum(same)).toBe(events)
    }
    const page = reportHtml(analysis)
    expect(page).toContain('<h2 id="accesses"')
    const figure = figuresOf(page).get('Page faults by role of tensors and layer')!
    const inLayers = faults.by_role_layer.filter(({ layer }) => layer >= 0)
    for (const drawing of drawingsOf(figure)) expect(marksOf(drawing)).toHaveLength(inLayers.length)
    expect(tableOf(figure).slice(1)).toEqual(
      faults.by_role_layer.map(({ role, usage, layer, events }) => [
        ...[role, usage, layer < 0 ? '' : `${layer}`, `${events}`],
      ]),
    )
    for (const { time, events } of faults.by_time)
      expect(page).toMatch(new RegExp(`${time}</t[hd]><td[^>]*>${events}<`))
  })
})
