import { copyFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from '@jest/globals'
import { at, MOE, names, run, useFolder } from './helpers.ts'

useFolder()

test('--clock moves an input, says so, and is refused where it makes no sense', () => {
  copyFileSync(MOE, at('a.csv'))
  copyFileSync(MOE, at('b.csv'))
  const moved = run(['a.csv', 'b.csv', '--clock', 'b.csv=+1ms', '-o', 'both.pftrace'])
  expect([moved.code, moved.stderr]).toEqual([0, ''])
  expect(moved.stdout).toContain('  clock: as given: +1ms')
  const wrong = run(['a.csv', '--clock', 'a.csv', '-o', 'none.pftrace'])
  expect([wrong.code, wrong.stderr]).toEqual([
    1,
    expect.stringContaining('--clock "a.csv": expected <input>=<clock or'),
  ])
  const other = run(['a.csv', '--clock', 'c.csv=mono', '-o', 'none.pftrace'])
  expect([other.code, other.stderr]).toEqual([
    1,
    expect.stringContaining('clock of c.csv: no such input; there are: a.csv'),
  ])
  expect(names()).not.toContain('none.pftrace')
})

const FIXTURES = fileURLToPath(new URL('../fixtures/', import.meta.url))

test('info tells of several inputs on which clock each is, how it came on the first one, and how well that is known', () => {
  const log = fileURLToPath(new URL('../../examples/moe.ggtrace.gz', import.meta.url))
  const boot = `${FIXTURES}ftrace/trace-boot.txt`
  const args = ['info', log, boot, `${FIXTURES}ftrace/trace.txt`, '--clock', 'trace-boot.txt=boot']
  const { code, stdout, stderr } = run(args)
  expect([code, stderr]).toEqual([0, ''])
  const [first, second, third] = stdout.split(/^.*\/(?=trace.*\.txt$)/m)
  expect(first).not.toContain('put on')
  expect(second).toMatch(
    /^ {2}put on +CLOCK_MONOTONIC\n +by +-20 ns to its first time\n +as +CLOCK_BOOTTIME and CLOCK_MONOTONIC were read together/m,
  )
  expect(third).toMatch(/^ {2}put on +CLOCK_MONOTONIC: the same clock$/m)
  const relations = JSON.parse(run([...args, '--json']).stdout).map(({ relation }: { relation?: object }) => relation)
  expect(relations).toEqual([
    undefined,
    expect.objectContaining({ to: 'MONOTONIC', offsetNs: '-20' }),
    { to: 'MONOTONIC', how: 'the same clock', offsetNs: '0', boundNs: 0 },
  ])
  const refused = run(['info', log, boot])
  expect([refused.code, refused.stderr]).toEqual([
    1,
    expect.stringMatching(/does not tell .*\n.*--clock .*boot\.txt=mono/),
  ])
})
