import { writeFileSync } from 'node:fs'
import { beforeAll, expect, test } from '@jest/globals'
import type { ScalingFigures } from '../../lib/analysis.ts'
import { GgtraceWriter } from '../../lib/core.ts'
import type { Finding } from '../../lib/index.ts'
import { at, run, useFolder } from './helpers.ts'

/** `stats` of several runs: how speed depends on the number of threads. */

const ORIGIN_NS = 4_000_000_000_000n
const MUL_MAT = 29
const MS = 1e6

/** A run of decodes that take so long each, as a log of this process. */
function logOf(pid: number, workers: number, decodeMs: number, calls = 6): Uint8Array {
  const writer = new GgtraceWriter({ originNs: ORIGIN_NS })
  writer.type(0, 'f32')
  const clocks = { monotonic: ORIGIN_NS, boottime: ORIGIN_NS, realtime: 1_763_000_000_000_000_000n }
  writer.run({ pid: `${pid}`, boot_id: 'a' }, clocks)
  writer.op(MUL_MAT, 'MUL_MAT')
  const node = writer.tensor({ name: 'Qcur-0', op: MUL_MAT })
  const threads = Array.from({ length: workers }, (_, worker) => writer.thread(pid + worker, worker))
  for (let call = 0; call < calls; call++) {
    const [startNs, endNs] = [call * decodeMs * MS, (call + 1) * decodeMs * MS]
    for (const thread of threads) {
      thread.call = call
      thread.operator({ tensor: node, startNs, endNs })
    }
    threads[0]!.token({ startNs, endNs, call, tokens: 1, kind: 'decode' })
  }
  writer.end(calls * decodeMs * MS)
  return writer.take()
}

useFolder()
beforeAll(() => {
  for (const [workers, ms] of [
    [1, 20],
    [2, 10],
    [4, 8],
    [8, 8],
  ] as const) {
    writeFileSync(at(`t${workers}.ggtrace`), logOf(1000 * workers, workers, ms))
  }
})

const LOGS = [1, 2, 4, 8].map((workers) => `t${workers}.ggtrace`)

