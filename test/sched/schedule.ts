import type { SwitchEvent, WakingEvent } from '../../lib/core.ts'
import { type ConvertOptions, convert, type EventInput, type Names, type TraceEvent } from '../../lib/index.ts'
import { openTrace } from '../../lib/node.ts'
import type { OpenTrace } from '../../lib/sql.ts'

/** Hand-made scheduler events, and what trace_processor should make of them. */
export const ORIGIN_NS = 5_000_000_000n

type Make = (names: Names) => TraceEvent[]

export const inputEvent = (fields: object = {}): TraceEvent => ({
  kind: 'input',
  format: 'test',
  clock: 'MONOTONIC',
  originNs: ORIGIN_NS,
  attributes: {},
  ...fields,
})

/** `to` takes the CPU from `from`, which is left in the state `left`. */
export interface Step {
  readonly cpu: number
  readonly at: number
  readonly from: number
  readonly left?: number
  readonly to: number
}

export const comm = (tid: number): string => (tid === 0 ? 'swapper' : `task ${tid}`)

export const switchOf = (names: Names, { cpu, at, from, left = 0, to }: Step): SwitchEvent => ({
  kind: 'switch',
  cpu,
  atNs: at,
  prevTid: from,
  prevComm: names.id(comm(from)),
  prevPrio: 120,
  prevState: left,
  nextTid: to,
  nextComm: names.id(comm(to)),
  nextPrio: 120,
})

export const wakingOf = (
  names: Names,
  cpu: number,
  at: number,
  by: number,
  tid: number,
  more: Partial<WakingEvent> = {},
): WakingEvent => ({
  kind: 'waking',
  cpu,
  atNs: at,
  wakerTid: by,
  tid,
  comm: names.id(comm(tid)),
  prio: 120,
  targetCpu: cpu,
  isIrq: false,
  ...more,
})

/** An input of events that `make` makes; the first is the input's own. */
export const input = (name: string, make: Make, first = inputEvent()): EventInput => ({
  name,
  events: (names) => [[first, ...make(names)]],
})

/** The trace of inputs, without problems. */
export async function traceOf(inputs: EventInput | EventInput[], options: ConvertOptions = {}): Promise<OpenTrace> {
  const trace = await openTrace(convert(inputs, options))
  const problems = trace.problems()
  if (problems.length > 0) throw new Error(JSON.stringify(problems))
  return trace
}
