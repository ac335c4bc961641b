import { expect, test } from '@jest/globals'
import { MOE, read, run, useFolder } from './helpers.ts'

useFolder()

test('a trace becomes Chrome JSON where the output is called so, or with --to json', () => {
  expect(run([MOE, '-o', 'run.pftrace.gz', '-q']).code).toBe(0)
  const { code, stdout, stderr } = run(['run.pftrace.gz', '-o', 'run.json'])
  expect([code, stderr]).toEqual([0, ''])
  expect(stdout).toMatch(
    /^wrote run\.json \(.*\): drag it into chrome:\/\/tracing or https.*, or: ggml2perfetto open run\.json\n$/,
  )
  const { traceEvents } = JSON.parse(String(read('run.json'))) as { traceEvents: { cat?: string; ph: string }[] }
  expect(traceEvents.filter(({ cat, ph }) => cat === 'operator' && ph === 'B')).toHaveLength(2664)
  expect(run(['run.pftrace.gz', '--to', 'json', '-q']).stdout).toBe('')
  expect(String(read('run.pftrace.json'))).toBe(String(read('run.json')))
})
