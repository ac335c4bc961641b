import { describe, expect, test } from '@jest/globals'
import { findings, lookedAt } from '../../../lib/analysis.ts'
import { dagOf } from '../../../lib/dag/dag.ts'
import { METRICS } from '../../../lib/dag/metrics.ts'
import { analyze, type Finding } from '../../../lib/index.ts'
import { checkedFindings, decodes, type MadeCall, madeRun } from './made-run.ts'

/** Threads and cores as causes: each is named where there is evidence for it, and nowhere else. */

const of = (found: readonly Finding[]) => found.map(({ rule }) => rule)
const waiting = { name: 'ffn_up-0', op: 'MUL_MAT', ns: [60_000, 100_000] }
const even = { ...waiting, ns: [100_000, 100_000] }
const OPENMP = { 'threads.runtime': 'openmp', 'threads.openmp': '/usr/lib/libgomp.so.1', 'cpus.allowed': '4' }

/** Calls with other threads each time. */
const moving = (threadsOf: (call: number) => readonly number[], more: Partial<MadeCall> = {}) =>
  Array.from({ length: 40 }, (_, call) => ({ ...decodes(1, [waiting], more)[0]!, threads: threadsOf(call) }))

describe('teams of threads', () => {
  const figuresOf = async (calls: readonly MadeCall[], attributes: Record<string, string>) =>
    lookedAt(await analyze(madeRun({ calls, attributes })))

  test('calls by turns from three threads, each with its own team of OpenMP', async () => {
    const calls = moving((call) => [1000 + (call % 3), 2000 + (call % 3)])
    const [first, ...others] = await checkedFindings(madeRun({ calls, attributes: OPENMP }))
    expect(of(others)).toEqual([])
    expect(first).toMatchObject({ rule: 'teams-of-callers', evidence: { teams: 3, phase: 'decode' } })
    expect(first!.sentence).toBe(
      '39 calls of 40 by another thread than the call before, 39 with other threads of OpenMP (3 teams): 40 % of decode is waiting for them',
    )
  })

  test.each([
    ['the same thread', moving(() => [1000, 2000]), OPENMP],
    ['one move', moving((call) => [call < 20 ? 1000 : 1001, call < 20 ? 2000 : 2001]), OPENMP],
    ['a pool that all share', moving((call) => [1000 + (call % 3), 2000]), { ...OPENMP, 'threads.runtime': 'pool' }],
    ['one team of other workers', moving((call) => [1000 + (call % 3), 2000]), OPENMP],
    ['an older log', moving((call) => [1000 + (call % 3), 2000 + (call % 3)]), { 'cpus.allowed': '4' }],
  ] as [string, MadeCall[], Record<string, string>][])('%s: only that they wait', async (_, calls, attributes) => {
    expect(of(await checkedFindings(madeRun({ calls, attributes })))).toEqual(['barrier-wait'])
  })

  test('a first call that waits long was not moved: those that were do not wait', async () => {
    const slow = { ...waiting, ns: [1_000_000, 20_000_000] }
    const first: MadeCall = { phase: 'prefill', tokens: 4, steps: [slow], threads: [1000, 2000] }
    const others = moving((call) => [1001 + (call % 3), 2001 + (call % 3)]).map((call) => ({ ...call, steps: [even] }))
    const found = await checkedFindings(madeRun({ calls: [first, ...others], attributes: OPENMP }))
    expect(of(found)).not.toContain('teams-of-callers')
  })

  test('calls of which the threads are lost did not move', async () => {
    const analysis = await analyze(madeRun({ calls: moving(() => [1000, 2000]), attributes: OPENMP }))
    const teams = { ...analysis.threads!.teams!, calls: 5, moved_calls: 0, changed_calls: 0 }
    const found = findings({ ...analysis, threads: { ...analysis.threads!, teams } })
    expect(of(found)).toEqual(['barrier-wait'])
  })

  test('new threads for every graph: where their start takes time', async () => {
    const started = (lateNs: number) => moving((call) => [1000, 2000 + call], { lateNs })
    const POOL = { ...OPENMP, 'threads.runtime': 'pool' }
    const found = await checkedFindings(madeRun({ calls: started(30_000), attributes: POOL }))
    const finding = found.find(({ rule }) => rule === 'new-threads')!
    expect(finding.evidence).toMatchObject({ calls: 40, new_threads: 39, start_delay_ns: 39 * 30_000 })
    expect(finding.sentence).toMatch(
      /^39 new threads in 40 calls: 29 % of the time of calls passes until they have begun$/,
    )
    const quick = await figuresOf(started(1000), POOL)
    expect(quick.find(({ rule }) => rule === 'new-threads')!.figures).toEqual([
      { figure: expect.stringMatching(/^39 new threads in 40 calls: 0.97 % of the time/) },
    ])
  })

  test('new threads: time outside of graphs counts up to 100 µs for each', async () => {
    const POOL = { ...OPENMP, 'threads.runtime': 'pool' }
    const found = async (outsideNs: number) => {
      const calls = moving((call) => [1000, 2000 + call], { lateNs: 1000, outsideNs })
      const all = await figuresOf(calls, POOL)
      return all.find(({ rule }) => rule === 'new-threads')!.figures[0]!
    }
    const [delayNs, most] = [39 * 1000, 39 * 100_000]
    const below = (await found(60_000)).finding!
    expect(below).toMatchObject({ time_ns: delayNs + 40 * 60_000, confidence: 'medium' })
    const above = (await found(150_000)).finding!
    expect(above).toMatchObject({ time_ns: delayNs + most, evidence: { outside_graphs_ns: 40 * 150_000 } })
    expect(above.confidence_reason).toMatch(/of at most 100 µs a thread/)
    expect(above.sentence).toBe(
      '39 new threads in 40 calls: up to 39 % of the time of calls passes while they are made, begin and end',
    )
    // Of long calls, a small part: most of what is outside of graphs has other causes.
    expect(await found(1_000_000)).toEqual({ figure: expect.stringMatching(/^39 new threads in 40 calls/) })
  })

  test('two OpenMP runtimes: where threads of the other one run', async () => {
    const two = { ...OPENMP, 'threads.openmp_loaded': '/usr/lib/libgomp.so.1; /venv/torch/lib/libgomp-a34b3233.so.1' }
    const run = (others: readonly number[]) => {
      const calls = decodes(40, [{ ...waiting, blockedNs: 0 }], { others })
      return checkedFindings(madeRun({ calls, attributes: two }))
    }
    const [first] = await run([300, 301])
    expect(first).toMatchObject({ rule: 'two-openmp-runtimes', confidence: 'medium' })
    expect(first!.sentence).toMatch(
      /^2 OpenMP runtimes are loaded \(libgomp.so.1, libgomp-a34b3233.so.1\): threads that compute nothing of calls run 200 % of their time$/,
    )
    expect(of(await run([]))).toEqual(['barrier-wait'])
  })
})

