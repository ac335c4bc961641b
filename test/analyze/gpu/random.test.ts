import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { queueOf, type SourceWork } from './definitions.ts'
import { devicesOf, type MadeCall, type MadeRange, type MadeWork } from './made.ts'

/** Random work against what a look at each moment shows. Times are multiples of 10 µs: gaps of two are between kernels, longer ones are not. */

const UNIT = 10_000
const CLASSES = {
  gemm: 0,
  ncclDevKernel_AllReduce: 1,
  'Memcpy DtoD': 2,
  __amd_rocclr_copyBuffer: 2,
  'Memset (Device)': 3,
}
type Name = keyof typeof CLASSES
const NAMES = Object.keys(CLASSES) as Name[]

const work = fc.record({
  name: fc.constantFrom(...NAMES),
  device: fc.integer({ min: 0, max: 1 }),
  stream: fc.integer({ min: 0, max: 2 }),
  start: fc.integer({ min: 0, max: 60 }),
  length: fc.integer({ min: 0, max: 12 }),
  correlation: fc.integer({ min: -1, max: 15 }),
})
const call = fc.record({ at: fc.integer({ min: 0, max: 60 }), tid: fc.integer({ min: 1, max: 2 }) })
const range = fc.record({
  tid: fc.integer({ min: 1, max: 2 }),
  start: fc.integer({ min: 0, max: 60 }),
  length: fc.integer({ min: 1, max: 30 }),
})

type Made = MadeWork & {
  readonly name: Name
  readonly device: number
  readonly correlation: number
  readonly stream: number
}

/** Time of each part, unit by unit. */
function partsOf(all: readonly Made[]) {
  const isActive = (at: number, kinds: readonly number[]) =>
    all.some(({ name, startNs, endNs }) => kinds.includes(CLASSES[name]) && startNs <= at && endNs > at)
  const first = Math.min(...all.map(({ startNs }) => startNs))
  const last = Math.max(...all.map(({ endNs }) => endNs))
  const parts = { computation: 0, communication: 0, copy: 0, idle: 0, allCommunication: 0, allCopy: 0, kernels: 0 }
  const gaps: [number, number][] = []
  for (let at = first; at < last; at += UNIT) {
    const [computing, communicating, copying] = [[0], [1], [2, 3]].map((kinds) => isActive(at, kinds))
    if (communicating) parts.allCommunication += UNIT
    if (copying) parts.allCopy += UNIT
    if (isActive(at, [0, 3])) parts.kernels += UNIT
    const part = computing ? 'computation' : communicating ? 'communication' : copying ? 'copy' : 'idle'
    parts[part] += UNIT
    if (part !== 'idle') continue
    const gap = gaps.at(-1)
    // Work without duration ends a gap, too.
    const isCut = all.some(({ startNs }) => startNs === at)
    if (gap && gap[1] === at && !isCut) gap[1] += UNIT
    else gaps.push([at, at + UNIT])
  }
  return { ...parts, gaps, total: last - first }
}

/** Time in which copies of a direction run and no kernel does, unit by unit. */
function exposedOf(all: readonly Made[], direction: string): number {
  const isOf = ({ name }: Made) => (direction === 'memset' ? name.startsWith('Memset') : name.includes(direction))
  const isActive = (at: number, of: (made: Made) => boolean) =>
    all.some((made) => of(made) && made.startNs <= at && made.endNs > at)
  const units = new Set(all.flatMap(({ startNs, endNs }) => unitsOf(startNs, endNs)))
  const isExposed = (at: number) => isActive(at, isOf) && !isActive(at, ({ name }) => CLASSES[name] < 2)
  return UNIT * [...units].filter(isExposed).length
}

const unitsOf = (from: number, until: number) =>
  Array.from({ length: Math.ceil((until - from) / UNIT) }, (_, i) => from + i * UNIT)

function causesOf(all: readonly Made[], gaps: readonly (readonly number[])[], launchOf: (of: Made) => number) {
  const causes = { host_wait: 0, kernel_wait: 0, other: 0 }
  for (const [from, until] of gaps as [number, number][]) {
    const next = all.find(({ startNs }) => startNs === until)!
    const cause = launchOf(next) > from ? 'host_wait' : until - from < 30_000 ? 'kernel_wait' : 'other'
    causes[cause] += until - from
  }
  return causes
}

