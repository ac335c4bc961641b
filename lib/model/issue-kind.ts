import type { RecordedKind } from './recorded.ts'

/** One kind of problem of an input. */
export interface IssueKind {
  /** A short phrase: the name on the Issues track; issues are counted by it. */
  readonly title: string
  /** The effect on the results, or the remedy. */
  readonly hint: string
  /** Is an event of the run missing in the results? The only definition of a loss. */
  readonly isLoss: boolean
  /** What is missing, where the code says it; else any kind of data that the input contains. */
  readonly lost?: readonly LostKind[]
}

/** A kind of data that an input may lack; `end`: all after its last event, and nothing before it. */
export type LostKind = RecordedKind | 'CUDA events' | 'end'
