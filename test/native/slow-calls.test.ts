import { mkdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { analyze } from '../../lib/index.ts'
import { inputOf, openTrace } from '../../lib/node.ts'
import { run, useFolder } from '../cli/helpers.ts'
import { hasLlama, hostsProgram, LIB, model, runHosts } from '../llama/testbed.ts'
import '../live.ts'
import { inLong } from '../long.ts'
import {
  expectCalls,
  expectTrace,
  NANO,
  newLog,
  RECORDER,
  readLog,
  recordHosts,
  type Steps,
  useRecorder,
} from './recording.ts'

const llama = hasLlama() ? describe : describe.skip
const LIMIT_MS = 400
const slow = { GGML2PERFETTO_SLOW: `${LIMIT_MS}000000` }
const MAX = { GGML2PERFETTO_MAX_BYTES: `${4 << 20}` }
/** What a call takes longer outside of the recorder's hooks than inside. */
const HOOKS_NS = 5e6
/** Each takes longer than the limit, as it sleeps. */
const SLOW: Steps = ['while', 0, 'attn_out-0', 'sleep', LIMIT_MS + 50, 'end']
const APART: Steps = ['sleep', 1200]

useFolder()

llama('a log of slow calls (needs linux-x64 and cc)', () => {
  useRecorder()

  async function recorded(steps: Steps) {
    const { path } = await model(NANO)
    const { log, result } = await recordHosts(['load', 0, path, ...steps], {
      env: { ...slow, ...MAX },
      plainSteps: ['load', 0, path, ...steps.filter((_, i) => steps[i - 1] !== 'sleep' && steps[i] !== 'sleep')],
    })
    const { calls } = result
    const recording = await readLog(log)
    const origin = Number(recording.of('input')[0]!.originNs)
    const isKept = ({ start, end }: (typeof calls)[number]) =>
      recording
        .of('token')
        .some(({ startNs, endNs }) => origin + startNs >= start - 1000 && origin + endNs <= end + 1000)
    return { log, calls, recording, kept: calls.filter(isKept) }
  }

  test('it has these calls as a whole, those of the second before, and how many others there were', async () => {
    const steps = ['open', 0, 2, 'decode', 0, 100, ...APART, 'decode', 0, 5, ...SLOW, 'decode', 0, 50]
    const { log, calls, recording, kept } = await recorded([...steps, ...APART, ...SLOW, 'decode', 0, 60])
    expect(calls).toHaveLength(217)
    // All slow calls, and all else that is in the log, with each operator.
    const isSlow = ({ start, end }: (typeof calls)[number]) => end - start > LIMIT_MS * 1e6 + HOOKS_NS
    expect(kept.filter(isSlow)).toEqual(calls.filter(isSlow))
    expect(kept.filter(isSlow).length).toBeGreaterThanOrEqual(2)
    expectCalls(recording, kept, () => 2)
    // What preceded the first slow one began at most a second before it.
    const at = calls.findIndex(isSlow)
    const expected = calls.filter(({ start }, i) => i <= at && start >= calls[at]!.start - 1e9)
    const before = kept.filter((call) => calls.indexOf(call) <= at)
    expect(Math.abs(before.length - expected.length)).toBeLessThanOrEqual(1)
    // The others are counted.
    const { attributes } = recording
    const others = calls.filter((call) => !kept.includes(call))
    expect(attributes).toMatchObject({ 'recorded.slow': `${LIMIT_MS} ms`, 'left_out.calls': `${others.length}` })
    const ns = others.reduce((sum, { start, end }) => sum + end - start, 0)
    expect(Number(attributes['left_out.ns'])).toBeLessThanOrEqual(ns)
    expect(Number(attributes['left_out.ns'])).toBeGreaterThan(0.5 * ns)
    expect(recording.issues.every((issue) => /^fast calls left out: \d+ calls?, .* in all$/.test(issue))).toBe(true)
    expect(recording.issues.map((issue) => parseInt(issue.split(': ')[1]!, 10)).reduce((a, b) => a + b)).toBe(
      others.length,
    )
    await expectTrace(log, recording)
  })

  inLong(test)('its figures are of the calls that it has, and say so', async () => {
    const steps = ['open', 0, 1, 'decode', 0, 80, ...APART, ...SLOW, ...APART, 'decode', 0, 30, ...APART, ...SLOW]
    const { log, calls, recording, kept } = await recorded(steps)
    const analysis = await analyze([inputOf(log)])
    expect(analysis.run.left_out).toMatchObject({ calls: calls.length - kept.length, limit: `${LIMIT_MS} ms` })
    expect(analysis.verdict.sentence).toContain(`from ${LIMIT_MS} ms on, and what preceded them`)
    expect(analysis.verdict.confidence).not.toBe('high')
    // The time from one kept call to the next is not that of a token.
    const { tpot_ns, ttft_ns } = analysis.calls
    expect([tpot_ns, ttft_ns].every((ns) => ns === null || ns < 1e9)).toBe(true)
    // Nor is a state known that a thread had in between.
    const ends = recording.of('token').map(({ endNs }) => endNs)
    const states = recording.of('state').filter(({ state }) => state === 'off')
    for (const { atNs } of states) expect(Math.min(...ends.map((end) => Math.abs(end - atNs)))).toBeLessThan(HOOKS_NS)
  })

  test('the command says what it left out in its last line, as statistics and the trace do', async () => {
    const { path } = await model(NANO)
    const [log, trace] = [newLog(), newLog()].map((path) => join(mkdirSync(dirname(path), { recursive: true })!, 'run'))
    const steps = ['load', 0, path, 'open', 0, 1, 'decode', 0, 60, ...APART, ...SLOW].map(String)
    const program = [await hostsProgram(), LIB, ...steps]
    const { stderr } = run(['record', '--slow', `${LIMIT_MS}ms`, '-o', log!, '--', ...program])
    const left = '\\d+\\s+others,\\s+[\\d.]+\\s.?s in all, left out'
    const lines = stderr.trim().split('\n')
    expect(lines.at(-2)).toMatch(new RegExp(`^wrote .*: calls from ${LIMIT_MS} ms on; ${left}$`))
    expect(run(['stats', log!]).stdout).toMatch(
      new RegExp(`^[^()]*\\(of calls from ${LIMIT_MS} ms on, and what preceded them: ${left}\\)`),
    )
    run([log!, '-o', trace!])
    const shown = await openTrace(readFileSync(trace!))
    const names = shown.query("select name from slice where category = 'issue'").rows.map(([name]) => name)
    expect(names).toEqual(['fast calls left out'])
    shown.close()
    expect(run(['record', '--slow', '0', '--', 'true']).stderr).toMatch(/expected a time such as 200ms/)
  })

  inLong(test)('it stays small, however long the run is', async () => {
    const contexts = Array.from({ length: 12 }, () => ['open', 0, 1, 'decode', 0, 500, 'close', 0]).flat()
    const { log, recording } = await recorded([...contexts, 'open', 0, 1, ...APART, ...SLOW])
    // A busy machine makes some of the others slow, too.
    const kept = recording.of('token').length
    expect(Number(recording.attributes['left_out.calls'])).toBe(6001 - kept)
    expect(kept).toBeLessThan(600)
    expect(statSync(log).size).toBeLessThan(1 << 20)
  })

  test('of a killed program, it has what is complete', async () => {
    const { path } = await model(NANO)
    const steps = ['load', 0, path, 'open', 0, 1, 'decode', 0, 60, ...APART, ...SLOW, 'decode', 0, 9, 'raise', 9]
    const log = newLog()
    mkdirSync(dirname(log), { recursive: true })
    const env = { GGML2PERFETTO_OUT: log, ...slow, ...MAX }
    expect((await runHosts(steps, { preload: RECORDER, env })).signal).toBe('SIGKILL')
    const { of, attributes, issues } = await readLog(log)
    const kept = of('token').map(({ call }) => call)
    expect(kept).toContain(60)
    expect(attributes['left_out.calls']).toBe(`${70 - kept.length}`)
    expect(issues.filter((issue) => !/^(?:fast calls|run did not end|.*still open)/.test(issue))).toEqual([])
  })

  inLong(test)('without a slow call it has none, and the number of all', async () => {
    const { log, calls, recording } = await recorded(['open', 0, 1, 'decode', 0, 60])
    const { length } = recording.of('token')
    expect(length + Number(recording.attributes['left_out.calls'])).toBe(calls.length)
    expect((await analyze([inputOf(log)])).verdict.sentence).toMatch(length === 0 ? /^no call lasted 400 ms: / : /./)
  })
})
