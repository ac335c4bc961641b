import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { RULES } from '../../lib/analysis.ts'
import { type Analysis, analyze, type Finding } from '../../lib/index.ts'
import { inputOf } from '../../lib/node.ts'
import { cc } from '../compile.ts'
import { canBuild, OPENMP, ownCpu } from '../llama/own-cpu.ts'
import { ensureLlama, hasLlama, model, type RunOptions, run } from '../llama/testbed.ts'
import { CPU, CPUS } from '../machine.ts'
import { perfTest } from './as-user.ts'
import { inFolder, NANO_MOE, newLog, RECORDER, useRecorder } from './recording.ts'
import '../live.ts'

/**
 * Causes among threads, planted in real runs. Other programs may have the CPUs, and are then named first: each rule itself is asked, and
 * finds its cause in this run and not in one without it.
 */

const SECOND = fileURLToPath(new URL('second-openmp.c', import.meta.url))
const llama = hasLlama() ? describe : describe.skip
const openmp = canBuild(OPENMP) && CPUS.length > 1 ? describe : describe.skip

async function recorded(args: readonly (string | number)[], options: RunOptions = {}): Promise<Analysis> {
  const log = newLog()
  mkdirSync(dirname(log), { recursive: true })
  const env = { GGML2PERFETTO_OUT: log, ...options.env }
  const preload = options.preload === undefined ? RECORDER : `${options.preload}:${RECORDER}`
  const words = ['--threads', 2, '--prompt', 4, '--decode', 40, ...args].map(String)
  const result = await run((await model(NANO_MOE)).path, words, { ...options, preload, env })
  expect([result.code, result.stderr]).toEqual([0, ''])
  return await analyze(inputOf(log))
}

/** What the rule finds, whatever else is found. */
const foundBy = (id: string, analysis: Analysis): Omit<Finding, 'rule' | 'advice'>[] =>
  RULES.find((rule) => rule.id === id)!
    .look(analysis)
    .flatMap(({ finding }) => finding ?? [])

openmp('threads of OpenMP (needs c++ with -fopenmp, and two CPUs)', () => {
  useRecorder()
  let lib: readonly string[] = []
  beforeAll(async () => {
    await ensureLlama()
    lib = ['--lib', await ownCpu(OPENMP)]
  })
  const ACTIVE = { OMP_WAIT_POLICY: 'active' }

  test('calls by turns from four threads: each has a team of its own', async () => {
    const analysis = await recorded([...lib, '--callers', 4], { env: ACTIVE })
    expect(analysis.threads).toMatchObject({ runtime: 'openmp', openmp: expect.stringMatching(/libgomp/) })
    expect(analysis.threads!.teams).toMatchObject({ calls: 41, teams: 4, moved_calls: 40, changed_calls: 40 })
    expect(foundBy('teams-of-callers', analysis)).toHaveLength(1)
    const one = await recorded([...lib, '--callers', 1], { env: ACTIVE })
    expect(one.threads!.teams).toMatchObject({ teams: 1, moved_calls: 0, changed_calls: 0 })
    expect(foundBy('teams-of-callers', one)).toEqual([])
  })

  perfTest('a second runtime, whose threads wait on the CPUs', async () => {
    const library = inFolder('second-openmp.so')
    cc('-O1', '-shared', '-fPIC', SECOND, '-o', library, '-ldl', '-pthread')
    const gomp = execFileSync('cc', ['-print-file-name=libgomp.so.1'], { encoding: 'utf8' }).trim()
    const second = inFolder('libgomp-second.so.1')
    // The loader takes a library of the same SONAME for the same: those of wheels have other ones.
    writeFileSync(
      second,
      readFileSync(gomp).toString('latin1').replaceAll('libgomp.so.1\0', 'libgomq.so.1\0'),
      'latin1',
    )
    const env = { ...ACTIVE, SECOND_OPENMP: second }
    const analysis = await recorded(lib, { env, preload: library })
    expect(analysis.threads!.openmp_loaded).toHaveLength(2)
    expect(analysis.threads!.openmp).not.toBe(second)
    const [finding] = foundBy('two-openmp-runtimes', analysis)
    expect(finding!.sentence).toMatch(/^2 OpenMP runtimes are loaded \(.*libgomp-second.so.1.*\): threads that/)
    const one = await recorded(lib, { env: ACTIVE, preload: library })
    expect([one.threads!.openmp_loaded.length, foundBy('two-openmp-runtimes', one)]).toEqual([1, []])
  })

  /** The rules that take the affinity of one thread for the program's. */
  const crowdedBy = (analysis: Analysis) =>
    ['crowded-affinity', 'more-threads-than-cpus'].filter((id) => foundBy(id, analysis).length > 0)

  test.each([{ OMP_PROC_BIND: 'true' }, { OMP_PROC_BIND: 'spread', OMP_PLACES: 'cores' }] as Record<string, string>[])(
    'workers that OpenMP binds to CPUs of their own: %p',
    async (env) => {
      const analysis = await recorded(lib, { env })
      const places = analysis.threads!.places!.workers.map(({ allowed }) => allowed[0]!.cpus)
      expect(new Set(places).size).toBe(2)
      expect(crowdedBy(analysis)).toEqual([])
      expect(analysis.run.limits!.cpus).toBeGreaterThanOrEqual(2)
    },
  )

  test('workers that OpenMP binds to one CPU', async () => {
    const OMP_PLACES = `{${CPU}},{${CPU}}`
    const analysis = await recorded(lib, { env: { OMP_PLACES } })
    const [finding] = foundBy('crowded-affinity', analysis)
    expect(finding!.evidence).toMatchObject({ cpus: `${CPU}`, workers: '0 and 1' })
    expect(finding!.sentence).toContain(`, with OMP_PLACES=${OMP_PLACES}: `)
    expect(analysis.findings.map(({ rule }) => rule)).not.toContain('more-threads-than-cpus')
  })

  perfTest('a number of spins of 0, which makes threads sleep', async () => {
    const [finding] = foundBy('passive-waiting', await recorded(lib, { env: { ...ACTIVE, GOMP_SPINCOUNT: '0' } }))
    expect(finding!.sentence).toContain('with GOMP_SPINCOUNT=0')
    expect(foundBy('passive-waiting', await recorded(lib, { env: ACTIVE }))).toEqual([])
  })
})

llama("ggml's own threads (needs linux-x64 and cc)", () => {
  useRecorder()
  const twoCpus = CPUS.length > 1 ? test : test.skip

  twoCpus('new threads for every graph, where no pool is attached', async () => {
    const analysis = await recorded([])
    expect(analysis.threads!.teams!.new_threads).toBe(40)
    // What part of the time they take depends on what else runs: test/analyze/findings/threads.test.ts has the limit.
    const { figure, finding } = RULES.find(({ id }) => id === 'new-threads')!.look(analysis)[0]!
    expect(figure ?? finding!.sentence).toMatch(
      /^40 new threads in 41 calls: (up to )?[\d.]+ % of the time of calls passes /,
    )
    const pool = await recorded(['--threadpool'])
    expect([pool.threads!.teams!.new_threads, foundBy('new-threads', pool)]).toEqual([0, []])
  })

  twoCpus('a program that binds all threads of its pool to one CPU', async () => {
    const [finding] = foundBy('crowded-affinity', await recorded(['--threadpool', '--pool-cpu', CPU]))
    expect(finding!.evidence).toMatchObject({ cpus: `${CPU}`, workers: '0 and 1' })
    expect(foundBy('crowded-affinity', await recorded(['--threadpool']))).toEqual([])
  })
})
