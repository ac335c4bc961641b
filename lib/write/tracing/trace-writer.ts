import { checkNames, UsageError } from '../../errors.ts'
import { TRACE_WRITER_OPTIONS } from '../../generated/option-names.ts'
import type { Clock } from '../../model/events.ts'
import { INT32_MAX } from '../../model/limits.ts'
import { PerfettoWriter } from '../perfetto/perfetto.ts'
import { Labels } from './labels.ts'
import { type TimeUnit, TraceTimes } from './times.ts'
import { type Shared, type SliceTrack, TRACK_NAMES, type TrackOptions, TrackParent } from './tracks.ts'

/** Bytes of a piece, about: larger ones cost memory, smaller ones time. */
const PIECE_BYTES = 64 << 10
/** {@link TraceWriter.drained} waits while there are more. */
const WAITING_BYTES_MAX = 1 << 20

/** What times of a trace are. */
export interface TraceOptions {
  /** The clock of all times; without it, times count from 0. */
  readonly clock?: Clock | undefined
  /** Of times that are numbers; nanoseconds by default. Those that are bigints are always nanoseconds. */
  readonly unit?: TimeUnit | undefined
}

/** A process of a trace. */
export interface ProcessOptions extends TrackOptions {
  /** By default, the next free number. */
  readonly pid?: number | undefined
}

/** A thread of a process. */
export interface ThreadOptions extends TrackOptions {
  /** By default, the next free number. */
  readonly tid?: number | undefined
}

/** Numbers of processes, or of threads, each once. */
class UniqueIds {
  private readonly used = new Set<number>()
  private last = 0

  take(what: string, given: number | undefined): number {
    if (given === undefined) while (this.used.has(++this.last));
    const number = given ?? this.last
    if (!Number.isSafeInteger(number) || number < 1 || number > INT32_MAX)
      throw new UsageError(`${what}: expected a whole number from 1 to 2^31 - 1, found ${number}`)
    if (this.used.has(number))
      throw new UsageError(`${what} ${number} exists already\nhint: make it once and keep what it returns`)
    this.used.add(number)
    return number
  }
}

/** A process, with its threads. Other tracks may belong to it, too. */
export class ProcessTracks extends TrackParent {
  constructor(
    shared: Shared,
    uuid: number,
    private readonly pid: number,
    private readonly tids: UniqueIds,
  ) {
    super(shared, uuid)
  }

  /** Adds a thread, which is a track of slices. */
  thread(name: string, { tid, ...options }: ThreadOptions = {}): SliceTrack {
    checkNames('thread', options, [...TRACK_NAMES, 'tid'])
    const ofThread = { pid: this.pid, tid: this.tids.take('tid', tid), name, sortIndex: options.order }
    return this.slices(name, { ...options, ofThread })
  }
}

/**
 * Writes a trace of anything: processes, threads, tracks, counters. Its bytes are taken piece by piece while it is written ({@link pieces}), or as
 * a whole at the end ({@link take}). Throws UsageError for what no trace can contain.
 */
export class TraceWriter extends TrackParent {
  private readonly writer: PerfettoWriter
  private readonly times: TraceTimes
  private readonly own: { isFinished: boolean; count: number }
  private readonly pids = new UniqueIds()
  private readonly tids = new UniqueIds()
  /** Wakes who waits for bytes, and who waits until they are taken. */
  private wakeReader: (() => void) | undefined
  private wakeWriters: (() => void)[] = []
  /** The reader waits for so many bytes. */
  private wantedBytes = PIECE_BYTES
  private reading: 'not yet' | 'yes' | 'ended' = 'not yet'

  constructor(options: TraceOptions = {}) {
    checkNames('TraceWriter', options, TRACE_WRITER_OPTIONS)
    const { clock, unit = 'ns' } = options
    const labels = new Labels()
    const writer = new PerfettoWriter(labels.names)
    const times = new TraceTimes(writer, clock, unit)
    const own = { isFinished: false, count: 0 }
    super({ writer, labels, times, tracks: [], newId: () => ++own.count, writing: () => this.writing() }, 0)
    this.writer = writer
    this.times = times
    this.own = own
  }

  /** Adds a process. */
  process(name: string, { pid: given, ...options }: ProcessOptions = {}): ProcessTracks {
    checkNames('process', options, [...TRACK_NAMES, 'pid'])
    const pid = this.pids.take('pid', given)
    const ofProcess = { pid, name, sortIndex: options.order }
    return new ProcessTracks(this.shared, this.define(name, { ...options, kind: 'group', ofProcess }), pid, this.tids)
  }

  /** The same instant on several clocks, in nanoseconds, one of them the trace's: viewers can convert times. */
  clocks(readings: Readonly<Partial<Record<Clock, bigint>>>): void {
    this.writing()
    this.times.relate(Object.entries(readings).map(([clock, ns]) => ({ clock: clock as Clock, ns })))
  }

  /** Facts about the whole trace, which viewers show. */
  attributes(facts: Readonly<Record<string, string | number>>): void {
    this.writing()
    this.writer.attributes(facts)
  }

  /** Bytes that were written and not taken. */
  get size(): number {
    return this.writer.size
  }

  /** The bytes written since the last call. */
  take(): Uint8Array {
    const taken = this.writer.take()
    for (const wake of this.wakeWriters.splice(0)) wake()
    return taken
  }

  /** Ends the trace. Nothing can be written afterwards; slices that have not ended are unfinished. */
  finish(): void {
    this.writing()
    for (const track of this.shared.tracks) track.finish()
    this.own.isFinished = true
    this.wakeReader?.()
  }

  /** Passes on what is written so far, however little it is: for a trace that others read while it grows. */
  flush(): void {
    this.wantedBytes = 1
    this.wakeReader?.()
  }

  /** The trace in pieces, up to {@link finish}: for `pipeline(…)`, `gzip(…)`, `toWebStream(…)`. Where reading ends early, further bytes are dropped. */
  pieces(): AsyncGenerator<Uint8Array, void> {
    if (this.reading !== 'not yet') throw new UsageError('the pieces of a trace are read once')
    this.reading = 'yes'
    return this.read()
  }

  /** Waits while more than 1 MiB is not taken: who writes much awaits this from time to time. */
  async drained(): Promise<void> {
    while (this.writer.size > WAITING_BYTES_MAX && this.reading !== 'ended') {
      if (this.reading === 'not yet') {
        throw new UsageError('drained: nobody takes the bytes\nhint: read pieces() at the same time, or call take()')
      }
      await new Promise<void>((resolve) => this.wakeWriters.push(resolve))
    }
  }

  private async *read(): AsyncGenerator<Uint8Array, void> {
    try {
      for (;;) {
        if (this.writer.size < this.wantedBytes && !this.own.isFinished) {
          await new Promise<void>((resolve) => {
            this.wakeReader = resolve
          })
          this.wakeReader = undefined
        }
        this.wantedBytes = PIECE_BYTES
        if (this.writer.size > 0) yield this.take()
        else if (this.own.isFinished) return
      }
    } finally {
      this.reading = 'ended'
      this.take()
    }
  }

  private writing(): void {
    if (this.own.isFinished) throw new UsageError('the trace is finished: nothing can be added')
    if (this.writer.size < PIECE_BYTES) return
    if (this.reading === 'ended') this.writer.take()
    else this.wakeReader?.()
  }
}
