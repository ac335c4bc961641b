import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { hasControlGroups, withCpuLimit } from '../control-group.ts'
import { ensureLlama, hasLlama, LIB, model, runner } from '../llama/testbed.ts'
import { inLong } from '../long.ts'
import { at, names, quoted, run, shell } from './helpers.ts'
import { canRun, compile, linuxTest, useProgram, WITH_LLAMA } from './record-helpers.ts'

/** `record --sweep`: each value by turns, a chart, a recommendation. */

/** Its decode calls sleep so long: what else runs on the machine changes little of it. */
const SLEEPING_LLAMA = `#include <unistd.h>
#include "stand-in.h"
int sleep_us;
enum ggml_status ggml_backend_graph_compute_async(struct ggml_backend * b, struct ggml_cgraph * g) { (void) b; (void) g; return GGML_STATUS_SUCCESS; }
int32_t llama_decode(struct llama_context * context, struct llama_batch batch) { (void) context; usleep(sleep_us); return batch.n_tokens - 1; }`
const SLEEPER = `#include <stdlib.h>
#include "stand-in.h"
extern int sleep_us;
int main(int argc, char ** argv) {
  struct llama_batch batch = {.n_tokens = 1};
  int code = argc > 3;
  sleep_us = 1000 * atoi(argv[1]);
  for (int i = 0; i < atoi(argv[2]); i++) code += llama_decode((void *) argv, batch);
  return code;
}`

useProgram()
beforeAll(() => {
  compile('libllama.so', SLEEPING_LLAMA, '-shared', '-fPIC')
  compile('sleeper', SLEEPER, ...WITH_LLAMA())
})

