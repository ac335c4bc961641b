import type { Position } from '../errors.ts'

/** One kind of thing that can be wrong in an input. */
export interface IssueKind {
  /** What is wrong, as a short phrase: the name of its slices on the Issues track; issues are counted by it. */
  readonly title: string
  /** What it means for the figures, or what the user can do about it. */
  readonly hint: string
}

/**
 * The catalogue of what can be wrong in an input that is read all the same. Codes are stable and never reused: scripts may
 * test for them.
 */
export const ISSUES = {
  'broken-gzip': {
    title: 'broken gzip stream',
    hint: 'the file was cut or changed after it was compressed; what comes before the damage is in the trace',
  },
  'inputs-apart': {
    title: 'no time in common with the other inputs',
    hint: 'the files are of different runs, or not on the clock that was taken for theirs: name the right files, or give the clock (--clock <input>=boot)',
  },
  'old-thread-states': {
    title: 'numbers of thread states of an older kernel',
    hint: 'Linux before 4.15 numbers the states in other ways, so that some may be wrong: give the recording itself (trace.dat, perf.data)',
  },
  'nothing-traced': {
    title: 'nothing traced',
    hint: 'a stripped file has no names of functions (nm <file>, nm -D <file>), and another file than the one that runs is not called: trace a build that is not stripped, or, if it is linked dynamically, use ggml2perfetto record',
  },
  'call-failed': {
    title: 'failed call',
    hint: 'result 1: enlarge the context (-c) or make batches smaller; failed calls are in no time and no rate',
  },
  'json-behind-end': {
    title: 'bytes behind the end of the document',
    hint: 'files were joined, or one was written over a longer one; give each document as a file of its own',
  },
  'json-large-event': {
    title: 'event too large',
    hint: 'one event has an argument of many megabytes; all other events are in the trace',
  },
  'unread-table': {
    title: 'table not read',
    hint: 'export the report anew with nsys export --type sqlite; or let sqlite3 write the rows into an ordinary table',
  },
  'impossible-time': {
    title: 'impossible time',
    hint: 'the input is damaged, or counts times from elsewhere: they must lie within 100 days of its first one',
  },
  'value-out-of-range': {
    title: 'value out of range',
    hint: 'no such thread, CPU, tensor or launch can exist: the input is damaged there, or its format was misread',
  },
  'late-begin-or-end': {
    title: 'begins or ends far out of order',
    hint: 'ranges near them may be paired wrongly: sort the events of the file by "ts"',
  },
} as const satisfies Readonly<Record<string, IssueKind>>

/** A code of {@link ISSUES}. */
export type IssueCode = keyof typeof ISSUES

/** Something in the input was wrong and reading went on. Shown in the trace where it happened. */
export interface IssueEvent {
  readonly kind: 'issue'
  /** Its code in the catalogue (issues.ts), where it has one. */
  readonly code?: IssueCode | undefined
  /** What is wrong, as a fixed phrase: issues are counted by it. */
  readonly title: string
  /** Expectation and finding, for this one. */
  readonly detail: string
  readonly at: Position
  readonly atNs: number
}

/** An issue of the catalogue. `detail`: what was expected and what was found, here; `atNs`: since the input's origin. */
export function issueOf(code: IssueCode, detail: string, at: Position, atNs: number): IssueEvent {
  return { kind: 'issue', code, title: ISSUES[code].title, detail, at, atNs }
}