test('runs of different processes are compared', () => {
  const { code, stdout } = run(['stats', ...LOGS])
  expect(code).toBe(0)
  const lines = stdout.split('\n').map((line) => line.trim().replace(/ {2,}/g, '  '))
  expect(lines.slice(0, 7)).toEqual([
    'decode',
    'threads  tok/s  speed-up  efficiency  gain per thread',
    '1  50.0  1.00×  100.0 %',
    '2  100.0  2.00×  100.0 %  100.0 %',
    '4  125.0  2.50×  62.5 %  25.0 %',
    '8  125.0  2.50×  31.3 %  0.0 %',
    expect.stringMatching(/^more than 4 threads do not pay in decode: 125 tok\/s with 4, 125 with 8 \(R² 0\.9/),
  ])
  expect(stdout).toMatch(/Universal Scalability Law: .* R² 0\.\d+ of 4 numbers of threads/)
  expect(stdout).toMatch(/Qcur MUL_MAT +2\.50× with 8 +4$/m)
  expect(stdout).toMatch(/scaling\.prefill is not known/)
})

test('as JSON', () => {
  const { stdout } = run(['stats', '--json', ...LOGS.slice(0, 2)])
  const { schema, runs, decode } = JSON.parse(stdout) as ScalingFigures
  expect([schema, decode!.knee, decode!.fit]).toEqual(['ggml2perfetto.scaling/1', null, null])
  expect(runs.map(({ name, decode_workers }) => [name, decode_workers])).toEqual([
    ['t1.ggtrace', 1],
    ['t2.ggtrace', 2],
  ])
})

test('stored Analyses are runs, too', () => {
  for (const log of LOGS) writeFileSync(at(`${log}.json`), run(['stats', '--json', log]).stdout)
  const stored = LOGS.map((log) => `${log}.json`)
  expect(run(['stats', ...stored]).stdout).toBe(run(['stats', ...LOGS]).stdout)
  expect(run(['stats', '--markdown', stored[0]!, LOGS[1]!]).stdout).toContain('| 2 | 100.0 | 2.00× |')
})

test('tables of one run are refused', () => {
  const { code, stderr } = run(['stats', '--csv', ...LOGS])
  expect([code, stderr]).toEqual([1, expect.stringContaining('--csv is for one run; these logs are of 4')])
})

test('the finding of several runs: stats and why', () => {
  const sentence = 'more than 4 threads do not pay in decode: 125 tok/s with 4, 125 with 8'
  expect(run(['stats', ...LOGS]).stdout).toContain(`findings\n  ${sentence}`)
  const { code, stdout } = run(['why', ...LOGS])
  expect([code, stdout]).toEqual([0, expect.stringContaining(`1. ${sentence} (R² 0.9`)])
  expect(stdout).not.toContain('check of')
  expect(run(['why', '--checks', ...LOGS]).stdout).toContain(`: ggml2perfetto stats ${LOGS.join(' ')}\n`)
  expect(stdout).toMatch(/findings of each run: ggml2perfetto why, with its log alone$/m)
  const [finding] = JSON.parse(run(['why', '--json', ...LOGS]).stdout) as Finding[]
  expect(finding).toMatchObject({ rule: 'thread-scaling', evidence: { threads: 4, next_threads: 8 } })
})

/** Sentences that both commands print of these logs. */
function saidOfBoth(logs: readonly string[]): string[] {
  const [stats, why] = (['stats', 'why'] as const).map((command) => {
    const { code, stdout } = run([command, ...logs])
    expect(code).toBe(0)
    return stdout.split('\n').map((line) => line.trim().replace(/^\d\. /, ''))
  })
  return stats!.filter((line) => line !== '' && why!.includes(line))
}

test('stats and why say the same of two numbers of threads', () => {
  const [faster, unknown] = saidOfBoth(LOGS.slice(0, 2))
  expect(faster).toMatch(/^decode: 50 tok\/s with 1, 100 with 2 \(2\.00×\): two numbers of threads do not show/)
  expect(unknown).toMatch(/^scaling\.decode\.fit is not known/)
  expect(run(['why', ...LOGS.slice(0, 2)]).stdout).toMatch(/^no findings$/m)
  writeFileSync(at('slow.ggtrace'), logOf(9000, 3, 120))
  const slow = ['t1.ggtrace', 'slow.ggtrace']
  expect(saidOfBoth(slow)).toContainEqual(expect.stringMatching(/^decode: 50 tok\/s with 1, 8\.3 with 3 \(0\.17×\)/))
  const [finding] = JSON.parse(run(['why', '--json', ...slow]).stdout) as Finding[]
  expect(finding).toMatchObject({
    rule: 'thread-scaling',
    confidence: 'low',
    evidence: { threads: 1, next_threads: 3 },
  })
})

test('stats and why do not compare what compare calls not comparable', () => {
  writeFileSync(at('other.ggtrace'), logOf(9100, 2, 120, 9))
  const logs = [...LOGS, 'other.ggtrace']
  const compared = run(['compare', LOGS[0]!, '--with', 'other.ggtrace']).stdout
  expect(compared).toMatch(/not comparable[\s\S]*decode calls/)
  expect(saidOfBoth(logs)).toContain('scaling.decode is not known: the runs are not comparable: decode calls 6 and 9')
  for (const command of ['stats', 'why']) expect(run([command, ...logs]).stdout).not.toMatch(/tok\/s|pay|unusual/)
  const { decode, prefill, roles, differences } = JSON.parse(run(['stats', '--json', ...logs]).stdout) as ScalingFigures
  expect([decode, prefill, roles]).toEqual([null, null, []])
  expect(differences.map(({ what }) => what)).toEqual(['decode calls'])
})
