import { modelsOfCommand } from '../model/command.ts'
import type { BufferUsage } from '../model/events.ts'
import type { OwnProcess, OwnThread } from '../model/own-events.ts'
import type { Track, Unit } from '../sink/track.ts'
import type { Buffer, Run } from './of.ts'

/** A track without its id and its group. */
export type TrackSpec = Omit<Track, 'uuid' | 'parent'>

/** A constant, or a function of what the track depends on. */
type Either<T, Of> = T | ((subject: Of) => T)

interface Spec<Of> {
  readonly rank: Either<number, Of>
  /** Number of ranks for the track and its further rows (`worker 0 (2)`); remaining rows share the last one; 1 by default. */
  readonly rows?: Either<number, Of>
  /** The key of another group, for those for which the first has no room. */
  readonly beyond?: (subject: Of) => string | undefined
  /** Of a row of a group: where it is a row of the run instead. */
  readonly ahead?: Ahead<Of>
  /** What it has of calls that are not in full: sums of slices, or nothing. By default it does not depend on them. */
  readonly ofSummedCalls?: 'sums' | 'nothing'
  readonly name: Either<string, Of>
  readonly description: Either<string, Of>
  readonly kind?: Either<Track['kind'], Of>
  readonly unit?: Either<Unit | undefined, Of>
  readonly axis?: (subject: Of) => string
  readonly ofProcess?: (subject: Of) => OwnProcess | undefined
  readonly ofThread?: (subject: Of) => OwnThread | undefined
}

/** Viewers close all groups below the run: the first rows of a group are rows of the run, so that they are seen. */
export interface Ahead<Of> {
  /** Its rank in the run; undefined: the row is in its group. */
  readonly rank: (subject: Of) => number | undefined
  /** What distinguishes the row comes first, then what it contains: `python3 9946: CUDA API`. */
  readonly name: (subject: Of) => string
}

/** The first `max` rows of a group, from a rank of the run on. */
export const firstRows = <Of extends { readonly nth: number }>(
  max: number,
  rank: number,
  name: (subject: Of) => string,
): Ahead<Of> => ({ rank: ({ nth }) => (nth < max ? rank + nth : undefined), name })

/** A line of the layout. */
export interface Place<Of> extends Spec<Of> {
  /** The key of its group in the layout; `run` is the group of one input, `trace` the top. */
  readonly parent: string
}

/** A row of slices. */
export const track = <Of = object>(parent: string, spec: Spec<Of>): Place<Of> => ({ parent, ...spec })

/** A group of rows. */
export const group = <Of = object>(parent: string, spec: Spec<Of>): Place<Of> => ({ parent, kind: 'group', ...spec })

/** A counter track. */
export const counter = <Of = object>(parent: string, spec: Spec<Of>): Place<Of> => ({
  parent,
  kind: 'counter',
  ...spec,
})

/** What is added to names and descriptions where a trace does not contain all calls in full. */
const WHERE_SUMMED = {
  sums: {
    name: '',
    description:
      ' Pale slices called "Σ … ×n" are sums of n slices, of all calls that are not in full: laid end to end in the time of these ' +
      'calls, not at the recorded times. The argument count is n; call and to_call are the first call and the last one.',
  },
  nothing: {
    name: ' · calls in full',
    description:
      ' It has values of the calls that are in full: what it shows in the time of others, such as 0, is no figure of theirs.',
  },
} as const

/** The track of one worker, thread, … at a place, in its n-th row from 0. `isSummed`: not all calls are in full. */
export function specOf<Of>(
  { name, rank, rows, ahead, description, kind, unit, axis, ofProcess, ofThread, ofSummedCalls }: Place<Of>,
  subject: Of,
  row = 0,
  isSummed = false,
): TrackSpec {
  const added = isSummed && ofSummedCalls ? WHERE_SUMMED[ofSummedCalls] : undefined
  const rankInRun = ahead?.rank(subject)
  const fixed = <T>(either: Either<T, Of>): T =>
    typeof either === 'function' ? (either as (subject: Of) => T)(subject) : either
  return {
    name: rowName(`${rankInRun === undefined ? fixed(name) : ahead!.name(subject)}${added?.name ?? ''}`, row),
    description: `${fixed(description)}${added?.description ?? ''}`,
    rank: (rankInRun ?? fixed(rank)) + Math.min(row, fixed(rows ?? 1) - 1),
    kind: fixed(kind ?? 'slices'),
    unit: fixed(unit),
    axis: axis?.(subject),
    ofProcess: ofProcess?.(subject),
    ofThread: row === 0 ? ofThread?.(subject) : undefined,
  }
}

