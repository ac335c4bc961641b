import { fileURLToPath } from 'node:url'
import { expect, test } from '@jest/globals'
import type { Analysis } from '../../lib/index.ts'
import { run, useFolder } from './helpers.ts'

/** `stats` of a log of a mixture of experts. */

useFolder()
const LOG = fileURLToPath(new URL('../recorded/outside-graphs.ggtrace.gz', import.meta.url))

/** The section about experts; two spaces between columns. */
function sectionOf(args: readonly string[]): string[] {
  const { code, stdout } = run(['stats', LOG, '--full', ...args])
  expect(code).toBe(0)
  const lines = stdout.split('\n')
  const from = lines.indexOf('experts')
  return lines.slice(from + 1, lines.indexOf('', from)).map((line) => line.trim().replace(/ {2,}/g, '  '))
}

const analysisOf = (args: readonly string[]) => JSON.parse(run(['stats', '--json', LOG, ...args]).stdout) as Analysis

test('layers of decode, caches of all layers, and the relation to time', () => {
  const { layers, by_phase } = analysisOf([]).experts!
  const lines = sectionOf([])
  expect(lines[0]).toMatch(/^all layers {2}(activations {2})?entropy {2}top eighth {2}unused {2}repeated {2}by chance/)
  expect(lines[2]).toMatch(/^decode {2}(96 {2})?67\.2 % {2}66\.7 % {2}17 of 48 {2}49\.0 % {2}58\.6 % {2}2\.5 {2}2\.24/)
  expect(by_phase.decode!.entropy_share).toBeCloseTo(0.672, 3)
  expect(lines.filter((line) => /^\d {2}2 of 8 {2}/.test(line)).length).toBe(layers.length)
  expect(lines.filter((line) => / % {2}all layers {2}/.test(line)).length).toBe(4)
  expect(lines.at(-1)).toMatch(
    /^rank correlation of the time in MUL_MAT_ID of 8 decode calls: with reuse distance -0\.43/,
  )
})

test('--experts: all phases, the most used experts, and caches of each layer', () => {
  const lines = sectionOf(['--experts', '--top', '3'])
  for (const title of [
    /^layers in prefill/,
    /^layers in decode/,
    /^most used experts in prefill/,
    /^most used experts in decode/,
  ])
    expect(lines.filter((line) => title.test(line)).length).toBe(1)
  const from = lines.findIndex((line) => line.startsWith('most used experts in decode'))
  const { by_expert } = analysisOf([]).experts!.layers[1]!.by_phase.decode!
  expect(by_expert[6]).toBe(8)
  expect(lines.slice(from + 1, from + 5)).toEqual([
    'blk.1  6  8  100.0 %  4 ×',
    'blk.5  5  8  100.0 %  4 ×',
    expect.stringMatching(/^blk\.1 {2}3 {2}7 {2}87\.5 %/),
    '45 more',
  ])
  expect(lines.filter((line) => /each layer/.test(line)).length).toBe(4)
})

test('--expert-cache: shares, numbers and bytes', () => {
  const caches = analysisOf(['--expert-cache', '12.5%, 3,4MB']).experts!.caches
  expect(caches.map(({ size, scope, experts }) => [size, scope, experts])).toEqual([
    ...[['12.5 %', 'layer', 6] as const, ['12.5 %', 'all', 6] as const],
    ...[['3 experts a layer', 'layer', 18] as const, ['3 experts a layer', 'all', 18] as const],
    // 4 MiB are 6.3 experts of 663 552 bytes.
    ...[['4MB', 'layer', 6] as const, ['4MB', 'all', 6] as const],
  ])
  for (const [value, error] of [
    ['0', 'expected sizes such as 8GB, 16 (experts a layer) or 25%'],
    ['120%', 'expected sizes such as 8GB'],
    ['8 apples', 'expected a size'],
    ['1,2,3,4,5,6,7,8,9', '9 sizes of caches; expected at most 8'],
  ] as const) {
    const { code, stderr } = run(['stats', LOG, '--expert-cache', value])
    expect([code, stderr]).toEqual([1, expect.stringContaining(error)])
  }
})

test('Markdown has the same tables', () => {
  const { stdout } = run(['stats', '--markdown', LOG])
  expect(stdout).toMatch(/^\*\*experts\*\*$/m)
  expect(stdout).toMatch(/^\| simulated caches: hits in decode \|/m)
})
