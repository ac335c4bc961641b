import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { run, useFolder } from '../cli/helpers.ts'
import { cc } from '../compile.ts'
import { hasLlama, model, runHosts } from '../llama/testbed.ts'
import { inFolder, NANO, newLog, RECORDER, readLog, useRecorder } from './recording.ts'

/** A program whose clock a library changes, as libfaketime does: the log has the times of the system, and says so. */

useFolder()

const llama = hasLlama() ? describe : describe.skip

llama("a clock that is not the system's (needs linux-x64 and cc)", () => {
  useRecorder()
  let library = ''
  beforeAll(() => {
    library = inFolder('fake-clock.so')
    cc(
      '-O1',
      '-shared',
      '-fPIC',
      '-o',
      library,
      fileURLToPath(new URL('../llama/fake-clock.c', import.meta.url)),
      '-ldl',
    )
  })

  const SLEEP_MS = 300

  /** Calls around a pause, and how long the program took by the system's clock. */
  async function recorded(env: Readonly<Record<string, string>>, last: readonly (string | number)[] = []) {
    const { path } = await model(NANO)
    const log = newLog()
    mkdirSync(dirname(log), { recursive: true })
    const steps = ['load', 0, path, 'open', 0, 1, 'decode', 0, 1, 'sleep', SLEEP_MS, 'decode', 0, 3, ...last]
    const begin = process.hrtime.bigint()
    const result = await runHosts(steps, {
      preload: `${library}:${RECORDER}`,
      env: { GGML2PERFETTO_OUT: log, ...env },
    })
    const end = process.hrtime.bigint()
    const recording = await readLog(log)
    const origin = recording.of('input')[0]!.originNs
    const calls = recording.of('token').map(({ startNs, endNs }) => [origin + BigInt(startNs), origin + BigInt(endNs)])
    return { log, result, recording, calls: calls.flat(), begin, end }
  }

  /** Its calls, states of threads and end lie where the system's clock has them. */
  function expectReal({ recording, calls, begin, end }: Awaited<ReturnType<typeof recorded>>): void {
    expect(calls.every((ns) => ns > begin && ns < end)).toBe(true)
    const [, firstEnd, secondStart] = calls
    const pauseMs = Number(secondStart! - firstEnd!) / 1e6
    expect([pauseMs >= SLEEP_MS - 1, pauseMs < SLEEP_MS + 2000]).toEqual([true, true])
    for (const { readings } of recording.of('clocks')) {
      const monotonic = readings.find(({ clock }) => clock === 'MONOTONIC')!.ns
      expect(monotonic > begin && monotonic < end).toBe(true)
      const realtimeMs = Number(readings.find(({ clock }) => clock === 'REALTIME')!.ns / 1_000_000n)
      expect(Math.abs(realtimeMs - Date.now())).toBeLessThan(60_000)
    }
  }

  test.each([
    [
      '3 times as fast',
      { FAKE_SPEED: '3' },
      /^CLOCK_MONOTONIC of the program ran (?:3|3\.0\d*|2\.99\d*) times as fast as real time, and was .* ahead at the end \(.*fake-clock\.so\)$/,
    ],
    [
      'half as fast, and a day behind',
      { FAKE_SPEED: '0.5', FAKE_AHEAD: '-86400' },
      /^CLOCK_MONOTONIC of the program ran (?:0\.5|0\.4999\d*|0\.5000\d*) times as fast .* was 24 h behind/,
    ],
    ['an hour ahead', { FAKE_AHEAD: '3600' }, /^CLOCK_MONOTONIC of the program was 1 h ahead at the end \(/],
    [
      'only that of the day, twice as fast',
      { FAKE_SPEED: '2', FAKE_ONLY: '0' },
      /^CLOCK_REALTIME of the program ran (?:2|2\.000\d*|1\.999\d*) times as fast/,
    ],
  ])('%s', async (_, env, described) => {
    const run = await recorded(env)
    const { result, recording } = run
    expect([result.code, result.stderr, result.calls.length, recording.of('token').length]).toEqual([0, '', 4, 4])
    expectReal(run)
    expect(recording.issues).toEqual([expect.stringMatching(/^the program's clock is not real time: /)])
    expect(recording.issues[0]!.replace(/^[^:]*: /, '')).toMatch(described)
  })

  test('a library that changes nothing is not named', async () => {
    const run = await recorded({})
    expectReal(run)
    expect([run.recording.issues, run.recording.attributes['clock.program']]).toEqual([[], undefined])
  })

  test('of a program that was killed, the library is known', async () => {
    const { recording } = await recorded({ FAKE_AHEAD: '3600' }, ['raise', 9])
    expect(recording.issues).toEqual(
      expect.arrayContaining([
        expect.stringMatching(
          /^the program's clock is not real time: the clock of the program was not the system's \(.*fake-clock\.so\); the log lacks its end/,
        ),
      ]),
    )
  })

  test('commands say so, with the factor', async () => {
    const { log } = await recorded({ FAKE_SPEED: '3' })
    const times = /CLOCK_MONOTONIC of the program ran (?:3|3\.0\d*|2\.99\d*) times as fast as real time/
    for (const args of [[log], ['stats', log], ['stats', '--contents', log], ['why', log]]) {
      const { stdout, stderr } = run([...args, ...(args.length === 1 ? ['-o', inFolder('clock.pftrace')] : [])])
      expect([args[0], stdout + stderr]).toEqual([args[0], expect.stringMatching(times)])
    }
    const { run: facts } = JSON.parse(run(['stats', log, '--json']).stdout)
    expect(facts.program_clock).toEqual({
      library,
      clock: 'MONOTONIC',
      speed: expect.closeTo(3, 1),
      ahead_ns: expect.any(Number),
    })
    const query =
      "select name || ': ' || (select string_value from args where arg_set_id = slice.arg_set_id and key glob '*detail*') as t from slice where category = 'issue'"
    expect(run(['query', inFolder('clock.pftrace'), query]).stdout).toMatch(times)
  })
})