linuxTest('records each value once a round, and recommends the fastest', () => {
  const args = ['--sweep', 'ms=100,10,40', '--rounds', '2', '-o', 'swept', '--', './sleeper', '{ms}', '4']
  const { code, stdout, stderr } = run(['record', ...args])
  expect([code, stdout]).toEqual([
    0,
    expect.stringMatching(
      /^decode: ms=10 is recommended, [\d.]+ tok\/s \((certain: |not certain: |each of its 2 runs was faster )/,
    ),
  ])
  const rows = stdout.split('\n').filter((line) => line.includes('█'))
  expect(rows.map((line) => line.trim().split(/ {2,}/)[0])).toEqual(['10', '40', '100'])
  expect(rows.map((line) => line.endsWith('◀'))).toEqual([true, false, false])
  const order = ['10', '40', '100', '100', '40', '10'].map((ms, i) => `run ${i + 1} of 6: ms=${ms}`)
  expect(stderr.split('\n').slice(0, 6)).toEqual(order)
  const logs = [10, 40, 100].flatMap((ms) => [1, 2].map((round) => `ms${ms}-${round}.ggtrace`))
  expect(run(['stats', '--json', `swept/${logs[0]}`]).code).toBe(0)
  for (const log of logs) expect(stderr).toContain(`swept/${log}`)
  const again = run(['record', ...args])
  expect([again.code, again.stderr]).toEqual([
    1,
    expect.stringMatching(/^error: swept: contains runs already \(ms10+-1\.ggtrace\)\nhint: /),
  ])
})

linuxTest('of one run each it is not known how certain it is', () => {
  const args = ['-q', '--sweep', 'ms=10,60', '--rounds', '1', '-o', 'once', '--', './sleeper', '{ms}', '4']
  const { stdout, stderr } = run(['record', ...args])
  expect([stderr, stdout]).toEqual([
    '',
    expect.stringMatching(/^decode: ms=10 is recommended, .* \(one run each: .*\nnote: /),
  ])
})

linuxTest('runs of other work are not compared', () => {
  const args = ['--sweep', 'n=4,6', '--rounds', '1', '-o', 'other', '--', './sleeper', '5', '{n}']
  const { code, stdout } = run(['record', ...args])
  expect([code, stdout]).toEqual([
    0,
    expect.stringMatching(/^nothing is recommended: the runs are not comparable: decode calls \d and \d\n/),
  ])
  expect(stdout).not.toContain('◀')
})

linuxTest.each([
  [['--sweep', 't=1,2', '--', 'true', '-t', '2'], '--sweep t=1,2: {t} is not in the command\nhint: '],
  [['--sweep', 't=1', '--', 'true', '{t}'], '--sweep "t=1": expected a name and several values, such as t=1,2,4'],
  [['--sweep', 't=1,1', '--', 'true', '{t}'], '--sweep "t=1,1": expected'],
  [['--sweep', 't=1,../2', '--', 'true', '{t}'], '--sweep "t=1,../2": expected'],
  [['--sweep', '1,2', '--', 'true', '{t}'], '--sweep "1,2": expected'],
  [['--rounds', '2', '--', 'true'], '--rounds: expected --sweep, too'],
  [['--sweep', 't=1,2', '--open', '--', 'true', '{t}'], '--sweep: not possible with --open'],
  [['--print-env', '--sweep', 't=1,2', '-o', '/x'], '--print-env: not possible with --sweep'],
])('%j is refused', (args, message) => {
  const before = names()
  const { code, stderr } = run(['record', ...args])
  expect([code, stderr]).toEqual([1, expect.stringContaining(`error: ${message}`)])
  expect(names()).toEqual(before)
})

linuxTest('a program that fails ends it, with its messages', () => {
  const args = ['--sweep', 't=1,2', '-o', 'failed', '--', 'sh', '-c', 'echo no {t} >&2; exit 4']
  const { code, stderr } = run(['record', ...args])
  expect([code, stderr]).toEqual([1, 'run 1 of 6: t=1\nerror: t=1: ended with exit code 4; its last messages:\nno 1\n'])
})

/** The first line, and the bars' rows as value and tokens per second. */
function shownBy(stdout: string) {
  const [first = '', ...lines] = stdout.split('\n')
  const rows = lines.slice(0, lines.indexOf('prefill')).filter((line) => line.includes('█'))
  // `1 234`: thousands are separated.
  const numberOf = (cell: string) => Number(cell.replaceAll(' ', ''))
  return { first, rows: rows.map((line) => line.trim().split(/ {2,}/).map(numberOf)) }
}

/** The recommendation is as fast as the best one; or it names what disturbed runs, which were not those of more threads than CPUs. */
function expectAnswer(stdout: string, own: string): void {
  const { first, rows } = shownBy(stdout)
  const [, value] = /^decode: t=(\d+) is recommended/.exec(first) ?? []
  if (value === undefined) {
    expect(first).toMatch(/^nothing is recommended: \d+ runs? of .* disturbed \(.*(preempted|cpu-limit|page-faults)/)
    if (!first.includes('page-faults')) expect(first).not.toContain(own)
  } else {
    const speeds = rows.map(([, speed]) => speed!)
    const chosen = rows.find(([threads]) => threads === Number(value))!
    expect(chosen[1]! / Math.max(...speeds)).toBeGreaterThan(0.97)
  }
}

const hasTaskset = canRun('taskset', '-c', '0', 'true')
const recorded = hasLlama() && hasTaskset ? describe : describe.skip

recorded('llama.cpp (needs linux-x64, cc and taskset)', () => {
  let command: (model: string, threads: string) => string[]
  let paths: { tiny: string; nano: string }
  beforeAll(async () => {
    await ensureLlama()
    // One layer: threads on one CPU, which spin at each barrier, need a turn of the scheduler there.
    const nano = { layers: 1, width: 64, feedForward: 96, heads: 2, kvHeads: 1, vocabulary: 260, context: 128 }
    paths = { tiny: (await model('tinyDense')).path, nano: (await model(nano)).path }
    const program = await runner()
    command = (path, threads) => [
      ...[program, '--lib', LIB, '--model', path, '--threads', threads],
      ...['--threadpool', '--prompt', '16', '--decode', '20'],
    ]
  })
  const sweepOf = (output: string, path: string) => [
    ...['record', '--sweep', 't=1,2', '--rounds', '2', '-o', output, '--'],
    ...command(path, '{t}'),
  ]
  const line = (words: readonly string[]) => words.map(quoted).join(' ')

  test('on all CPUs', () => {
    const { code, stdout } = run(sweepOf('all', paths.tiny))
    expect(code).toBe(0)
    expectAnswer(stdout, 't=4')
  })

  inLong(test)('with affinity to one CPU, two threads do not disturb each other', () => {
    const { code, stdout } = shell(`taskset -c 0 $CLI ${line(sweepOf('one', paths.nano))}`)
    expect(code).toBe(0)
    expectAnswer(stdout, 't=2')
  })

  inLong(test)('beside a hog on its CPU it declines', () => {
    writeFileSync(at('hog.sh'), 'while :; do :; done')
    const hogs = [1, 2].map(() => spawn('taskset', ['-c', '0', 'sh', at('hog.sh')], { stdio: 'ignore' }))
    try {
      const runs = `env RUN={n} ${line(command(paths.tiny, '1'))}`
      const { code, stdout } = shell(`taskset -c 0 $CLI record -q --sweep n=1,2 --rounds 2 -o hog -- ${runs}`)
      expect([code, stdout]).toEqual([
        0,
        expect.stringMatching(
          /^nothing is recommended: [34] runs of n=1, n=2 were disturbed \(.*preempted.*: too few are left of n=1, n=2\nhint: /,
        ),
      ])
    } finally {
      for (const hog of hogs) hog.kill()
    }
  })

  inLong(test)('under a quota of one CPU', async () => {
    if (!(await hasControlGroups())) return
    const group = withCpuLimit(100_000)
    try {
      const before = line(group.before)
      const { code, stdout } = shell(`${before} $CLI ${line(sweepOf('quota', paths.tiny))}`)
      expect(code).toBe(0)
      // What a period permits at once is more than such a run uses: scripts/sweep-trials.mjs makes longer ones. On a busy machine it may be long enough.
      const short =
        /^decode: nothing is recommended: under the limit of CPU time, runs .* need 2 s of decode or more \(t=2 had less\)$/m
      const disturbed = /^nothing is recommended: .* disturbed/m
      expect([short, disturbed, /^decode: t=1 is recommended/m].filter((answer) => answer.test(stdout))).toHaveLength(1)
      expect(stdout).not.toMatch(/t=2 is recommended/)
    } finally {
      await group.remove()
    }
  })
})
