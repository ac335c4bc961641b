import { UsageError } from '../errors.ts'
import { ANALYSIS_SCHEMA, type Analysis } from './analysis.ts'
import { countsOfLosses, lossesNamed } from './run/losses.ts'

const [SCHEMA, VERSION] = ANALYSIS_SCHEMA.split('/') as [string, string]

type Kind = 'object' | 'array' | 'number' | 'string' | 'boolean' | 'null'

/** The parts of a document, and their kinds. */
const PARTS: Readonly<Record<Exclude<keyof Analysis, 'schema' | 'series'>, readonly Kind[]>> = {
  inputs: ['array'],
  run: ['object'],
  calls: ['object'],
  call_time: ['array'],
  operators: ['object'],
  workers: ['array'],
  imbalance: ['array'],
  scheduling: ['object', 'null'],
  model: ['object', 'null'],
  rooflines: ['array'],
  gpu: ['object', 'null'],
  host_operators: ['object', 'null'],
  blas: ['object', 'null'],
  power: ['object', 'null'],
  kernel_profiles: ['object', 'null'],
  experts: ['object', 'null'],
  memory: ['object', 'null'],
  page_faults: ['object', 'null'],
  data_accesses: ['object', 'null'],
  requests: ['object', 'null'],
  sampling: ['object', 'null'],
  speculation: ['object', 'null'],
  load: ['object', 'null'],
  functions: ['array'],
  benchmarks: ['array'],
  first_calls: ['array'],
  findings: ['array'],
  undetermined: ['array'],
}

const NUMBERS = ['layer', 'steps', 'executions', 'wall_ns', 'operator_time_ns', 'wait_ns', 'inner_wait_ns'] as const
const WORK = ['flop', 'bytes_read', 'bytes_written', 'weight_bytes'] as const
const TEXTS = ['op', 'role', 'block', 'type', 'backend', 'phase', 'shape'] as const

/** The fields that are summed up; `[]`: of all elements. */
const FIELDS: readonly (readonly [path: string, ...kinds: Kind[]])[] = [
  ['calls.by_phase', 'object'],
  ['call_time[].phase', 'string'],
  ['call_time[].time_ns', 'number'],
  ['call_time[].parts', 'array'],
  ['operators.rows', 'array'],
  ...[...NUMBERS, ...WORK].map((key) => [`operators.rows[].${key}`, 'number'] as const),
  ...TEXTS.map((key) => [`operators.rows[].${key}`, 'string'] as const),
  ['operators.rows[].workers', 'array'],
  ['operators.rows[].counters', 'object'],
  ['operators.rows[].duration', 'object', 'null'],
  ['operators.rows[].buckets', 'object', 'null'],
]

/** Reads a stored Analysis. `name` is that of the input in errors. Throws UsageError if the text is no Analysis, or a newer one. */
export function parseAnalysis(text: string, name: string): Analysis {
  let document: unknown
  try {
    document = complete(JSON.parse(text))
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
  for (const [part, kinds] of Object.entries(PARTS)) checkField(document, [part], kinds, name, '')
  for (const [path, ...kinds] of FIELDS) checkField(document, path.split('.'), kinds, name, '')
  return document as Analysis
}

/** Parts that earlier versions did not write. */
const ADDED = {
  ...{ host_operators: null, blas: null, power: null, page_faults: null, data_accesses: null },
  benchmarks: [],
} as const

function complete(document: unknown): unknown {
  if (kindOf(document) !== 'object') return document
  return withLosses(withParts({ ...(document as object), ...ADDED, ...(document as object) }))
}

/** Of parts that earlier versions wrote with fewer fields. What is no such part is left to the check. */
const ADDED_TO = {
  run: { version: null, limits: null, variables: {} },
  call: { resources: null },
  first: { disk_bytes: null },
  stage: { cpu_ns: null, runnable_ns: null, process_cpu_ns: null, disk_bytes: null, major_faults: null },
} as const

function withParts(document: Partial<Analysis>): Partial<Analysis> {
  const added = <T>(fields: object, to: T): T => (kindOf(to) === 'object' ? { ...to, ...fields, ...to } : to)
  const all = <T>(fields: object, to: readonly T[]) => (Array.isArray(to) ? to.map((of) => added(fields, of)) : to)
  const { run, call_time: calls, first_calls: first, load } = document
  return {
    ...document,
    ...(run && { run: added(ADDED_TO.run, run) }),
    ...(calls && { call_time: all(ADDED_TO.call, calls) }),
    ...(first && { first_calls: all(ADDED_TO.first, first) }),
    ...(load && { load: { ...load, stages: all(ADDED_TO.stage, load.stages) } }),
  }
}

/** Earlier versions had no losses of inputs, and counted other issues as losses, too. */
function withLosses(document: Partial<Analysis>): Partial<Analysis> {
  const { inputs, run } = document
  if (kindOf(run) !== 'object' || kindOf(inputs) !== 'array' || inputs!.some((input) => 'losses' in input))
    return document
  const known = inputs!.map((input) => ({ ...input, losses: lossesNamed(input.issues) }))
  return { ...document, inputs: known, run: { ...run!, losses: countsOfLosses(known) } }
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
