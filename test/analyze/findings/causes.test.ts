import { describe, expect, test } from '@jest/globals'
import { lookedAt } from '../../../lib/analysis.ts'
import { analyze, type EventInput, type Finding } from '../../../lib/index.ts'
import { checkedFindings, decodes, type MadeCall, madeRun } from './made-run.ts'

/** One symptom has several causes: each is named where there is evidence for it, and nowhere else. */

const MS = 1e6
const STEP = { name: 'ffn_up-0', op: 'MUL_MAT', ns: [100_000, 100_000] }
const blocked = (ns: number, call: Partial<MadeCall> = {}, majorFaults?: number) =>
  decodes(20, [{ ...STEP, blockedNs: ns, ...(majorFaults !== undefined && { majorFaults }) }], call)
const of = (found: readonly Finding[]) => found.map(({ rule }) => rule)

describe('workers that are blocked in operators', () => {
  test('wait for pages only where the kernel counted faults that read from a disk', async () => {
    const [first, ...others] = await checkedFindings(madeRun({ calls: blocked(50_000, { faults: 40 }) }))
    expect(others).toEqual([])
    expect(first).toMatchObject({ rule: 'page-faults', evidence: { major_faults: 800 } })
    expect(first!.sentence).toMatch(
      /^decode waits for pages: its workers are blocked 25 % of it, 40 major page faults a call/,
    )
  })

  test('wait for pages that the kernel reads ahead, with few faults', async () => {
    const reading = blocked(50_000, { faults: 5, bytesRead: 500e6 })
    const [first, ...others] = await checkedFindings(withoutCounters(madeRun({ calls: reading })))
    expect(others).toEqual([])
    expect(first!.sentence).toMatch(
      /^decode waits for pages: its workers are blocked 25 % of it, 5 major page faults and 500 MB from disks a call/,
    )
    // Those that wait for the same read have no major fault.
    const counted = blocked(50_000, { faults: 5, bytesRead: 500e6 }, 0)
    expect((await checkedFindings(madeRun({ calls: counted })))[0]!.rule).toBe('page-faults')
  })

  test.each([
    ['no faults of the process', blocked(50_000, { faults: 0 }), 'barrier or lock: 0 major page faults a call'],
    ['no faults of operators', blocked(50_000, {}, 0), 'barrier or lock: 0 major page faults a call'],
    ['faults that were not counted', blocked(50_000), 'barrier, lock or page: page faults were not counted'],
  ])('%s: something else, or not known', async (what, calls, by) => {
    const input = madeRun({ calls })
    // Counters of a run without counts are 0.
    const found = await checkedFindings(what === 'faults that were not counted' ? withoutCounters(input) : input)
    expect(of(found)).toEqual(['blocked-workers'])
    expect(found[0]!.sentence).toBe(`decode: workers are blocked 25 % of it in operators (${by}), most in blk.0`)
    expect(found[0]!.advice).not.toMatch(/quantisation|mlock/)
  })

  test('faults in other operators than the blocked ones are not what these wait for', async () => {
    const steps = [
      { ...STEP, blockedNs: 50_000, majorFaults: 0 },
      { ...STEP, name: 'ffn_out-1', majorFaults: 100 },
    ]
    expect(of(await checkedFindings(madeRun({ calls: decodes(20, steps) })))).toEqual(['blocked-workers'])
  })

  test('others that wait at barriers for a blocked one are no cause', async () => {
    const waited = (blockedNs: number) =>
      checkedFindings(madeRun({ calls: decodes(20, [{ ...STEP, ns: [200_000, 100_000], blockedNs }]) }))
    expect(of(await waited(120_000))).toEqual(['blocked-workers'])
    expect(of(await waited(30_000))).toEqual(['barrier-wait'])
  })

  test('of a first call: by its faults, too', async () => {
    const slow = { ...STEP, ns: [2_000_000, 2_000_000], blockedNs: 1_500_000 }
    const sentenceWith = async (faults: number) => {
      const first: MadeCall = { phase: 'prefill', tokens: 2, steps: [slow], faults }
      const found = await checkedFindings(withoutCounters(madeRun({ calls: [first, ...decodes(20, [STEP])] })))
      return found.find(({ rule }) => rule === 'first-call')!.sentence
    }
    expect(await sentenceWith(60)).toMatch(/: 60 page faults that read from the disk/)
    expect(await sentenceWith(0)).toMatch(
      /: a worker is blocked 1.5 ms in operators.* \(barrier or lock: 0 page faults that read\)$/,
    )
  })
})

