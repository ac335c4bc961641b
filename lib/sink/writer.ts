import type { Clock, SwitchEvent, WakingEvent } from '../model/events.ts'
import type { ArgSet, ExtraArg } from './args.ts'

/** The fixed words that every slice carries one of; SQL can rely on them (`slice.category`). */
export type Category =
  | 'phase'
  | 'token'
  | 'graph'
  | 'operator'
  | 'barrier'
  | 'copy'
  | 'expert'
  | 'range'
  | 'nvtx'
  | 'state'
  | 'fault'
  | 'tensor'
  | 'nvtx'
  | 'nvtx_gpu'
  | 'api'
  | 'gpu'
  | 'sync'
  | 'issue'
  | 'own'

/** Units of counters. */
export type Unit = 'bytes' | 'count' | 'ns' | Rate

/** Units that are written as they are called here. */
export type Rate = 'tok/s' | 'GB/s' | 'GFLOP/s'

/** A row of the viewer, defined once before its first use. */
export interface Track {
  /** Unique in the trace, from 1; small numbers make small files. */
  readonly uuid: number
  /** 0 = at the top. */
  readonly parent: number
  readonly name: string
  /** Says what the track is and how it was measured. */
  readonly description: string
  /** Place among its siblings, from 0. */
  readonly rank: number
  /** Groups hold tracks and no events; counters are drawn as graphs. */
  readonly kind: 'group' | 'slices' | 'counter'
  /** Of a counter's values. */
  readonly unit?: Unit
  /** Counters of one group with the same key share their y axis. */
  readonly axis?: string
}

/** What a slice says. */
export interface Label {
  /** Labels of the same number say the same but for `extra` and `flows`: writers encode that only once. */
  readonly id?: number | undefined
  /** An id of the shared `Names`, or a text that is written as it is (for names that hardly repeat). */
  readonly name: number | string
  /** Of tracks of one's own: any. */
  readonly category: Category | (string & {})
  readonly args?: ArgSet | undefined
  readonly extra?: readonly ExtraArg[] | undefined
  /** Arrows: slices that carry the same id are joined in order of time. */
  readonly flows?: readonly number[] | undefined
  /** Arrows that end here: what carries their ids later on is not joined with what came before. */
  readonly flowEnds?: readonly number[] | undefined
  /** Id of the {@link GpuWork} that the slice launched. */
  readonly launched?: number | undefined
}

/** A queue of a GPU, such as a CUDA stream. */
export interface GpuQueue {
  /** Unique in the trace, from 1. */
  readonly id: number
  readonly name: string
  readonly description: string
  readonly gpu: number
  /** Process whose it is; -1 = not known. */
  readonly pid: number
}

/** A piece of work on a queue of a GPU. */
export interface GpuWork {
  readonly queue: GpuQueue
  /** What kind of work it is: a stage has one row of Perfetto's table of GPU work each. */
  readonly stage: string
  readonly startNs: number
  readonly endNs: number
  /** An id of the shared `Names`. */
  readonly name: number
  /** By which {@link Label.launched} refers to it; the work of one launch shares it. */
  readonly id: number
  /** The profiler's own number of the launch, or -1. */
  readonly submission: number
  readonly extra?: readonly ExtraArg[] | undefined
}

/** What the kernel's scheduler did, in the format's own way. */
export interface SchedulerWriter {
  /** Comes first: the release of the kernel. */
  system(release: string): void
  /** Says which process a thread belongs to; once for a thread. `uuid` is unique as those of tracks are. */
  linkThread(uuid: number, tid: number, pid: number): void
  /** Says what a process is called; once for a process. */
  nameProcess(uuid: number, pid: number, name: string): void
  /**
   * Another thread takes a CPU. In order for each CPU, and without gaps: who leaves is who came before. CPUs may come one
   * after the other.
   */
  switched(event: SwitchEvent): void
  /** A thread may run again. In order with the switches of the CPU where the waker ran. */
  waking(event: WakingEvent): void
}

/**
 * One output kind. Times are nanoseconds since the first {@link Writer.origin}'s. On one track, begins and ends must nest; going
 * back in time there costs a few bytes.
 */
export interface Writer {
  /**
   * Comes first: the clock of everything that follows, and the absolute time that all times count from. Of further inputs
   * it only tells when they began.
   */
  origin(clock: Clock | 'unknown', originNs: bigint): void
  /** The same instant on several clocks. */
  clocks(readings: readonly { readonly clock: Clock; readonly ns: bigint }[]): void
  /** Defines a track; or once more, by another name. */
  track(track: Track): void
  begin(track: number, atNs: number, label: Label): void
  end(track: number, atNs: number): void
  instant(track: number, atNs: number, label: Label): void
  counter(track: number, atNs: number, value: number): void
  /** Where the format knows of a scheduler; the timeline draws CPUs as rows of slices where not. */
  readonly scheduler: SchedulerWriter | undefined
  /** Work of GPUs, in any order, where the format knows such a thing; else it is drawn in slices. */
  gpuWork?(work: GpuWork): void
  /** Facts on the whole trace. */
  attributes(attributes: Readonly<Record<string, string | number>>): void
  /** Comes last. */
  finish(): void
  /** Bytes written since the last {@link take}. */
  readonly size: number
  /** The bytes written since the last call. */
  take(): Uint8Array
}
