import type { Position } from '../../errors.ts'
import { type BenchmarkEvent, Inferred } from '../../model/events.ts'
import { type IssueCode, issueOf } from '../../model/issues.ts'
import { TIME_NS_MAX } from '../../model/limits.ts'
import type { Names } from '../../model/names.ts'
import { AllFacts } from '../common/all-facts.ts'
import type { EventBatch } from '../common/batches.ts'
import { holding } from '../common/holdings.ts'

/** Fields of a row, by llama-bench's names. */
export type Row = Readonly<Record<string, unknown>>

/** Fields that are results; all others are parameters of the test. */
const RESULTS: ReadonlySet<string> = new Set([
  ...[
    'n_prompt',
    'n_gen',
    'n_depth',
    'test_time',
    'avg_ns',
    'stddev_ns',
    'avg_ts',
    'stddev_ts',
    'samples_ns',
    'samples_ts',
  ],
  ...['test', 't/s'],
])
/** `pp512`, `tg128`, `pp512+tg128 @ d4096`; older: `pp 512`. */
const TEST = /^(?:pp ?(\d+))?\+?(?:tg ?(\d+))?(?: @ d(\d+))?$/
/** `1484.70 ± 168.16` */
const SPEED = /^(\d+(?:\.\d+)?) *± *(\d+(?:\.\d+)?)$/
const SAMPLES_MAX = 1 << 16
const TEXT_MAX = 1000

/** Makes events of the rows of llama-bench. */
export class Tests {
  /** Lines between the rows, of other programs or of stderr, and lines that are too long. */
  otherLines = 0
  private count = 0
  private repetitions = 0
  private lastNs = 0
  /** When the test before began. */
  private begunNs = 0
  /** The time of the first test, in ns since 1970; undefined: its row has none. */
  private originNs: bigint | undefined
  /** What the tests ran, and on what. */
  private readonly about = new AllFacts()

  constructor(
    private readonly format: string,
    private readonly names: Names,
    readonly batch: EventBatch,
  ) {}

  /** The row of a test. */
  add(row: Row, at: Position): void {
    const test = sizeOf(row)
    const speed = speedOf(row)
    const tokens = test && test.promptTokens + test.generatedTokens
    const samplesNs = samplesOf(row['samples_ns'])
    const meanNs = numberOf(row['avg_ns'])
    const isRate = samplesNs.length === 0 && !(meanNs > 0)
    const spanNs = samplesNs.length > 0 ? sum(samplesNs) : isRate ? (tokens! / speed.mean) * 1e9 : meanNs
    if (!test || !(tokens! > 0) || !(spanNs >= 1) || spanNs > TIME_NS_MAX) {
      const what = 'tokens (n_prompt, n_gen) and a time (avg_ns, or t/s)'
      return this.issue('unreadable-row', `expected ${what}, found ${describe(row)}`, at)
    }
    const timeNs = timeOf(row['test_time'])
    if (!this.batch.hasBegun) this.begin(timeNs)
    this.note(row)
    const startNs = this.startOf(timeNs, at)
    this.lastNs = startNs + Math.round(spanNs)
    this.repetitions += Math.max(1, samplesNs.length)
    this.batch.add({
      ...{ kind: 'benchmark', test: this.count++ },
      ...{ startNs, endNs: this.lastNs, ...test, name: this.names.id(test.name) },
      samplesNs,
      stated: speed,
      parameters: parametersOf(row),
      inferred: Inferred.Laid | (isRate ? Inferred.Rate : 0),
    } satisfies BenchmarkEvent)
  }

  /** Start of a test: when it began, else after the one before it. Tests do not overlap. */
  private startOf(timeNs: bigint | undefined, at: Position): number {
    const { originNs, lastNs } = this
    if (timeNs === undefined || originNs === undefined) return lastNs
    const startNs = Number(timeNs - originNs)
    const found = `found one ${startNs / 1e9} s after the first one; drawn after the test before it`
    if (Math.abs(startNs) > TIME_NS_MAX) {
      this.issue('impossible-time', `expected a test within 100 days, ${found}`, at)
      return lastNs
    }
    if (startNs < this.begunNs)
      this.issue('record-out-of-order', `expected a test from ${this.begunNs / 1e9} s on, ${found}`, at)
    this.begunNs = startNs
    return Math.max(startNs, lastNs)
  }

  issue(code: IssueCode, detail: string, at: Position): void {
    this.batch.add(issueOf(code, detail, at, this.lastNs))
  }

  /** `lines`: those that were read; undefined for JSON. */
  finish(lines?: { readonly longLines: number }): void {
    const { batch, count, repetitions, otherLines } = this
    if (!batch.hasBegun) this.begin(undefined)
    const { contents, attributes } = holding(
      { test: count, repetition: repetitions > count ? repetitions : 0 },
      'no tests',
    )
    batch.add({ kind: 'facts', contents, attributes: { ...this.about.attributes(), ...attributes } })
    batch.leftOut.add('lines that are no rows', otherLines)
    batch.end(lines)
  }

