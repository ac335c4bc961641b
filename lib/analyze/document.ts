import { UsageError } from '../errors.ts'
import { ANALYSIS_SCHEMA, type Analysis } from './analysis.ts'

const [SCHEMA, VERSION] = ANALYSIS_SCHEMA.split('/') as [string, string]

type Kind = 'object' | 'array' | 'number' | 'string' | 'boolean' | 'null'

/** What views rely on: the fields of the first version, and their kinds. */
const FIELDS: readonly (readonly [path: string, ...kinds: Kind[]])[] = [
  ['inputs', 'array'],
  ['run', 'object'],
  ['run.backends', 'array'],
  ['run.recorded', 'array'],
  ['run.weight_types', 'object'],
  ['run.losses', 'object'],
  ['calls', 'object'],
  ['calls.by_phase', 'object'],
  ['call_time', 'array'],
  ['call_time[].phase', 'string'],
  ['call_time[].time_ns', 'number'],
  ['call_time[].parts', 'array'],
  ['operators', 'object'],
  ['operators.rows', 'array'],
  ...(['op', 'role', 'block', 'type', 'backend', 'phase', 'shape'] as const).map(
    (key) => [`operators.rows[].${key}`, 'string'] as const,
  ),
  ...(
    [
      ...(['layer', 'steps', 'executions', 'wall_ns', 'operator_time_ns', 'wait_ns', 'inner_wait_ns'] as const),
      ...(['flop', 'bytes_read', 'bytes_written', 'weight_bytes'] as const),
    ] as const
  ).map((key) => [`operators.rows[].${key}`, 'number'] as const),
  ['operators.rows[].workers', 'array'],
  ['operators.rows[].counters', 'object'],
  ['operators.rows[].duration', 'object', 'null'],
  ['operators.rows[].buckets', 'object', 'null'],
  ['workers', 'array'],
]

/** Parts that a document of an earlier program may lack. */
const ADDED = { scheduling: null, model: null, rooflines: [], findings: [], undetermined: [] } as const

/** Reads a stored Analysis. `name` is that of the input in errors. Throws UsageError if the text is no Analysis, or a newer one. */
export function parseAnalysis(text: string, name: string): Analysis {
  let document: unknown
  try {
    document = JSON.parse(text)
  } catch (error) {
    throw wrong(name, 'JSON', (error as Error).message, 'the file was cut or changed')
  }
  const schema = kindOf(document) === 'object' ? (document as { schema?: unknown }).schema : undefined
  const [, kind, version] = /^(.*)\/(\d+)$/.exec(String(schema)) ?? []
  if (typeof schema !== 'string' || kind !== SCHEMA)
    throw wrong(name, `"schema": "${ANALYSIS_SCHEMA}"`, schema === undefined ? 'no schema' : JSON.stringify(schema))
  if (version !== VERSION) {
    const hint = Number(version) > Number(VERSION) ? 'a newer ggml2perfetto wrote it: update this one' : undefined
    throw wrong(name, `"schema": "${ANALYSIS_SCHEMA}"`, JSON.stringify(schema), hint)
  }
  for (const [path, ...kinds] of FIELDS) checkField(document, path.split('.'), kinds, name, '')
  return { ...ADDED, ...(document as Analysis) }
}

/** Checks the field at a path; `rows[]` are all elements of an array. */
function checkField(of: unknown, path: readonly string[], kinds: readonly Kind[], name: string, place: string): void {
  const [step, ...rest] = path as [string, ...string[]]
  const key = step.replace('[]', '')
  const value = (of as Record<string, unknown> | null)?.[key]
  const at = place === '' ? key : `${place}.${key}`
  if (step.endsWith('[]')) {
    for (const [i, element] of (value as unknown[]).entries()) checkField(element, rest, kinds, name, `${at}[${i}]`)
  } else if (rest.length > 0) checkField(value, rest, kinds, name, at)
  else if (!kinds.includes(kindOf(value) as Kind)) throw wrong(name, `${at}: ${kinds.join(' or ')}`, kindOf(value))
}

function kindOf(value: unknown): Kind | 'nothing' {
  if (value === undefined) return 'nothing'
  if (value === null) return 'null'
  return Array.isArray(value) ? 'array' : (typeof value as Kind)
}

function wrong(name: string, expected: string, found: string, hint?: string): UsageError {
  const sentence = `${name}: not a readable Analysis: expected ${expected}, found ${found.replaceAll('\n', '\\n')}`
  return new UsageError(hint === undefined ? sentence : `${sentence}\nhint: ${hint}`)
}
