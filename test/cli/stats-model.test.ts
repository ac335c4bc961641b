import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import type { Analysis } from '../../lib/index.ts'
import { layoutOf, presets } from '../llama/gguf.mjs'
import { at, CLI, MOE, run, useFolder } from './helpers.ts'

/** `stats` of a model, and against the peaks of a machine. */

useFolder()

const PEAKS = {
  ...{ cpu: 'x', threads: 2, measured_at: '2026-01-01T00:00:00Z' },
  ...{
    read_bytes: { instruction_set: '', one: 1e9, all: 2e9 },
    fp32_flops: { instruction_set: '', one: 1e9, all: 4e9 },
  },
  int8_ops: { instruction_set: '', one: 1e9, all: 8e9 },
}

test('a GGUF: what it contains, and what a token costs', () => {
  writeFileSync(at('big.gguf'), layoutOf(presets.big).head)
  const { code, stdout, stderr } = run(['stats', '--full', at('big.gguf')])
  expect([code, stderr]).toEqual([0, ''])
  expect(stdout).toContain('model: random, llama, from its GGUF\n')
  expect(stdout).toContain('attention   22 layers of 32 heads, 4 for keys and values, of 64 elements\n')
  expect(stdout).toMatch(/weights read +555 MiB\n +KV cache read +22 KiB · n \(f16, assumed\)\n/)
  expect(stdout).toContain('not known\n  model.activations: ')
  const json = JSON.parse(run(['stats', at('big.gguf'), '--json', '--cache-type', 'q8_0']).stdout) as Analysis
  expect(json).toMatchObject({ schema: 'ggml2perfetto.analysis/1', inputs: [], model: { source: 'gguf', layers: 22 } })
  expect(json.model?.decode.kv_read_bytes?.per_position).toBe(22 * 2 * 4 * 2 * 34)
})

test('a log with its model and a log of power: the order does not matter', () => {
  writeFileSync(at('model.gguf'), layoutOf(presets.big).head)
  const [log, power] = [MOE, join(CLI, '../../test/fixtures/power/power.csv')]
  const analyses = permutations([log, at('model.gguf'), power]).map((inputs) => {
    const { code, stdout, stderr } = run(['stats', ...inputs, '--json'])
    expect([code, stderr]).toEqual([0, ''])
    const { inputs: of, ...others } = JSON.parse(stdout) as Analysis
    // The files are of different times: which of them is named so depends on the order.
    const read = of.map((input) => ({ ...input, issues: {} }))
    return { ...others, inputs: read.toSorted((a, b) => (a.name < b.name ? -1 : 1)) }
  })
  expect(analyses[0]!.model?.source).toBe('gguf')
  for (const analysis of analyses.slice(1)) expect(analysis).toEqual(analyses[0])
  for (const inputs of permutations([log, at('model.gguf')])) {
    const { code, stdout } = run(['why', ...inputs])
    expect([code, stdout]).toEqual([0, expect.stringContaining('no losses in the log')])
  }
})

const permutations = (of: readonly string[]): string[][] =>
  of.length < 2
    ? [[...of]]
    : of.flatMap((one) => permutations(of.filter((other) => other !== one)).map((rest) => [one, ...rest]))

test('a log against given peaks: utilisation and bound', () => {
  const { code, stdout } = run([
    ...['stats', '--full'],
    join(CLI, '../../examples/moe.ggtrace.gz'),
    '--peak-gflops',
    '100',
    '--peak-gbs',
    '10',
  ])
  expect(code).toBe(0)
  expect(stdout).toMatch(/roofline\n +what +time +GFLOP\/s +GB\/s +FLOP\/byte +MFU +MBU +bound by\n/)
  expect(stdout).toContain('peaks: 100 GFLOP/s, 10 GB/s, ridge at 10 FLOP/byte')
})

test('a log against a file of measured peaks', () => {
  writeFileSync(at('peaks.json'), JSON.stringify(PEAKS))
  const { rooflines } = JSON.parse(run(['stats', MOE, '--json', '--peaks', at('peaks.json')]).stdout) as Analysis
  const decode = rooflines.find(({ what }) => what === 'decode')
  expect(decode?.peak_bytes_per_s).toBe(2e9)
})

test('options that are wrong are errors', () => {
  writeFileSync(at('no-peaks.json'), '{}')
  const wrong = (...args: string[]) => {
    const { code, stderr } = run(['stats', MOE, ...args])
    return [code, stderr.split('\n')[0]]
  }
  expect(wrong('--peak-gbs', '0')).toEqual([1, 'error: --peak-gbs "0": expected a number above 0'])
  expect(wrong('--cache-type', 'q9')).toEqual([1, 'error: cache type: "q9" is not a type of ggml, such as f16 or q8_0'])
  expect(wrong('--peaks', at('nowhere.json'))[1]).toMatch(/^error: --peaks .*: cannot read: /)
  expect(wrong('--peaks', at('no-peaks.json'))[1]).toMatch(
    /not the JSON that `ggml2perfetto peaks --json` prints: expected cpu: string, found nothing$/,
  )
  expect(wrong('--peaks', 'measure', '--peak-gbs', '1')[1]).toMatch(/given by --peak-gflops or --peak-gbs too$/)
})
