import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from '@jest/globals'
import { cc } from '../compile.ts'
import { hasLlama, hostsProgram, LIB, model, type Run, run, runHosts, runPython } from '../llama/testbed.ts'
import { inLong, inParts, isLong, someOf } from '../long.ts'
import {
  callNumber,
  expectCalls,
  expectTrace,
  inFolder,
  NANO,
  NANO_MOE,
  newLog,
  RECORDER,
  readLog,
  recordHosts,
  type Steps,
  useRecorder,
} from './recording.ts'

/** Processes as real programs with llama.cpp have them: many workers, forks, execs, sudden ends, disks that are full. */
const llama = hasLlama() ? describe : describe.skip

/** The logs that a run has left: the one that was asked for, and others beside it. */
const logsBeside = (log: string) => readdirSync(dirname(log)).sort()

/** The log is whole and holds this process's calls, all of them; the trace has them, too. */
async function expectLog(log: string, { calls }: Run, pid: number, workers: number) {
  const recording = await readLog(log)
  expect(recording.issues).toEqual([])
  expect(recording.of('input')[0]!.attributes['pid']).toBe(`${pid}`)
  const own = calls.filter((call) => call.pid === pid)
  expectCalls(recording, own, () => workers)
  await expectTrace(log, recording)
  return recording
}

const python = hasLlama() && spawnSync('python3', ['--version']).status === 0 ? test : test.skip

inLong(describe)('ctypes, as llama-cpp-python uses it', () => {
  useRecorder()

  python(
    'a Python program: each call, and as many operators as of a C program (needs linux-x64, cc, python3)',
    async () => {
      const { path } = await model(NANO_MOE)
      const recorded = async (start: (options: { preload: string; env: Record<string, string> }) => Promise<Run>) => {
        const log = newLog()
        mkdirSync(dirname(log), { recursive: true })
        const result = await start({ preload: RECORDER, env: { GGML2PERFETTO_OUT: log } })
        const recording = await readLog(log)
        expect([result.code, recording.issues]).toEqual([0, []])
        const workers = recording.of('operator').map(({ call, worker }) => `call ${call}, worker ${worker}`)
        return { result, recording, workers: workers.sort() }
      }
      const plain = await runPython(path, 2, 5)
      const ofPython = await recorded((options) => runPython(path, 2, 5, options))
      const ofC = await recorded((options) => run(path, ['--threads', '2', '--prompt', '4', '--decode', '5'], options))
      expect(ofPython.result.result!.tokens).toEqual(plain.result!.tokens)
      expect(ofPython.recording.of('token').map(({ phase, tokens }) => [phase, tokens])).toEqual([
        ['prefill', 4],
        ...Array.from({ length: 5 }, () => ['decode', 1]),
      ])
      expect(ofPython.result.calls.map((call) => callNumber(ofPython.recording, call))).toEqual([0, 1, 2, 3, 4, 5])
      expect(ofPython.workers.length).toBeGreaterThan(100)
      expect(ofPython.workers).toEqual(ofC.workers)
    },
  )
})

/** Each of them spins at each barrier of ggml. */
const MANY = isLong ? 32 : 8

