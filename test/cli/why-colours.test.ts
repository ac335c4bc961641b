import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { expect, test } from '@jest/globals'
import { ROOT } from '../tables/of-logs.ts'
import { run, useFolder } from './helpers.ts'

useFolder()

const log = (name: string) => join(ROOT, 'test/printed/logs', `${name}.ggtrace.gz`)
/** What `why` prints on a terminal, or to another program. */
const why = (name: string, columns?: number, env: Record<string, string> = {}) =>
  run(['why', log(name)], { columns, env }).stdout
/** The lines in this colour. */
const lines = (text: string, colour: number) =>
  text.split('\n').flatMap((line) => (line.startsWith(`\x1b[1;${colour}m`) ? [line.slice(7, -4)] : []))

test('the first line and the findings have the colour of what they cost', () => {
  const text = why('before', 200)
  const red = lines(text, 31)
  expect(red[0]).toMatch(/^decode 185 tok\/s; worker 1 was preempted 31 % of decode$/)
  expect(red[1]).toMatch(/^1\. worker 1 was preempted 31 % of decode/)
  expect(lines(text, 32)).toEqual([])
  const quiet = why('after', 200)
  expect(lines(quiet, 32)).toEqual([expect.stringMatching(/^nothing unusual: /)])
  expect(lines(quiet, 31)).toEqual([])
})

test('none with NO_COLOR, on a dumb terminal, and to other programs; the texts are the same', () => {
  const plain = why('before')
  for (const text of [why('before', 200, { NO_COLOR: '1' }), why('before', 200, { TERM: 'dumb' }), plain])
    expect(text).not.toContain('\x1b')
  const plainly = stripVTControlCharacters(why('before', 200))
  expect(plainly).toBe(why('before', 200, { NO_COLOR: '1' }))
})
