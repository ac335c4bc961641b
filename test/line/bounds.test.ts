import { describe, expect, test } from '@jest/globals'
import type { BlasCall } from '../../lib/core.ts'
import { convert, type Input, type Summary, type TraceEvent } from '../../lib/index.ts'
import { openTrace } from '../../lib/node.ts'
import { TRACE_KINDS } from '../../lib/write/index.ts'
import { inParts, someOf } from '../long.ts'
import { reportOf, WHOLE } from '../read/reports.ts'
import { faultsOf, importFaults } from './hostile.ts'

/**
 * The border between readers and everything else: times and numbers that cannot be, of every kind of event and from readers
 * that hand them on. Each ends in a sound trace, of both kinds, that shows them as issues where they happened.
 */

/** The traces of an input and its summary; both kinds of traces are checked. */
async function sound(input: Input, options = {}) {
  const [perfetto, chrome] = [await pieces(input, 'perfetto', options), await pieces(input, 'json', options)]
  expect(faultsOf(perfetto.trace, perfetto.summary)).toEqual([])
  const jsonText = chrome.trace.toString()
  const json: JsonTrace = JSON.parse(jsonText)
  for (const { ph, ts } of json.traceEvents) if (ph !== 'M') expect(Number.isFinite(ts)).toBe(true)
  return { trace: perfetto.trace, json, jsonText, summary: perfetto.summary }
}

type JsonTrace = { traceEvents: { ph: string; ts: number; name: string; args?: Record<string, unknown> }[] }

async function pieces(input: Input, to: 'perfetto' | 'json', options: object) {
  const conversion = convert(input, { ...options, to })
  const all: Uint8Array[] = []
  let next = await conversion.next()
  for (; !next.done; next = await conversion.next()) all.push(next.value)
  return { trace: Buffer.concat(all), summary: next.value[0]! }
}

const text = (...lines: string[]): Input => ({ name: 'log', source: Buffer.from(`${lines.join('\n')}\n`) })
const counted = ({ issues }: Summary) =>
  Object.fromEntries(issues.map(({ code, title, count }) => [code ?? title, count]))

const INPUT: TraceEvent = { kind: 'input', format: 'own', clock: 'MONOTONIC', originNs: 10n ** 18n, attributes: {} }
const GOOD_NS = 5000
const GOOD: TraceEvent = { kind: 'counter', name: 1, unit: 'count', atNs: GOOD_NS, value: 1 }
const made = (...events: TraceEvent[]): Input => ({
  name: 'made',
  events: (names) => {
    names.id('x')
    return [[{ ...INPUT }, GOOD, ...events]]
  },
})

