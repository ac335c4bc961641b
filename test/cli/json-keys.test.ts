import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { pathOf } from '../line/support.ts'
import { ROOT } from '../tables/of-logs.ts'
import { run, useFolder } from './helpers.ts'

/** All JSON of all commands has keys of one style, that of an Analysis; the trace for Chrome has those of its format. That of peaks: peaks.test.ts. */

/** Objects whose keys are data: names of blocks, backends, variables, counters; attributes of logs; codes of issues; phases, options. */
const BY_NAME = new Set([
  ...[
    'operator_time_ns',
    'off_cpu_ns',
    'attributes',
    'issues',
    'losses',
    'variables',
    'backends',
    'counters',
    'limited_to',
  ],
  ...['by_phase', 'by_type', 'shares', 'evidence'],
])

function otherKeys(value: unknown, path: string): string[] {
  if (Array.isArray(value)) return value.flatMap((part) => otherKeys(part, path))
  if (typeof value !== 'object' || value === null) return []
  const isByName = BY_NAME.has(path.split('.').at(-1)!)
  return Object.entries(value).flatMap(([key, part]) => [
    ...(isByName || /^[a-z][a-z0-9]*(_[a-z0-9]+)*$/.test(key) ? [] : [`${path}.${key}`]),
    ...otherKeys(part, `${path}.${key}`),
  ])
}

const example = (name: string) => join(ROOT, 'examples', name)
const SERVER = pathOf('server/v0.7.0-lv4.log')

useFolder()

const COMMANDS: readonly (readonly string[])[] = [
  ...readdirSync(join(ROOT, 'examples'))
    .filter((name) => name.endsWith('.gz'))
    .flatMap((name) => [
      ['stats', '--json', '--series', 'calls,memory,offsets,graph', example(name)],
      ['stats', '--contents', '--json', example(name)],
      ['why', '--json', example(name)],
      ['dag', '--json', example(name)],
    ]),
  ['stats', '--json', '--series', 'requests', SERVER],
  ['why', '--json', SERVER],
  ['why', '--json', '--request', '1', SERVER],
  ['stats', '--json', pathOf('nsys/one-gpu.sqlite.gz')],
  ['stats', '--json', example('moe.ggtrace.gz'), example('llama.ggtrace.gz')],
  ['why', '--json', example('moe.ggtrace.gz'), example('llama.ggtrace.gz')],
  ['compare', '--json', example('moe.ggtrace.gz'), '--with', example('qwen2.ggtrace.gz')],
  ['dag', '--json', '--diff', example('moe.ggtrace.gz'), example('qwen2.ggtrace.gz')],
]

test.each(COMMANDS)('%s %s %s %s', (...args) => {
  const { code, stdout, stderr } = run(args.filter((arg) => arg !== undefined))
  expect([code, code === 0 ? '' : stderr]).toEqual([0, ''])
  expect(otherKeys(JSON.parse(stdout), '')).toEqual([])
})
