import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import type { Section, StatsTable } from '../../bin/stats/section.ts'
import { sectionsOf } from '../../bin/stats/sections.ts'
import { analyze } from '../../lib/index.ts'
import { inputOf } from '../../lib/node.ts'
import { reportHtml } from '../../lib/report.ts'
import { SHOWN } from '../analyze/shown.ts'
import { LOGS, ROOT } from '../tables/of-logs.ts'

/**
 * A figure that a report and `stats` print is the same text in both, of each fixture: cells of tables and facts. Speeds, verdicts and
 * findings: test/analyze/mouths.test.ts.
 */

type Row = Readonly<Record<string, string>>
type KeyOf = (row: Row) => string

/** A table of the report with the one of `stats` that has the same figures. */
interface Pair {
  /** Of the report: its caption. */
  readonly caption: RegExp
  /** The title of the section of `stats`, which may contain what the caption matched as `$1`. */
  readonly section: string
  /** The first column of its table. */
  readonly first: string
  /** What identifies a row, in the words of `stats`; by default the first cells are the same. The order: rows are in the same one. */
  readonly key?: readonly [ofReport: (row: Row) => string, ofStats: (row: Row) => string] | 'order'
  /** Does `stats` have each row? It leaves out what is not known, or 0, in others. */
  readonly isWhole?: boolean
  /** Columns of the report, with those of `stats` where they have other names. */
  readonly columns: Readonly<Record<string, string | ((row: Row) => string)>>
}

const USES: Row = { weights: 'weights', 'kv-cache': 'KV cache', compute: 'compute buffer', other: 'buffer' }
const same = (...names: readonly string[]) => Object.fromEntries(names.map((name) => [name, name]))
const phaseAnd =
  (name: string) =>
  (row: Row): string =>
    `${row[name]} ${row['phase']}`

const PAIRS: readonly Pair[] = [
  {
    ...{ caption: /^Buffers$/, section: 'memory', first: 'buffer' },
    key: [({ buffer, use }) => (buffer ? `${USES[use!]} (${buffer})` : USES[use!]!), ({ buffer }) => buffer!],
    columns: { ...same('size', 'tensors', 'reuse'), 'bytes of tensors': 'their bytes', 'most live': 'peak live' },
  },
  {
    ...{ caption: /^Copies and fills, (GPU \d+)/, section: '$1', first: 'copies', key: 'order' as const },
    columns: { direction: 'copies', times: 'count', ...same('bytes', 'time', 'exposed', 'GB/s') },
  },
  {
    ...{ caption: /^Kernels with most time, (GPU \d+)/, section: '$1', first: 'kernel', key: 'order' as const },
    columns: { times: 'count', median: 'p50', ...same('time', 'share') },
  },
  {
    ...{ caption: /^Layers by where/, section: 'placement', first: 'layers', isWhole: true },
    columns: same('of', 'weights in', 'KV cache in'),
  },
  {
    ...{ caption: /^What the splits cost/, section: 'placement', first: 'per call' },
    columns: {
      ...{ 'splits a call': 'splits', 'copied a call': 'copied', 'copying a call': 'copying' },
      'waiting a call': 'waiting',
    },
  },
  {
    ...{ caption: /^Machine and threads$/, section: 'machine and threads', first: 'worker', isWhole: true },
    columns: same('may use', 'began graphs on', 'kinds of cores', 'moves'),
  },
  {
    ...{ caption: /^Operators (of .*|outside calls) by wall time$/, section: 'operators $1', first: 'operator' },
    key: [({ operator }) => operator!, ({ operator }) => operator!],
    columns: { 'wall time': 'wall', share: 'share' },
  },
  {
    ...{ caption: /^Operators that workers share/, section: 'workers', first: 'imbalance' },
    key: [phaseAnd('operator'), ({ imbalance, phase }) => `${imbalance} ${phase}`],
    columns: {
      ...same('slowest worker', 'mean'),
      'last worker': ({ 'last worker': last, 'of steps': share }) => `last worker: ${last} in ${share}`,
    },
  },
  {
    ...{ caption: /^Sequences that decoded/, section: 'calls', first: 'sequence', key: 'order' as const },
    columns: { tokens: 'tokens', 'TPOT mean': 'TPOT', p50: 'p50', p99: 'p99' },
  },
  {
    ...{ caption: /^Choices of experts by layer, (.*)$/, section: 'experts', first: 'layers in $1', isWhole: true },
    columns: same('entropy', 'unused', 'repeated', 'Gini', 'most used'),
  },
  {
    ...{ caption: /^Simulated caches of experts, (.*)$/, section: 'experts', first: 'simulated caches: hits in $1' },
    key: 'order',
    columns: { size: 'simulated caches: hits in $1', ...same('experts', 'LRU', 'LFU', 'most used') },
  },
  {
    ...{ caption: /^Speed by phase$/, section: 'roofline', first: 'what' },
    columns: same('GFLOP/s', 'GB/s', 'FLOP/byte'),
  },
  {
    ...{ caption: /^Tensors by node$/, section: 'NUMA', first: 'tensor', isWhole: true },
    columns: same('size', 'is on', 'local'),
  },
  {
    ...{ caption: /^What operators read$/, section: 'NUMA', first: 'operator', isWhole: true },
    columns: same('read', 'local', 'estimated'),
  },
  {
    ...{ caption: /^What workers read/, section: 'NUMA', first: 'worker', isWhole: true },
    columns: same('on node', 'read', 'local', 'from'),
  },
  {
    ...{ caption: /^Threads of workers in calls$/, section: 'threads of workers in calls', first: 'worker' },
    key: [phaseAnd('worker'), phaseAnd('worker')],
    columns: same('running', 'times', 'blocked', 'migrations'),
  },
  {
    ...{ caption: /^Time of each worker$/, section: 'workers', first: 'worker', isWhole: true },
    columns: same('operators', 'computing', 'without a CPU', 'at barriers', 'idle', 'last to end'),
  },
  {
    ...{ caption: /^Time to the first token/, section: 'first token', first: 'part' },
    key: [({ part, stage }) => part || stage!, ({ part }) => part!.trim()],
    columns: same('time', 'share', 'time before it'),
  },
]

