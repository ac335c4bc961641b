import { fileURLToPath } from 'node:url'
import { expect, test } from '@jest/globals'
import { openTrace } from '../../lib/node.ts'
import { at, MOE, names, run, useFolder } from './helpers.ts'

useFolder()

const LOG = fileURLToPath(new URL('../../examples/moe.ggtrace.gz', import.meta.url))

const counts = async (name: string) => {
  const trace = await openTrace(at(name))
  const [[tensors, flows]] = trace.query(
    "select (select count(*) from slice where category = 'tensor'), (select count(*) from flow join slice reader on reader.id = slice_in where reader.category = 'operator')",
  ).rows as [[number, number]]
  trace.close()
  return { tensors, flows }
}

test('--memory lifetimes and --flows token=N draw what is not drawn otherwise', async () => {
  expect(run([LOG, '-o', 'plain.pftrace']).code).toBe(0)
  expect(run([LOG, '-o', 'all.pftrace', '--memory', 'lifetimes', '--flows', 'token=2']).code).toBe(0)
  expect(await counts('plain.pftrace')).toEqual({ tensors: 0, flows: 0 })
  expect(await counts('all.pftrace')).toEqual({ tensors: 1395, flows: expect.any(Number) })
  expect((await counts('all.pftrace')).flows).toBeGreaterThan(200)
  expect(run(['check', 'all.pftrace']).code).toBe(0)
})

test('a log without addresses has no lifetimes, but arrows', async () => {
  expect(run([MOE, '-o', 'csv.pftrace', '--memory', 'lifetimes', '--flows', 'token=1']).code).toBe(0)
  expect((await counts('csv.pftrace')).tensors).toBe(0)
})

test.each([
  [['--memory', 'all'], /--memory "all": expected counters or lifetimes/],
  [['--flows', '3'], /--flows "3": expected token=<number of a llama_decode call>, such as token=3; 0 is the prefill/],
  [['--flows', 'token=1', '--flows', 'token=2'], /--flows is given 2 times; expected once/],
  [['--flows', 'token=9'], /--flows token=9: there is no such call, the log has the calls 0\.\.8/],
  [['--flows', 'token=5', '--tokens', '1..3'], /--flows token=5 is not among --tokens 1\.\.3/],
])('%j is refused, and no trace is left', (args, message) => {
  const { code, stdout, stderr } = run([LOG, '-o', 'refused.pftrace', ...args])
  expect({ code, stdout, left: names().includes('refused.pftrace') }).toEqual({ code: 1, stdout: '', left: false })
  expect(stderr).toMatch(message)
})