const TENSOR: TraceEvent = {
  kind: 'tensor',
  ...{ id: 0, name: 1, layer: -1, op: 1, type: 0, ne: undefined, sources: [], sizeBytes: -1, buffer: -1 },
  ...{ offset: undefined, address: 0, structAddress: 0, inferred: 0 },
}
const PLACE = { device: 0, context: 1, contextName: 0, stream: 7, streamName: 0, pid: 9 }
const SPAN = { startNs: 100, endNs: 200 }
const BLAS_CALL: BlasCall = {
  ...{ id: 0, library: 'cublas', name: 'f', product: undefined, problem: '', types: '', compute: '', algorithm: '' },
}
const LABEL = { thread: 0, domain: 0, range: 0, message: 1, category: 0, color: -1 }
/** One event of each kind that has a time or a number that identifies something. */
const EVENTS: readonly TraceEvent[] = [
  {
    kind: 'operator',
    tensor: 0,
    worker: 0,
    tid: 1,
    cpu: 1,
    call: 0,
    ...SPAN,
    waitEndNs: 250,
    experts: undefined,
    inferred: 0,
  },
  { kind: 'graph', ...SPAN, backend: 0, nodes: 1, call: 0, inferred: 0 },
  { kind: 'token', call: -1, phase: 'decode', tokens: 1, ...SPAN, tid: 1, inferred: 0 },
  { kind: 'experts', tensor: 0, call: 0, atNs: 100, tokens: 1, k: 1, ids: Int32Array.of(3) },
  { kind: 'copy', what: 'get', ...SPAN, bytes: 1, from: 0, to: 0, tensor: 0, tid: 1 },
  { kind: 'part', what: 'allocate', ...SPAN, call: 0 },
  { kind: 'allocation', buffer: 1, atNs: 100, bytes: 64 },
  { kind: 'counter', name: 1, unit: 'count', atNs: 100, value: 2 },
  { kind: 'range', edge: 'begin', tid: 1, name: 1, atNs: 100 },
  { kind: 'nvtx', what: 'mark', tid: 1, atNs: 100, ...LABEL },
  { kind: 'nvtx-name', what: 'cudaStream', handle: 1n, name: 1, atNs: 100 },
  { kind: 'state', tid: 1, cpu: 0, state: 'running', atNs: 100, thread: 1 },
  {
    kind: 'switch',
    cpu: 0,
    atNs: 100,
    prevTid: 0,
    prevComm: 1,
    prevPrio: 120,
    prevState: 0,
    nextTid: 5,
    nextComm: 1,
    nextPrio: 120,
  },
  { kind: 'waking', cpu: 0, atNs: 100, wakerTid: 5, tid: 6, comm: 1, prio: 120, targetCpu: 0, isIrq: false },
  { kind: 'thread', what: 'fork', atNs: 100, tid: 6, tgid: 5, comm: 1, parentTid: 5 },
  { kind: 'gpu', what: 'kernel', name: 1, ...SPAN, correlation: 4, signature: 0, facts: {}, ...PLACE },
  { kind: 'gpu-sync', name: 1, ...SPAN, correlation: 4, facts: {}, ...PLACE },
  { kind: 'api', library: 'cuda', name: 1, ...SPAN, pid: 9, tid: 9, correlation: 4, thread: 0, launched: 1, result: 0 },
  { kind: 'nvtx-gpu', name: 1, domain: 0, tid: 9, ...SPAN, launched: 1, busyNs: 5, thread: 0 },
  { kind: 'blas', of: BLAS_CALL, ...SPAN, count: 1, inferred: 0 },
  { kind: 'own-slice', track: 1, name: 1, ...SPAN },
  { kind: 'own-instant', track: 1, name: 1, atNs: 100 },
]
const OWN_TRACK: TraceEvent = { kind: 'own-track', id: 1, name: 'own', description: 'A track.' }

const TIMES = ['atNs', 'startNs', 'endNs', 'waitEndNs'] as const
const fieldsIn = (event: TraceEvent, fields: readonly string[]) => fields.filter((field) => field in event)

const KINDS = EVENTS.map((event) => [event.kind, event] as const)