/** Facts of the page's head and of its section of the run, by their words in `stats`. */
const FACTS: Readonly<Record<string, string>> = {
  ...same('CPU', 'backends', 'duration', 'kernel', 'layers', 'model', 'model files', 'parameters', 'recorded', 'teams'),
  ...same('threads', 'weights', 'workers'),
  command: 'command',
}

const text = (html: string) =>
  html
    .replace(/<[^>]*>/g, '')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&amp;', '&')
const all = (html: string, form: RegExp) => [...html.matchAll(form)].map(([, found]) => text(found!))

/** `stats` leaves out what is 0. */
const withoutZero = (cell: string) => (/^0( \D.*|\.0 %)?$/.test(cell) ? '' : cell)

const rowsOf = (titles: readonly string[], rows: readonly (readonly string[])[]): Row[] =>
  rows.map((cells) => Object.fromEntries(cells.map((cell, i) => [titles[i]!, cell] as const).toReversed()))

function tablesOf(page: string) {
  return [...page.matchAll(/<table><caption>(.*?)<\/caption>([\s\S]*?)<\/table>/g)].map(([, caption, content]) => {
    const titles = all(content!, /<th scope="col"[^>]*>([\s\S]*?)<\/th>/g)
    const rows = [...content!.matchAll(/<tr>([\s\S]*?)<\/tr>/g)].slice(1)
    const cells = rows.map(([, row]) => all(row!, /<t[hd][^>]*>([\s\S]*?)<\/t[hd]>/g))
    return { caption: text(caption!), rows: rowsOf(titles, cells) }
  })
}

