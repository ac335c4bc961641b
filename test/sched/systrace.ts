import { type ConvertOptions, convert, type LogInput } from '../../lib/index.ts'
import { openTrace } from '../../lib/node.ts'
import type { OpenTrace } from '../../lib/sql.ts'
import type { Said } from '../read/sched/texts.ts'
import { type Expected, eventIn } from '../read/sched-lines.ts'

/**
 * What trace_processor makes of a capture without us. Of all that tools write it reads ftrace's own text in its plain form
 * (`trace`, `trace_pipe`, with and without tgid and irq-info): such a text is given to it as it is. The others are put into
 * that form first, from what an independent reading of the tool's own text says (test/read/sched-lines.ts, texts.ts).
 */

/** A switch or a waking: all that CPU slices and thread states are made of. */
export type Act =
  | {
      readonly what: 'switch'
      readonly ns: bigint
      readonly cpu: number
      readonly prevTid: number
      readonly prevPrio: number
      readonly prevState: number
      readonly nextTid: number
      readonly nextPrio: number
    }
  | {
      readonly what: 'waking'
      readonly ns: bigint
      readonly cpu: number
      readonly by: number
      readonly tid: number
      readonly prio: number
      readonly targetCpu: number
    }

export function actOf(expected: Expected): Act | undefined {
  const [what, ns, cpu, ...fields] = expected as [string, bigint, number, ...(string | number)[]]
  if (what === 'switch') {
    const [, prevTid, prevPrio, prevState, , nextTid, nextPrio] = fields.map(Number) as number[] & { length: 7 }
    return { what, ns, cpu, prevTid, prevPrio, prevState, nextTid, nextPrio } as Act
  }
  if (what !== 'waking') return undefined
  const [by, , tid, prio, targetCpu] = fields.map(Number) as number[] & { length: 5 }
  return { what, ns, cpu, by, tid, prio, targetCpu } as Act
}

/** `comm:1 120 1 > comm:2 120`; of perf's own records of switches, which name no priority: `1 1 > 2`. */
const SAID_SWITCH = /^(?:.*:)?(-?\d+) (?:(-?\d+) )?(\d+) > (?:.*:)?(-?\d+)(?: (-?\d+))?$/s
const SAID_WAKING = /^(-?\d+) > .*:(\d+) (-?\d+) (\d+)$/s

export function actsSaid(said: readonly Said[]): Act[] {
  return said.flatMap(({ what, ns, cpu, fields }): Act[] => {
    if (what === 'switch') {
      const [prevTid, prevPrio = -1, prevState, nextTid, nextPrio = -1] = numbers(SAID_SWITCH, fields)
      return [{ what, ns, cpu, prevTid, prevPrio, prevState, nextTid, nextPrio } as Act]
    }
    if (what !== 'waking') return []
    const [by, tid, prio, targetCpu] = numbers(SAID_WAKING, fields)
    return [{ what, ns, cpu, by, tid, prio, targetCpu } as Act]
  })
}

const numbers = (pattern: RegExp, text: string) =>
  pattern
    .exec(text)!
    .slice(1)
    .map((field) => (field === undefined ? undefined : Number(field)))

const LETTERS = ['S', 'D', 'T', 't', 'X', 'Z', 'P', 'I']
const stateOf = (bits: number) =>
  `${LETTERS.filter((_, bit) => bits & (1 << bit)).join('|') || 'R'}${bits & 0x100 ? '+' : ''}`

/**
 * trace_processor cuts the seconds, as a floating-point number, to nanoseconds: half of one more makes them exact, in the first
 * weeks after boot.
 */
const seconds = (ns: bigint) => `${ns / 1_000_000_000n}.${`${ns % 1_000_000_000n}`.padStart(9, '0')}5`

function lineOf(act: Act, time: string): string {
  const at = (tid: number) => `  t${tid}-${tid} [${`${act.cpu}`.padStart(3, '0')}] d..2. ${time}:`
  if (act.what === 'waking') {
    const { by, tid, prio, targetCpu } = act
    return `${at(by)} sched_waking: comm=t${tid} pid=${tid} prio=${prio} target_cpu=${`${targetCpu}`.padStart(3, '0')}`
  }
  const { prevTid, prevPrio, prevState, nextTid, nextPrio } = act
  const prev = `prev_comm=t${prevTid} prev_pid=${prevTid} prev_prio=${prevPrio} prev_state=${stateOf(prevState)}`
  return `${at(prevTid)} sched_switch: ${prev} ==> next_comm=t${nextTid} next_pid=${nextTid} next_prio=${nextPrio}`
}

/** Follows CPUs: where others are missing ahead of a switch, that one which makes it fit. We take the same to have happened. */
class Bridges {
  count = 0
  private readonly running = new Map<number, number>()

  /** The act, and what is missing ahead of it. Of a thread that perf knows no more (-1) is known that it ran. */
  whole(act: Act): Act[] {
    const running = this.running.get(act.cpu) ?? -1
    const missing = this.missingAhead(act)
    if (missing) return [missing, act]
    if (act.what === 'waking') return [act.by < 0 ? { ...act, by: running } : act]
    return [act.prevTid < 0 ? { ...act, prevTid: running } : act]
  }

  missingAhead(act: Act): Act | undefined {
    if (act.what !== 'switch') return undefined
    const before = this.running.get(act.cpu)
    this.running.set(act.cpu, act.nextTid)
    if (before === undefined || before === act.prevTid || act.prevTid < 0) return undefined
    this.count++
    return { ...act, prevTid: before, prevState: 0, nextTid: act.prevTid, nextPrio: act.prevPrio }
  }
}

