import { type LeftOut, PERFETTO_READS_IT } from '../../model/left-out.ts'

/** Events that are not drawn: their phases, and what they are. */
const PHASES = [
  ['P', 'samples (P)'],
  ['NOD', 'object events (N, O, D)'],
  ['vV', 'memory dumps (v, V)'],
  ['()', 'context events'],
  ['c', 'clock synchronizations (c)'],
] as const
/** Members beside the events that contain events of other kinds. */
const MEMBERS: Readonly<Record<string, string>> = {
  samples: 'samples with stackFrames',
  systemTraceEvents: 'systemTraceEvents (a trace of ftrace as a text)',
  powerTraceAsString: 'powerTraceAsString',
}

/** Counts an event of a phase that is not drawn. */
export function leaveEvent(leftOut: LeftOut, phase: string): void {
  const [, what] = PHASES.find(([phases]) => phases.includes(phase)) ?? []
  leftOut.add(what ?? `events of phase ${JSON.stringify(phase)}`, 1, PERFETTO_READS_IT)
}

/** Counts what is in a member beside the events, if that is events. */
export function leaveMember(leftOut: LeftOut, key: string, items: number): void {
  if (!Object.hasOwn(MEMBERS, key)) return
  leftOut.add(MEMBERS[key]!, key === 'samples' ? items : 1, PERFETTO_READS_IT)
}
