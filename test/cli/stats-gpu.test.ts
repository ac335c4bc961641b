import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { expect, test } from '@jest/globals'
import type { Analysis } from '../../lib/index.ts'
import { at, CLI, run, useFolder } from './helpers.ts'

/** `stats` and `why` of logs with work of GPUs. */

useFolder()

const FIXTURES = join(CLI, '../../test/fixtures')
const TRAINING = join(FIXTURES, 'chrome-json/communication.json.gz')

const stats = (...args: string[]) => {
  const { code, stdout, stderr } = run(['stats', '--full', ...args])
  expect([code, stderr]).toEqual([0, ''])
  return stdout
}

test('the time of a GPU, its kernels, streams, copies, what launched the work', () => {
  const text = stats(TRAINING, '--top', '2')
  expect(text).toMatch(
    /^GPU 0 \(NVIDIA A100-PG509-200\)\n {2}work +31 pieces, 4\.25 ms\n {2}launch to start +mean 265 µs, p50/m,
  )
  expect(text).toMatch(
    / computation +2\.11 ms +50\.5 %\n +exposed communication +2\.03 ms +48\.6 %\n +exposed copies +17 µs +0\.4 %\n/,
  )
  expect(text).toMatch(/ idle, between kernels +18\.9 µs +0\.5 % +13\n +all +4\.17 ms +100\.0 %\n/)
  expect(text).toMatch(/ ncclKernel_AllReduce_RING_LL_Sum_float +1 +2\.03 ms.*\n.*\n {2}7 more +10 .* 30\.7 %\n/)
  expect(text).toMatch(/ launched in the innermost operator .*\n {2}record_param_comms +1 +2\.03 ms/)
  expect(text).toMatch(/^calls of the GPU's library\n {2}launch +\d+ calls, .*\n/m)
  const markdown = stats(TRAINING, '--markdown')
  expect(markdown).toContain('**GPU 0 (NVIDIA A100-PG509-200)**\n\n- work: 31 pieces, 4.25 ms\n')
  expect(markdown).toMatch(/\| exposed communication \| 2\.03 ms \| 48\.6 % \|/)
})

test('kernels as CSV; the document, again', () => {
  const [header, first, second, ...others] = stats(TRAINING, '--csv', '--top', '2').trimEnd().split('\n')
  expect(header).toBe(
    'device,pid,kernel,is_communication,count,time_ns,share,mean_ns,min_ns,p50_ns,p90_ns,p99_ns,max_ns',
  )
  expect(first).toMatch(/^0,2910249,"ncclKernel_AllReduce_RING_LL_Sum_float\(.*\)",1,1,2028293,0\.47\d+,2028293,/)
  expect([second!.includes('cudnn::bn_bw'), others]).toEqual([true, []])
  const json = stats(TRAINING, '--json')
  const { gpu } = JSON.parse(json) as Analysis
  expect(gpu!.devices.map(({ device, pid, work }) => [device, pid, work])).toEqual([[0, 2910249, 31]])
  writeFileSync(at('run.json'), json)
  expect(stats(at('run.json'))).toContain('exposed communication')
})

test('two processes, each with a GPU', () => {
  writeFileSync(at('two.sqlite'), gunzipSync(readFileSync(join(FIXTURES, 'nsys/two-processes.sqlite.gz'))))
  const text = stats(at('two.sqlite'))
  expect(text.match(/^(GPU|calls).*$/gm)).toEqual([
    // It is idle most of the time, for a reason that the log does not contain: copies are no cause.
    'GPU 0 (process 111) busy 11 % of 453 ms',
    ...['GPU 0, process 111', 'GPU 1, process 112'],
    ...["calls of the GPU's library, process 111", "calls of the GPU's library, process 112"],
  ])
  expect(text).toMatch(/ HtoD +pinned to device +\d+ .* 2\d\.\d\n/)
})