/** A text for trace_processor, and how many switches had to be put in because the capture lacks them. */
export interface Systrace {
  readonly text: string
  readonly missing: number
  /** Times count from here. */
  readonly zeroNs: bigint
}

const WEEK_NS = 604_800_000_000_000n
const HEADER = '# tracer: nop\n#\n'

/** Acts in ftrace's plain form. */
export function systraceOf(acts: readonly Act[]): Systrace {
  const bridges = new Bridges()
  const first = acts[0]!.ns
  const zeroNs = first > WEEK_NS ? first - (first % WEEK_NS) : 0n // of wall-clock times
  const lines = acts.flatMap((act) => bridges.whole(act).map((one) => lineOf(one, seconds(one.ns - zeroNs))))
  return { text: `${HEADER}${lines.join('\n')}\n`, missing: bridges.count, zeroNs }
}

/** Names of scripts/sched-workload.c that hold what trace_processor takes for a field of its own. */
const MISREAD = /a pid=1 prio=2|y next_pid=7 n|z prev_pid=1 p|comm=x pid=3/g

/**
 * An ftrace text as it is, but for names that trace_processor misreads, and with the switches that the kernel left out, unless it is
 * not `bridged`.
 */
export function plainSystrace(text: string, bridged = true): Systrace {
  const bridges = new Bridges()
  const lines = text.split('\n').flatMap((line) => {
    const event = eventIn(line, 'ftrace')
    const missing = event && bridges.missingAhead(actOf(event) ?? ({} as Act))
    const [, time] = / (\d+\.\d+): sched_switch: /.exec(line) ?? [] // the same digits, lest one of them be cut to another ns
    return [
      ...(missing && bridged ? [lineOf(missing, time!)] : []),
      line.replace(MISREAD, (name) => name.replace(/\W/g, '_')),
    ]
  })
  const head = text.startsWith('# tracer') ? '' : HEADER // without it, the text is not known for what it is
  return { text: head + lines.join('\n'), missing: bridges.count, zeroNs: 0n }
}

type Row = readonly unknown[]

/** What trace_processor has in its tables; times count from the first slice's. */
export interface Tables {
  readonly startNs: bigint
  /** CPU, start, end (-1: none), thread, end state, priority. */
  readonly slices: readonly Row[]
  /** Thread, start, end (-1: none), state, CPU, waker. */
  readonly states: readonly Row[]
}

/** From times of the trace to those of its log's clock; null where they are the same. */
const SHIFT = `select cast((select coalesce(int_value, str_value) from metadata where name = 'trace_attribute.origin_ns') as int)
  - cast((select coalesce(int_value, str_value) from metadata where name = 'trace_attribute.origin_ts') as int)`

/** The tables, times rounded to `ns`: a text has microseconds, of which trace_processor's floating-point may miss one ns. */
export function tablesOf(trace: OpenTrace, ns: number): Tables {
  // Times of a trace may count from a day before its log: texts round those of the clock.
  const [[shift]] = trace.query(SHIFT).rows as [[number | bigint | null]]
  const withinNs = Number(BigInt(shift ?? 0) % BigInt(ns))
  const round = (time: string) => `(cast((${time} + ${withinNs + Math.floor(ns / 2)}) / ${ns} as int) * ${ns})`
  const from = (time: string) => `${round(time)} - ${round('(select min(ts) from sched)')}`
  const span = (t: string) => `${from(`${t}.ts`)}, iif(${t}.dur < 0, -1, ${from(`(${t}.ts + ${t}.dur)`)})`
  const ask = (sql: string) => trace.query(sql).rows
  const [[start]] = ask(`select ${round('min(ts)')} from sched`) as [[number | bigint]]
  return {
    startNs: BigInt(start),
    slices: ask(`select s.cpu, ${span('s')}, tid, end_state, priority from sched s join thread using (utid)
      order by s.cpu, s.ts, s.id`),
    states: ask(`select thread.tid, ${span('s')}, s.state, s.cpu, waker.tid from thread_state s join thread using (utid)
      left join thread waker on waker.utid = s.waker_utid order by thread.tid, s.ts, s.id`),
  }
}

/** What trace_processor makes of a text. */
export async function theirs({ text, zeroNs }: Systrace, ns: number): Promise<Tables> {
  const tables = await withTrace(openTrace(Buffer.from(text)), (trace) => tablesOf(trace, ns))
  return { ...tables, startNs: tables.startNs + zeroNs }
}

/** What it makes of our conversion of a capture, and how many switches we say are missing. */
export async function ours(capture: LogInput, ns: number, options: ConvertOptions = {}) {
  const trace = openTrace(convert(capture, { allThreads: true, ...options }))
  return withTrace(trace, (open) => {
    const count = (sql: string) => Number(open.query(`select count(*) from ${sql}`).rows[0]![0])
    const missing = count("slice where category = 'issue' and name = 'lost switches'")
    const wakings = count("ftrace_event where name = 'sched_waking'")
    const issues = open.query("select name, count(*) from slice where category = 'issue' group by 1").rows
    const problems = [...open.problems(), ...issues.filter(([name]) => !/^lost (switches|records)$/.test(`${name}`))]
    return { tables: tablesOf(open, ns), missing, wakings, problems }
  })
}

async function withTrace<T>(opening: Promise<OpenTrace>, use: (trace: OpenTrace) => T): Promise<T> {
  const trace = await opening
  try {
    return use(trace)
  } finally {
    trace.close()
  }
}
