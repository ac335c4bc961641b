import { mkdirSync, statSync } from 'node:fs'
import { constants } from 'node:os'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from '@jest/globals'
import { convert } from '../../lib/index.ts'
import { inputOf, openTrace, summarizeFile } from '../../lib/node.ts'
import type { ModelSpec } from '../llama/gguf.mjs'
import { hasLlama, model, type RunOptions, runHosts } from '../llama/testbed.ts'
import '../live.ts'
import { cc } from '../compile.ts'
import { inLong, inParts, someOf } from '../long.ts'
import { denied } from './as-user.ts'
import {
  inFolder,
  NANO,
  newLog,
  RECORDER,
  type Recording,
  readLog,
  recordHosts,
  type Steps,
  useRecorder,
} from './recording.ts'

const llama = hasLlama() ? describe : describe.skip
const KIB = 1024
const RING = 256 * KIB
/** A log may be larger by what threads write just now, and by definitions that need more than half of it: two contexts'. */
const IN_USE = 8 * 16 * KIB

/** Small as it is, it writes much. */
const DEEP: ModelSpec = { ...NANO, layers: 8 }
/** Each of its calls fills several segments of the log. */
const DEEPER: ModelSpec = { ...NANO, layers: 220 }

/** Contexts one after the other, as each has an end; the last stays open. One worker, as two would spin. */
const decodes = (contexts: number): Steps => [
  ...Array.from({ length: contexts - 1 }, () => ['open', 0, 1, 'decode', 0, 480, 'close', 0]).flat(),
  ...['open', 0, 1, 'decode', 0, 480],
]

/** Operators of each call that has its TOKEN record. */
function operatorsByCall({ of }: Recording): Map<number, number> {
  const counts = new Map(of('token').map(({ call }) => [call, 0]))
  for (const { call } of of('operator')) if (counts.has(call)) counts.set(call, counts.get(call)! + 1)
  return counts
}

