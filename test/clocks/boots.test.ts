import { describe, expect, test } from '@jest/globals'
import type { InputEvent } from '../../lib/core.ts'
import { type ConvertOptions, convert, type EventInput, type Summary, type TraceEvent } from '../../lib/index.ts'
import { inputOf } from '../../lib/node.ts'
import { plainBytes } from '../line/support.ts'
import { input, inputEvent, ORIGIN_NS, switchOf } from '../sched/schedule.ts'

/** Most clocks start anew with each boot: inputs of two boots, or machines, have no clock in common whatever its name is. */

const SECOND = 1_000_000_000n
const YEARS_50 = 1_577_836_800n * SECOND

interface About {
  readonly clock?: InputEvent['clock']
  readonly attributes?: Record<string, string>
  /** REALTIME less MONOTONIC, and BOOTTIME less MONOTONIC, in ns. */
  readonly wall?: bigint
  readonly suspended?: bigint
  /** When it begins, from the origin of all; it lasts for 10 s. */
  readonly atNs?: bigint
}

const readings = (wall: bigint, suspended: bigint | undefined): TraceEvent => ({
  kind: 'clocks',
  readings: [
    { clock: 'MONOTONIC', ns: ORIGIN_NS },
    ...(suspended === undefined ? [] : [{ clock: 'BOOTTIME', ns: ORIGIN_NS + suspended } as const]),
    { clock: 'REALTIME', ns: ORIGIN_NS + wall },
  ],
})

const first = ({ clock = 'MONOTONIC', attributes = {}, atNs = 0n }: About) =>
  inputEvent({ clock, attributes, originNs: ORIGIN_NS + atNs })

/** A log of two calls, 10 s apart. */
const log = (name: string, about: About): EventInput =>
  input(
    name,
    () => [
      ...(about.wall === undefined ? [] : [readings(about.wall, about.suspended)]),
      ...[0, 9e9].map(
        (startNs, call): TraceEvent => ({
          ...{ kind: 'token', call, phase: 'decode', tokens: 1, tid: 7, inferred: 0 },
          ...{ startNs, endNs: startNs + 1e9 },
        }),
      ),
    ],
    first(about),
  )

/** Who had CPU 0 for 10 s. */
const scheduler = (name: string, about: About): EventInput =>
  input(
    name,
    (names) => [
      ...(about.wall === undefined ? [] : [readings(about.wall, about.suspended)]),
      switchOf(names, { cpu: 0, at: 0, from: 0, to: 7 }),
      switchOf(names, { cpu: 0, at: 10e9, from: 7, left: 1, to: 0 }),
    ],
    first(about),
  )

async function summariesOf(inputs: Parameters<typeof convert>[0], options: ConvertOptions = {}): Promise<Summary[]> {
  const pieces = convert(inputs, options)
  for (let next = await pieces.next(); ; next = await pieces.next()) if (next.done) return next.value
}

const howOf = async (inputs: EventInput[], options?: ConvertOptions) =>
  (await summariesOf(inputs, options)).at(-1)!.relation!.how

const A = 'aaaaaaaa-0000-4000-8000-000000000001'
const B = 'bbbbbbbb-0000-4000-8000-000000000002'