llama('workers (needs linux-x64 and cc)', () => {
  useRecorder()

  inParts(test)(`${MANY} of them on few cores are all there, and nothing is lost`, async () => {
    const { path } = await model(NANO)
    const steps = (threads: number) => ['load', 0, path, 'open', 0, threads, 'decode', 0, 1, 'close', 0, 'exit', 3]
    // ggml's workers spin at its barriers: as many on two cores take seconds for a call. Untraced, two compute the same.
    const { log, result } = await recordHosts(steps(MANY), { plainSteps: steps(2) })
    const { of } = await expectLog(log, result, result.results[0]!.pid, MANY)
    expect(new Set(of('operator').map(({ tid }) => tid)).size).toBe(MANY)
  })

  test('that are still alive when the program ends have told of all their operators', async () => {
    const { path } = await model(NANO)
    const { log, result } = await recordHosts(['load', 0, path, 'open', 0, 4, 'decode', 0, 3, 'exit', 6])
    await expectLog(log, result, result.results[0]!.pid, 4)
  })

  inLong(test)('that have no CPU when the program ends have told of all their operators, too', async () => {
    const slow = inFolder('slow-worker.so')
    const source = fileURLToPath(new URL('../llama/slow-worker.c', import.meta.url))
    cc('-O1', '-shared', '-fPIC', '-o', slow, source, '-ldl')
    const { path } = await model(NANO)
    const log = newLog()
    mkdirSync(dirname(log))
    const steps = ['load', 0, path, 'open', 0, 3, 'decode', 0, 2, 'exit', 6]
    const result = await runHosts(steps, { preload: `${RECORDER}:${slow}`, env: { GGML2PERFETTO_OUT: log } })
    expect([result.code, result.stderr]).toEqual([6, ''])
    await expectLog(log, result, result.results[0]!.pid, 3)
  })

  test('begin a graph with fused nodes: these are told of, and stay apart from the graph before', async () => {
    const { path } = await model(NANO)
    const steps = [
      'load',
      0,
      path,
      'open',
      0,
      2,
      'decode',
      0,
      2,
      'while',
      0,
      'ffn_inp-0',
      'end',
      'decode',
      0,
      1,
      'close',
      0,
    ]
    const { log, result } = await recordHosts(steps)
    await expectLog(log, result, result.results[0]!.pid, 2)
  })
})

llama('fork (needs linux-x64 and cc)', () => {
  useRecorder()

  /** What a child does: nothing; becomes a program that decodes; decodes in a context of its own. */
  const children = async () => {
    const [{ path }, { path: moe }] = [await model(NANO), await model(NANO_MOE)]
    const own = ['load', 1, moe, 'open', 1, 2, 'decode', 1, 3]
    return {
      path,
      steps: [['exit', 9], ['exec', await hostsProgram(), LIB, ...own, 'close', 1], own] satisfies Steps[],
    }
  }

  // _Fork: as clone(2) does it, without the handlers that libc runs at a fork.
  inParts(test).each(someOf(['fork', '_Fork'], 2))('%s: children leave the log alone, and write none', async (fork) => {
    const { path, steps } = await children()
    const forks = steps.flatMap((child) => [fork, ...child, 'end', 'decode', 0, 1])
    const all = ['load', 0, path, 'open', 0, 2, 'decode', 0, 2, ...forks, 'close', 0, 'exit', 5]
    const { log, result } = await recordHosts(all)
    expect([result.code, result.children.map(({ code }) => code)]).toEqual([5, [9, 0, 0]])
    expect(new Set(result.calls.map(({ pid }) => pid)).size).toBe(3)
    expect(logsBeside(log)).toEqual(['run.ggtrace'])
    await expectLog(log, result, result.results.at(-1)!.pid, 2)
  })

  inLong(test).each(['fork', '_Fork'])('%s in the middle of a call, by its thread', async (fork) => {
    const { path, steps } = await children()
    const forks = steps.flatMap((child) => ['while', 0, 'Qcur-0', fork, ...child, 'end', 'end'])
    const { log, result } = await recordHosts(['load', 0, path, 'open', 0, 2, 'decode', 0, 1, ...forks, 'close', 0])
    expect(result.children.map(({ code }) => code)).toEqual([9, 0, 0])
    expect(logsBeside(log)).toEqual(['run.ggtrace'])
    await expectLog(log, result, result.results.at(-1)!.pid, 2)
  })

  inLong(test)('before the first call: the child is not recorded, unless children are asked for', async () => {
    const { path, steps } = await children()
    const all = ['fork', ...steps[2]!, 'close', 1, 'end', 'load', 0, path, 'open', 0, 2, 'decode', 0, 2, 'close', 0]
    const { log, result } = await recordHosts(all)
    const [child, parent] = result.results.map(({ pid }) => pid)
    expect(logsBeside(log)).toEqual(['run.ggtrace'])
    await expectLog(log, result, parent!, 2)
    const both = await recordHosts(all, { env: { GGML2PERFETTO_CHILDREN: '1' } })
    const [first, second] = both.result.results.map(({ pid }) => pid)
    expect([child, parent]).not.toContain(first)
    expect(logsBeside(both.log)).toEqual(['run.ggtrace', `run.ggtrace.${second}`])
    await expectLog(both.log, both.result, first!, 2)
    await expectLog(`${both.log}.${second}`, both.result, second!, 2)
  })
})

