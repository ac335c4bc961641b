import type { Arg } from '../model/args.ts'
import type { Clock, SwitchEvent, WakingEvent } from '../model/events.ts'
import type { Label } from './label.ts'
import type { Track } from './track.ts'

/**
 * One output kind. Times are nanoseconds since the first {@link Writer.origin}. On one track, begins and ends must nest; going
 * back in time there costs a few bytes.
 */
export interface Writer {
  /**
   * Comes first: the clock of everything that follows, and the absolute time that all times count from. Of further inputs,
   * it is only the time of their beginning.
   */
  origin(clock: Clock | 'unknown', originNs: bigint): void
  /** The same instant on several clocks. */
  clocks(readings: readonly { readonly clock: Clock; readonly ns: bigint }[]): void
  /** Defines a track, or replaces its name and description. */
  track(track: Track): void
  begin(track: number, atNs: number, label: Label): void
  end(track: number, atNs: number): void
  instant(track: number, atNs: number, label: Label): void
  counter(track: number, atNs: number, value: number): void
  /** For formats with scheduler events of their own; without it, the timeline draws CPUs as rows of slices. */
  readonly scheduler?: SchedulerSink
  /** For formats with GPU work of their own; without it, the timeline draws that as slices. */
  readonly gpu?: GpuSink
  /** Facts on the whole trace. */
  attributes(attributes: Readonly<Record<string, string | number>>): void
  /** Comes last. */
  finish(): void
  /** Bytes written since the last {@link take}. */
  readonly size: number
  /** The bytes written since the last call. */
  take(): Uint8Array
}

/** What the kernel's scheduler did, in the format's own way. */
export interface SchedulerSink {
  /** Comes first: the release of the kernel. */
  system(release: string): void
  /** Which process a thread belongs to; once for each thread. `uuid` is unique among those of tracks. */
  linkThread(uuid: number, tid: number, pid: number): void
  /** The name of a process; once for each process. */
  nameProcess(uuid: number, pid: number, name: string): void
  /**
   * Another thread takes a CPU. In order for each CPU, and without gaps: the thread that leaves is the one that came before.
   * CPUs may come one after the other.
   */
  switched(event: SwitchEvent): void
  /** A thread may run again. In order with the switches of the CPU where the waker ran. */
  waking(event: WakingEvent): void
}

/** What GPUs did, in the format's own way. */
export interface GpuSink {
  /** A piece of work; in any order. */
  work(work: GpuWork): void
}

/** A queue of a GPU, such as a CUDA stream. */
export interface GpuQueue {
  /** Unique in the trace, from 1. */
  readonly id: number
  readonly name: string
  readonly description: string
  readonly gpu: number
  /** The process that uses it; -1 = not known. */
  readonly pid: number
}

/** A piece of work on a queue of a GPU. */
export interface GpuWork {
  readonly queue: GpuQueue
  /** The kind of work: each stage has one row of Perfetto's table of GPU work. */
  readonly stage: string
  readonly startNs: number
  readonly endNs: number
  /** An id of the shared `Names`. */
  readonly name: number
  /** {@link Label.launched} refers to it; the work of one launch shares it. */
  readonly id: number
  /** The profiler's own number of the launch, or -1. */
  readonly submission: number
  readonly extra?: readonly Arg[] | undefined
}