/** The same run, of which nothing was counted in operators. */
const withoutCounters = (input: EventInput): EventInput => ({
  ...input,
  *events(names) {
    for (const batch of input.events(names) as Iterable<readonly { readonly kind: string }[]>)
      yield batch.filter(({ kind }) => kind !== 'counted') as never
  },
})

describe('a limit of CPU time', () => {
  const LIMITED = { cpus: '4', 'cpu.quota_us': '50000', 'cpu.period_us': '100000', 'cpu.periods': '10' }
  const throttled = (periods: number, ns: number) =>
    madeRun({
      calls: decodes(20, [{ ...STEP, ns: [60_000, 100_000] }]),
      attributes: { ...LIMITED, 'cpu.throttled_periods': `${periods}`, 'cpu.throttled_ns': `${ns}` },
    })

  test('that was reached leaves out what follows from it', async () => {
    const found = await checkedFindings(throttled(8, 2 * MS))
    expect(of(found)).toEqual(['cpu-limit'])
    expect(found[0]!.sentence).toBe(
      'the limit of 0.5 CPUs was reached in 80 % of its periods: the kernel kept threads from their CPUs for 2 ms in all',
    )
    expect(found[0]!.advice).toContain('(-t 1)')
  })

  test('that was not reached, or of a run that was killed, is no cause', async () => {
    expect(of(await checkedFindings(throttled(0, 0)))).toEqual(['barrier-wait'])
    const killed = madeRun({
      calls: decodes(20, [STEP]),
      attributes: { 'cpu.quota_us': '50000', 'cpu.period_us': '100000' },
    })
    const figures = lookedAt(await analyze(killed)).find(({ rule }) => rule === 'cpu-limit')!.figures
    expect(figures).toEqual([{ figure: 'the limit of 0.5 CPUs: how often it was reached is not known' }])
  })
})

describe('variables of OpenMP', () => {
  const waiting = (variables: Record<string, string>, asleepNs: number, runtime?: string) =>
    madeRun({
      calls: decodes(20, [{ ...STEP, ns: [60_000, 100_000], asleepNs }]),
      attributes: {
        'cpus.allowed': '4',
        ...(runtime !== undefined && { 'threads.runtime': runtime }),
        ...Object.fromEntries(Object.entries(variables).map(([name, value]) => [`env.${name}`, value])),
      },
    })

  test.each([
    [{ OMP_WAIT_POLICY: 'PASSIVE' }, 20_000, 'passive-waiting'],
    [{ OMP_WAIT_POLICY: 'active', GOMP_SPINCOUNT: '0' }, 20_000, 'passive-waiting'],
    [{ OMP_WAIT_POLICY: 'active' }, 20_000, 'barrier-wait'],
    [{ OMP_WAIT_POLICY: 'passive', GOMP_SPINCOUNT: '10000' }, 20_000, 'barrier-wait'],
    // A program that does not use OpenMP: its workers spin.
    [{ OMP_WAIT_POLICY: 'passive' }, 100, 'barrier-wait'],
  ] as [Record<string, string>, number, string][])('%j, asleep %i ns: %s', async (variables, asleepNs, rule) => {
    expect((await checkedFindings(waiting(variables, asleepNs)))[0]!.rule).toBe(rule)
  })

  test.each([
    ['pool', 'barrier-wait'],
    ['openmp', 'passive-waiting'],
  ])('of a %s: %s', async (runtime, rule) => {
    const found = await checkedFindings(waiting({ OMP_WAIT_POLICY: 'passive' }, 20_000, runtime))
    expect(found[0]!.rule).toBe(rule)
  })
})

