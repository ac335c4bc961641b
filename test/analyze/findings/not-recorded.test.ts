import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { notRecorded, RULES } from '../../../lib/analysis.ts'
import { analyze } from '../../../lib/index.ts'
import { inputOf } from '../../../lib/node.ts'
import { ROOT } from '../../root.ts'

/** What `why` says of what a log lacks: in words, with the command that records it, and only where the log lacks it. */

const lacking = async (...logs: string[]) =>
  notRecorded(await analyze(logs.map((log) => inputOf(join(ROOT, 'test', log))))).map(({ what }) => what)
const [STATES, CPUS, POWER] = [
  'when workers had no CPU, or were blocked',
  'the CPUs that workers ran on',
  'power, clocks and temperatures',
]
const FUNCTIONS = 'loading, sampling, and what else the program did between calls'

test('a log of the recorder lacks power only; one of ProfInfer states and functions, too', async () => {
  expect(await lacking('../examples/llama.ggtrace.gz')).toEqual([POWER])
  expect(await lacking('../examples/moe.csv')).toEqual([STATES, FUNCTIONS, POWER])
})

test('what another input of the run contains is not lacking', async () => {
  const session = ['fixtures/session/run.ggtrace.gz', 'fixtures/session/run.sched.dat.gz']
  for (const logs of [session.slice(0, 1), session]) {
    const found = await lacking(...logs)
    expect(found).not.toContain(STATES)
    expect(found).not.toContain(CPUS)
  }
})

test('a log without calls gets what to record from its verdict only', async () => {
  expect(await lacking('fixtures/blas-log/cublas.log')).toEqual([])
  expect(await lacking('fixtures/nsys/one-gpu.sqlite.gz')).toEqual([])
})

test('no id of a rule is in what commands print for people, outside of reports, which name rules', () => {
  const texts = readFileSync(join(ROOT, 'test/printed/texts.txt'), 'utf8').split('\n')
  const lines = texts.filter((line) => /not in this log|not checked/.test(line))
  expect(lines.length).toBeGreaterThan(0)
  for (const line of lines) for (const { id } of RULES) expect(line).not.toContain(`${id},`)
})
