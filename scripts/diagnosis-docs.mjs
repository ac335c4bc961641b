/**
 * Writes which planted causes each rule is caused by into docs/reference/findings.md, and the list of causes into
 * scripts/diagnosis/README.md. With --check, writes nothing: that one is stale is an error.
 */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { CAUSES } from './diagnosis/causes/causes.mjs'
import { NOT_PLANTED } from './diagnosis/causes/not-planted.mjs'
import { put } from './generated.mjs'

const at = (path) => fileURLToPath(new URL(`../${path}`, import.meta.url))
const singles = CAUSES.filter(({ causes, isUnseen, isHarmless }) => !causes && !isUnseen && !isHarmless)

/** The line of a rule: which causes are planted for it, or why none is. */
function lineOf(rule) {
  const causes = singles.filter(({ rules }) => rules.includes(rule)).map(({ id }) => `\`${id}\``)
  const reason = NOT_PLANTED[rule]
  if (causes.length > 0 === (reason !== undefined))
    throw new Error(`${rule}: either a cause in scripts/diagnosis/causes, or a reason in not-planted.mjs`)
  return `**Planted:** ${causes.length > 0 ? `${causes.join(', ')}.` : `no. ${reason}.`}`
}

/** Each section of a rule ends with its line. */
function withLines(text) {
  const start = text.indexOf('\n## The rules\n')
  const end = text.indexOf('\n## ', start + 1)
  const [head, ...sections] = text.slice(start, end).split(/^(?=### )/m)
  const rules = new Set(sections.map((section) => /^### ([\w-]+)/.exec(section)[1]))
  const unknown = [...Object.keys(NOT_PLANTED), ...singles.flatMap(({ rules }) => rules)].find((id) => !rules.has(id))
  if (unknown !== undefined) throw new Error(`docs/reference/findings.md: no rule '${unknown}'`)
  const lines = sections.map((section) => {
    const [, rule] = /^### ([\w-]+)/.exec(section)
    return `${section.replace(/\n\*\*Planted:\*\* .*\n/, '').trimEnd()}\n\n${lineOf(rule)}\n\n`
  })
  return `${text.slice(0, start) + head + lines.join('').trimEnd()}\n${text.slice(end)}`
}

const rowOf = ({ id, title, builds, by, rules = [] }) =>
  `| \`${id}\` | ${title} | ${builds.join(', ')} | ${by?.join(', ') ?? 'all'} | ${rules.map((rule) => `\`${rule}\``).join(', ')} |`

/** The table of causes in the README, between the sections before and after it. */
function withTable(text) {
  const tables = [
    ['One at a time', singles],
    ['Two at once', CAUSES.filter(({ causes }) => causes)],
    ['Not in any log', CAUSES.filter(({ isUnseen }) => isUnseen)],
    ['No cause', CAUSES.filter(({ isHarmless }) => isHarmless)],
  ].map(([title, causes]) =>
    [
      `### ${title}: ${causes.length}`,
      '',
      ...(causes === singles
        ? ['| cause | | builds | named by | rules |', '|---|---|---|---|---|', ...causes.map(rowOf)]
        : ['| cause | |', '|---|---|', ...causes.map(({ id, title }) => `| \`${id}\` | ${title} |`)]),
    ].join('\n'),
  )
  const [start, end] = [text.indexOf('\n## All causes\n'), text.indexOf('\n## Quiet runs\n')]
  if (start < 0 || end < 0) throw new Error("scripts/diagnosis/README.md: no sections 'All causes' and 'Quiet runs'")
  return `${text.slice(0, start)}\n## All causes\n\n${tables.join('\n\n')}\n${text.slice(end)}`
}

for (const [path, change] of [
  ['docs/reference/findings.md', withLines],
  ['scripts/diagnosis/README.md', withTable],
])
  put(at(path), change(readFileSync(at(path), 'utf8')), 'diagnosis-docs')
