import { putAt } from '../../model/by-id.ts'
import { DefaultMap } from '../../model/default-map.ts'
import { Inferred, type OperatorEvent } from '../../model/events.ts'
import type { TrackContext } from '../context.ts'
import { CounterLine } from '../counter-line.ts'
import type { Buffers } from './buffers.ts'

/** The counter of a buffer. */
interface Counter {
  readonly line: CounterLine
  /** Serial of the last graph run that reads the buffer. */
  run: number
}

/** Counters of the Memory group: the offset at which operators read in each buffer, and the bytes that they touch. */
export class Reads {
  private readonly counters = new DefaultMap<number, Counter>((id) => {
    const buffer = this.buffers.get(id)
    const track = this.context.tracks.add('offsetRead', { ...buffer, offsetsFrom: buffer.event.offsetsFrom })
    return { line: this.lineOf(track), run: -1 }
  })
  private touched: CounterLine | undefined
  /** The end of the barrier after the last operator; -1: no value ends there. */
  private touchedUntilNs = -1
  private readonly run = { serial: 0, call: -1, endNs: -1 }
  /** By tensor: the serial of the last graph run that computed it. */
  private readonly runOf: number[] = []
  /** By tensor: the place of its operator's first source in the lists below, the number of sources, and the sum of their bytes, or -1. */
  private readonly firsts: number[] = []
  private readonly counts: number[] = []
  private readonly bytes: number[] = []
  /** Sources of all operators, so that they are near each other in memory: the counter of their buffer, and the offset in it. */
  private readonly buffersRead: Counter[] = []
  private readonly offsets: number[] = []

  constructor(
    private readonly context: TrackContext,
    private readonly buffers: Buffers,
  ) {}

  /** Samples the counters at the start of an operator of worker 0: all workers have the same sources. */
  place({ tensor, call, startNs, waitEndNs, inferred }: OperatorEvent): void {
    const { run } = this
    if (call !== run.call || this.runOf[tensor] === run.serial) this.endRun(startNs)
    run.call = call
    run.endNs = waitEndNs
    putAt(this.runOf, tensor, run.serial, -1)
    const known = this.firsts[tensor]
    const first = known === undefined || known < 0 ? this.addSources(tensor) : known
    for (let at = first, end = first + this.counts[tensor]!; at < end; at++) {
      const counter = this.buffersRead[at]!
      counter.run = run.serial
      counter.line.sample(startNs, this.offsets[at]!)
    }
    const bytes = this.bytes[tensor]!
    if (this.touchedUntilNs >= 0 && (startNs > this.touchedUntilNs || bytes < 0)) this.endTouched()
    if (bytes < 0) return
    this.touched ??= this.lineOf(this.context.tracks.add('touched', {}))
    this.touched.sample(startNs, bytes)
    // If the end is the next operator's start, the sample of that operator has the same time.
    this.touchedUntilNs = (inferred & Inferred.End) === 0 ? waitEndNs : -1
  }

  /** A run ends with its call, or before a node that it contains already. Nothing is read until the next one begins. */
  private endRun(nextNs: number): void {
    const { run, counters } = this
    if (run.endNs >= 0 && run.endNs < nextNs) {
      for (const { line, run: last } of counters.values()) if (last === run.serial) line.sample(run.endNs, 0)
    }
    run.serial++
  }

  private endTouched(): void {
    this.touched!.sample(this.touchedUntilNs, 0)
    this.touchedUntilNs = -1
  }

  private addSources(tensor: number): number {
    const { tensors } = this.context
    const first = this.offsets.length
    const sizes: number[] = []
    for (const id of tensors[tensor]!.sources) {
      const { buffer, offset, sizeBytes } = tensors[id]!
      if (sizeBytes >= 0) sizes.push(sizeBytes)
      if (offset === undefined || buffer < 0) continue
      this.buffersRead.push(this.counters.of(buffer))
      this.offsets.push(offset)
    }
    putAt(this.firsts, tensor, first, -1)
    putAt(this.counts, tensor, this.offsets.length - first, 0)
    putAt(this.bytes, tensor, sizes.length > 0 ? sizes.reduce((sum, bytes) => sum + bytes, 0) : -1, -1)
    return first
  }

  finish(): void {
    if (this.touchedUntilNs >= 0) this.endTouched()
    this.endRun(Infinity)
    this.touched?.finish()
    for (const { line } of this.counters.values()) line.finish()
  }

  private lineOf(track: number): CounterLine {
    return new CounterLine(this.context.writer, track, this.context.detail)
  }
}
