import { statSync } from 'node:fs'
import { expect, test } from '@jest/globals'
import { openTrace } from '../../lib/node.ts'
import { at, MOE, read, run, useFolder } from './helpers.ts'

/** `--budget` and `--all`: what is in the trace, and what the command says about it. */

useFolder()

test('a trace within the budget, with a message on standard error; the suggested query counts all operators', async () => {
  const { code, stdout, stderr } = run([MOE, '--budget', '100K', '-o', 'small.pftrace'])
  expect(code).toBe(0)
  expect(stderr).toMatch(
    /note: .*moe\.csv: in full it is a trace of about \d+ KiB, over the budget of 100 KiB: \d of 9 calls are in full/,
  )
  expect(stderr).toContain('operators are summed up by worker and name')
  expect(stderr).toContain('hint: --all: everything in full')
  expect(statSync(at('small.pftrace')).size).toBeLessThan(180 << 10)
  const sql = /next: ggml2perfetto query \S+ "(.*)"/.exec(stdout)![1]!
  run([MOE, '--all', '-o', 'all.pftrace'])
  const answers = []
  for (const name of ['small.pftrace', 'all.pftrace']) {
    const trace = await openTrace(new Uint8Array(read(name)))
    expect(trace.problems()).toEqual([])
    answers.push(trace.query(sql).rows)
    trace.close()
  }
  expect(answers[0]).toEqual(answers[1])
})

test('says so with --quiet, too; nothing where all of it fits', () => {
  expect(run([MOE, '--budget', '100K', '-q', '-o', 'a.pftrace']).stderr).toContain('calls are in full')
  expect(run([MOE, '-q', '-o', 'b.pftrace']).stderr).toBe('')
  run([MOE, '--all', '-q', '-o', 'c.pftrace'])
  expect(Buffer.compare(read('b.pftrace'), read('c.pftrace'))).toBe(0)
})

test('of a query', () => {
  const sql =
    "select category like '%_sum' as is_sum, count(*) > 0 from slice where category glob 'operator*' group by 1"
  const { stdout, stderr } = run(['query', MOE, '--budget', '100K', '--format', 'csv', sql])
  expect(stdout).toContain('1,1')
  expect(stderr).toContain('calls are in full')
})

test.each([
  [['--budget', '300MB', '--all'], '--budget: has no meaning with --all'],
  [['--budget', '5'], '--budget "5": expected a size from 64K'],
  [['--budget', 'much'], '--budget "much": expected a size'],
])('%j is refused', (options, message) => {
  const { code, stderr } = run([MOE, ...options, '-o', 'x.pftrace'])
  expect(code).toBe(1)
  expect(stderr).toContain(message)
})
