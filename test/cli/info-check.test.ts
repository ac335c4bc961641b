import { readFileSync, writeFileSync } from 'node:fs'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { at, MOE, read, run, useFolder, WARM_UP } from './helpers.ts'

useFolder()

beforeAll(() => {
  run([MOE, '-o', 'moe.pftrace'])
})

describe('info', () => {
  test('for people', () => {
    const { code, stdout, stderr } = run(['info', MOE])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    for (const line of [
      /^ {2}format {5}profinfer-csv \(/m,
      /^ {2}clock {6}CLOCK_MONOTONIC, from 3917038898440 ns$/m,
      /^ {2}duration {3}38\.7 ms$/m,
      /^ {2}calls {6}9 calls: prefill 16 tokens, decode 8 tokens$/m,
      /^ {2}TTFT {7}26\.1 ms /m,
      /^ {2}TPOT {7}1\.57 ms per token of a sequence · 637 tok\/s decode$/m,
      /^ {2}workers {4}2, on 10 threads$/m,
      /^ {2}layers {5}6$/m,
      /^ {2}MUL_MAT_ID +18\.9 ms +40\.0 % +324$/m,
      /^ {2}all workers +47\.3 ms +100\.0 % +2 664$/m,
      /^ {2}op numbers +llama\.cpp v0\.5\.0 .*inferred/m,
      /^no losses$/m,
    ]) {
      expect(stdout).toMatch(line)
    }
  })

  test('--json is the summary, with big integers as texts', () => {
    const summary = JSON.parse(run(['info', MOE, '--json']).stdout)
    expect(summary).toMatchObject({
      format: 'profinfer-csv',
      clock: 'MONOTONIC',
      start_ns: '3917038898440',
      calls: { by_phase: { prefill: { calls: 1, tokens: 16 }, decode: { calls: 8, tokens: 8 } } },
      operators: 2664,
      workers: 2,
      threads: 10,
      layers: 6,
      issues: [],
    })
    expect(summary.ops[0]).toEqual({ op: 'MUL_MAT_ID', count: 324, time_ns: expect.any(Number) })
  })

  test('from stdin the same', () => {
    const text = run(['info', MOE, '--json']).stdout
    expect(run(['info', '-', '--json'], { input: readFileSync(MOE) }).stdout).toBe(text)
  })

  test('warm-up and issues', () => {
    expect(run(['info', WARM_UP]).stdout).toMatch(/calls .*, 1 warm-up call excluded$/m)
    writeFileSync(at('cut.csv'), readFileSync(MOE).subarray(0, 200_000))
    const { code, stdout } = run(['info', 'cut.csv'])
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: expect.stringMatching(/^issues\n {2}! torn record: line 2142, byte /m),
    })
    expect(JSON.parse(run(['info', 'cut.csv', '--json']).stdout).issues).toMatchObject([
      { title: 'torn record', count: 1, first: { at: { line: 2142 } } },
      { title: 'log ends within a call', count: 1, first: { at: { line: 2141 } } },
    ])
  })
})

describe('check', () => {
  test('a sound trace, from a file and from stdin', () => {
    const [file, stdin] = [run(['check', 'moe.pftrace']), run(['check', '-'], { input: read('moe.pftrace') })]
    expect(file.stdout).toMatch(
      /^moe\.pftrace: \d+ \d{3} packets, \d+ KiB: complete; trace_processor imports it without errors\n$/,
    )
    expect([file.code, stdin.code, stdin.stdout]).toEqual([0, 0, file.stdout.replace('moe.pftrace', 'stdin')])
  })

  test('a trace that was cut', () => {
    writeFileSync(at('cut.pftrace'), read('moe.pftrace').subarray(0, -3))
    const { code, stdout, stderr } = run(['check', 'cut.pftrace'])
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toMatch(
      /^error: cut\.pftrace: truncated after .*: packet \d+, byte \d+: the file ends within a packet/,
    )
  })

  test('a trace with other bytes in the middle', () => {
    const trace = read('moe.pftrace')
    const first = 2 + trace[1]!
    writeFileSync(
      at('torn.pftrace'),
      Buffer.concat([trace.subarray(0, first), Uint8Array.of(0xff), trace.subarray(first)]),
    )
    const { code, stderr } = run(['check', 'torn.pftrace'])
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringMatching(/garbage after 1 packet, /) })
  })

  test('a trace that is complete, but not imported without errors', () => {
    // A packet with interned data of a sequence that never cleared its state, as after a loss.
    const packet = Uint8Array.of(
      0x0a,
      0x0d,
      0x40,
      0xb0,
      0xea,
      0x01,
      0x50,
      0x63,
      0x5a,
      0x05,
      0x48,
      0x02,
      0x60,
      0xd2,
      0x09,
    )
    writeFileSync(
      at('lossy.pftrace'),
      Buffer.concat([read('moe.pftrace'), packet, Uint8Array.of(0x0a, 6, 0x50, 0x62, 0x68, 2, 0x40, 1)]),
    )
    const { code, stdout, stderr } = run(['check', 'lossy.pftrace'])
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toMatch(
      /^error: lossy\.pftrace: .*: complete, but on import:\n {2}\w+ \((error|data_loss|info)\) +\d+ ×/,
    )
  })
})
