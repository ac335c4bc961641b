import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { analyze, type Finding } from '../../lib/index.ts'
import { inputOf, summarizeFile } from '../../lib/node.ts'
import { hasLlama, model, type RunOptions, run } from '../llama/testbed.ts'
import { hasTaskset, ON_CPU, startHog } from '../machine.ts'
import { newLog, RECORDER, useRecorder } from './recording.ts'
import '../live.ts'
import { inLong } from '../long.ts'

/** The findings in the last lines of record and convert against those of why, of real logs: whatever the load of the machine was. */

const llama = hasLlama() ? describe : describe.skip
const pinned = hasTaskset ? test : test.skip

/** What the last lines do not look at: they cost memory, or need other inputs. */
const ONLY_WHY = ['expert-imbalance', 'roofline', 'weight-faults', 'slower-type']

llama('the last lines of a recording (needs linux-x64 and cc)', () => {
  useRecorder()

  async function recorded(args: readonly string[], options: RunOptions = {}): Promise<string> {
    const { path } = await model('tinyDense')
    const log = newLog()
    mkdirSync(join(log, '..'), { recursive: true })
    const result = await run(path, args, { ...options, preload: RECORDER, env: { GGML2PERFETTO_OUT: log } })
    expect([result.code, result.stderr]).toEqual([0, ''])
    return log
  }

  const said = (found: readonly Finding[]) =>
    found.filter(({ rule }) => !ONLY_WHY.includes(rule)).map(({ rule, sentence }) => [rule, sentence])

  async function expectSame(log: string): Promise<void> {
    const { findings = [] } = await summarizeFile(log, { findings: true })
    expect(said(findings)).toEqual(said((await analyze(inputOf(log))).findings))
  }

  const isSame = async (_: string, args: readonly string[]) => expectSame(await recorded(args))
  test.each([
    ['1 thread', ['--threads', '1', '--prompt', '4', '--decode', '12']],
    ['2 threads', ['--threads', '2', '--prompt', '16', '--decode', '12']],
    ['a short run', ['--threads', '2', '--prompt', '1', '--decode', '2']],
  ] as const)('%s: the same findings as those of why', isSame)
  inLong(test).each([['more threads than CPUs', ['--threads', '3', '--prompt', '2', '--decode', '8']]] as const)(
    '%s: the same findings as those of why',
    isSame,
  )

  pinned('beside a program that wants its CPU: the same', async () => {
    const hog = startHog()
    const log = await recorded(['--prompt', '4', '--decode', '12'], { before: ['taskset', ...ON_CPU] }).finally(() =>
      hog.kill('SIGKILL'),
    )
    await expectSame(log)
  })
})
