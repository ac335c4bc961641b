/**
 * Writes what the commands in the console blocks of docs/analysis.md, docs/reference/statistics.md, docs/dag.md, docs/reference/sql.md and README.md print, after a change of it;
 * run after a build. Two commands with a pipe are left out. A `…` is any number of lines: after it, as many lines as before are written,
 * from the same first one.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const cli = join(root, 'dist/ggml2perfetto.js')

for (const name of [
  'docs/analysis.md',
  'docs/reference/statistics.md',
  'docs/dag.md',
  'docs/reference/graphs.md',
  'docs/reference/sql.md',
  'README.md',
]) {
  const path = join(root, name)
  const text = readFileSync(path, 'utf8')
  const blocks =
    /(?<=```console\n)(\$ ggml2perfetto (?:stats|query|dag) (?!.* \| ggml2perfetto).*)\n([\s\S]*?)(?:\n|(?<=\n))(?=```)/g
  writeFileSync(
    path,
    text.replace(blocks, (_, command, old) => {
      const output = execFileSync(process.execPath, [cli, ...wordsOf(command)], {
        cwd: root,
        encoding: 'utf8',
      })
      return `${command}\n${renewed(output.trimEnd(), old)}\n`
    }),
  )
}

/** The words of a command after the program; quotes are double. */
function wordsOf(command) {
  return [...command.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain).slice(2)
}

function renewed(output, old) {
  if (!/^…$/m.test(old)) return output
  const printed = output.split('\n')
  let at = 0
  const parts = `\n${old}\n`.split('\n…\n').map((part) => {
    const lines = part.replace(/^\n|\n$/g, '').split('\n')
    if (lines[0] === '') return ''
    const first = printed.indexOf(lines[0], at)
    if (first < 0) throw new Error(`${lines[0]}: is no longer printed`)
    at = first + lines.length
    return printed.slice(first, at).join('\n')
  })
  return parts.join('\n…\n').replace(/^\n|\n$/g, '')
}