/** Of each path its last name. */
const withoutFolders = (names: string) => names.replaceAll(/[^ ,]*\//g, '')

const seen = new Set<string>()
const differences = new Set<string>()

function sameText(what: string, stats: string, report: string): void {
  if (withoutZero(stats) !== withoutZero(report)) differences.add(`${what}: ${stats} in stats, ${report} in the report`)
}

function compareTables(page: string, sections: readonly Section[]): void {
  for (const { caption, rows } of tablesOf(page))
    for (const pair of PAIRS) {
      const match = pair.caption.exec(caption)
      if (!match) continue
      const named = (name: string) => name.replace('$1', match[1] ?? '')
      const isOf = (title: string) => title === named(pair.section) || title.startsWith(`${named(pair.section)} (`)
      const ofSection = sections.filter(({ title }) => isOf(title)).flatMap(({ tables = [] }) => tables)
      const table = ofSection.find(({ columns: [first] }) => first?.title === named(pair.first))
      if (table) compareRows(pair, rows, table, named)
    }
}

function compareRows(
  { key, columns, isWhole }: Pair,
  rows: readonly Row[],
  table: StatsTable,
  named: (name: string) => string,
) {
  const titles = table.columns.map(({ title }) => title)
  const stats = rowsOf(titles, table.rows)
  const first = (row: Row) => row[titles[0]!]!
  const keyOf = key === undefined ? ([(row: Row) => Object.values(row).at(-1)!, first] as const) : key
  const isRest = (row: Row) => / more$/.test(first(row))
  const isCut = stats.some(isRest)
  /** Rows of several models may have the same key: the n-th of the report is the n-th of `stats`. */
  const nthOf = (of: readonly Row[], i: number, [ofReport, ofStats]: readonly [KeyOf, KeyOf]) => {
    const wanted = ofReport(of[i]!)
    const n = of.slice(0, i).filter((row) => ofReport(row) === wanted).length
    return stats.filter((row) => ofStats(row) === wanted)[n]
  }
  rows.forEach((row, i) => {
    const other = keyOf === 'order' ? stats[i] : nthOf(rows, i, keyOf)
    if (!other && !isCut && isWhole) differences.add(`${Object.values(row).at(-1)}: a row of the report only`)
    if (!other || isRest(other)) return
    for (const [column, name] of Object.entries(columns)) {
      if (row[column] === undefined) continue
      const [title, cell] = typeof name === 'string' ? [named(name), row[column]] : name(row).split(': ')
      if (other[title!] === undefined) continue
      sameText(`${first(other)}, ${column}`, other[title!]!, cell!)
      seen.add(`${Object.keys(columns)[0]} … ${column}`)
    }
  })
}

function compareParts(page: string, sections: readonly Section[]): void {
  const table = sections.find(({ title }) => title.startsWith('time of calls'))?.tables?.[0]
  const parts = tablesOf(page).find(({ caption }) => /^Parts of the time of calls/.test(caption))?.rows
  if (!table || !parts) return
  for (const { phase, part, time, share } of parts) {
    const [row] = table.rows.filter(([name]) => name === part)
    const at = table.columns.findIndex(({ title }) => title === phase)
    if (!row || at < 0) continue
    sameText(`${phase} ${part}`, row[at]!, time!)
    sameText(`${phase} ${part}, share`, row[at + 1]!, share!)
  }
}

function compareFacts(page: string, sections: readonly Section[]): void {
  const facts = new Map(
    sections.flatMap(({ title, facts = [] }) => facts.map(([name, of]) => [`${title}: ${name}`, of])),
  )
  for (const [, name, value] of page.matchAll(/<dt>(.*?)<\/dt>\s*<dd>([\s\S]*?)<\/dd>/g)) {
    const word = FACTS[text(name!)]
    const stated = facts.get(`run: ${word}`) ?? facts.get(`machine and threads: ${word}`)
    if (word === undefined || stated === undefined) continue
    // A page names no folders.
    sameText(word, withoutFolders(stated), withoutFolders(text(value!)))
    seen.add(word)
  }
}

const INPUTS = LOGS.filter((path) => !/\.(c|py)$|own-switches\.txt|boot-v7.*\.txt|answers|\/analysis\//.test(path))

test('reports and stats print the same figures', async () => {
  for (const path of INPUTS) {
    const input = inputOf(join(ROOT, path))
    const analysis = await analyze(input, { series: ['calls', 'requests'] }).catch(() => undefined)
    if (!analysis) continue
    const page = reportHtml(analysis)
    const sections = sectionsOf(analysis, { ...SHOWN, experts: true })
    compareTables(page, sections)
    compareParts(page, sections)
    compareFacts(page, sections)
  }
  expect([...differences]).toEqual([])
  const named = PAIRS.flatMap(({ columns }) =>
    Object.keys(columns).map((column) => `${Object.keys(columns)[0]} … ${column}`),
  )
  expect([...named, ...Object.keys(FACTS)].filter((name) => !seen.has(name))).toEqual([])
})
