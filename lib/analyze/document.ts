import type { UsageError } from '../errors.ts'
import { ANALYSIS_TYPES } from '../generated/analysis-schema.ts'
import { ANALYSIS_SCHEMA, type Analysis } from './analysis.ts'
import { checkDocument, type DocumentKind, documentOf, foundOf, isObject, wrongDocument } from './common/json-check.ts'
import { countsOfLosses, lossesNamed } from './run/losses.ts'
import { NO_VERDICT, verdictOf } from './verdict/verdict.ts'

const [SCHEMA, VERSION] = ANALYSIS_SCHEMA.split('/') as [string, string]

/** Numbers of which ratios and products are finite; sums of a run are far from them. */
const [LEAST, MOST] = [1e-60, 1e60]

/** The bucket of any such number, and more. */
const BUCKET_MOST = 10_000

const KIND: DocumentKind = {
  title: 'a readable Analysis',
  types: ANALYSIS_TYPES,
  fields: ANALYSIS_TYPES['Analysis']!,
  added: {
    times: 'recorded',
    verdict: NO_VERDICT,
    ttft_runs: 1,
    further_runs: 0,
    timed: 0,
    migration_ns: 0,
    exposed_migration_ns: 0,
    is_clear: false,
    calls_ns: 0,
  },
  wrongNumber(key, value) {
    if (key === 'first')
      return Number.isInteger(value) && Math.abs(value) <= BUCKET_MOST
        ? undefined
        : `whole number from -${BUCKET_MOST} to ${BUCKET_MOST}`
    const size = Math.abs(value)
    return size <= MOST && (size >= LEAST || value === 0) ? undefined : `number from ${LEAST} to ${MOST}, or 0`
  },
}

/** Reads a stored Analysis. `name` is that of the input in errors. Throws UsageError if the text is no Analysis, or a newer one. */
export function parseAnalysis(text: string, name: string): Analysis {
  const document = documentOf(text, name, KIND)
  const schema = isObject(document) ? document['schema'] : undefined
  const [, kind, version] = (typeof schema === 'string' && /^(.*)\/(\d+)$/.exec(schema)) || []
  if (kind !== SCHEMA) throw wrongSchema(name, schema)
  if (version !== VERSION) {
    const hint = Number(version) > Number(VERSION) ? 'a newer ggml2perfetto wrote it: update this one' : undefined
    throw wrongSchema(name, schema, hint)
  }
  const known = hasLosses(document)
  checkDocument(document, name, KIND)
  const analysis = known ? (document as Analysis) : withLosses(document as Analysis)
  return analysis.verdict === NO_VERDICT ? { ...analysis, verdict: verdictOf(analysis) } : analysis
}

function wrongSchema(name: string, schema: unknown, hint?: string): UsageError {
  const found = schema === undefined ? 'no schema' : foundOf(schema, { is: [ANALYSIS_SCHEMA] })
  return wrongDocument(name, KIND, `"schema": "${ANALYSIS_SCHEMA}"`, found, hint)
}

/** Earlier versions had no losses of inputs, and counted other issues as losses, too. */
const hasLosses = (document: unknown) => {
  const { inputs } = document as Partial<Analysis>
  return !Array.isArray(inputs) || inputs.some((input) => isObject(input) && 'losses' in input)
}

function withLosses(document: Analysis): Analysis {
  const inputs = document.inputs.map((input) => ({ ...input, losses: lossesNamed(input.issues) }))
  return { ...document, inputs, run: { ...document.run, losses: countsOfLosses(inputs) } }
}
