/** Writes the views of lib/query/sql/ggml and their columns into docs/reference/sql.md. With --check, writes nothing and exits 1 if the page is stale. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const MODULES = ['calls', 'operators', 'workers', 'waits', 'interference', 'experts', 'requests', 'sums']
const path = join(root, 'docs/reference/sql.md')

/** Comment lines as one text. */
const joined = (comments) =>
  comments
    .replace(/^\s*-- ?/gm, '')
    .trim()
    .replaceAll('\n', ' ')

const section = (module) => {
  const text = readFileSync(join(root, `lib/query/sql/ggml/${module}.sql`), 'utf8')
  const parts = [`### ggml.${module}`]
  for (const [, comments, view, body] of text.matchAll(
    /((?:^--.*\n)+)CREATE PERFETTO (?:VIEW|TABLE) (ggml_\w+)\(\n([\s\S]*?)\n\) AS/gm,
  )) {
    const columns = [...body.matchAll(/((?:^ *--.*\n)+) *(\w+) ([\w().]+),?$/gm)].map(
      ([, comments, name, type]) => `| \`${name}\` | ${type} | ${joined(comments)} |`,
    )
    parts.push(
      `**${view}** – ${joined(comments)}`,
      ['| column | type | meaning |', '|---|---|---|', ...columns].join('\n'),
    )
  }
  return parts.join('\n\n')
}

const page = readFileSync(path, 'utf8')
const [begin, end] = ['<!-- begin of the views, by scripts/sql-docs.mjs -->', '<!-- end of the views -->']
const [before, after] = [page.slice(0, page.indexOf(begin) + begin.length), page.slice(page.indexOf(end))]
const made = `${before}\n\n${MODULES.map(section).join('\n\n')}\n\n${after}`
if (!process.argv.includes('--check')) writeFileSync(path, made)
else if (made !== page) {
  console.error(
    'docs/reference/sql.md does not match lib/query/sql: run `node scripts/sql-docs.mjs` and commit the result',
  )
  process.exitCode = 1
}
