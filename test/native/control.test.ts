import { statSync } from 'node:fs'
import { constants } from 'node:os'
import { describe, expect, test } from '@jest/globals'
import { convert } from '../../lib/index.ts'
import { inputOf, openTrace } from '../../lib/node.ts'
import { hasLlama, model } from '../llama/testbed.ts'
import { inParts, someOf } from '../long.ts'
import { callNumber, NANO, newLog, type Recording, readLog, recordHosts, useRecorder } from './recording.ts'

const llama = hasLlama() ? describe : describe.skip

/** What was recorded of each call: its operators on each worker, by op, fused ones as one. */
function operatorsOf({ of, tensor, text }: Recording): Record<number, Record<string, number>> {
  const calls: Record<number, Record<string, number>> = {}
  for (const { call, worker, tensor: id, fusedTo } of of('operator')) {
    const ops = [id, fusedTo].filter((node) => node !== undefined).map((node) => text(tensor(node).op))
    const counts = calls[call] ?? {}
    calls[call] = counts
    const key = `${worker} ${ops.join('+')}`
    counts[key] = (counts[key] ?? 0) + 1
  }
  return calls
}

llama('what is recorded, as asked (needs linux-x64 and cc)', () => {
  useRecorder()

  async function recorded(env: Record<string, string>, steps: readonly (string | number)[] = ['decode', 0, 8]) {
    const { path } = await model(NANO)
    const log = newLog()
    const { result } = await recordHosts(['load', 0, path, 'open', 0, 2, ...steps], { env, log })
    const recording = await readLog(log)
    const leftOut = recording.of('token').map(({ batch }) => batch!.isLeftOut)
    return { log, result, recording, leftOut, calls: operatorsOf(recording) }
  }

  let whole: ReturnType<typeof recorded> | undefined
  /** All of the same run; recorded once. */
  const recordedWhole = () => (whole ??= recorded({}))

  const CHOICES: readonly (readonly [env: Record<string, string>, wanted: readonly number[]])[] = [
    [{ GGML2PERFETTO_TOKENS: '2..3' }, [2, 3]],
    [{ GGML2PERFETTO_TOKENS: '5..' }, [5, 6, 7]],
    [{ GGML2PERFETTO_EVERY: '3' }, [0, 3, 6]],
    [{ GGML2PERFETTO_TOKENS: '4' }, [4]],
    [{ GGML2PERFETTO_TOKENS: '1..6', GGML2PERFETTO_EVERY: '4' }, [1, 5]],
  ]
  inParts(test).each(someOf(CHOICES, 2))('calls: %j', async (env, wanted) => {
    const all = await recordedWhole()
    const { recording, leftOut, calls, log } = await recorded(env)
    expect(calls).toEqual(Object.fromEntries(wanted.map((call) => [call, all.calls[call]])))
    expect(recording.of('graph').map(({ call }) => call)).toEqual(wanted)
    expect(leftOut.flatMap((isOut, call) => (isOut ? [] : [call]))).toEqual(wanted)
    expect(recording.issues).toEqual([])
    const trace = await openTrace(convert(inputOf(log)))
    expect(trace.problems()).toEqual([])
    const { rows } = trace.query(
      "select extract_arg(arg_set_id, 'debug.recorded') is null from slice where category = 'token' order by ts",
    )
    expect(rows.flatMap(([isWhole], call) => (Number(isWhole) ? [call] : []))).toEqual(wanted)
    trace.close()
  })

  const OPS = ['MUL_MAT', 'ROPE,SET_ROWS', 'RMS_NORM', 'MUL']
  inParts(test).each(someOf(OPS, 2, 1))('operators: %s', async (ops) => {
    const all = await recordedWhole()
    const { calls, recording } = await recorded({ GGML2PERFETTO_OPS: ops })
    const wanted = ops.split(',')
    const chosen = Object.entries(all.calls).map(([call, counts]) => [
      call,
      Object.fromEntries(
        Object.entries(counts).filter(([key]) =>
          key
            .slice(2)
            .split('+')
            .some((op) => wanted.includes(op)),
        ),
      ),
    ])
    expect(calls).toEqual(Object.fromEntries(chosen))
    expect(Object.keys(calls)).toHaveLength(8)
    expect(recording.of('graph').map(({ nodes }) => nodes)).toEqual(all.recording.of('graph').map(({ nodes }) => nodes))
    expect(recording.issues).toEqual([])
  })

  test('paused at first, resumed by the program, paused again', async () => {
    const steps = ['decode', 0, 2, 'recorder', 'resume', 'decode', 0, 3, 'recorder', 'pause', 'decode', 0, 2]
    const { calls, leftOut } = await recorded({ GGML2PERFETTO_PAUSED: 'paused' }, steps)
    expect(Object.keys(calls)).toEqual(['2', '3', '4'])
    expect(leftOut).toEqual([true, true, false, false, false, true, true])
  })

  test('a signal pauses and resumes', async () => {
    const usr2 = constants.signals.SIGUSR2
    const steps = ['decode', 0, 2, 'raise', usr2, 'decode', 0, 1, 'raise', usr2, 'decode', 0, 1]
    const { path } = await model(NANO)
    const log = newLog()
    const hosts = ['load', 0, path, 'open', 0, 2]
    const env = { GGML2PERFETTO_TOGGLE: `${usr2}` }
    // Untraced, the signal would end the program.
    const { result } = await recordHosts([...hosts, ...steps], {
      env,
      log,
      plainSteps: [...hosts, 'decode', 0, 4],
    })
    const recording = await readLog(log)
    expect(recording.of('token').map(({ batch }) => batch!.isLeftOut)).toEqual([false, false, true, false])
    expect(result.calls.map((call) => callNumber(recording, call))).toEqual([0, 1, 2, 3])
    expect(Object.keys(operatorsOf(recording))).toEqual(['0', '1', '3'])
  })

  test('a size limit holds, and what did not fit is counted', async () => {
    const { log, recording } = await recorded({ GGML2PERFETTO_MAX_BYTES: `${96 * 1024}` }, ['decode', 0, 100])
    expect(statSync(log).size).toBeLessThanOrEqual(96 * 1024)
    expect(recording.issues.join('\n')).toMatch(/dropped|no room|lost/)
    expect(recording.of('operator').length).toBeGreaterThan(1000)
  })
})
