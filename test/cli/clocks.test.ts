import { copyFileSync } from 'node:fs'
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
