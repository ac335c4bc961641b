import { copyFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from '@jest/globals'
import { pathOf } from '../line/support.ts'
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
  const log = fileURLToPath(new URL('../recorded/outside-graphs.ggtrace.gz', import.meta.url))
  const boot = `${FIXTURES}ftrace/trace-boot.txt`
  const args = ['info', log, boot, `${FIXTURES}ftrace/trace.txt`, '--clock', 'trace-boot.txt=boot']
  const { code, stdout, stderr } = run(args)
  expect([code, stderr]).toEqual([0, ''])
  const [first, second, third] = stdout.split(/^.*\/(?=trace.*\.txt$)/m)
  expect(first).not.toContain('put on')
  expect(second).toMatch(
    /^ {2}put on +CLOCK_MONOTONIC\n +by +-20 ns to its first time\n +as +CLOCK_BOOTTIME and CLOCK_MONOTONIC were read together/m,
  )
  expect(third).toMatch(/^ {2}put on +CLOCK_MONOTONIC: the same clock, by its name, not checked$/m)
  const relations = JSON.parse(run([...args, '--json']).stdout).map(({ relation }: { relation?: object }) => relation)
  expect(relations).toEqual([
    undefined,
    expect.objectContaining({ to: 'MONOTONIC', offset_ns: '-20' }),
    { to: 'MONOTONIC', how: 'the same clock, by its name, not checked', offset_ns: '0', bound_ns: 0 },
  ])
  const refused = run(['info', log, boot])
  expect([refused.code, refused.stderr]).toEqual([
    1,
    expect.stringMatching(/does not record .*\n.*--clock .*boot\.txt=mono/),
  ])
})

/** Refused, and what to do is said in so many lines. */
function refusal(...args: string[]): string[] {
  const { code, stderr } = run([...args, '-o', 'none.pftrace'])
  expect(code).toBe(1)
  expect(names()).not.toContain('none.pftrace')
  return stderr.trimEnd().split('\n')
}

test('a scheduler text whose clock is not told is refused beside a log, and goes with it once it is named', () => {
  copyFileSync(pathOf('ggtrace/tiny.ggtrace'), at('run.ggtrace'))
  copyFileSync(pathOf('ftrace/trace-boot.txt'), at('trace.txt'))
  const [what, ...hints] = refusal('run.ggtrace', 'trace.txt')
  expect(what).toBe('error: trace.txt: does not record its clock; no known relation to run.ggtrace (CLOCK_MONOTONIC)')
  expect(hints).toHaveLength(4)
  expect(hints.every((hint) => hint.startsWith('hint: '))).toBe(true)
  expect(hints[0]).toContain('--clock trace.txt=mono')
  expect(hints[1]).toContain('echo mono > trace_clock')
  expect(hints[2]).toContain('--clock trace.txt=+1.2ms')
  const named = run(['run.ggtrace', 'trace.txt', '--clock', 'trace.txt=mono', '-o', 'named.pftrace'])
  expect([named.code, named.stderr]).toEqual([0, ''])
  expect(named.stdout).toContain('clock: the clock is as given')
})

test('a clock that is not the one that the input tells, or none at all, is refused', () => {
  copyFileSync(pathOf('ggtrace/tiny.ggtrace'), at('run.ggtrace'))
  copyFileSync(pathOf('ftrace/trace.txt'), at('mono.txt'))
  expect(refusal('run.ggtrace', 'mono.txt', '--clock', 'mono.txt=boot').join()).toContain(
    'clock of mono.txt: expected CLOCK_MONOTONIC, which it records, found BOOTTIME',
  )
  expect(refusal('run.ggtrace', 'mono.txt', '--clock', 'mono.txt=tsc').join()).toMatch(/mono\.txt.*expected.*mono/)
  const ticks = Array.from(
    { length: 9 },
    (_, i) => `  a-1  [000] d..2. ${7000 + i}: sched_waking: comm=b pid=2 prio=120 target_cpu=000`,
  )
  writeFileSync(at('ticks.txt'), `# tracer: nop\n#\n${ticks.join('\n')}\n`)
  expect(refusal('run.ggtrace', 'ticks.txt')[0]).toBe(
    'error: ticks.txt: does not record its clock; no known relation to run.ggtrace (CLOCK_MONOTONIC)',
  )
  const alone = run(['ticks.txt', '-o', 'alone.pftrace'])
  expect([alone.code, alone.stdout]).toEqual([0, expect.stringContaining('not known: it contains no times')])
})
