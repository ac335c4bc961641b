import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { analyze } from '../../lib/index.ts'
import { withMem } from '../../lib/node/record/memory.ts'
import { inputOf } from '../../lib/node.ts'
import { hasLlama, model, run } from '../llama/testbed.ts'
import { inLong, isLong } from '../long.ts'
import { expectedFaults } from '../memory-samples/expected.ts'
import { newLog, RECORDER, useRecorder } from './recording.ts'

/** Page faults of a run, recorded by perf alongside: each fault in a weight or a cache is at its tensor. */

const PROBE = ['record', '-q', '-e', 'page-faults', '-d', '-k', 'CLOCK_MONOTONIC', '-o', '/dev/null', 'true']
const hasPerf = isLong && spawnSync('perf', PROBE, { stdio: 'ignore' }).status === 0
const llama = hasLlama() ? describe : describe.skip
const recorded = hasPerf ? test : test.skip

llama('page faults by address', () => {
  useRecorder()

  async function recordMem() {
    const log = newLog()
    mkdirSync(dirname(log), { recursive: true })
    const { path } = await model('tinyMoe')
    const options = { preload: RECORDER, env: { GGML2PERFETTO_OUT: log } }
    const args = ['--threads', '2', '--prompt', '8', '--decode', '2']
    const problems: string[] = []
    const onMemProblem = (problem: string) => problems.push(problem)
    const { ended, mem } = await withMem(log, () => run(path, args, options), { onMemProblem })
    expect([ended.code, ended.stderr]).toEqual([0, ''])
    return { log, path, mem, problems }
  }

  inLong(recorded)('with perf: as perf prints them and the log places them', async () => {
    const { log, path, mem, problems } = await recordMem()
    expect(problems).toEqual([])
    const { page_faults } = await analyze([inputOf(log), inputOf(mem.path!)])
    const args = ['script', '-i', mem.path!, '--ns', '--show-mmap-events', '-F', 'comm,pid,tid,time,event,addr']
    const script = execFileSync('perf', args, {
      encoding: 'utf8',
      maxBuffer: 1 << 28,
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    const expected = await expectedFaults({ name: 'log', source: inputOf(log).source }, script, path)
    const found = page_faults!.by_tensor.filter(({ usage }) => usage === 'weights' || usage === 'kv-cache')
    const counts = Object.fromEntries(found.map(({ tensor, events }) => [tensor, events]))
    expect(found.length).toBeGreaterThan(40)
    // The table contains the 64 tensors with most faults.
    expect(counts).toEqual(Object.fromEntries(Object.keys(counts).map((tensor) => [tensor, expected[tensor]])))
    if (page_faults!.further_tensors === 0) expect(Object.keys(counts)).toHaveLength(Object.keys(expected).length)
  })

  test('without perf: the program runs, and the reason is reported', async () => {
    const problems: string[] = []
    const options = { env: { PATH: '/nonexistent' }, onMemProblem: (of: string) => problems.push(of) }
    const { ended, mem } = await withMem(newLog(), async () => 'ended', options)
    expect([ended, mem]).toEqual(['ended', { path: undefined, problem: problems[0], bytes: 0 }])
    expect(problems).toEqual([expect.stringMatching(/^perf is not installed\nhint: /)])
  })
})