describe('impossible times', () => {
  inParts(test).each(someOf(KINDS, 3))('%s', async (kind, event) => {
    const own = kind.startsWith('own-')
    // Other mistakes in own events are a program's: an error explains them.
    const impossible = own ? [Infinity, 1e25, -1e25] : [Infinity, -Infinity, NaN, 1e25, -1e25, 9.1e15, 0.5]
    const bad = fieldsIn(event, TIMES).flatMap((field) =>
      impossible.map((ns) => ({ ...event, [field]: ns }) as TraceEvent),
    )
    const { trace, summary } = await sound(made(OWN_TRACK, TENSOR, event, ...bad), { allThreads: true })
    expect(counted(summary)).toEqual({ 'impossible-time': bad.length })
    expect(summary.issues[0]!.first.atNs).toBe('waitEndNs' in event ? 200 : 'endNs' in event ? 200 : 100)
    expect(await importFaults(trace)).toEqual([])
  })

  test.each([-1n, 1n << 62n, 10n ** 30n])('an origin of %d is not used', async (originNs) => {
    const { summary } = await sound({
      name: 'made',
      events: () => [[{ ...INPUT, originNs } as TraceEvent, { ...GOOD }]],
    })
    expect(counted(summary)).toEqual({ 'impossible-time': 1 })
    expect(summary).toMatchObject({ clock: 'unknown', start_ns: String(GOOD_NS) })
  })

  test('a reading of clocks', async () => {
    const readings = [{ clock: 'MONOTONIC', ns: 5n } as const, { clock: 'BOOTTIME', ns: -(1n << 70n) } as const]
    const { summary } = await sound(made({ kind: 'clocks', readings }))
    expect(counted(summary)).toEqual({ 'impossible-time': 1 })
  })

  test('events up to 100 days to either side, and lasting as long, are in the trace', async () => {
    const far = 100 * 86_400e9
    const at = (startNs: number, endNs: number): TraceEvent => ({
      kind: 'graph',
      startNs,
      endNs,
      backend: 0,
      nodes: 1,
      call: 0,
      inferred: 0,
    })
    const { trace, summary } = await sound(made(at(-far, 0), at(0, far), at(-far, -far)))
    expect(summary.issues).toEqual([])
    expect(await importFaults(trace)).toEqual([])
    const { summary: longer } = await sound(made(at(-far, far)))
    expect(counted(longer)).toEqual({ 'impossible-time': 1 })
  })

  test.each(['1e400', '1e25', '9007199254740991'])(
    "a row of nsys's report that starts at %s, or lasts so long",
    async (ns) => {
      const row = (start: string, duration: string, id: number) =>
        `${start},${duration},${id},1,1,1,32,1,1,16,,,,,,,GPU (0),1,,7,gemm`
      const head =
        'Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,StcSMem (MB),DymSMem (MB),Bytes (MB),' +
        'Throughput (MB/s),SrcMemKd,DstMemKd,Device,Ctx,GreenCtx,Strm,Name'
      const { summary } = await sound(
        text(head, row('1000', '500', 1), row(ns, '5', 2), row('2000', ns, 3), row('3000', '5', 4)),
      )
      expect(summary.duration_ns).toBe(2005)
      expect(summary.issues.reduce((sum, { count }) => sum + count, 0)).toBe(2)
      for (const { first } of summary.issues) expect(first.atNs).toBeLessThanOrEqual(3005)
    },
  )

  test("a range of nsys's report, and the issue of a rejected row", async () => {
    const head =
      'Start (ns),End (ns),Duration (ns),DurChild (ns),DurNonChild (ns),Name,PID,TID,Lvl,NumChild,RangeId,ParentId,RangeStack,NameTree'
    const row = (start: string, end: string) => `${start},${end},1,0,1,a,5,5,0,0,1,,:1,a`
    const { summary } = await sound(
      text(head, row('10', '20'), row('1e25', '1e26'), row('1e400', '1e401'), row('30', '1e20')),
    )
    expect(summary.issues.reduce((sum, { count }) => sum + count, 0)).toBeGreaterThanOrEqual(3)
    expect(summary.duration_ns).toBe(10)
    for (const { first } of summary.issues) expect(Math.abs(first.atNs)).toBeLessThanOrEqual(30)
  })
})

describe('numbers that identify', () => {
  /** Out of every range: 2^53, 2^64 - 1, fractions, nothing. */
  const WRONG = [2 ** 53, 2 ** 64 - 1, -7, 1.5, NaN, Infinity]
  const IDS = ['tensor', 'worker', 'tid', 'cpu', 'call', 'fusedTo', 'correlation', 'device', 'context', 'stream', 'pid']
  const OF_KERNEL = [
    'prevTid',
    'nextTid',
    'prevState',
    'prevPrio',
    'nextPrio',
    'wakerTid',
    'targetCpu',
    'prio',
    'tgid',
    'parentTid',
  ]

  inParts(test).each(someOf(KINDS, 3, 1))('%s', async (_, event) => {
    const fields = fieldsIn(event, [...IDS, ...OF_KERNEL])
    const bad = fields.flatMap((field) =>
      WRONG.filter((value) => !(value === -7 && /Prio$|^prio$/.test(field))).map(
        (value) => ({ ...event, [field]: value }) as TraceEvent,
      ),
    )
    const { trace, summary } = await sound(made(OWN_TRACK, TENSOR, event, ...bad), { allThreads: true, detail: 'full' })
    const { 'value-out-of-range': found = 0, ...others } = counted(summary)
    expect(found).toBe(bad.length)
    expect(Object.keys(others).filter((title) => !/lost-switches|end-without/.test(title))).toEqual([])
    expect(await importFaults(trace, true)).toEqual([])
  })

  test.each<[string, TraceEvent]>([
    ['a tensor', { ...TENSOR, id: 4e9 } as TraceEvent],
    ['a shape', { ...TENSOR, ne: [1e300, 2] } as TraceEvent],
    ['a size', { ...TENSOR, sizeBytes: Number.NaN } as TraceEvent],
    ['a fact', { kind: 'facts', attributes: { version: Number.POSITIVE_INFINITY } }],
    ['a buffer', { kind: 'buffer', id: 4e9, usage: 'compute', label: 'x', offsetsFrom: 'x' }],
    ['a graph', { kind: 'graph-nodes', id: 4e9, backend: 0, nodes: Int32Array.of(0) }],
    ['a counter', { kind: 'counted', index: 4e9, name: 1, unit: 'count' }],
  ])('%s', async (_, event) => {
    const { summary } = await sound(made(event))
    expect(counted(summary)).toEqual({ 'value-out-of-range': 1 })
  })

  test('what may be unknown is taken as that: the event stays', async () => {
    const kernel = { ...EVENTS.find(({ kind }) => kind === 'gpu')!, correlation: 2 ** 64 - 1 } as TraceEvent
    const { summary, json } = await sound(made(kernel))
    expect(counted(summary)).toEqual({ 'value-out-of-range': 1 })
    expect(json.traceEvents.filter(({ ph, name }) => ph === 'B' && name === 'x')).toHaveLength(1)
    expect(summary.issues[0]!.first.detail).toBe(
      'gpu: expected correlation from -1 to 4294967295, found 18446744073709552000; not used',
    )
  })
})

