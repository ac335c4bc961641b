import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from '@jest/globals'
import { METRICS } from '../lib/analysis.ts'
import { NODE, printedBy, run, useFolder } from './cli/helpers.ts'

/** docs/dag.md and docs/reference/graphs.md: their commands print what is there, the program runs, and all options and figures are described. */
useFolder()
const ROOT = fileURLToPath(new URL('..', import.meta.url))
const guide = ['docs/dag.md', 'docs/reference/graphs.md']
  .map((path) => readFileSync(join(ROOT, path), 'utf8'))
  .join('\n')
const blocks = (language: string) =>
  [...guide.matchAll(new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``, 'g'))].map((match) => match[1]!)
const [node, ...flags] = NODE

test.each(blocks('console'))('%s', (block) => {
  const [command, ...expected] = block.trimEnd().split('\n')
  const printed = printedBy(command!.slice(2), ROOT)
  const parts = expected.join('\n').split(/^…\n?/m)
  for (const part of parts) expect(printed).toContain(part.trimEnd())
  expect(expected.length).toBeGreaterThan(4)
})

test('all options and figures', () => {
  const help = run(['help', 'dag']).stdout
  const options = [...help.matchAll(/^ {2}(?:-\w,| {3}) (--[\w-]+)/gm)].map(([, option]) => option!)
  const general = ['--help', '--version', '--output', '--from', '--op-table', '--osrt']
  expect(options.filter((option) => !guide.includes(option) && !general.includes(option))).toEqual([])
  expect(Object.keys(METRICS).filter((key) => !guide.includes(`\`${key}\``))).toEqual([])
})

test('its program runs', () => {
  const folder = mkdtempSync(join(tmpdir(), 'ggml2perfetto-docs-'))
  const file = join(ROOT, 'examples', `dag-${process.pid}.tmp.mjs`) // where 'ggml2perfetto' is this package
  copyFileSync(join(ROOT, 'examples/moe.ggtrace.gz'), join(folder, 'run.ggtrace.gz'))
  writeFileSync(file, blocks('js')[0]!)
  try {
    expect(execFileSync(node, [...flags, file], { cwd: folder, encoding: 'utf8' })).toMatch(/^78 \d{4,5} \d{5,6}\n$/)
  } finally {
    rmSync(file)
    rmSync(folder, { recursive: true })
  }
})
