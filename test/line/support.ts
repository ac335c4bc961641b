import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gunzipSync } from 'node:zlib'
import { type ByteSource, type ConvertOptions, convert, eventsOf, Names, type TraceEvent } from '../../lib/index.ts'

export { randomOf } from '../../lib/model/random.ts'

/** What the tests of the line share: the fixtures, and ways to run them through it. */

export const FIXTURES = fileURLToPath(new URL('../fixtures/', import.meta.url))

/** Bytes up to which a fixture is small enough for exhaustive tests, decompressed. */
const SMALL_BYTES_MAX = 16 << 10

/** Path of a fixture that is named `<format>/<case>`. */
export const pathOf = (fixture: string): string => join(FIXTURES, fixture)

/** A fixture as it lies there. */
export const storedBytes = (fixture: string): Uint8Array => new Uint8Array(readFileSync(pathOf(fixture)))

/** A fixture, decompressed. */
export const plainBytes = (fixture: string): Uint8Array => {
  const bytes = storedBytes(fixture)
  return fixture.endsWith('.gz') ? new Uint8Array(gunzipSync(bytes)) : bytes
}

/** Formats of scheduler logs, which have tests of their own: test/read/sched* and test/read/sched/. */
const SCHEDULER_TEXTS: readonly string[] = ['bpftrace', 'ftrace', 'perf-script']
const SCHEDULER_FORMATS: readonly string[] = [...SCHEDULER_TEXTS, 'trace-dat', 'perf-data']

const fixturesOf = (isWanted: (format: string) => boolean): readonly string[] =>
  readdirSync(FIXTURES, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && isWanted(entry.name))
    .flatMap(({ name }) => readdirSync(join(FIXTURES, name)).map((file) => `${name}/${file}`))
    .filter((path) => !path.endsWith('.md'))
    .sort()

/**
 * Formats with tests of their own, damage included: test/read/nsys*, chrome-json*, llama-server, power, ncu; pairs of recordings:
 * test/memory-samples, test/docs-session.test.ts; odd-forms: test/read/odd-forms.test.ts; and runs that are slow for a known reason: test/analyze/findings/recorded.test.ts.
 */
const WITHOUT_OPERATORS =
  /^nsys|^chrome-json|^server$|^power$|^ncu$|^memory-samples$|^session$|^findings$|^analysis$|^odd-forms$/
/** Formats whose damaged logs are tried in test/read/traces-of-others.test.ts. */
const OF_OTHERS: readonly string[] = [
  'rocprofv3',
  'perf-stat',
  'streamline',
  'blas-log',
  'onednn',
  'llama-bench',
  'aiperf',
  'genai-perf',
  'otlp',
  'llama-log',
  'backend-profiler',
  'opencl-csv',
]

/** Every fixture, as `<format>/<case>`, but for those of scheduler logs, of GPUs, of servers and of power. */
export const FIXTURE_NAMES = fixturesOf(
  (format) => !SCHEDULER_FORMATS.includes(format) && !WITHOUT_OPERATORS.test(format) && !OF_OTHERS.includes(format),
)
export const OTHER_FIXTURES = fixturesOf((format) => OF_OTHERS.includes(format)).filter(
  (name) => !name.includes('/answers.'), // another reader's figures
)
/** Those of GPUs. */
export const GPU_FIXTURES = fixturesOf((format) => /^nsys$|^chrome-json$/.test(format))
export const SCHEDULER_FIXTURES = fixturesOf((format) => SCHEDULER_TEXTS.includes(format))

export const SMALL_FIXTURES = FIXTURE_NAMES.filter((name) => plainBytes(name).length <= SMALL_BYTES_MAX)
export const LARGE_FIXTURES = FIXTURE_NAMES.filter((name) => !SMALL_FIXTURES.includes(name))

/** The format that a fixture's folder names. */
export const formatOf = (fixture: string): string => fixture.split('/')[0]!

/** The trace of a log. */
export async function converted(source: ByteSource, options: ConvertOptions = {}): Promise<Uint8Array> {
  return joined(convert({ name: 'log', source }, options))
}

/** Pieces as one array. */
export async function joined(pieces: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const all: Uint8Array[] = []
  for await (const piece of pieces) all.push(piece)
  return new Uint8Array(Buffer.concat(all))
}

/** All events of a log, and the texts that they refer to. */
export async function eventsIn(
  source: ByteSource,
  { from, opTable, osRuntime }: ConvertOptions = {},
): Promise<{ names: Names; events: TraceEvent[] }> {
  const names = new Names()
  const events: TraceEvent[] = []
  for await (const batch of eventsOf({ name: 'log', source }, names, { from, opTable, osRuntime }))
    events.push(...batch)
  return { names, events }
}

/** A log in pieces of `size` bytes. */
export async function* cut(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let start = 0; start < bytes.length; start += size) yield bytes.slice(start, start + size)
}