test('time, gaps, launches and launchers of random work', async () => {
  const inputs = fc.tuple(
    fc.array(work, { minLength: 1, maxLength: 25 }),
    fc.array(call, { maxLength: 15 }),
    fc.array(range, { maxLength: 12 }),
  )
  await fc.assert(
    fc.asyncProperty(inputs, async ([works, launches, spans]) => {
      const made = works.map(({ name, start, length, ...of }): Made => {
        // The work of a launch is on one device.
        const device = of.correlation < 0 ? of.device : of.correlation % 2
        const what = name.startsWith('Memcpy') ? 'memcpy' : name.startsWith('Memset') ? 'memset' : 'kernel'
        return { name, what, startNs: start * UNIT, endNs: (start + length) * UNIT, ...of, device }
      })
      const calls = launches
        .map(
          ({ at, tid }, correlation): MadeCall => ({
            name: 'cudaLaunchKernel',
            tid,
            startNs: at * UNIT,
            endNs: at * UNIT + 1,
            correlation,
          }),
        )
        .filter(({ correlation }) => made.some((of) => of.correlation === correlation))
        .sort((a, b) => a.startNs - b.startNs)
      const ranges = spans.map(({ tid, start, length }, i): MadeRange => {
        // No two begin at once: which is the inner one would not be known.
        const startNs = start * UNIT - 100 + i
        return { name: `range ${i}`, tid, startNs, endNs: startNs + length * UNIT }
      })
      const callOf = ({ correlation }: Made) => calls.find((of) => of.correlation === correlation)
      const launchOf = (of: Made) => callOf(of)?.startNs ?? NaN
      for (const found of await devicesOf({ work: made, calls, ranges })) {
        const own = made.filter(({ device }) => device === found.device)
        const parts = partsOf(own)
        expect(found.time).toMatchObject({
          ...{
            total_ns: parts.total,
            computation_ns: parts.computation,
            exposed_communication_ns: parts.communication,
          },
          ...{ exposed_copy_ns: parts.copy, idle_ns: parts.idle, busy_ns: parts.total - parts.idle },
          ...{ communication_ns: parts.allCommunication, copy_ns: parts.allCopy },
        })
        expect(found.time!.tracelens.computation_ns).toBe(parts.kernels)
        for (const { direction, exposed_ns } of found.transfers) expect(exposed_ns).toBe(exposedOf(own, direction))
        const known = own.filter((of) => !Number.isNaN(launchOf(of)))
        if (known.length > 0) {
          const sorted = own.toSorted((a, b) => a.startNs - b.startNs)
          const causes = Object.entries(found.idle!).map(([cause, { time_ns }]) => [cause, time_ns])
          expect(Object.fromEntries(causes)).toEqual(causesOf(sorted, parts.gaps, launchOf))
        } else expect(found.idle).toBe(null)
        expectQueues(found, own, callOf)
        expectLaunchers(found, own, callOf, ranges)
      }
    }),
    { numRuns: 300 },
  )
})

type Device = Awaited<ReturnType<typeof devicesOf>>[number]

function expectQueues(found: Device, own: readonly Made[], callOf: (of: Made) => MadeCall | undefined): void {
  const asSource = (of: Made): SourceWork => {
    const launch = callOf(of)
    return { ...of, what: 'kernel', pid: 0, bytes: 0, launch, launchNs: launch?.startNs ?? NaN }
  }
  const sorted = own.toSorted((a, b) => a.startNs - b.startNs)
  const firsts = sorted.filter((of, i) => callOf(of) && sorted.findIndex((other) => callOf(other) === callOf(of)) === i)
  const late = firsts.filter((of) => of.startNs < callOf(of)!.startNs)
  expect(found.launches_after_work).toBe(late.length)
  const timely = firsts.filter((of) => !late.includes(of))
  const { latencies, max, mean } = queueOf(timely.map(asSource))
  expect(found.launch_latency?.count ?? 0).toBe(latencies.length)
  expect(found.queue?.max ?? 0).toBe(max)
  expect(found.queue?.mean ?? 0).toBeCloseTo(mean, 9)
  for (const { stream, queue } of found.streams) {
    const ofStream = queueOf(timely.filter((of) => of.stream === stream).map(asSource))
    expect(queue?.max ?? 0).toBe(ofStream.max)
    expect(queue?.mean ?? 0).toBeCloseTo(ofStream.mean, 9)
  }
}

function expectLaunchers(
  { launchers }: Device,
  own: readonly Made[],
  callOf: (of: Made) => MadeCall | undefined,
  ranges: readonly MadeRange[],
): void {
  const around = (launch: MadeCall | undefined) =>
    ranges
      .filter(
        ({ tid, startNs, endNs }) =>
          launch && tid === launch.tid && startNs <= launch.startNs && endNs >= launch.startNs,
      )
      .sort((a, b) => a.startNs - b.startNs)
  for (const [level, at] of [
    ['innermost', -1],
    ['outermost', 0],
  ] as const) {
    const times = new Map<string, number[]>()
    for (const of of own) {
      const name = around(callOf(of)).at(at)?.name
      if (name === undefined) continue
      const [work = 0, time = 0] = times.get(name) ?? []
      times.set(name, [work + 1, time + of.endNs - of.startNs])
    }
    const found = launchers.find((of) => of.kind === 'nvtx' && of.level === level)
    expect(Object.fromEntries((found?.rows ?? []).map(({ name, work, time_ns }) => [name, [work, time_ns]]))).toEqual(
      Object.fromEntries(times),
    )
  }
}
