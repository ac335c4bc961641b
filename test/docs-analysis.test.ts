import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from '@jest/globals'
import { GROUP_KEYS } from '../lib/analysis.ts'
import { analyze } from '../lib/index.ts'
import { inputOf } from '../lib/node.ts'
import { run, useFolder } from './cli/helpers.ts'

/** docs/analysis.md, docs/reference/statistics.md and the README on `stats`: commands print what is there, and all fields are described. */
useFolder()

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8')
const blocks = (text: string, language: string) =>
  [...text.matchAll(new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``, 'g'))].map((match) => match[1]!)
const node = (args: readonly string[], cwd = ROOT) => execFileSync(process.execPath, args, { cwd, encoding: 'utf8' })

const guide = read('docs/analysis.md') + read('docs/reference/statistics.md')
const fields = read('docs/reference/analysis.md')
const commands = ['docs/analysis.md', 'docs/reference/statistics.md', 'README.md']
  .flatMap((path) => blocks(read(path), 'console'))
  .filter((block) => block.startsWith('$ ggml2perfetto stats '))

test.each(commands)('%s', (block) => {
  const [command, ...expected] = block.trimEnd().split('\n')
  const printed = run(command!.split(' ').slice(2), { cwd: ROOT }).stdout.trimEnd().split('\n')
  // `…` is any number of lines.
  let at = 0
  let isAnywhere = false
  for (const line of expected) {
    if (line === '…') {
      isAnywhere = true
      continue
    }
    if (isAnywhere) at = printed.indexOf(line, at)
    isAnywhere = false
    expect(printed[at++]).toBe(line)
  }
  expect(expected.length).toBeGreaterThan(3)
  if (!isAnywhere) expect(printed.slice(at)).toEqual([])
})

/** In one process, which reads the sources of the entries once. */
const GENERATORS = [
  ...['analysis-docs', 'analysis-schema', 'event-checks', 'option-names', 'exports-docs', 'tables-docs'],
  'diagnosis-docs',
  'diagnosis-results',
]

test('what scripts make of types and comments is up to date: pages of the reference, and lib/generated', () => {
  const line = GENERATORS.map((name) => `await import('./scripts/${name}.mjs')`).join('\n')
  node(['--input-type=module', '-e', line, '--', '--check'])
})

test('each field that an Analysis contains is described', async () => {
  const documented = new Set([...fields.matchAll(/^\| `(?:\w+\.)*(\w+)` \|/gm)].map(([, name]) => name!))
  const found = new Set<string>()
  const look = (value: unknown, isRecord = false): void => {
    if (Array.isArray(value)) for (const of of value) look(of)
    else if (typeof value === 'object' && value !== null)
      for (const [key, of] of Object.entries(value)) {
        if (!isRecord) found.add(key)
        look(of, /^(issues|losses|by_phase|counters|evidence|weight_types|limited_to|operator_time_ns)$/.test(key))
      }
  }
  for (const log of ['examples/moe.ggtrace.gz', 'test/fixtures/profinfer-csv/pmc.csv'])
    look(JSON.parse(JSON.stringify(await analyze(inputOf(join(ROOT, log))))))
  expect(found.size).toBeGreaterThan(60)
  expect([...found].filter((name) => !documented.has(name))).toEqual([])
})

test('all options of stats, and keys of operators', () => {
  const help = run(['help', 'stats']).stdout
  const options = [...help.matchAll(/^ {2}(?:-\w,| {3}) (--[\w-]+)/gm)].map(([, option]) => option!)
  expect(options.filter((option) => !guide.includes(`\`${option}\``))).toEqual(['--help'])
  const [, keys] = /`--by` \| groups operators by one or more of ([^.]+)\./.exec(guide)!
  expect(keys!.split(', ')).toEqual([...GROUP_KEYS])
  const sorts = /Order of operators, the most first: ([\w\s|]+)/.exec(help)![1]!.match(/\w+/g)!
  expect(sorts.filter((key) => !guide.includes(`\`${key}\``))).toEqual([])
})

describe('the guide', () => {
  test('its program runs', () => {
    const [program] = blocks(guide, 'js')
    const file = join(ROOT, 'examples', `analysis-${process.pid}.tmp.mjs`) // where 'ggml2perfetto' is this package
    const folder = mkdtempSync(join(tmpdir(), 'ggml2perfetto-docs-'))
    copyFileSync(join(ROOT, 'examples/moe.ggtrace.gz'), join(folder, 'run.ggtrace.gz'))
    writeFileSync(file, program!)
    try {
      expect(node([file], folder)).toMatch(/^MoE 0\.78\d* 10\.6\d+\n[\s\S]*ggml2perfetto\.analysis\/1 \d+\n$/m)
    } finally {
      rmSync(file)
    }
  })
})
