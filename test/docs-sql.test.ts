import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from '@jest/globals'
import { GGML_PACKAGE, GGML_SQL, GGML_SUMMARY } from '../lib/sql.ts'
import { printedBy, run, useFolder } from './cli/helpers.ts'

/** docs/reference/sql.md: commands print what is there, all views and columns are described; `sql` writes what it says. */
useFolder()
const ROOT = fileURLToPath(new URL('..', import.meta.url))
const guide = readFileSync(join(ROOT, 'docs/reference/sql.md'), 'utf8')

const commands = [...guide.matchAll(/```console\n\$ ggml2perfetto (.*)\n([\s\S]*?)\n```/g)]

test.each(commands.map(([, command, output]) => [command!, output!]))('%s', (command, output) => {
  const printed = `\n${printedBy(`ggml2perfetto ${command}`, ROOT)}`
  let at = 0
  for (const part of output.split(/^…$/m)) {
    at = printed.indexOf(`\n${part.replace(/^\n|\n$/g, '')}`, at)
    expect([part, at >= 0]).toEqual([part, true])
  }
})

test('there is an example for most modules', () => {
  expect(commands.length).toBeGreaterThan(5)
})

test('the views are those of the modules, and each column has a comment', () => {
  execFileSync(process.execPath, ['scripts/sql-docs.mjs', '--check'], { cwd: ROOT })
  const views = [...GGML_SQL.matchAll(/^CREATE OR REPLACE PERFETTO (?:VIEW|TABLE) (ggml_\w+)\(\n([\s\S]*?)\n\)/gm)]
  expect(views.length).toBeGreaterThan(12)
  for (const [, view, columns] of views) {
    expect(guide).toContain(`**${view}** – `)
    const lines = columns!.split('\n')
    for (const [i, line] of lines.entries())
      if (!line.trim().startsWith('--'))
        expect([view, line, lines[i - 1]!.trim().slice(0, 2)]).toEqual([view, line, '--'])
  }
  for (const module of Object.keys(GGML_PACKAGE.modules)) expect(guide).toContain(`### ggml.${module}\n`)
})

test('the metrics are those of the spec', () => {
  for (const [, prefix, template] of GGML_SUMMARY.matchAll(/id_prefix: "(\w+)"([\s\S]*?)query \{/g)) {
    const values = [...template!.matchAll(/value_column_specs \{\n\s+name: "(\w+)"/g)].map(([, name]) => `\`${name}\``)
    const dimensions = [...template!.matchAll(/dimensions_specs \{ name: "(\w+)"/g)].map(([, name]) => name)
    expect(guide).toContain(`| \`${prefix}_…\` | ${dimensions.join(', ')} | ${values.join(' ')} |`)
  }
})

test('`sql` prints the package, or writes its files', () => {
  expect(run(['sql']).stdout).toBe(`${GGML_SQL.trimEnd()}\n`)
  const folder = join(mkdtempSync(join(tmpdir(), 'ggml2perfetto-sql-')), 'perfetto')
  try {
    expect(run(['sql', folder]).code).toBe(0)
    const read = (path: string) => readFileSync(join(folder, path), 'utf8')
    expect(readdirSync(join(folder, 'ggml')).sort()).toEqual(
      Object.keys(GGML_PACKAGE.modules)
        .map((module) => `${module}.sql`)
        .sort(),
    )
    for (const [module, sql] of Object.entries(GGML_PACKAGE.modules)) expect(read(`ggml/${module}.sql`)).toBe(sql)
    expect(read('ggml.textproto')).toBe(GGML_SUMMARY)
    const { namespace, features, modules } = JSON.parse(read('manifest'))
    expect([namespace, features, modules[0].id]).toEqual(['ggml', [{ name: 'sql_modules' }], 'default'])
    const { sql_modules } = JSON.parse(read('modules/default/sql_modules'))
    expect(sql_modules).toEqual(
      Object.entries(GGML_PACKAGE.modules).map(([module, sql]) => ({ name: `ggml.${module}`, sql })),
    )
    // The same files are in the npm package.
    const { files } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { files: string[] }
    for (const path of ['lib/query/sql/ggml', 'lib/query/sql/ggml.textproto'])
      expect([files.includes(path), existsSync(join(ROOT, path))]).toEqual([true, true])
  } finally {
    rmSync(join(folder, '..'), { recursive: true })
  }
})
