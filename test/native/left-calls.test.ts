import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { convert, summarize } from '../../lib/index.ts'
import { inputOf, openTrace } from '../../lib/node.ts'
import { hasLlama, LIB, model, runLeaving } from '../llama/testbed.ts'
import { inFolder, NANO, newLog, RECORDER, readLog, useRecorder } from './recording.ts'

/** A real program whose callbacks leave llama_decode: nothing returns from that call, and others follow. */
const canBuild = hasLlama() && spawnSync('c++', ['--version'], { stdio: 'ignore' }).status === 0
const llama = canBuild ? describe : describe.skip

const LEFT = -0x8000_0000

/** A copy: where another test has a return probe on a function of the recorder's file, no exception gets past that function, in any process. */
function ownRecorder(): string {
  const path = inFolder('own-recorder.so')
  copyFileSync(RECORDER, path)
  return path
}

const WAYS = [
  'call',
  'throw',
  'call',
  'call',
  'jump',
  'deep-call',
  'call',
  'deep-throw',
  'deep-call',
  'call',
  'jump',
  'deep-jump',
]

llama('calls that are left by an exception or longjmp (needs linux-x64, cc and c++)', () => {
  useRecorder()

  const record = async (steps: readonly string[], env: Readonly<Record<string, string>>) => {
    const { path } = await model(NANO)
    const log = newLog()
    mkdirSync(dirname(log), { recursive: true })
    const plain = await runLeaving([LIB, path, ...steps], { env })
    const run = await runLeaving([LIB, path, ...steps], {
      env: { ...env, GGML2PERFETTO_OUT: log },
      preload: ownRecorder(),
    })
    const outcome = ({ code, stderr, calls, failed }: typeof run) => [code, stderr, calls.length, failed.length]
    expect(outcome(run)).toEqual(outcome(plain))
    return { log, run, recording: await readLog(log) }
  }

  test.each([
    ['by the eval callback, outside of graph runs', WAYS, {}],
    [
      'by the abort callback, inside of graph runs',
      ['call', 'abort', 'call', 'deep-call', 'abort', 'deep-abort', 'deep-call', 'call'],
      { LEAVING_WITHOUT_EVALUATION: '1' },
    ],
  ])('%s: all calls are in the log, those that were left as failed', async (_, steps, env) => {
    for (const level of ['token', 'graph', 'op']) {
      const { run, recording, log } = await record([...steps, ...steps, 'call'], { ...env, GGML2PERFETTO_LEVEL: level })
      const wanted = [...steps, ...steps, 'call'].map((step) => (step.endsWith('call') ? 0 : LEFT))
      expect(recording.of('token').map(({ batch }) => batch!.result)).toEqual(wanted)
      expect(recording.of('token').map(({ call }) => call)).toEqual(wanted.map((_, i) => i))
      const origin = Number(recording.of('input')[0]!.originNs)
      const programs = run.lines.flatMap((line) => (line.event === 'call' || line.event === 'failed' ? [line] : []))
      for (const [i, { startNs, endNs, batch }] of recording.of('token').entries()) {
        expect(origin + startNs).toBeGreaterThanOrEqual(programs[i]!.start)
        expect(origin + endNs).toBeLessThanOrEqual(programs[i]!.end)
        if (batch!.result === LEFT) expect(endNs).toBe(startNs)
      }
      const { failures, issues } = await summarize(inputOf(log))
      const left = wanted.filter((result) => result === LEFT).length
      expect(failures).toEqual([{ result: LEFT, meaning: 'left by an exception or longjmp', calls: left }])
      expect(issues.map(({ code, count }) => [code, count])).toEqual([['call-failed', left]])
    }
  })

  test('operators and graph runs of the calls behind it are those of a call in peace', async () => {
    const steps = ['call', 'call', 'abort', 'call', 'deep-call', 'deep-abort', 'call']
    const { recording, log } = await record(steps, { LEAVING_WITHOUT_EVALUATION: '1' })
    const operatorsOf = new Map<number, number>()
    for (const { call } of recording.of('operator')) operatorsOf.set(call, (operatorsOf.get(call) ?? 0) + 1)
    const whole = operatorsOf.get(1)!
    expect(whole).toBeGreaterThan(10)
    expect(steps.map((_, i) => operatorsOf.get(i) ?? 0)).toEqual(
      steps.map((step) => (step.endsWith('call') ? whole : expect.any(Number))),
    )
    expect(operatorsOf.get(2) ?? 0).toBeLessThan(whole)
    const runs = recording.of('graph').map(({ call }) => call)
    expect(runs).toEqual([0, 1, 3, 4, 6])
    const trace = await openTrace(convert(inputOf(log)))
    const slices = trace.query(`select name, dur from slice where category = 'token' and name glob '*failed*'`).rows
    expect(slices).toEqual(Array(2).fill(['decode failed (left by an exception or longjmp)', 0]))
    expect(trace.query(`select count(*) from slice where category = 'operator'`).rows[0]![0]).toBeGreaterThan(4 * whole)
    trace.close()
  })
})
