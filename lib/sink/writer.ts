import type { Arg } from '../model/args.ts'
import type { Clock, SwitchEvent, WakingEvent } from '../model/events.ts'
import type { Label } from './label.ts'
import type { Track } from './track.ts'

/**
 * One output kind. Times are nanoseconds since the first {@link Writer.origin}. On one track, begins and ends must nest.
 */
export interface Writer {
  /**
   * Comes before all others in a trace of one input, whose clock need not be related to another one: no event is expected
   * earlier than this before the origin, and a writer may count times from there.
   */
  countFrom?(leadNs: number): void
  /**
   * Comes first: the clock of all times, and the absolute time from which they count. For further inputs, only the time at which
   * they begin.
   */
  origin(clock: Clock | 'unknown', originNs: bigint): void
  /** The same instant on several clocks. */
  clocks(readings: readonly { readonly clock: Clock; readonly ns: bigint }[]): void
  /** Defines a track, or replaces its name. Viewers may show the first of its descriptions. */
  track(track: Track): void
  begin(track: number, atNs: number, label: Label): void
  end(track: number, atNs: number): void
  /** A whole slice, as by `begin` and `end`. `extra`: arguments of its own, in place of the label's. */
  slice(track: number, startNs: number, endNs: number, label: Label, extra?: readonly Arg[]): void
  instant(track: number, atNs: number, label: Label): void
  counter(track: number, atNs: number, value: number): void
  /**
   * Draws an arrow between the slices that are around this time on two tracks, both of which were written. The first one begins first, or at the
   * same time.
   */
  arrow(from: number, to: number, atNs: number): void
  /** For formats with scheduler events; without it, the timeline draws CPUs as rows of slices. */
  readonly scheduler?: SchedulerSink
  /** For formats with GPU work; without it, the timeline draws it as slices. */
  readonly gpu?: GpuSink
  /** The machine that was traced, if something is known about it; more may be known when it is called again. */
  machine?(machine: Machine): void
  /** Facts about the whole trace. */
  attributes(attributes: Readonly<Record<string, string | number>>): void
  /** Comes last. */
  finish(): void
  /** Number of slices, instants, samples, events of the scheduler and pieces of GPU work so far. */
  readonly draws: number
  /** Bytes written since the last {@link take}. */
  readonly size: number
  /** The bytes written since the last call. */
  take(): Uint8Array
}

/** A machine; undefined = not known. */
export interface Machine {
  /** Release of the Linux kernel. Comes before events of the scheduler, whose states depend on it. */
  readonly release?: string | undefined
  /** Number of CPUs. */
  readonly cpus?: number | undefined
  /** The CPU's model. */
  readonly cpu?: string | undefined
}

/** Events of the kernel's scheduler. */
export interface SchedulerSink {
  /** Number of events so far. */
  readonly draws: number
  /** The process of a thread; once for each thread. `uuid` is unique among those of tracks. */
  linkThread(uuid: number, tid: number, pid: number): void
  /** The name of a process; once for each process. An empty description is not written. */
  nameProcess(uuid: number, pid: number, name: string, description: string): void
  /**
   * Another thread takes a CPU. In order for each CPU, and without gaps: the previous thread is the next thread of the switch
   * before. CPUs may come one after the other.
   */
  switched(event: SwitchEvent): void
  /** A thread becomes runnable. In order with the switches of the CPU on which the waker runs. */
  waking(event: WakingEvent): void
}

/** Work of GPUs. */
export interface GpuSink {
  /** Number of pieces of work so far. */
  readonly draws: number
  /** Writes a piece of work; in any order. */
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
  readonly api: 'CUDA' | 'VULKAN'
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
  /** {@link Label.launched} refers to it; all work of one launch has the same id. */
  readonly id: number
  /** The profiler's number of the launch, or -1. */
  readonly submission: number
  readonly extra?: readonly Arg[] | undefined
}
