import type { Views } from '../analyze/graph/views.ts'
import type { CounterSet } from '../model/counters.ts'
import type { IssueEvent, TensorEvent } from '../model/events.ts'
import type { Names } from '../model/names.ts'
import type { Writer } from '../sink/writer.ts'
import type { ArgMaker } from './labels.ts'
import type { Detail, OpNaming } from './options.ts'
import type { SubjectSpans } from './subject-spans.ts'
import type { Tracks, TrackTree } from './tracks.ts'

/** What all rows of one input share. */
export interface TrackContext {
  readonly writer: Writer
  /** Tracks of the whole trace. */
  readonly tree: TrackTree
  /** Tracks of the input. */
  readonly tracks: Tracks
  readonly make: ArgMaker
  readonly names: Names
  readonly detail: Detail
  readonly opName: OpNaming
  /** Not all calls of the input are in full: see `SumsEvent`. */
  readonly isSummed: boolean
  /** The input's number, from 0. */
  readonly input: number
  /** By id. */
  readonly tensors: readonly TensorEvent[]
  /** Which tensor's memory a tensor uses. */
  readonly views: Views
  /** Counters of operators. */
  readonly counters: CounterSet
  /** What findings may be about. */
  readonly spans: SubjectSpans
  /** Draws an issue. */
  readonly report: (issue: IssueEvent) => void
}