/** Four cores of two CPUs, the upper two of another kind, with limited clocks. */
const MACHINE = {
  'cpus.allowed': '8',
  'cpus.allowed_list': '0-7',
  'topology.online': '0-7',
  'topology.cores': '0,1|2,3|4,5|6,7',
  'topology.packages': '0-7',
}
const HYBRID = { ...MACHINE, 'topology.kinds': 'core:0-3|atom:4-7', 'topology.capacity': '1024:0,2|512:4,6' }

describe('cores', () => {
  const on = (cpus: readonly number[], attributes: Record<string, string>, allowed: readonly string[] = []) =>
    checkedFindings(madeRun({ calls: decodes(20, [even], { cpus, allowed }), attributes }))

  test('two workers on one core, while others are free', async () => {
    const [first, ...others] = await on([2, 3], MACHINE)
    expect(of(others)).toEqual([])
    expect(first).toMatchObject({ rule: 'smt-siblings', time_ns: 20 * 25_000, confidence: 'medium' })
    expect(first!.sentence).toBe(
      'in 100 % of the time of calls, two workers share a core though another one is free (2 workers, 4 cores)',
    )
  })

  test.each([
    ['cores of their own', [1, 3], MACHINE],
    ['one core only may be used', [2, 3], { ...MACHINE, 'cpus.allowed_list': '2-3' }],
    ['CPUs that are not known', [-1, -1], MACHINE],
    ['a machine without siblings', [0, 1], { ...MACHINE, 'topology.cores': '0|1|2|3' }],
    ['no topology', [2, 3], { 'cpus.allowed': '8' }],
  ] as [string, number[], Record<string, string>][])('%s: no cause', async (_, cpus, attributes) => {
    expect(of(await on(cpus, attributes))).toEqual([])
  })

  test('a worker on an efficiency core, while a faster one is free', async () => {
    const [first, ...others] = await on([0, 4], HYBRID)
    expect(of(others)).toEqual([])
    expect(first).toMatchObject({ rule: 'slow-cores', time_ns: 20 * 50_000, evidence: { speed_of_slow_share: 0.5 } })
    expect(first!.sentence).toBe(
      'in 100 % of the time of calls, a worker is on an efficiency core though a faster one is free (2 P, 2 E)',
    )
    expect(of(await on([0, 2], HYBRID))).toEqual([])
    expect(of(await on([4, 6], { ...HYBRID, 'cpus.allowed_list': '4-7' }))).toEqual([])
  })

  test('time of operators by kind of core, also of the nodes of a graph', async () => {
    const made = { calls: decodes(3, [waiting], { cpus: [0, 4] }), attributes: HYBRID }
    const { threads, series } = await analyze(madeRun(made), { series: ['graph'] })
    const kinds = [
      { kind: 'P', executions: 3, time_ns: 3 * waiting.ns[0]! },
      { kind: 'E', executions: 3, time_ns: 3 * waiting.ns[1]! },
    ]
    const { role } = series!.graph!.nodes[0]!
    expect(threads!.by_core_kind).toEqual({ assumed_share: 1, operators: [{ role, op: waiting.op, kinds }] })
    const dag = dagOf(series!.graph!)
    const ofOne = kinds.map((row) => ({ ...row, executions: 1, time_ns: row.time_ns / 3 }))
    expect(dag.nodes.map(({ by_core_kind }) => by_core_kind)).toEqual([ofOne])
    expect(METRICS.slow_cores.of(dag.nodes[0]!)).toBe(waiting.ns[1]! / (waiting.ns[0]! + waiting.ns[1]!))
    // The CPU of each operator itself, where it is recorded; and one that the topology does not contain.
    const onE = await analyze(madeRun({ ...made, cpu: 5 }))
    const all = { kind: 'E', executions: 6, time_ns: 3 * (waiting.ns[0]! + waiting.ns[1]!) }
    expect(onE.threads!.by_core_kind).toEqual({ assumed_share: 0, operators: [{ role, op: waiting.op, kinds: [all] }] })
    const unknown = await analyze(madeRun({ ...made, calls: decodes(3, [waiting], { cpus: [0, 9] }) }))
    expect(unknown.threads!.by_core_kind!.operators[0]!.kinds.map(({ kind }) => kind)).toEqual(['P', ''])
    const equal = await analyze(madeRun({ ...made, attributes: MACHINE }), { series: ['graph'] })
    expect([equal.threads!.by_core_kind, equal.series!.graph!.nodes[0]!.by_core_kind]).toEqual([null, null])
  })

  test('operators that a worker lost are of no step: those of the others have a kind all the same', async () => {
    const run = madeRun({
      calls: decodes(3, [{ ...even, name: 'Qcur-0' }, even], { cpus: [0, 4] }),
      attributes: HYBRID,
    })
    const lost = {
      ...run,
      async *events(...args: Parameters<typeof run.events>) {
        for await (const batch of run.events(...args)) {
          // A call: worker 0's operators of the first step and the second, then worker 1's; the first one is lost.
          const operators = batch.filter((event) => event.kind === 'operator')
          const byCall = operators.toSorted((a, b) => a.call - b.call || a.worker - b.worker)
          const kept = batch.map((event) => (event.kind === 'operator' ? byCall.shift()! : event))
          const [input, ...rest] = kept.filter(
            (event) => event.kind !== 'operator' || event.worker !== 0 || event.tensor !== 0,
          )
          yield [input!, ...rest.toSorted((a, b) => Number(b.kind === 'tensor') - Number(a.kind === 'tensor'))]
        }
      },
    }
    const { threads } = await analyze(lost)
    const counts = threads!.by_core_kind!.operators.map(({ role, kinds }) => [role, kinds.map((row) => row.executions)])
    expect(Object.fromEntries(counts)).toEqual({ Qcur: [3], ffn_up: [3, 3] })
  })

  test('a clock that the kernel limits', async () => {
    const limited = { 'topology.max_khz': '4000000:0,2,4,6', 'topology.governor': 'powersave:0,2,4,6' }
    const [first] = await on([0, 2], { ...MACHINE, ...limited, 'topology.limit_khz': '1000000:0,2,4,6' })
    expect(first).toMatchObject({ rule: 'clock-limit', time_ns: 20 * 75_000, confidence: 'medium' })
    expect(first!.sentence).toBe('the kernel permits CPUs 1 of 4 GHz (governor powersave)')
    expect(of(await on([0, 2], { ...MACHINE, ...limited, 'topology.limit_khz': '4000000:0,2,4,6' }))).toEqual([])
    expect(of(await on([0, 2], { ...MACHINE, ...limited }))).toEqual([]) // no limit is known
  })

  test('affinities that put both workers on one CPU', async () => {
    const run = (allowed: readonly string[], attributes: Record<string, string> = MACHINE) =>
      checkedFindings(madeRun({ calls: decodes(20, [waiting], { cpus: [3, 3], allowed }), attributes }))
    const [first, ...others] = await run(['3', '3'])
    expect(of(others)).toEqual([])
    expect(first).toMatchObject({ rule: 'crowded-affinity', evidence: { cpus: '3', workers: '0 and 1' } })
    expect(first!.sentence).toBe('workers 0 and 1 may run on CPU 3 only: 40 % of decode is waiting for each other')
    expect(of(await run(['2-3', '2-3']))).toEqual(['barrier-wait'])
    expect(of(await run(['3', '0-7']))).toEqual(['barrier-wait'])
    // The whole program may use no other CPU.
    const one = await run(['3', '3'], { ...MACHINE, 'cpus.allowed': '1', 'cpus.allowed_list': '3' })
    expect(of(one)).toEqual(['more-threads-than-cpus'])
  })

  describe('the affinity of one thread is not that of the program', () => {
    const ONE = { ...MACHINE, 'cpus.allowed': '1', 'cpus.allowed_list': '3' }
    const rulesOf = async (step: MadeCall['steps'][number], made: Partial<MadeCall>) => {
      const analysis = await analyze(madeRun({ calls: decodes(20, [step], made), attributes: ONE }))
      expect(analysis.run.limits!.cpus).toBeGreaterThanOrEqual(2)
      return of(analysis.findings)
    }

    test('where other workers may use other CPUs', async () => {
      expect(await rulesOf(waiting, { cpus: [3, 5], allowed: ['3', '5'] })).toEqual(['barrier-wait'])
    })

    test('where workers ran on other CPUs when graphs began', async () => {
      expect(await rulesOf(waiting, { cpus: [3, 5], allowed: ['3', '3'] })).toEqual(['barrier-wait'])
    })

    test('where states of workers contain other CPUs', async () => {
      expect(await rulesOf({ ...waiting, lostNs: [0, 1_000] }, {})).toEqual(['barrier-wait'])
    })
  })

  describe('OpenMP binds the thread whose affinity the log contains as the program’s', () => {
    const bound = async (cpus: readonly number[], allowed: readonly string[], variables: Record<string, string>) => {
      const facts = { ...MACHINE, 'threads.runtime': 'openmp', 'cpus.allowed': '1', 'cpus.allowed_list': allowed[0]! }
      const env = Object.fromEntries(Object.entries(variables).map(([name, value]) => [`env.${name}`, value]))
      const run = madeRun({ calls: decodes(20, [waiting], { cpus, allowed }), attributes: { ...facts, ...env } })
      const analysis = await analyze(run)
      return { analysis, rules: of(analysis.findings) }
    }

    test.each([
      { OMP_PROC_BIND: 'true' },
      { OMP_PROC_BIND: 'spread', OMP_PLACES: 'cores' },
      { OMP_PLACES: '{0},{2}' },
      { GOMP_CPU_AFFINITY: '0 2' },
    ] as Record<string, string>[])('workers on CPUs of their own: %p', async (variables) => {
      const { analysis, rules } = await bound([0, 2], ['0', '2'], variables)
      expect(rules).toEqual(['barrier-wait'])
      expect(analysis.run.limits!.cpus).toBeGreaterThanOrEqual(2)
      expect(analysis.machine!.allowed).not.toBe('0')
      expect(analysis.threads!.places!.crowded).toBeNull()
      const why = analysis.undetermined.flatMap(({ what, why }) => (what === 'run.limits.cpus' ? [why] : []))
      expect(why).toEqual([expect.stringContaining(' binds the thread whose affinity the log contains: ')])
    })

    test.each([{ OMP_PLACES: '{0},{0}' }, { OMP_PROC_BIND: 'true', GOMP_CPU_AFFINITY: '0' }] as Record<
      string,
      string
    >[])('workers on one CPU, which a variable names: %p', async (variables) => {
      const { analysis, rules } = await bound([0, 0], ['0', '0'], variables)
      expect(rules).toEqual(['crowded-affinity'])
      const variable = Object.entries(variables).at(-1)!.join('=')
      expect(analysis.findings[0]!.sentence).toContain(`may run on CPU 0 only, with ${variable}: `)
      expect(analysis.findings[0]!.advice).toContain(`Unset ${variable}, `)
    })

    test.each([{ OMP_PROC_BIND: 'true' }, { OMP_PROC_BIND: 'spread', OMP_PLACES: 'cores' }, {}] as Record<
      string,
      string
    >[])('a program that may use one CPU only: %p', async (variables) => {
      expect((await bound([0, 0], ['0', '0'], variables)).rules).toEqual(['more-threads-than-cpus'])
    })

    test('a variable that another runtime of threads does not read, or that binds nothing', async () => {
      expect((await bound([0, 0], ['0', '0'], { OMP_PROC_BIND: 'false', OMP_PLACES: '{0}' })).rules).toEqual([
        'more-threads-than-cpus',
      ])
    })
  })
})