/** Characters of the command in the name of an input's group. */
const COMMAND_CHARS_MAX = 60

/** The files of the models, from the command line or from the name of a buffer of weights. */
function modelOf({ attributes, weights = '' }: Run): string | undefined {
  const inCommand = modelsOfCommand(`${attributes['command'] ?? ''}`)
  const paths = inCommand.length > 0 ? inCommand : /(?<!\S)\S+\.gguf(?!\S)/.exec(weights)?.slice(0, 1)
  return paths?.map((path) => path.replace(/^.*[/\\]/, '')).join(', ')
}

/** `LLM moe.gguf · 2 workers · CPU`; `LLM server.py --port …` if the model is not known; `Scheduler events`; or the input's title. */
export function runTitle(run: Run): string {
  const { title, attributes, input, isOfScheduler, workers = 0, backends = [] } = run
  const model = modelOf(run)
  if (title === undefined && model) {
    const parts = [model, workers > 0 && `${workers} worker${workers > 1 ? 's' : ''}`, backends.join(' + ')]
    return rowName(`LLM ${parts.filter(Boolean).join(' · ')}`, input)
  }
  const command = `${attributes['command'] ?? ''}`.replace(/^\S*\//, '').trim() // without the program's folder
  const shown = command.length > COMMAND_CHARS_MAX ? `${command.slice(0, COMMAND_CHARS_MAX)}…` : command
  return title ?? rowName(isOfScheduler && !shown ? 'Scheduler events' : `LLM ${shown || 'run'}`, input)
}

/** All facts of a run, one per line. */
export function runFacts({ format, clock, attributes }: Run): string {
  const facts = {
    input: format,
    clock: clock === 'unknown' ? 'not recorded' : `CLOCK_${clock}`,
    ...attributes,
  }
  return Object.entries(facts)
    .map(([key, value]) => `${key}: ${value}`)
    .join('\n')
}

/** Rank of a row of an input: each kind of rows has 256 ranks; `place` is the row's place among them. */
export const at = (kind: number, place = 0) => 256 * kind + place

const BUFFERS: Readonly<Record<BufferUsage, string>> = {
  weights: 'weights',
  'kv-cache': 'KV cache',
  compute: 'compute buffer',
  other: 'buffer',
}
/** In the Memory group: 8 ranks for each buffer, 256 buffers of each usage. */
const RANKS_PER_USAGE = 256 * 8

/** Rank in the Memory group of tracks that belong to no single buffer. */
export const AFTER_BUFFERS = Object.keys(BUFFERS).length * RANKS_PER_USAGE

/** Rank in the Memory group of one of the 8 tracks of a buffer. */
export const bufferRank =
  (place: number) =>
  ({ usage, nth }: Buffer) =>
    Object.keys(BUFFERS).indexOf(usage) * RANKS_PER_USAGE + (nth % 256) * 8 + place

/** `compute buffer`, `weights (CPU_REPACK)`: buffers of a usage, or those of one name. */
export function bufferTitle(usage: BufferUsage, name: string): string {
  return name === '' ? BUFFERS[usage] : `${BUFFERS[usage]} (${name})`
}

/** `python3 9946`, or `thread 9946` if it has no name. */
export function threadTitle(name: string, tid: number): string {
  return `${name === '' ? 'thread' : name} ${tid}`
}

/** `Tokens`, `Tokens (2)`, …: names of rows beyond the first. */
function rowName(name: string, row: number): string {
  return row === 0 ? name : `${name} (${row + 1})`
}