llama('logs that are limited while they are written (needs linux-x64 and cc)', () => {
  useRecorder()

  const ring = { GGML2PERFETTO_RING: '1', GGML2PERFETTO_MAX_BYTES: `${RING}` }

  async function recorded(steps: Steps, env: Record<string, string>, spec = DEEP, options: RunOptions = {}) {
    const { path } = await model(spec)
    const { log } = await recordHosts(['load', 0, path, ...steps], { ...options, env })
    return { log, recording: await readLog(log) }
  }

  /** Holds the log of a ring against the whole one of the same steps. */
  function expectLastPart(part: Recording, whole: Recording, isKilled = false): void {
    expect(part.issues.filter((issue) => !issue.startsWith('run did not end'))).toEqual([])
    const all = operatorsByCall(whole)
    const calls = operatorsByCall(part)
    const last = [...all.keys()].at(-1)!
    if (isKilled) for (const counts of [all, calls]) counts.delete(last) // an operator is written when the next begins
    const first = Math.min(...calls.keys())
    expect([first > 0, calls.size > 10]).toEqual([true, true])
    // All calls from one on, and each of them as a whole.
    expect([...calls.keys()]).toEqual(Array.from({ length: calls.size }, (_, i) => first + i))
    expect([...calls]).toEqual([...all].filter(([call]) => call >= first))
    const names = (recording: Recording) =>
      recording
        .of('operator')
        .filter(({ call }) => call >= first && calls.has(call))
        .map(({ call, worker, tensor }) => `${call} ${worker} ${recording.text(recording.tensor(tensor).name)}`)
        .sort()
    expect(names(part)).toEqual(names(whole))
    // And nothing that the log does not have all of: the first call begins before its operators.
    const since = Math.min(...part.of('operator').map(({ startNs }) => startNs))
    const before = part.of('token').filter(({ startNs }) => startNs < since)
    expect(before.every(({ call }) => call === first)).toBe(true)
  }

  test('a ring holds the last part of a run that is more than eight times as large', async () => {
    const whole = await recorded(decodes(2), {})
    expect(statSync(whole.log).size).toBeGreaterThan(8 * RING)
    const { log, recording } = await recorded(decodes(2), ring)
    expect(statSync(log).size).toBeLessThanOrEqual(RING + IN_USE)
    expect(statSync(log).size).toBeGreaterThan(RING / 2)
    expectLastPart(recording, whole.recording)
    const { attributes } = await summarizeFile(log)
    expect(attributes['recorded.last_bytes']).toBe(`${RING}`)
    expect(Number(attributes['overwritten_records'])).toBeGreaterThan(10_000)

    const trace = await openTrace(convert(inputOf(log)))
    expect(trace.problems()).toEqual([])
    const of = (sql: string) => trace.query(sql).rows.map((row) => Number(row[0]))
    expect(of("select count(*) from slice where category = 'operator'")).toEqual([recording.of('operator').length])
    // It begins where the log does, not where the program did.
    const [start, end] = ['start', 'end'].map((edge) => of(`select ${edge}_ts from trace_bounds`)[0]!)
    const [first] = of('select min(ts) from slice')
    expect(first! - start!).toBeLessThan(end! - first!)
    trace.close()
  })

  inLong(test)('a ring that was killed is in order, too, and takes no more of the disk', async () => {
    const steps = decodes(1)
    const whole = await recorded(steps, {})
    const { path } = await model(DEEP)
    const log = newLog()
    mkdirSync(dirname(log))
    const killed = ['load', 0, path, ...steps, 'raise', constants.signals.SIGKILL]
    const { signal } = await runHosts(killed, { preload: RECORDER, env: { GGML2PERFETTO_OUT: log, ...ring } })
    expect(signal).toBe('SIGKILL')
    const recording = await readLog(log)
    const { size, blocks } = statSync(log)
    expect(size).toBeGreaterThan(2 * RING)
    expect(blocks * 512).toBeLessThanOrEqual(RING + IN_USE)
    expectLastPart(recording, whole.recording, true)
    expect(recording.issues).toEqual([expect.stringMatching(/^run did not end/)])
  })

  const FULL: readonly (readonly [by: string, env: Record<string, string>, options: RunOptions])[] = [
    ['its own limit', { GGML2PERFETTO_MAX_BYTES: `${RING}` }, {}],
    ['the limit of the process for files', {}, { before: ['prlimit', `--fsize=${RING}`] }],
  ]
  test.each(FULL)('a full log, by %s, of a program that was killed counts what is missing', async (_, env, options) => {
    const { path } = await model(DEEP)
    const log = newLog()
    mkdirSync(dirname(log))
    const steps = ['load', 0, path, ...decodes(1), 'raise', constants.signals.SIGKILL]
    const recorder = { preload: RECORDER, env: { GGML2PERFETTO_OUT: log, ...env } }
    expect((await runHosts(steps, { ...recorder, ...options })).signal).toBe('SIGKILL')
    const recording = await readLog(log)
    const calls = [...operatorsByCall(recording)]
    expect([calls.length > 10, calls.length < 480]).toEqual([true, true])
    expect(calls.map(([call]) => call)).toEqual(calls.map((_, i) => i))
    const dropped = recording.issues.map((issue) =>
      Number((/had no space for (.+) records?,/.exec(issue)?.[1] ?? '0').replaceAll(/\D/g, '')),
    )
    // Of each call, one record at least and all operators.
    expect(dropped.reduce((sum, records) => sum + records)).toBeGreaterThan((480 - calls.length) * 10)
    expect(recording.issues.filter((issue) => !/^(?:dropped records|run did not end)/.test(issue))).toEqual([])
  })

  inLong(test)('a ring that is never full is the log that there is without', async () => {
    const steps = ['open', 0, 1, 'decode', 0, 20]
    const { log, recording } = await recorded(steps, { ...ring, GGML2PERFETTO_MAX_BYTES: `${64 * KIB * KIB}` })
    expect(recording.issues).toEqual([])
    expect(operatorsByCall(recording)).toEqual(operatorsByCall((await recorded(steps, {})).recording))
    expect((await summarizeFile(log)).attributes['overwritten_records']).toBeUndefined()
  })

  inLong(test)('a ring of segments that are smaller than a graph', async () => {
    const steps = ['open', 0, 1, 'decode', 0, 40]
    const whole = await recorded(steps, {}, DEEPER)
    const nodes = ({ of }: Recording) => of('graph').map(({ nodes: count }) => count)
    expect(Math.max(...nodes(whole.recording)) * 4).toBeGreaterThan(16 * KIB)
    const { recording } = await recorded(steps, ring, DEEPER)
    expect(recording.issues).toEqual([])
    const calls = operatorsByCall(recording)
    expect(calls.size).toBeGreaterThan(0)
    expect([...calls]).toEqual([...operatorsByCall(whole.recording)].slice(-calls.size))
    expect(new Set(nodes(recording))).toEqual(new Set(nodes(whole.recording)))
  })

  const PLAIN = ['fallocate', 'madvise', 'pwrite64', 'membarrier', 'ftruncate']
  inParts(test).each(someOf(['EPERM', 'ENOSYS'] as const, 2))(
    'a log where a sandbox answers %s to all but plain writes',
    async (error) => {
      const steps = ['open', 0, 1, 'decode', 0, 20]
      const whole = await recorded(steps, {})
      const { recording } = await recorded(steps, ring, DEEP, { before: denied([...PLAIN, 'prlimit64'], error) })
      expect(recording.issues).toEqual([])
      expect(operatorsByCall(recording)).toEqual(operatorsByCall(whole.recording))
      expect(recording.of('input')[0]!.attributes['note']).toMatch(/^not the last part but the first was kept/)
    },
  )

  inLong(test)('a guard records less when the disk slows decode down, and says so', async () => {
    const slow = inFolder('slow-disk.so')
    const source = fileURLToPath(new URL('../llama/slow-disk.c', import.meta.url))
    cc('-O1', '-shared', '-fPIC', '-o', slow, source, '-ldl')
    // It decides every 64 calls.
    const steps = ['open', 0, 1, 'decode', 0, 200]
    const env = { GGML2PERFETTO_GUARD: '100 %', ...ring, SLOW_DISK_MS: '6' }
    const { log, recording } = await recorded(steps, env, DEEPER, { preload: slow })
    const [issue] = recording.of('issue')
    expect(issue!.title).toBe('recorded less')
    expect(issue!.detail).toMatch(
      /^decode took [\d.]+ ms a call when recorded, [\d.]+ ms when not: \d+ % more, above the guard's 100 %; from here on only graphs$/,
    )
    const after = recording.of('token').filter(({ startNs }) => startNs > issue!.atNs)
    const calls = operatorsByCall(recording)
    expect(after.length).toBeGreaterThan(20)
    expect(after.every(({ call }) => calls.get(call) === 0)).toBe(true)
    const graphs = new Set(recording.of('graph').map(({ call }) => call))
    // Every eighth call is spared, until there is nothing to spare.
    const spared = recording.of('token').filter(({ batch }) => batch!.isLeftOut)
    expect(spared.length).toBeGreaterThanOrEqual(8)
    expect(spared.every(({ call }) => !graphs.has(call))).toBe(true)
    const trace = await openTrace(convert(inputOf(log)))
    const { rows } = trace.query("select ts from slice where category = 'issue' and name = 'recorded less'")
    expect(rows.length).toBeGreaterThan(0)
    trace.close()
  })

  test('a guard leaves a run alone that recording does not slow down by as much', async () => {
    const steps = ['open', 0, 1, 'decode', 0, 200]
    const { recording } = await recorded(steps, { GGML2PERFETTO_GUARD: '1000000 %' })
    expect(recording.issues).toEqual([])
    const calls = [...operatorsByCall(recording).values()]
    // One in eight of the decode calls; the prompt is none of them.
    expect(calls.filter((count) => count === 0)).toHaveLength(Math.floor(199 / 8))
  })
})
