import { execFileSync, spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { analyze, type Finding } from '../../lib/index.ts'
import { inputOf, record } from '../../lib/node.ts'
import { expectChecks } from '../analyze/findings/made-run.ts'
import { cc } from '../compile.ts'
import { hasControlGroups, withCpuLimit } from '../control-group.ts'
import type { ModelSpec } from '../llama/gguf.mjs'
import { hasLlama, LIB, model, type RunOptions, run, runner } from '../llama/testbed.ts'
import { CPUS, HAS_AMX, hasTaskset, ON_CPU, startHog } from '../machine.ts'
import { canTrace } from '../sched/instance.ts'
import { perfTest } from './as-user.ts'
import { inFolder, newLog, RECORDER, useRecorder } from './recording.ts'
import '../live.ts'
import { FIRST } from '../first.ts'
import { inLong } from '../long.ts'

/** Runs of real llama.cpp that are slow for a known reason, so strongly that the load of the machine does not matter. */

const SOURCES = fileURLToPath(new URL('../llama', import.meta.url))
const isRoot = process.getuid?.() === 0

/** Attention is nearly all of its work once the context is long. */
const LONG: ModelSpec = {
  ...{ layers: 2, width: 256, feedForward: 64, heads: 4, kvHeads: 4, vocabulary: 300, context: 4096 },
}
/** A token's experts are sorted as one row, by one worker; here they are many, and small. */
const MANY_EXPERTS: ModelSpec = {
  ...{ layers: 16, width: 64, feedForward: 32, heads: 2, kvHeads: 1, vocabulary: 300, context: 512 },
  ...{ experts: 512, expertsUsed: 2 },
}

const canLimit = await hasControlGroups()
const llama = hasLlama() ? describe : describe.skip
const pinned = hasTaskset ? perfTest : test.skip

llama('the first finding of a run (needs linux-x64 and cc)', () => {
  useRecorder()

  beforeAll(() => {
    cc('-O1', '-shared', '-fPIC', '-o', inFolder('lazy-map.so'), join(SOURCES, 'lazy-map.c'), '-ldl')
  })

  async function findingsOf(path: string, args: readonly string[], options: RunOptions = {}): Promise<Finding[]> {
    const log = newLog()
    mkdirSync(join(log, '..'), { recursive: true })
    const preload = options.preload === undefined ? RECORDER : `${options.preload}:${RECORDER}`
    const result = await run(path, args, { ...options, preload, env: { GGML2PERFETTO_OUT: log, ...options.env } })
    expect([result.code, result.stderr]).toEqual([0, ''])
    const analysis = await analyze(inputOf(log))
    await expectChecks(analysis, inputOf(log))
    const [first] = analysis.findings
    const { cause, sentence } = analysis.verdict
    // One that takes a small part of the time is no cause.
    if (cause) expect([cause.rule, sentence]).toEqual([first!.rule, expect.stringContaining(first!.sentence)])
    return [...analysis.findings]
  }

  inLong(pinned)('beside a hog on its CPU: preemption (needs taskset, perf_event_open)', async () => {
    const { path } = await model('tinyDense')
    const hog = startHog()
    const before = ['taskset', ...ON_CPU]
    const found = await findingsOf(path, ['--decode', '60'], { before }).finally(() => hog.kill('SIGKILL'))
    expect(found[0]).toMatchObject({ rule: 'preempted', evidence: { worker: 0 } })
    expect(found[0]!.sentence).toMatch(/^worker 0 was preempted [\d.]+ % of (decode|prefill)$/)
    expect(found[0]!.evidence['preempted_share']).toBeGreaterThan(0.1)
  })

  const limited = canLimit ? perfTest : test.skip
  inLong(limited)('in a control group with a limit of CPU time: the limit (needs a control group)', async () => {
    const { path } = await model('tinyDense')
    const limit = withCpuLimit(3000)
    const args = ['--prompt', '16', '--decode', '40']
    const [first] = await findingsOf(path, args, { before: limit.before }).finally(limit.remove)
    expect(first).toMatchObject({ rule: 'cpu-limit', confidence: 'high', evidence: { cpu_time: 0.03 } })
    expect(first!.sentence).toMatch(/^the limit of 0\.03 CPUs was reached in \d+ % of its periods: /)
  })

  const traced = isRoot && canTrace(`findings-${process.pid}`) ? pinned : test.skip
  inLong(traced)('the same with the kernel’s switches: by name (needs root, tracefs)', async () => {
    const { path } = await model('tinyDense')
    const hog = startHog()
    const log = inFolder('hog.ggtrace')
    const args = ['--lib', LIB, '--model', path, '--decode', '60']
    const { exitCode, sched } = await record({
      command: ['taskset', ...ON_CPU, await runner(), ...args],
      env: process.env,
      output: log,
      sched: true,
      stdio: ['ignore', 'ignore', 'inherit'],
    }).finally(() => hog.kill('SIGKILL'))
    expect([exitCode, sched?.problem]).toEqual([0, undefined])
    const inputs = [inputOf(log), inputOf(sched!.path!)]
    const analysis = await analyze(inputs)
    await expectChecks(analysis, inputs)
    expect(analysis.findings[0]!.rule).toBe('preempted')
    // The hog is a shell.
    expect(analysis.findings[0]!.sentence).toMatch(
      /^worker 0 was preempted [\d.]+ % of (decode|prefill): (.*, )?sh [\d.]+ %/,
    )
  })

  inLong(pinned)('with more threads than CPUs: these (needs taskset, perf_event_open)', async () => {
    const { path } = await model('tinyDense')
    const args = ['--threads', '3', '--prompt', '2', '--decode', '4']
    const [first] = await findingsOf(path, args, { before: ['taskset', ...ON_CPU] })
    expect(first!.sentence).toMatch(/^3 workers share one CPU: \d+ % of (decode|prefill) is waiting for each other$/)
    expect(first).toMatchObject({ rule: 'more-threads-than-cpus', evidence: { workers: 3, cpus: 1 } })
  })

  /** Drops a file from the page cache. */
  const drop = (path: string) =>
    spawnSync('dd', [`of=${path}`, 'oflag=nocache', 'conv=notrunc,fdatasync', 'count=0'], { stdio: 'ignore' })

  test('whose model is not in the page cache: page faults of its first call', async () => {
    const { path } = await model('tinyDense')
    const cold = inFolder('cold.gguf')
    copyFileSync(path, cold)
    execFileSync('sync', [cold])
    drop(cold)
    const args = ['--no-repack', '--prompt', '1', '--decode', '20']
    const env = { GGML2PERFETTO_COUNTERS: 'major-faults' }
    const before = FIRST
    const found = await findingsOf(cold, args, { preload: inFolder('lazy-map.so'), before, env })
    expect(found[0]).toMatchObject({ rule: 'first-call', confidence: 'high' })
    expect(found[0]!.evidence['major_faults']).toBeGreaterThan(1000)
    expect(found[0]!.sentence).toMatch(
      /^the first prefill call takes \d+ × .* page faults that read \d+ MB from the disk, most in blk\.\d$/,
    )
  })

  inLong(test)('with a long context: growth of TPOT, by attention', async () => {
    const { path } = await model(LONG)
    const [first] = await findingsOf(path, ['--prompt', '2', '--decode', '3000'], { before: FIRST })
    expect(first!.sentence).toMatch(/^TPOT grows [\d.]+ ms per 1 000 tokens: FLASH_ATTN_EXT \d+ %/)
    expect(first!.rule).toBe('context-growth')
  })

  const twoCpus = CPUS.length > 1 && FIRST.length > 0 ? perfTest : test.skip
  inLong(twoCpus)(
    'whose experts one worker sorts: the operator that is not split (needs root, chrt, two CPUs)',
    async () => {
      const { path } = await model(MANY_EXPERTS)
      const [first] = await findingsOf(path, ['--threads', '2', '--prompt', '2', '--decode', '40'], { before: FIRST })
      // With AMX, all operators of so small a model wait long for each other: this one does not wait twice as much as they do.
      if (HAS_AMX && first!.rule === 'barrier-wait') {
        expect(first!.sentence).toMatch(/: worker 0 arrives last in \d+ % of it \(after MoE /)
        return
      }
      expect(first!.sentence).toMatch(
        /^\d+ % of decode is lost in ffn_moe_argsort ARGSORT: worker 0 computes (alone|\d+ × as long as the others)$/,
      )
      expect(first!.rule).toBe('unbalanced-op')
    },
  )

  twoCpus('that nothing disturbs: none of another program, of page faults, or of late workers', async () => {
    const { path } = await model('tinyDense')
    for (const threads of ['1', '2', '1']) {
      const found = await findingsOf(path, ['--threads', threads, '--prompt', '16', '--decode', '40'], {
        before: FIRST,
      })
      const unexpected = found.filter(({ rule }) => !['outside-graphs', 'first-call'].includes(rule))
      expect(unexpected.map(({ sentence }) => sentence)).toEqual([])
    }
  })
})