  private note(row: Row): void {
    const about = {
      model: row['model_type'] ?? row['model'],
      cpu: row['cpu_info'],
      gpu: row['gpu_info'],
      build: buildOf(row),
    }
    for (const [key, value] of Object.entries(about)) if (isPlain(value)) this.about.add(key, `${value}`)
  }

  private begin(timeNs: bigint | undefined): void {
    this.originNs = timeNs
    const times =
      timeNs === undefined
        ? 'none in the input: tests are drawn one after the other'
        : 'when each test began, in whole seconds; its repetitions are laid end to end from there'
    this.batch.begin({
      kind: 'input',
      format: this.format,
      clock: timeNs === undefined ? 'unknown' : 'REALTIME',
      originNs: timeNs ?? 0n,
      times: timeNs === undefined ? 'durations' : 'recorded',
      title: this.format,
      attributes: { times },
      capabilities: { operators: false, requests: true },
    })
  }
}

type Size = Pick<BenchmarkEvent, 'promptTokens' | 'generatedTokens' | 'depth'> & { readonly name: string }

/** The tokens of a test, from the fields or from its name. */
function sizeOf(row: Row): Size | undefined {
  const [prompt, generated, depth] = [numberOf(row['n_prompt']), numberOf(row['n_gen']), numberOf(row['n_depth'])]
  if (isCount(prompt) && isCount(generated)) return sized(prompt, generated, isCount(depth) ? depth : 0)
  const found = TEST.exec(String(row['test'] ?? ''))
  return found ? sized(Number(found[1] ?? 0), Number(found[2] ?? 0), Number(found[3] ?? 0)) : undefined
}

/** The test with the name that llama-bench gives it. */
function sized(promptTokens: number, generatedTokens: number, depth: number): Size {
  const parts = [promptTokens > 0 ? `pp${promptTokens}` : '', generatedTokens > 0 ? `tg${generatedTokens}` : '']
  const name = parts.filter(Boolean).join('+') + (depth > 0 ? ` @ d${depth}` : '')
  return { name, promptTokens, generatedTokens, depth }
}

function speedOf(row: Row): BenchmarkEvent['stated'] {
  const [, mean, deviation] = SPEED.exec(String(row['t/s'] ?? '')) ?? []
  if (mean !== undefined) return { mean: Number(mean), deviation: Number(deviation) }
  return { mean: speedIn(row['avg_ts']), deviation: speedIn(row['stddev_ts']) }
}

function samplesOf(value: unknown): number[] {
  if (!Array.isArray(value) || value.length > SAMPLES_MAX) return []
  const samples = value.map(numberOf)
  return samples.every((ns) => ns > 0 && Number.isInteger(ns)) ? samples : []
}

/** `2026-11-23T15:04:18Z`, in ns since 1970. */
function timeOf(value: unknown): bigint | undefined {
  if (typeof value !== 'string' || !/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/.test(value)) return undefined
  const ms = Date.parse(value)
  return ms > 0 ? BigInt(ms) * 1_000_000n : undefined
}

function parametersOf(row: Row): BenchmarkEvent['parameters'] {
  return Object.fromEntries(
    Object.entries(row).flatMap(([key, value]) =>
      key === '' || RESULTS.has(key) || !isPlain(value)
        ? []
        : [[key.slice(0, TEXT_MAX), key === COMMIT ? `${value}` : shown(value)]],
    ),
  )
}

/** An identifier, which may have digits only. */
const COMMIT = 'build_commit'

/** `11669 (0ad4a86)` */
function buildOf(row: Row): string | undefined {
  const [number, commit] = [row['build_number'], row[COMMIT]]
  return isPlain(number) && isPlain(commit) ? `${number} (${commit})` : undefined
}

/** A value that is shown: booleans are 0 or 1 in CSV and SQL. */
const isPlain = (value: unknown): value is string | number | boolean =>
  (typeof value === 'string' && value !== '') ||
  (typeof value === 'number' && Number.isFinite(value)) ||
  typeof value === 'boolean'
const shown = (value: string | number | boolean) =>
  typeof value === 'boolean' ? Number(value) : typeof value === 'string' ? plainOf(value.slice(0, TEXT_MAX)) : value
/** CSV and SQL have numbers as texts. */
const plainOf = (text: string) => (/^-?(?:0|[1-9]\d{0,14})$/.test(text) ? Number(text) : text)
/** NaN: it is no finite number. */
function numberOf(value: unknown): number {
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value
  return typeof number === 'number' && Number.isFinite(number) ? number : NaN
}
/** -1: not known. */
function speedIn(value: unknown): number {
  const speed = numberOf(value)
  return speed >= 0 ? speed : -1
}
const isCount = (value: number) => Number.isSafeInteger(value) && value >= 0 && value <= 2 ** 31
const sum = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0)
const describe = (row: Row) =>
  JSON.stringify(Object.fromEntries(Object.entries(row).filter(([key]) => RESULTS.has(key)))).slice(0, 200)
