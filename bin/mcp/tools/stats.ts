import { type Analysis, GROUP_KEYS, type GroupKey, groupOperators, UsageError } from '../../../lib/cli.ts'
import { plural } from '../../units.ts'
import { ANSWER_BYTES, type Answer, bytesOf, callOf, withMost } from '../answer.ts'
import { type Document, documentOf, isAnalysis, verdictOf } from '../documents.ts'
import { FROM, LOGS, list, type Tool, text, whole } from '../tool.ts'

interface Arguments {
  readonly logs: readonly string[]
  readonly section?: string
  readonly by?: readonly GroupKey[]
  readonly call?: number
  readonly from?: number
}

/** The tool `stats`. */
export const statsTool: Tool<Arguments> = {
  name: 'stats',
  title: 'Statistics of a run',
  description:
    'Exact figures. Without further arguments: the sections of the Analysis and their sizes. `section`: one of them, or a part (`calls.tpot`). ' +
    '`by`: operators, summed up by keys, most time first. `call`: one call of llama_decode.',
  input: {
    logs: LOGS,
    section: text('A section, or a part of one: names joined by dots, numbers in lists'),
    by: {
      ...{ type: 'array', items: { type: 'string', enum: GROUP_KEYS }, minItems: 1, maxItems: GROUP_KEYS.length },
      description: 'Keys of operators',
    },
    call: whole('The number of a call, from 0'),
    from: FROM,
  },
  required: ['logs'],
  evidence: {
    section: { type: ['string', 'null'], description: 'What `value` or `rows` are' },
    value: { description: 'The section, as in stats --json' },
    rows: list('Elements of the section, from `from` on; sums of operators; a call'),
    from: { type: 'integer', description: 'The number of the first row, from 0' },
    larger: list('Parts that have no room here: call `stats` with their names'),
  },
  isReadOnly: true,
  async run({ logs, section, by, call: number, from = 0 }, session, call) {
    const given = [section, by, number].filter((argument) => argument !== undefined)
    if (given.length > 1) throw new UsageError(`expected one of section, by and call, found ${given.length} of them`)
    const series = number === undefined ? [] : (['calls'] as const)
    const document = await documentOf(logs, session, call, series)
    const about = { logs, document, from }
    if (number !== undefined) return oneCall(analysisIn(document), number, logs)
    if (by) return rowsOf({ ...about, by, rows: groupOperators(analysisIn(document), by) })
    const value = section === undefined ? document : partOf(document, section)
    if (Array.isArray(value)) return rowsOf({ ...about, section, rows: value })
    return fieldsIn({ ...about, section, value })
  },
}

function analysisIn(document: Document): Analysis {
  if (isAnalysis(document)) return document
  throw new UsageError(`expected logs of one run, found ${plural(document.runs.length, 'run')}`)
}

function oneCall({ series, verdict }: Analysis, number: number, logs: readonly string[]): Answer {
  const rows = series?.calls?.rows ?? []
  const row = rows.find(({ call }) => call === number)
  const known = rows.length === 0 ? 'no calls' : `calls ${rows[0]!.call} to ${rows.at(-1)!.call}`
  if (!row) throw new UsageError(`call ${number}: expected the number of a call, found ${known}`)
  return withMost([row], (shown) => ({
    verdict: verdict.sentence,
    evidence: { section: 'series.calls', from: 0, rows: shown },
    check: [callOf('dag', { logs, call: number }, 'its graph, with the time of each node')],
    next: [callOf('dag', { logs, call: number }, 'its graph, with the time of each node')],
    left: null,
  }))
}

interface About {
  readonly logs: readonly string[]
  readonly document: Document
  readonly section?: string | undefined
  readonly from: number
}

/** Rows of a list. */
function rowsOf({
  logs,
  document,
  section,
  by,
  rows,
  from,
}: About & { by?: unknown; rows: readonly unknown[] }): Answer {
  if (from > 0 && from >= rows.length)
    throw new UsageError(`from ${from}: expected a number below that of rows, found ${rows.length} of them`)
  return withMost(rows.slice(from), (shown) => {
    const count = rows.length - from - shown.length
    const next = callOf('stats', { logs, section, by, from: from + shown.length }, 'the next rows')
    return {
      verdict: verdictOf(document),
      evidence: { section: section ?? null, from, rows: shown },
      check:
        by === undefined ? [] : [callOf('stats', { logs, section: 'operators.rows' }, 'the rows that are summed up')],
      next: count > 0 ? [next] : [callOf('why', { logs }, 'the findings')],
      left: count > 0 ? { what: 'rows', count, next } : null,
    }
  })
}

/** Fields of an object that have room, and the names of all others; from the `from`th of these on, only names. */
function fieldsIn({ logs, document, section, value, from }: About & { value: unknown }): Answer {
  const isObject = typeof value === 'object' && value !== null
  const shown: Record<string, unknown> = {}
  const larger: { readonly section: string; readonly bytes: number }[] = []
  for (const [name, field] of isObject ? Object.entries(value) : []) {
    if (bytesOf(shown) + bytesOf({ [name]: field }) <= ROOM) shown[name] = field
    else larger.push({ section: `${section === undefined ? '' : `${section}.`}${name}`, bytes: bytesOf(field) })
  }
  return withMost(larger.slice(from), (named) => {
    const count = larger.length - from - named.length
    const next = callOf('stats', { logs, section, from: from + named.length }, 'the names of further parts')
    const fields = from > 0 ? { larger: named } : { value: isObject ? shown : value, larger: named }
    return {
      verdict: verdictOf(document),
      evidence: { section: section ?? null, ...fields },
      check: [],
      next: count > 0 ? [next] : [callOf('why', { logs }, 'the findings')],
      left: count > 0 ? { what: 'names of parts', count, next } : null,
    }
  })
}

/** Bytes of fields; the names of others need room, too. */
const ROOM = ANSWER_BYTES / 2

/** A part of a document. Names may contain dots, too. */
function partOf(document: unknown, section: string): unknown {
  let [value, rest, known] = [document, section, '']
  while (rest !== '') {
    const names = typeof value === 'object' && value !== null ? Object.keys(value) : []
    const name = names
      .filter((name) => rest === name || rest.startsWith(`${name}.`))
      .reduce<string | undefined>((a, b) => (a !== undefined && a.length > b.length ? a : b), undefined)
    if (name === undefined) {
      const some = names.length === 0 ? 'no further parts' : `some of ${names.slice(0, 50).join(', ')}`
      throw new UsageError(
        `section "${section}": ${known === '' ? '' : `${known} has `}no part "${rest}"; expected ${some}`,
      )
    }
    value = (value as Record<string, unknown>)[name]
    known = `${known}${known === '' ? '' : '.'}${name}`
    rest = rest.slice(name.length + 1)
  }
  return value
}
