import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import {
  type Analysis,
  analyze,
  type EventInput,
  eventsOf,
  isOwnError,
  Names,
  type TraceEvent,
} from '../../lib/index.ts'
import { inputOf as fileOf } from '../../lib/node.ts'
import { inParts, someOf } from '../long.ts'
import { everyRecord } from '../read/ggtrace-logs.ts'
import { faultsOf, faultsOfTexts, madeOf, SERIES, textsOf } from '../read/made.ts'
import { LOGS, ROOT } from '../tables/of-logs.ts'
import { plainBytes } from './support.ts'

/**
 * Each amount of each kind of event of real inputs, in turn, is none or the largest one, throughout: no number of an Analysis, a
 * summary, a table or a report is none.
 */

/** Inputs that together have all kinds of events. */
const INPUTS: Readonly<Record<string, () => Uint8Array>> = {
  'every record of .ggtrace': everyRecord,
  ...Object.fromEntries(
    [
      ...[
        'ggtrace/tiny.ggtrace',
        'chrome-json/communication.json.gz',
        'nsys/gpu-without-id.sqlite.gz',
        'server/v0.7.0-lv4.log',
      ],
      ...['llama-bench/tests.jsonl', 'otlp/vllm.jsonl', 'power/amd-smi.json', 'blas-log/cublas.log', 'onednn/v3.7.log'],
      ...['perf-script/task-events.txt', 'rocprofv3/calls.json', 'aiperf/documented.jsonl', 'streamline/timeline.csv'],
      ...[
        'backend-profiler/two-backends.json',
        'perf-stat/program.txt',
        'profinfer-csv/pmc.csv',
        'genai-perf/profile.json',
      ],
    ].map((name) => [name, () => plainBytes(name)]),
  ),
}
const VALUES = [Number.NaN, Number.MAX_VALUE]
/** Events of an input that are changed. */
const EVENTS_MAX = 120
/** Kinds with amounts. Times and numbers that identify something: bounds.test.ts. */
const KINDS =
  /^(?:tensor|buffer|allocation|token|copy|function|sequence|task|graph|counter|facts|request|input|benchmark|left-out|reading|meter|blas|gpu) /
/** Ids of texts, which readers get from {@link Names}, bits, and times. */
const IDS =
  /(?:^|[ .])(?:name|file|op|type|text|category|key|inferred|error|status|result|signature|id|test|from|to|call|viewOf|\\*|device|\w*Ns|\w+Name)$|node|facts\.\*/

/** Amounts that can be 0 where other numbers are not. */
const AMOUNTS = [/_ns$/, /(?:_ns|_per_s|bytes)$/]

/** A copy of a value in which the numbers with such keys are 0. */
function zeroed(value: unknown, keys: RegExp, key = ''): unknown {
  if (typeof value === 'number') return keys.test(key) ? 0 : value
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map((of) => zeroed(of, keys, key))
  return Object.fromEntries(Object.entries(value).map(([name, of]) => [name, zeroed(of, keys, name)]))
}

inParts(describe).each(someOf(LOGS, 16))('the Analysis of %s', (path) => {
  test('without times, speeds or bytes has no share of nothing', async () => {
    const analysis = await analyze(fileOf(join(ROOT, path)), { series: SERIES }).catch((error) => error as Error)
    if (analysis instanceof Error) return expect(isOwnError(analysis)).toBe(true)
    for (const keys of AMOUNTS) {
      const texts = textsOf(zeroed(analysis, keys) as Analysis)
      expect(faultsOfTexts(texts)).toEqual([])
    }
  })
})

/** Paths of the numbers in a value; elements of lists have one path. */
function pathsIn(value: unknown, path: readonly string[] = []): string[] {
  if (typeof value === 'number') return [path.join('.')]
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return []
  return Object.entries(value).flatMap(([key, of]) => pathsIn(of, [...path, Array.isArray(value) ? '*' : key]))
}

/** A value with another number at a path. */
function changedAt(value: unknown, path: readonly string[], to: number): unknown {
  const [key, ...rest] = path
  if (key === undefined) return typeof value === 'number' ? to : value
  if (Array.isArray(value)) return key === '*' ? value.map((of) => changedAt(of, rest, to)) : value
  if (typeof value !== 'object' || value === null || !(key in value)) return value
  return { ...value, [key]: changedAt((value as Record<string, unknown>)[key], rest, to) }
}

async function readAll(bytes: Uint8Array) {
  const names = new Names()
  const events: TraceEvent[] = []
  for await (const batch of eventsOf({ name: 'log', source: bytes }, names)) events.push(...batch)
  return { names, events }
}

const inputOf = (names: Names, events: readonly TraceEvent[]): EventInput => ({
  name: 'log',
  *events(of: Names) {
    for (let id = 1; names.text(id) !== ''; id++) of.id(names.text(id))
    yield events.map((event) => ({ ...event }))
  },
})

inParts(test).each(someOf(LOGS, 6))('no amount in %s is refused', async (path) => {
  const refused: TraceEvent[] = []
  try {
    for await (const batch of eventsOf(fileOf(join(ROOT, path)), new Names()))
      refused.push(...batch.filter((event) => event.kind === 'issue' && event.code === 'value-out-of-range'))
  } catch (error) {
    if (!isOwnError(error)) throw error
  }
  expect(refused).toEqual([])
})

describe.each(Object.keys(INPUTS))('%s', (name) => {
  inParts(test)('no number is none', async () => {
    const { names, events: all } = await readAll(INPUTS[name]!())
    const events = all.slice(0, EVENTS_MAX)
    const paths = events.flatMap((event) => pathsIn(event).map((path) => `${event.kind} ${path}`))
    const fields = new Set(paths.filter((path) => KINDS.test(path) && !IDS.test(path)))
    const faults: string[] = []
    let nth = 0
    for (const field of fields) {
      const [kind, path] = field.split(' ') as [string, string]
      for (const to of someOf(VALUES, 16, nth++)) {
        const changed = events.map((event) =>
          event.kind === kind ? (changedAt(event, path.split('.'), to) as TraceEvent) : event,
        )
        const made = await madeOf(inputOf(names, changed)).catch((error) => error as Error)
        const found = made instanceof Error ? [`${made.stack?.slice(0, 200)}`] : made ? faultsOf(made) : []
        if (found.length > 0) faults.push(`${field} = ${to}: ${found[0]}`)
      }
    }
    expect(faults).toEqual([])
  })
})
