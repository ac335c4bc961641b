import { openTrace } from '../../../lib/node.ts'
import { converted } from '../../line/support.ts'
import { ZERO_NS } from '../../origin.ts'

/** What a trace of the PyTorch profiler holds, by category: from the source with exact decimals, and from our trace by SQL. */

/** Count, first start, last start, and time in all; nanoseconds. */
export type Figures = readonly [count: bigint, first: bigint, last: bigint, time: bigint]

/** A number as it is written in the source. */
type Digits = string

interface SourceEvent {
  readonly ph: string
  readonly cat?: string
  readonly name?: string
  readonly pid?: Digits
  readonly tid?: Digits
  readonly ts: Digits
  readonly dur?: Digits
  readonly args?: Readonly<Record<string, unknown>>
}

/** Nanoseconds of decimal microseconds. */
export function nanosecondsOf(digits: string): bigint {
  const [whole, fraction = ''] = digits.split('.')
  return BigInt(whole!) * 1000n + BigInt(fraction.padEnd(3, '0').slice(0, 3))
}

const TOKEN = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g

/** A document whose numbers are texts, as they are written. */
function parse(text: string): { traceEvents: SourceEvent[]; baseTimeNanoseconds?: Digits } {
  return JSON.parse(text.replace(TOKEN, (token) => (token.startsWith('"') ? token : `"${token}"`)))
}

/** Our words for the profiler's categories, where they are not its own. */
const CALLED: Readonly<Record<string, string>> = {
  cuda_runtime: 'api',
  cuda_driver: 'api',
  gpu_memcpy: 'memcpy',
  gpu_memset: 'memset',
}

const add = (all: Map<string, Figures>, name: string, start: bigint, time: bigint) => {
  const [count, first, last, sum] = all.get(name) ?? [0n, start, start, 0n]
  all.set(name, [count + 1n, start < first ? start : first, start > last ? start : last, sum + time])
}

const sorted = (all: Map<string, Figures>) => Object.fromEntries([...all].sort(([a], [b]) => (a < b ? -1 : 1)))

/**
 * Start and end of each step of a serving engine, in ns: from the start of its annotation to the end of the last work whose
 * launch began in it, on its thread, but at least to its own end. By comparing all with all.
 */
export function stepsOf(text: string): [start: bigint, end: bigint][] {
  const { traceEvents, baseTimeNanoseconds } = parse(text)
  const base = BigInt(baseTimeNanoseconds ?? 0)
  const timed = traceEvents.filter(({ ph }) => ph === 'X')
  const startOf = ({ ts }: SourceEvent) => base + nanosecondsOf(ts)
  const endOf = (event: SourceEvent) => startOf(event) + nanosecondsOf(event.dur ?? '0')
  const isWork = ({ cat }: SourceEvent) => cat === 'kernel' || cat === 'gpu_memcpy' || cat === 'gpu_memset'
  const steps = timed.filter(({ cat, name }) => cat === 'user_annotation' && name!.startsWith('execute_'))
  return steps
    .map((step): [bigint, bigint] => {
      const launches = timed.filter(
        (call) =>
          (call.cat === 'cuda_runtime' || call.cat === 'cuda_driver') &&
          call.pid === step.pid &&
          call.tid === step.tid &&
          startOf(call) >= startOf(step) &&
          startOf(call) <= endOf(step),
      )
      const ids = new Set(launches.map(({ args }) => args?.['correlation']))
      const ends = timed.filter((work) => isWork(work) && ids.has(work.args?.['correlation'])).map(endOf)
      return [startOf(step), [...ends, endOf(step)].reduce((last, end) => (end > last ? end : last))]
    })
    .sort(([a], [b]) => (a < b ? -1 : 1))
}

/** Figures of slices and instants, work of the GPU whose launch is in the file, and counters' samples. */
export function figuresOf(text: string): { byCategory: Record<string, Figures>; launched: number; starts: bigint[] } {
  const { traceEvents, baseTimeNanoseconds } = parse(text)
  const base = BigInt(baseTimeNanoseconds ?? 0)
  const all = new Map<string, Figures>()
  const starts: bigint[] = []
  const correlationOf = ({ args }: SourceEvent) => args?.['correlation'] as Digits | undefined
  const calls = new Set(traceEvents.filter(({ cat }) => CALLED[cat!] === 'api').map(correlationOf))
  let launched = 0
  for (const event of traceEvents) {
    if (event.ph !== 'X' && event.ph !== 'i') continue
    const start = base + nanosecondsOf(event.ts)
    add(all, CALLED[event.cat!] ?? event.cat ?? '', start, nanosecondsOf(event.dur ?? '0'))
    starts.push(start)
    const isWork = ['kernel', 'gpu_memcpy', 'gpu_memset'].includes(event.cat!)
    if (isWork && calls.has(correlationOf(event))) launched++
  }
  return { byCategory: sorted(all), launched, starts: starts.sort((a, b) => (a < b ? -1 : a > b ? 1 : 0)) }
}

/** The same as trace_processor finds it in our trace. */
export async function figuresIn(source: Uint8Array): Promise<InTrace> {
  const trace = await openTrace(await converted(source))
  try {
    const rows = (sql: string) => trace.query(sql).rows
    const big = (value: unknown) => BigInt(value as number)
    const all = new Map<string, Figures>()
    const sums = `count(*), min(ts) + ${ZERO_NS}, max(ts) + ${ZERO_NS}, sum(dur)`
    for (const [name, ...figures] of [
      ...rows(
        `SELECT category, ${sums} FROM slice WHERE category NOT IN ('issue', 'token', 'phase', 'gpu_busy') GROUP BY category`,
      ),
      ...rows(`SELECT extract_arg(arg_set_id, 'kind') AS k, ${sums} FROM gpu_slice GROUP BY k`),
    ]) {
      all.set(String(name), figures.map(big) as unknown as Figures)
    }
    const launched = rows(`SELECT count(*) FROM gpu_slice WHERE submission_id IN (
      SELECT extract_arg(arg_set_id, 'debug.correlation') FROM slice
      WHERE category = 'api' AND extract_arg(arg_set_id, 'debug.gpu_work') > 0)`)[0]![0] as number
    const starts = rows(
      `SELECT ts + ${ZERO_NS} FROM slice WHERE category IS NULL OR category NOT IN ('issue', 'token', 'phase', 'gpu_busy') ORDER BY ts`,
    )
    return { byCategory: sorted(all), launched, starts: starts.map(([ts]) => big(ts)), problems: trace.problems() }
  } finally {
    trace.close()
  }
}

interface InTrace extends ReturnType<typeof figuresOf> {
  readonly problems: readonly unknown[]
}
