import { QUESTIONS, type QuestionName, UsageError } from '../../../lib/cli.ts'
import { plural } from '../../units.ts'
import { callOf, withMost } from '../answer.ts'
import { documentOf, verdictOf } from '../documents.ts'
import type { Place } from '../places.ts'
import {
  type Call,
  FROM,
  list,
  oneOf,
  path,
  paths,
  placesOf,
  runOn,
  type Session,
  type Tool,
  text,
  whole,
} from '../tool.ts'

interface Arguments {
  readonly logs?: readonly string[]
  readonly dataset?: string
  readonly sql?: string
  readonly finding?: number
  readonly question?: QuestionName
  readonly from?: number
  readonly limit?: number
}

const [LIMIT, LIMIT_MAX] = [50, 200]
const NAMES = Object.keys(QUESTIONS) as QuestionName[]

/** The tool `query`. */
export const queryTool: Tool<Arguments> = {
  name: 'query',
  title: 'SQL on a trace or a dataset',
  description:
    'Rows of PerfettoSQL on the trace of logs (`include perfetto module ggml.operators`; resource docs/sql), or of a SELECT of DuckDB on a dataset ' +
    '(a folder that export wrote; resource docs/fleet). Read-only. `finding`: the SQL that checks a finding of `why`.',
  input: {
    logs: paths('Logs of one run, or a trace; this or dataset'),
    dataset: path('A folder that `ggml2perfetto export` wrote; this or logs'),
    sql: text('One or more statements; the rows are those of the last one', 20_000),
    finding: whole('In place of sql: the number of a finding of `why`, from 0'),
    question: oneOf(NAMES, 'In place of sql, of a dataset: a question of every fleet'),
    from: FROM,
    limit: whole('The most rows', 1, LIMIT_MAX),
  },
  required: [],
  evidence: {
    rows: list('Rows as objects; integers above 2^53 are texts'),
    from: { type: 'integer', description: 'The number of the first row, from 0' },
    rows_count: { type: 'integer', description: 'Number of all rows' },
    expected: { description: 'Of a finding: the figure in its evidence, which the first value of the row is' },
    sql: { type: 'string', description: 'Of a finding: the SQL' },
  },
  isReadOnly: true,
  async run(args, session, call) {
    const { from = 0, limit = LIMIT } = args
    const checked = await checkOf(args, session, call)
    const sql = checked?.sql ?? args.sql
    const { places, options } = await sideOf(args, sql, session)
    const command = ['query', ...places.map(({ path }) => path), ...options, '--format', 'json']
    const { stdout } = await runOn(places, command, session, call, sql === undefined ? {} : { input: sql })
    const rows = rowsIn(stdout)
    if (from > 0 && from >= rows.length)
      throw new UsageError(`from ${from}: expected a number below that of rows, found ${plural(rows.length, 'row')}`)
    return withMost(rows.slice(from, from + limit), (shown) => {
      const count = rows.length - from - shown.length
      const next = callOf('query', { ...args, from: from + shown.length }, 'the next rows')
      const same = callOf('query', { ...args }, 'the same query again')
      return {
        verdict: checked
          ? checkedText(checked, rows[0])
          : `${plural(rows.length, 'row')}${count > 0 ? `, ${shown.length} of them here` : ''}`,
        evidence: {
          from,
          rows_count: rows.length,
          rows: shown,
          ...(checked && { expected: checked.expected, sql: checked.sql }),
        },
        check: [same],
        next: count > 0 ? [next] : [],
        left: count > 0 ? { what: 'rows', count, next } : null,
      }
    })
  },
}

/** The inputs of a query, and the options of the command. */
async function sideOf(
  { logs, dataset, question, finding }: Arguments,
  sql: string | undefined,
  session: Session,
): Promise<{ readonly places: readonly Place[]; readonly options: readonly string[] }> {
  if ((logs === undefined) === (dataset === undefined))
    throw new UsageError(`expected logs or dataset, found ${logs ? 'both' : 'neither'}`)
  if ((sql === undefined) === (question === undefined))
    throw new UsageError(`expected one of sql, finding and question, found ${sql === undefined ? 'none' : 'several'}`)
  if (logs) {
    if (question !== undefined) throw new UsageError('question: expected a dataset, found logs')
    return { places: await placesOf(logs, session), options: ['--file', '-'] }
  }
  if (finding !== undefined) throw new UsageError('finding: expected logs, found a dataset')
  const place = await session.places.input(dataset!, 'file or folder')
  return {
    places: [place],
    options: question === undefined ? ['--file', '-', '--threads', '2'] : ['--question', question],
  }
}

interface Checked {
  readonly sql: string
  readonly field: string
  readonly expected: string | number
  readonly verdict: string
}

/** The check of a finding; undefined where none is asked for. */
async function checkOf({ logs, finding, sql }: Arguments, session: Session, call: Call): Promise<Checked | undefined> {
  if (finding === undefined) return undefined
  if (sql !== undefined) throw new UsageError('expected one of sql, finding and question, found several')
  if (!logs) throw new UsageError('finding: expected logs')
  const document = await documentOf(logs, session, call)
  const found = document.findings[finding]
  if (!found)
    throw new UsageError(
      `finding ${finding}: expected a number below that of findings, found ${document.findings.length}`,
    )
  const { check, evidence } = found
  if (check.sql === undefined)
    throw new UsageError(
      `finding ${finding}: ${found.rule} has no SQL\nhint: the tool stats; in a shell: ${check.command}`,
    )
  return { sql: check.sql, field: check.evidence, expected: evidence[check.evidence]!, verdict: verdictOf(document) }
}

function checkedText({ field, expected }: Checked, row: Readonly<Record<string, unknown>> | undefined): string {
  const [value] = Object.values(row ?? {})
  return `${field}: ${expected} in the finding, ${value} by SQL`
}

/** Rows that the command printed as JSON: whole numbers that are no number of JavaScript become texts. */
function rowsIn(json: string): Record<string, unknown>[] {
  // bounded: in JSON each text ends
  const exact = json.replace(/"(?:[^"\\]|\\.)*"|-?\d{16,}(?![\d.eE])|-?1e999/g, (word) => {
    return word.startsWith('"') || Number.isSafeInteger(Number(word)) ? word : `"${word}"`
  })
  return JSON.parse(exact)
}