describe('slow loading', () => {
  const S = 1e9
  interface Stage {
    readonly what?: 'map' | 'copy-weights' | 'reserve' | 'load-model'
    readonly ns: number
    /** The thread; without one, nothing was counted. */
    readonly cpuNs?: number
    readonly waitingNs?: number
    readonly processCpuNs?: number
    readonly bytesRead?: number
  }
  const loading = (stages: readonly Stage[], command = 'llama-server'): EventInput => ({
    name: 'made',
    *events() {
      let at = 0
      const events = stages.map(({ what = 'map', ns, cpuNs, waitingNs = 0, processCpuNs = cpuNs, bytesRead = 0 }) => {
        const times = { startNs: at, endNs: at + ns }
        at += ns
        const counts = {
          minorFaults: 0,
          majorFaults: 0,
          bytesRead,
          cpuNs: cpuNs!,
          waitingNs,
          processCpuNs: processCpuNs!,
        }
        const none = { name: 0, tid: 1, context: 0, sequence: -1, output: -1, value: -1 }
        return { kind: 'function' as const, what, ...times, ...none, ...(cpuNs !== undefined && { resources: counts }) }
      })
      yield [
        {
          kind: 'input',
          format: 'made',
          clock: 'MONOTONIC',
          originNs: 0n,
          attributes: { command, 'llama.version': '0.7.0' },
        },
        ...events,
      ]
    },
  })
  const found = async (stages: readonly Stage[], command?: string) => {
    const [first, ...others] = await checkedFindings(loading(stages, command))
    expect(others).toEqual([])
    return first
  }

  test.each<[string, Stage[], string, string]>([
    [
      'a disk',
      [{ ns: 3 * S, cpuNs: 0.2 * S, bytesRead: 6e8 }],
      'disk',
      'waiting for a disk (most in map, 600 MB read at 214 MB/s)',
    ],
    [
      'CPUs that others have',
      [{ ns: 3 * S, cpuNs: 0.5 * S, waitingNs: 2.4 * S }],
      'starved',
      'able to run, without a CPU (most in map)',
    ],
    [
      'weights that it repacks itself',
      [{ what: 'copy-weights', ns: 3 * S, cpuNs: 2.8 * S }],
      'computed',
      'computing: weights are copied and repacked (most in copy-weights)',
    ],
    [
      'weights that its threads repack, while it waits for them',
      [{ what: 'copy-weights', ns: 3 * S, cpuNs: 0.1 * S, processCpuNs: 5 * S, bytesRead: 4096 }],
      'computed',
      'computing: weights are copied and repacked (most in copy-weights)',
    ],
    [
      'what the kernel does not count',
      [{ ns: 3 * S, cpuNs: 0.1 * S }],
      'other',
      'waiting, but not for a disk of this machine (most in map)',
    ],
    ['memory', [{ what: 'reserve', ns: 3 * S, cpuNs: 3 * S }], 'reserve', 'reserving memory (most in reserve)'],
    ['a log without counts', [{ ns: 3 * S }], 'unknown', 'for a reason that was not recorded (most in map)'],
  ])('%s', async (_, stages, cause, is) => {
    const finding = await found(stages)
    expect(finding).toMatchObject({ rule: 'slow-load', evidence: { cause } })
    expect(finding!.sentence.replace(/\d+ % of it/, '')).toBe(`loading takes 3 s,  ${is}`)
    expect(finding!.confidence).toBe(cause === 'other' || cause === 'unknown' ? 'low' : 'high')
  })

  test('a cold page cache is named also below two seconds, a warm one is not', async () => {
    const copy: Stage = { what: 'copy-weights', ns: 0.45 * S, cpuNs: 0.4 * S }
    const cold = await found([{ ns: 0.25 * S, cpuNs: 0.01 * S, bytesRead: 6e8 }, copy])
    expect(cold).toMatchObject({ evidence: { cause: 'disk' }, time_ns: 0.24 * S })
    expect(await found([{ ns: 0.01 * S, cpuNs: 0.01 * S }, copy])).toBeUndefined()
    // The header, or a part of the file: not what makes it slow.
    expect(await found([{ ns: 0.25 * S, cpuNs: 0.01 * S, bytesRead: 4e6 }, copy])).toBeUndefined()
    expect(await found([{ ns: 0.25 * S, cpuNs: 0.2 * S, bytesRead: 6e8 }, copy])).toBeUndefined()
  })

  test('what the run does already is no advice', async () => {
    const stages: Stage[] = [{ what: 'copy-weights', ns: 3 * S, cpuNs: 2.8 * S }]
    expect((await found(stages))!.advice).toContain('--no-repack')
    expect((await found(stages, 'llama-server --no-repack'))!.advice).not.toContain('--no-repack')
  })
})