describe('what readers hand on', () => {
  const line = (tid: number | string, next: number | string, cpu = '000', seconds = 1) =>
    `   worker ${tid} [${cpu}]  ${seconds}.000001: sched:sched_switch: worker:${tid} [120] S ==> other:${next} [120]`

  test("threads and CPUs that no machine has, in perf's text", async () => {
    const lines = [line(5, 6), line(6, '900719925474099'), line('4294967297', 7), line(5, 7, '4000000000', 2)]
    const { trace, summary } = await sound(text(...lines, line(7, 5, '000', 3), line(5, 7, '4000000001', 4)), {
      allThreads: true,
    })
    expect(counted(summary)).toMatchObject({ 'value-out-of-range': 4 })
    expect(summary.scheduler).toMatchObject({ switches: 5, cpus: 1 })
    expect(await importFaults(trace)).toEqual([])
  })

  test('64-bit numbers in a report of nsys', async () => {
    const [first] = WHOLE['CUPTI_ACTIVITY_KIND_KERNEL']!
    const [copy] = WHOLE['CUPTI_ACTIVITY_KIND_MEMCPY']!
    const [call] = WHOLE['CUPTI_ACTIVITY_KIND_RUNTIME']!
    const large = 2n ** 62n + 1n
    const source = reportOf({
      CUPTI_ACTIVITY_KIND_KERNEL: [
        { ...first!, correlationId: 2 ** 40, graphNodeId: large },
        { ...first!, correlationId: large },
        { ...first!, correlationId: -1n },
        { ...first!, streamId: large, deviceId: 2n ** 40n, contextId: -large },
      ],
      CUPTI_ACTIVITY_KIND_MEMCPY: [{ ...copy!, bytes: large }],
      CUPTI_ACTIVITY_KIND_RUNTIME: [call!, { ...call!, correlationId: large }],
    })
    const { trace, summary, jsonText } = await sound({ name: 'log', source }, { detail: 'full' })
    expect(counted(summary)).toMatchObject({ 'value-out-of-range': 6 })
    const open = await openTrace(trace)
    expect(open.query("select count(*), sum(name = 'gemm') from gpu_slice").rows).toEqual([[5, 4]])
    const value = (key: string) =>
      open.query(`select distinct string_value from args where key = '${key}' and string_value <> ''`).rows.flat()
    expect([value('graph_node'), value('bytes')]).toEqual([[`${large}`], [`${large}`]])
    open.close()
    for (const key of ['bytes', 'graph_node']) expect(jsonText).toContain(`"${key}":${large}`)
  })
})

test('both kinds of traces are tested', () => expect([...TRACE_KINDS].sort()).toEqual(['json', 'perfetto']))
