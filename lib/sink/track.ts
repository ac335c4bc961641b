import type { OwnProcess, OwnThread } from '../model/own-events.ts'

/** Units of counters. */
export type Unit = 'bytes' | 'count' | 'ns' | Thing | Rate | Physical

/** What is counted. */
export type Thing = 'cells' | 'requests' | 'slots' | 'tokens'

/** Units that are written by these names. */
export type Rate = 'tok/s' | 'GB/s' | 'GFLOP/s'

/** Units of meters of power, clocks and utilization. */
export type Physical = 'W' | 'J' | 'Hz' | '%' | '°C' | 'B/s'

/** A row of the viewer, or a group of rows. It is defined before its first event. */
export interface Track {
  /** Unique in the trace, from 1; small numbers make small files. */
  readonly uuid: number
  /** 0 = at the top. */
  readonly parent: number
  readonly name: string
  /** Meaning of the track, and how it was measured. */
  readonly description: string
  /** Order among its siblings, from 0. */
  readonly rank: number
  /** A group contains tracks and has no events; a counter is drawn as a graph. */
  readonly kind: 'group' | 'slices' | 'counter'
  /** Unit of a counter's values. */
  readonly unit?: Unit | (string & {}) | undefined
  /** Counters of one group with the same key share their y axis. */
  readonly axis?: string | undefined
  /** Sibling tracks of the same name are drawn as rows of one track. */
  readonly merges?: boolean | undefined
  /** Tracks below it are in the order of their ranks, as those of a group are. */
  readonly ordersChildren?: boolean | undefined
  /** Has no group, and is drawn as it is at the top, between groups. */
  readonly isAtTop?: boolean | undefined
  /** The group is a process, with its threads. */
  readonly ofProcess?: OwnProcess | undefined
  /** The track is a thread of it; further tracks below it have the thread's further slices. */
  readonly ofThread?: OwnThread | undefined
}