llama('exec (needs linux-x64 and cc)', () => {
  useRecorder()

  const execs = async (before: Steps) => {
    const { path } = await model(NANO_MOE)
    const after = ['load', 1, path, 'open', 1, 2, 'decode', 1, 3, 'close', 1, 'exit', 4]
    return [...before, 'exec', await hostsProgram(), LIB, ...after]
  }

  test('before a model is loaded: the log is that of what the program became', async () => {
    const { log, result } = await recordHosts(await execs([]))
    expect([result.code, result.results.length]).toEqual([4, 2])
    expect(logsBeside(log)).toEqual(['run.ggtrace'])
    await expectLog(log, result, result.results[0]!.pid, 2)
  })

  test('after calls: the log breaks off there, and says so; the next program has its own', async () => {
    const { path } = await model(NANO)
    const { log, result } = await recordHosts(await execs(['load', 0, path, 'open', 0, 2, 'decode', 0, 2]))
    const [{ pid }] = result.results as [Run['results'][0]]
    expect([result.code, result.results.map((one) => one.pid)]).toEqual([4, [pid, pid]])
    expect(logsBeside(log)).toEqual(['run.ggtrace', `run.ggtrace.${pid}`])
    const before = await readLog(log)
    expect(before.issues).toEqual([expect.stringMatching(/^run did not end: no END record/)])
    expect(before.of('token')).toHaveLength(2)
    const [first, second] = [result.calls.slice(0, 2), result.calls.slice(2)]
    const alone = before.of('operator').filter(({ worker }) => worker === 0)
    const nodes = alone.map(({ fusedTo }) => (fusedTo === undefined ? 1 : 2)).reduce<number>((sum, n) => sum + n, 0)
    expect(nodes).toBe(first[0]!.nodes! + first[1]!.nodes!)
    await expectLog(`${log}.${pid}`, { ...result, calls: second }, pid, 2)
  })
})

llama('disks (needs linux-x64 and cc)', () => {
  useRecorder()

  const steps = async (calls: number) => {
    const { path } = await model(NANO_MOE)
    return ['load', 0, path, 'open', 0, 1, 'decode', 0, calls, 'close', 0, 'exit', 8]
  }
  const asRoot = process.getuid?.() === 0 && spawnSync('unshare', ['-m', 'true']).status === 0 ? test : test.skip

  asRoot.each([
    ['read-only', 'ro', 0],
    ['full before the run', 'size=64k', 64],
  ])('%s: no log, and nothing else changes (needs root, to mount a small disk)', async (name, options, filledKib) => {
    const disk = inFolder(name.replaceAll(' ', '-'))
    mkdirSync(disk)
    execFileSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', disk])
    try {
      if (filledKib > 0) spawnSync('dd', ['if=/dev/zero', `of=${join(disk, 'filled')}`, 'bs=1k', `count=${filledKib}`])
      const before = readdirSync(disk)
      const { result } = await recordHosts(await steps(3), { log: join(disk, 'run.ggtrace') })
      expect([result.code, result.calls.length]).toEqual([8, 3])
      expect(readdirSync(disk)).toEqual(before)
    } finally {
      execFileSync('umount', [disk])
    }
  })

  const limited = spawnSync('prlimit', ['--version']).status === 0 ? test : test.skip
  limited('a limit on the size of files costs records, and the log counts them (needs prlimit)', async () => {
    const before = ['prlimit', `--fsize=${250 * 1024}`]
    const { log, result } = await recordHosts(await steps(300), { before })
    expect([result.code, result.calls.length]).toEqual([8, 300])
    expect(logsBeside(log)).toEqual([basename(log)])
    const recording = await readLog(log)
    expect(recording.of('input')[0]!.attributes['pid']).toBe(`${result.results[0]!.pid}`)
    expect(recording.issues.join('\n')).toMatch(/dropped|lost/)
    expect(recording.of('operator').length).toBeGreaterThan(5000)
  })
})