describe('inputs on clocks of one name', () => {
  test('with the same boot id are of the same boot, even where the wall clock was set', async () => {
    const [a, b] = [YEARS_50, YEARS_50 + 3600n * SECOND].map((wall, i) =>
      log(`${i}.ggtrace`, { wall, suspended: 0n, attributes: { boot_id: A } }),
    )
    expect(await howOf([a!, b!])).toBe('the same clock, of the same boot')
  })

  test('with different boot ids are refused', async () => {
    const inputs = [log('a', { attributes: { boot_id: A } }), log('runs/b', { attributes: { boot_id: B } })]
    const message = `runs/b: is of another boot or machine, whose clocks have nothing in common: its boot id is ${B}, that of a is ${A}
hint: if you know that the boot is the same, give the offset of its times: --clock runs/b=+0s
hint: or convert them one by one`
    await expect(summariesOf(inputs)).rejects.toMatchObject({ name: 'UsageError', message })
    expect(await howOf(inputs, { clocks: { b: '+0s' } })).toBe('as given: +0s')
  })

  test('of different kernels are refused, whatever their formats call a release', async () => {
    const inputs = [
      log('a', { attributes: { kernel: '6.1.0' } }),
      log('b', { attributes: { kernel_release: '6.1.1' } }),
    ]
    await expect(summariesOf(inputs)).rejects.toThrow(
      /^b: is of another boot .*: its kernel is 6\.1\.1, that of a is 6\.1\.0\n/,
    )
  })

  test('whose wall clocks agree, but for what NTP moves them, are of the same boot', async () => {
    const wall = YEARS_50 + 2n * SECOND
    const inputs = [log('a', { wall: YEARS_50, suspended: 5n }), log('b', { wall, suspended: 5n })]
    expect(await howOf(inputs)).toBe('the same clock, and REALTIME agrees')
  })

  test('whose wall clocks disagree are refused', async () => {
    const inputs = [log('a', { wall: YEARS_50 }), log('b', { wall: YEARS_50 + 86_400n * SECOND })]
    await expect(summariesOf(inputs)).rejects.toThrow(
      /: at the same CLOCK_MONOTONIC, its CLOCK_REALTIME is 86400 s ahead of that of a\n/,
    )
    const earlier = [log('a', { wall: YEARS_50 }), log('b', { wall: YEARS_50 - 60n * SECOND })]
    await expect(summariesOf(earlier)).rejects.toThrow(/ 60 s behind that of a\n/)
  })

  test('may have been suspended in between: BOOTTIME counts on', async () => {
    const hour = 3600n * SECOND
    const inputs = [log('a', { wall: YEARS_50, suspended: 0n }), log('b', { wall: YEARS_50 + hour, suspended: hour })]
    expect(await howOf(inputs)).toBe('the same clock, and REALTIME agrees')
  })

  test('are compared each with all others', async () => {
    const inputs = [
      log('a', {}),
      log('b', { attributes: { boot_id: A } }),
      scheduler('c', { attributes: { boot_id: B } }),
    ]
    await expect(summariesOf(inputs)).rejects.toThrow(/^c: is of another boot .*, that of b is /)
  })

  test('that the user names are compared, too', async () => {
    const inputs = [
      log('a', { attributes: { kernel: '6.1.0' } }),
      scheduler('b', { clock: 'unknown', attributes: { kernel_release: '6.2.0' } }),
    ]
    await expect(summariesOf(inputs, { clocks: { b: 'mono' } })).rejects.toThrow(/^b: is of another boot /)
  })

  test('with nothing to compare say so', async () => {
    expect(await howOf([log('a', { wall: YEARS_50 }), log('b', {})])).toBe('the same clock, by its name, not checked')
  })

  test('of the wall clock may be of two machines', async () => {
    const about = (boot_id: string): About => ({ clock: 'REALTIME', attributes: { boot_id } })
    expect(await howOf([log('a', about(A)), log('b', about(B))])).toBe('the same clock, REALTIME')
  })
})

test('on different clocks of different boots are refused, whatever readings they have', async () => {
  const inputs = [
    log('a', { wall: YEARS_50, suspended: 0n }),
    log('b', { clock: 'BOOTTIME', wall: YEARS_50 + 500n * SECOND, suspended: 0n }),
  ]
  await expect(summariesOf(inputs)).rejects.toThrow(/at the same CLOCK_BOOTTIME, its CLOCK_REALTIME is 500 s ahead of/)
})

test('real recordings of one boot go together, whichever tool made them', async () => {
  const perf = { name: 'perf.data', source: plainBytes('perf-data/mono.data.gz') }
  const summaries = await summariesOf([
    { ...inputOf('test/recorded/outside-graphs.ggtrace.gz') },
    { name: 'trace.dat', source: plainBytes('trace-dat/instance-v6.dat.gz') },
    perf,
  ])
  const how = summaries.map(({ relation }) => relation?.how)
  expect(how).toEqual([undefined, 'the same clock, and REALTIME agrees', 'the same clock, and REALTIME agrees'])
})

describe('inputs that have no time in common', () => {
  const late = 100n * SECOND
  const issuesOf = async (inputs: EventInput[], options?: ConvertOptions) =>
    (await summariesOf(inputs, options)).map(({ issues }) =>
      issues.map(({ code, first: { detail } }) => ({ code, detail })),
    )
  const apart = (detail: string) => [{ code: 'inputs-apart', detail: `expected times of a; this input ${detail}` }]

  test('on a clock that is not checked are told', async () => {
    expect(await issuesOf([log('a', {}), log('b', { atNs: late })])).toEqual([[], apart('begins 90.0 s after it')])
    expect(await issuesOf([log('a', { atNs: late }), scheduler('b', {})])).toEqual([[], apart('ends 90.0 s before it')])
  })

  test('are told of a scheduler that did not see the run, on whatever clock', async () => {
    const about = { wall: YEARS_50, suspended: 0n }
    expect(await issuesOf([log('a', about), scheduler('b', { ...about, atNs: late })])).toEqual([
      [],
      apart('begins 90.0 s after it'),
    ])
  })

  test('are as they should be where they are runs of one boot, or are put there', async () => {
    const about = { attributes: { boot_id: A } }
    expect(await issuesOf([log('a', about), log('b', { ...about, atNs: late })])).toEqual([[], []])
    expect(await issuesOf([log('a', {}), log('b', {})], { clocks: { b: '+100s' } })).toEqual([[], []])
  })

  test('are not those that have some in common with one of the others', async () => {
    const [a, b, c] = [log('a', {}), log('b', { atNs: 5n * SECOND }), scheduler('c', { atNs: 14n * SECOND })]
    expect(await issuesOf([a!, b!, c!])).toEqual([[], [], []])
  })
})
