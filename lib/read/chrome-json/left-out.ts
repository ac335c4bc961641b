import { type LeftOut, PERFETTO_READS_IT } from '../../model/left-out.ts'

/** Events that are not drawn, by their phases. */
const PHASES: Readonly<Record<string, string>> = {
  P: 'samples (P)',
  N: 'object events (N, O, D)',
  O: 'object events (N, O, D)',
  D: 'object events (N, O, D)',
  v: 'memory dumps (v, V)',
  V: 'memory dumps (v, V)',
  '(': 'context events',
  ')': 'context events',
  c: 'clock synchronizations (c)',
}
/** Members beside the events that contain events of other kinds. */
const MEMBERS: Readonly<Record<string, string>> = {
  samples: 'samples with stackFrames',
  systemTraceEvents: 'systemTraceEvents (a trace of ftrace as a text)',
  powerTraceAsString: 'powerTraceAsString',
}

/** Counts an event of a phase that is not drawn. */
export function leaveEvent(leftOut: LeftOut, phase: string): void {
  leftOut.add(PHASES[phase] ?? `events of phase ${JSON.stringify(phase)}`, 1, PERFETTO_READS_IT)
}

/** Counts what is in a member beside the events, if that is events. */
export function leaveMember(leftOut: LeftOut, key: string, items: number): void {
  if (!Object.hasOwn(MEMBERS, key)) return
  leftOut.add(MEMBERS[key]!, key === 'samples' ? items : 1, PERFETTO_READS_IT)
}
