import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from '@jest/globals'
import { adviceOf, RULES, threadScaling } from '../lib/analysis.ts'
import { printedBy, useFolder } from './cli/helpers.ts'

/** docs/reference/findings.md describes all rules, as they are, and its commands print what is there. */
useFolder()
const ROOT = fileURLToPath(new URL('..', import.meta.url))
/** Those of a run, and the one of several. */
const ALL = [...RULES, threadScaling]
const guide = readFileSync(join(ROOT, 'docs/reference/findings.md'), 'utf8')

test('each rule is described with its limits, their reasons, and what to do', () => {
  const [, rules] = /## The rules\n([\s\S]*?)\n## /.exec(guide)!
  const sections = rules!.split(/^### /m).slice(1)
  expect(sections.map((section) => section.split('\n')[0])).toEqual(ALL.map(({ id }) => id))
  for (const [i, { title, limits, advice, covers = [] }] of ALL.entries()) {
    const rows = Object.entries(limits).map(([key, { value, why }]) => `| ${key} | ${value} | ${why} |`)
    const left = covers.length > 0 ? [covers.map((id) => `\`${id}\``).join(', ')] : []
    for (const text of [title, ...rows, adviceOf(advice), ...left]) expect(sections[i]).toContain(text)
    expect(sections[i]).toMatch(/^> .*\d/m)
  }
})

const blocks = [...guide.matchAll(/```console\n([\s\S]*?)```/g)].map((match) => match[1]!)

test.each(blocks)('%s', (block) => {
  const [command, ...expected] = block.trimEnd().split('\n')
  const printed = printedBy(command!.slice(2), ROOT)
  const parts = expected.join('\n').split(/^…\n?/m)
  for (const part of parts) expect(printed).toContain(part.trimEnd())
  expect(expected.length).toBeGreaterThan(2)
})
