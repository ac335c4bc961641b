import { spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { staticPrograms } from '../llama/static.ts'
import { hasLlama, model, type RunOptions, runHosts } from '../llama/testbed.ts'
import { BPFTRACE, canBpftrace } from '../machine.ts'
import {
  expectCalls,
  expectTrace,
  inFolder,
  issuesOf,
  NANO,
  NANO_MOE,
  newLog,
  RECORDER,
  readLog,
  recordHosts,
  useRecorder,
} from './recording.ts'

/** Programs and add-ons that contain ggml and llama.cpp: nothing is exported, and the recorder redirects their functions (native/recorder/program.h). */

const ADDONS = fileURLToPath(new URL('../llama/run-addon.mjs', import.meta.url))

const canBuild = ['g++', 'make', 'git'].every(
  (tool) => spawnSync(tool, ['--version'], { stdio: 'ignore' }).status === 0,
)
const llama = hasLlama() && canBuild ? describe : describe.skip
const observed = canBpftrace() ? test : test.skip
const LEVEL = '-O3'

llama('programs that contain ggml (needs linux-x64, g++, make, git, npm)', () => {
  useRecorder()
  let programs = ''
  let empty = ''
  beforeAll(async () => {
    programs = await staticPrograms([`LEVEL=${LEVEL}`])
    empty = inFolder('empty')
    mkdirSync(empty)
  }, 900_000)

  const CALLS = 6
  const stepsOf = (path: string, threads: number) =>
    ['load', 0, path, 'open', 0, threads, 'decode', 0, CALLS, 'close', 0, 'free', 0] as const

  /** A program, or an add-on in Node.js. */
  const optionsOf = (name: string): RunOptions => ({
    program: join(programs, name),
    lib: empty,
    ...(name.endsWith('.node') && { before: [process.execPath, ADDONS], env: { GGML2PERFETTO_LIBRARIES: '1' } }),
  })

  async function recorded(spec: typeof NANO, threads: number, name = 'hosts') {
    const { path } = await model(spec)
    const { log, result } = await recordHosts(stepsOf(path, threads), optionsOf(name))
    return { log, result, recording: await readLog(log) }
  }

  test.each([
    ['hosts', NANO, 1],
    ['hosts', NANO_MOE, 3],
    ['hosts-openmp', NANO_MOE, 2],
    ['hosts.node', NANO_MOE, 2],
    ['hosts-openmp.node', NANO, 2],
  ] as const)(
    '%s: each call, graph, node and barrier, as the program counts them (%#)',
    async (name, spec, threads) => {
      const { log, result, recording } = await recorded(spec, threads, name)
      expect(issuesOf(recording)).toEqual([])
      expect(result.calls).toHaveLength(CALLS)
      expectCalls(recording, result.calls, () => threads)
      expect(recording.attributes['operators.end']).toBeUndefined()
      expect(recording.attributes['operators.missing']).toBeUndefined()
      expect(recording.attributes['library.ggml']).toBe(join(programs, name))
      expect(Number(recording.attributes['program.functions'])).toBeGreaterThan(60)
      expect(recording.of('graph').map(({ backend }) => recording.text(backend))).toEqual(Array(CALLS).fill('CPU'))
      expect(recording.of('function').length).toBeGreaterThan(3)
      await expectTrace(log, recording)
    },
  )

  test('an add-on is left alone unless asked for', async () => {
    const { path } = await model(NANO)
    const { log, result } = await recordHosts(stepsOf(path, 1), { ...optionsOf('hosts.node'), env: {} })
    expect(result.calls).toHaveLength(CALLS)
    expect(existsSync(log)).toBe(false)
  })

  test('of two add-ons, the first is recorded, and the other one is named', async () => {
    const { path } = await model(NANO)
    const other = inFolder('other.node')
    copyFileSync(join(programs, 'hosts.node'), other)
    const both = { ...optionsOf('hosts.node'), program: `${join(programs, 'hosts.node')},${other}` }
    const { log, result } = await recordHosts(stepsOf(path, 1), both)
    const recording = await readLog(log)
    expect(issuesOf(recording)).toEqual([])
    expect(result.calls).toHaveLength(2 * CALLS)
    expectCalls(recording, result.calls.slice(0, CALLS), () => 1)
    expect(recording.attributes['program.refused']).toMatch(
      `${other}: all of it, since the process contains another ggml`,
    )
  })

  test('100 000 calls, with the same result as without the recorder', async () => {
    const count = 100_000
    const { path } = await model(NANO)
    const log = newLog()
    mkdirSync(dirname(log), { recursive: true })
    const steps = ['load', 0, path, 'open', 0, 1, 'many', 0, count]
    const run = (env: Record<string, string>) => runHosts(steps, { ...optionsOf('hosts'), env })
    const [plain, traced] = await Promise.all([
      run({}),
      run({ LD_PRELOAD: RECORDER, GGML2PERFETTO_OUT: log, GGML2PERFETTO_LEVEL: 'graph' }),
    ])
    expect([plain.code, plain.signal, plain.stderr]).toEqual([0, null, ''])
    expect([traced.code, traced.signal, traced.stderr]).toEqual([0, null, ''])
    expect(traced.result?.hash).toBe(plain.result?.hash)
    const recording = await readLog(log)
    expect(issuesOf(recording)).toEqual([])
    expect([recording.of('token').length, recording.of('graph').length]).toEqual([count, count])
  })

  test('a single worker of OpenMP passes no barrier: ends are inferred', async () => {
    const { result, recording } = await recorded(NANO, 1, 'hosts-openmp')
    expect(issuesOf(recording)).toEqual([])
    expect(recording.of('token')).toHaveLength(result.calls.length)
    expect(recording.attributes['operators.end']).toMatch(/^inferred: a single worker calls no barrier of OpenMP/)
  })

  test('what is left alone is named, each with its reason', async () => {
    const { recording } = await recorded(NANO, 2)
    const refused = `${recording.attributes['program.refused'] ?? ''}`.split('; ').filter(Boolean)
    for (const line of refused) expect(line).toMatch(/^\w+: (it|its) .+/)
    // What calls, graphs and operators need is not among them.
    const needed =
      /^(llama_(decode|encode)|ggml_(barrier|graph_compute|cpu_extra_compute_forward|backend_sched_\w+compute\w*|backend_sched_alloc_graph)):/
    expect(refused.filter((line) => needed.test(line))).toEqual([])
  })

  test.each(['backend', 'sched'])('ggml alone: %s', async (way) => {
    const log = newLog()
    mkdirSync(dirname(log), { recursive: true })
    const run = (env: Record<string, string>) => {
      const { status, stdout, stderr } = spawnSync(join(programs, 'alone'), [empty, way, '5'], {
        env: { ...process.env, ...env },
        encoding: 'utf8',
      })
      return { status, stdout, stderr }
    }
    const plain = run({})
    expect(plain).toMatchObject({ status: 0, stdout: expect.stringMatching(/ 20\n$/) })
    expect(run({ LD_PRELOAD: RECORDER, GGML2PERFETTO_OUT: log })).toEqual(plain)
    const recording = await readLog(log)
    expect(issuesOf(recording)).toEqual([])
    expect(recording.of('graph').map(({ nodes, status, backend }) => [nodes, status, recording.text(backend)])).toEqual(
      Array(5).fill([4, 0, 'CPU']),
    )
    expect(recording.of('token')).toHaveLength(way === 'sched' ? 5 : 0)
    const workers = new Set(recording.of('operator').map(({ worker }) => worker)).size
    expect(recording.of('operator')).toHaveLength(5 * 4 * workers)
  })

  const FUNCTIONS = [
    'llama_decode',
    'ggml_backend_sched_graph_compute_async',
    'ggml_graph_compute',
    'ggml_cpu_extra_compute_forward',
  ]

  /** How often each function is entered, by the kernel's count; `env` is of the program alone. */
  function counted(path: string, env: Readonly<Record<string, string>> = {}, name = 'hosts') {
    const { program = '', before = [] } = optionsOf(name)
    const probes = FUNCTIONS.map((name) => `uprobe:${program}:${name} { @["${name}"] = count(); }`).join(' ')
    const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`)
    const command = ['/usr/bin/env', ...variables, ...before, program, empty, ...stepsOf(path, 2)].join(' ')
    const { status, stdout, stderr } = spawnSync(BPFTRACE[0], [...BPFTRACE.slice(1), '-e', probes, '-c', command], {
      encoding: 'utf8',
    })
    expect([status, stderr]).toEqual([0, expect.any(String)])
    const counts = [...stdout.matchAll(/^@\[(\w+)\]: (\d+)$/gm)].map(
      ([, name, count]) => [name!, Number(count)] as const,
    )
    return { counts: Object.fromEntries(counts), stdout }
  }

  observed.each(['hosts', 'hosts.node'])(
    '%s: as many as the kernel counts in a run without the recorder (needs root, bpftrace)',
    async (name) => {
      const { path } = await model(NANO_MOE)
      const { recording } = await recorded(NANO_MOE, 2, name)
      expect(counted(path, {}, name).counts).toEqual({
        llama_decode: recording.of('token').length,
        ggml_backend_sched_graph_compute_async: recording.of('token').length,
        ggml_graph_compute: recording.of('graph').length,
        ggml_cpu_extra_compute_forward: recording.of('operator').filter(({ fusedTo }) => fusedTo === undefined).length,
      })
    },
  )

  observed('a function with a breakpoint is left alone, and named (needs root, bpftrace)', async () => {
    const { path } = await model(NANO)
    const log = newLog()
    mkdirSync(dirname(log), { recursive: true })
    const { counts } = counted(path, { LD_PRELOAD: RECORDER, GGML2PERFETTO_OUT: log })
    const recording = await readLog(log)
    for (const name of FUNCTIONS)
      expect(recording.attributes['program.refused']).toMatch(`${name}: its code is not as in the file`)
    // Calls are seen by llama_context::decode then.
    expect(recording.of('token')).toHaveLength(counts['llama_decode']!)
  })
})
