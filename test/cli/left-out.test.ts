import { writeFileSync } from 'node:fs'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { plainBytes, storedBytes } from '../line/support.ts'
import { at, MOE, names, run, useFolder } from './helpers.ts'

/** A log of which nothing is drawn is no success, and what is not drawn is said. */

useFolder()

const MARKS = `# tracer: nop
           <...>-1234  [000] .... 100.000001: tracing_mark_write: B|1234|doFrame
           <...>-1234  [000] .... 100.000101: tracing_mark_write: E|1234
          <idle>-0     [001] d.h. 100.000201: cpu_frequency: state=1200000 cpu_id=1
`
const SWITCH =
  'a-7 [000] d..2. 100.000301: sched_switch: prev_comm=a prev_pid=7 prev_prio=120 prev_state=S ==> next_comm=b next_pid=8 next_prio=120\n'

beforeAll(() => {
  writeFileSync(at('atrace.txt'), MARKS)
  writeFileSync(at('some.txt'), MARKS + SWITCH)
  writeFileSync(at('samples.json'), '{"traceEvents":[],"stackFrames":{},"samples":[{"sf":1},{"sf":1}]}')
  const log = plainBytes('ggtrace/tiny.ggtrace')
  writeFileSync(at('killed.ggtrace'), log.subarray(0, new DataView(log.buffer).getUint32(4, true)))
  writeFileSync(at('h100.json.gz'), storedBytes('chrome-json/h100.json.gz'))
})

const fails = (args: readonly string[], message: RegExp) => {
  const before = names()
  const { code, stdout, stderr } = run(args)
  expect({ code, stdout, names: names() }).toEqual({ code: 1, stdout: '', names: before })
  expect(stderr).toMatch(message)
}

const ATRACE =
  /^error: atrace\.txt: nothing in it can be drawn: as ftrace it contains 2 tracing_mark_write, 1 cpu_frequency\nhint: .*https:\/\/ui\.perfetto\.dev$/m

describe('nothing to draw: exit code 1, what is in it and who reads it, no file', () => {
  test('convert', () => fails(['atrace.txt'], ATRACE))
  test('convert, quietly', () => fails(['atrace.txt', '--quiet', '-o', 'x.pftrace'], ATRACE))
  test('samples alone', () => fails(['samples.json'], /nothing in it .* contains 2 samples with stackFrames\nhint: /))
  test('a recording that was killed at once', () => {
    fails(['killed.ggtrace'], /killed\.ggtrace: nothing in it .* contains no events\n! run did not end: /)
  })
  test('one of two', () => fails([MOE, 'atrace.txt', '--clock', 'atrace.txt=mono'], ATRACE))
})

describe('some of it is drawn', () => {
  test('convert says what is not', () => {
    const { code, stdout } = run(['some.txt'])
    expect([code, stdout]).toEqual([
      0,
      expect.stringMatching(
        /^some\.txt: 1 switch .*\n(?: .*\n)* {2}not drawn: 2 tracing_mark_write, 1 cpu_frequency\n/,
      ),
    ])
    expect(stdout).not.toContain('no losses')
  })

  test('info says it, too, with its hint; "no losses" does not stand alone', () => {
    const { code, stdout } = run(['info', 'some.txt'])
    expect(code).toBe(0)
    expect(stdout).toMatch(
      /\n\nno losses; not drawn\n {2}tracing_mark_write {2}2\n {2}cpu_frequency {7}1\n {2}hint: .*perfetto/,
    )
    expect(run(['info', 'h100.json.gz']).stdout).toMatch(/\nno losses\n$/)
    const { drawn, leftOut } = JSON.parse(run(['info', 'some.txt', '--json']).stdout)
    expect([drawn, leftOut.map(({ what }: { what: string }) => what)]).toEqual([
      1,
      ['tracing_mark_write', 'cpu_frequency'],
    ])
  })

  test('info of a log of which nothing is drawn is no error', () => {
    const { code, stdout } = run(['info', 'atrace.txt'])
    expect([code, stdout]).toEqual([0, expect.stringContaining('no losses; not drawn\n  tracing_mark_write  2')])
  })
})
