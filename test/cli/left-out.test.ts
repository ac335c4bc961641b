import { rmSync, writeFileSync } from 'node:fs'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { plainBytes, storedBytes } from '../line/support.ts'
import { at, MOE, names, run, useFolder } from './helpers.ts'

/** A log of which nothing is drawn is no success, and what is not drawn is said. */

useFolder()

const INTERRUPTS = `# tracer: nop
           <...>-1234  [000] d.h. 100.000001: irq_handler_entry: irq=1 name=timer
           <...>-1234  [000] d.h. 100.000101: irq_handler_entry: irq=2 name=keyboard
          <idle>-0     [001] d.h. 100.000201: softirq_entry: vec=1 [action=TIMER]
`
const SWITCH =
  'a-7 [000] d..2. 100.000301: sched_switch: prev_comm=a prev_pid=7 prev_prio=120 prev_state=S ==> next_comm=b next_pid=8 next_prio=120\n'

beforeAll(() => {
  writeFileSync(at('irqs.txt'), INTERRUPTS)
  writeFileSync(at('some.txt'), INTERRUPTS + SWITCH)
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

const NOT_DRAWN =
  /^error: irqs\.txt: nothing in it can be drawn: as ftrace it contains 2 irq_handler_entry, 1 softirq_entry\nhint: .*https:\/\/ui\.perfetto\.dev$/m

describe('nothing to draw: exit code 1, what is in it and who reads it, no file', () => {
  test('convert', () => fails(['irqs.txt'], NOT_DRAWN))
  test('convert, quietly', () => fails(['irqs.txt', '--quiet', '-o', 'x.pftrace'], NOT_DRAWN))
  test('samples alone', () => fails(['samples.json'], /nothing in it .* contains 2 samples with stackFrames\nhint: /))
  test('a recording that was killed at once', () => {
    fails(['killed.ggtrace'], /killed\.ggtrace: nothing in it .* contains no events\n! run did not end: /)
  })
  test('one of two', () => fails([MOE, 'irqs.txt', '--clock', 'irqs.txt=mono'], NOT_DRAWN))
})

describe('some of it is drawn', () => {
  test('convert says what is not', () => {
    const { code, stdout } = run(['some.txt'])
    expect([code, stdout]).toEqual([
      0,
      expect.stringMatching(/^some\.txt: 1 switch .*\n(?: .*\n)* {2}not drawn: 2 irq_handler_entry, 1 softirq_entry\n/),
    ])
    expect(stdout).not.toContain('no losses')
  })

  test('info says it, too, with its hint; "no losses" does not stand alone', () => {
    const { code, stdout } = run(['info', 'some.txt'])
    expect(code).toBe(0)
    expect(stdout).toMatch(
      /\n\nno losses; not drawn\n {2}irq_handler_entry {2}2\n {2}softirq_entry {6}1\n {2}hint: .*perfetto/,
    )
    expect(run(['info', 'h100.json.gz']).stdout).toMatch(/\nno losses\n$/)
    const { drawn, left_out } = JSON.parse(run(['info', 'some.txt', '--json']).stdout)
    expect([drawn, left_out.map(({ what }: { what: string }) => what)]).toEqual([
      1,
      ['irq_handler_entry', 'softirq_entry'],
    ])
  })

  test('info of a log of which nothing is drawn is no error', () => {
    const { code, stdout } = run(['info', 'irqs.txt'])
    expect([code, stdout]).toEqual([0, expect.stringContaining('no losses; not drawn\n  irq_handler_entry  2')])
  })
})

describe('recordings of a program whose log is not given: nothing of them can be drawn', () => {
  const CASES = [
    ['odd-forms/perf-addr2.txt', 'as perf-script it contains 2 samples of data addresses'],
    ['perf-script/no-cpu.txt', 'as perf-script it contains 24 switches, 4 wakings, '],
    ['perf-data/own-switches.data.gz', 'as perf-data it contains '],
  ] as const

  test.each(CASES)('%s', (fixture, contents) => {
    const name = fixture.replace('/', '-')
    writeFileSync(at(name), storedBytes(fixture))
    const failed = run([name, '-o', 'x.pftrace'])
    expect([failed.code, failed.stderr]).toEqual([
      1,
      expect.stringContaining(`${name}: nothing in it can be drawn: ${contents}`),
    ])
    expect(failed.stderr).toMatch(/^hint: give it together with the log of the program/m)
    expect(names()).not.toContain('x.pftrace')
    expect(run(['query', name, 'select 1']).code).toBe(1)
    const { code, stdout } = run([name, '-o', 'x.pftrace', '--allow-empty'])
    expect([code, stdout]).toEqual([0, expect.stringContaining('not drawn: ')])
    expect(stdout).not.toMatch(/no losses$/m)
    rmSync(at('x.pftrace'))
  })

  test('stats, why and report have nothing to analyse; export adds no run, unless asked', () => {
    writeFileSync(at('perf.txt'), storedBytes('odd-forms/perf-addr2.txt'))
    for (const command of ['stats', 'why', 'report']) {
      const { code, stderr } = run([command, 'perf.txt'])
      expect([command, code, stderr]).toEqual([command, 1, expect.stringContaining('nothing to analyse')])
    }
    for (const to of ['parquet', 'arrow']) {
      const { code, stdout, stderr } = run(['export', 'perf.txt', '-o', to, '--to', to])
      expect([code, stderr]).toEqual([
        1,
        expect.stringContaining(
          'nothing in it can be exported: as perf-script it contains 2 samples of data addresses',
        ),
      ])
      expect(stdout).toMatch(/1 failed|^0 runs/)
      expect(run(['export', 'perf.txt', '-o', to, '--to', to, '--allow-empty']).code).toBe(0)
    }
    expect(run(['info', 'perf.txt']).stdout).toMatch(/not drawn\n {2}samples of data addresses +2$/m)
  })

  test('with the log of the program they are drawn', () => {
    for (const name of ['nano.ggtrace.gz', 'nano.data.gz'])
      writeFileSync(at(name), storedBytes(`memory-samples/${name}`))
    expect(run(['nano.data.gz', '-o', 'x.pftrace']).code).toBe(1)
    const { code, stdout } = run(['nano.ggtrace.gz', 'nano.data.gz', '-o', 'x.pftrace'])
    expect([code, stdout]).toEqual([0, expect.not.stringMatching(/not drawn: [^\n]*samples/)])
  })
})
