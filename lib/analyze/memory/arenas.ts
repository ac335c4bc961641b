import { DefaultMap, getOrMake } from '../../model/default-map.ts'
import type { CopyEvent, Phase, TokenEvent } from '../../model/events.ts'
import type { Defined } from '../graph/defined.ts'
import { type ArenaLayout, Lifetimes } from '../graph/lifetimes.ts'
import type { Life, Plan } from '../graph/plan.ts'
import type { RunColumns } from '../graph/runs.ts'
import type { ArenaFigures, ArenaPhase, LivePeak, LiveTensor } from './figures.ts'
import type { LiveBytes } from './live-bytes.ts'

/** Tensors of a peak that are listed. */
const LIVE_MAX = 16

/** Sums over the graph runs of one phase. */
interface Sums {
  runs: number
  /** Time of the runs, and live bytes × ns. */
  timeNs: number
  byteNs: number
  peak: number
  /** Of all runs. */
  peaks: number
  placed: number
  placedBytes: number
  offsets: number
}

/** Tensors placed in an arena in each graph run of a plan. */
interface Placed {
  readonly bytes: number
  readonly offsets: number
}

interface Arena {
  readonly phases: DefaultMap<Phase | 'none', Sums>
  /** Of the graph run with most tensors. */
  tensors: number
  tensorBytes: number
  peak: number
  at: LivePeak | undefined
  lastNs: number
  last: number
}

/** What is known of an arena. */
export interface ArenaUse extends ArenaFigures {
  readonly tensors: number
  readonly tensor_bytes: number
}

/** Sums the use of compute arenas, graph run by graph run. */
export class Arenas {
  private readonly times: Lifetimes
  private readonly arenas = new DefaultMap<number, Arena>(() => ({
    phases: new DefaultMap<Phase | 'none', Sums>(() => newSums()),
    tensors: 0,
    tensorBytes: 0,
    peak: -1,
    at: undefined,
    lastNs: -Infinity,
    last: 0,
  }))
  private readonly placed = new WeakMap<ArenaLayout, Placed>()
  /** Gets the live bytes of the graph runs that are added, while it is set. */
  watch: LiveBytes | undefined

  constructor(private readonly defined: Defined) {
    this.times = new Lifetimes(defined.views)
  }

  token(event: TokenEvent): void {
    this.times.token(event)
  }

  copy(event: CopyEvent): void {
    this.times.copy(event)
  }

  /** Adds a graph run of a call, the one with this number in it. `hasNext`: the call has another one after it. */
  run(run: RunColumns, plan: Plan, index: number, hasNext: boolean, phase: Phase | 'none'): void {
    for (const layout of this.times.run(run, plan, hasNext, false)) this.add(layout, run, index, phase)
  }

  private add(layout: ArenaLayout, run: RunColumns, index: number, phase: Phase | 'none'): void {
    const { watch } = this
    const arena = this.arenas.of(layout.buffer)
    const sums = arena.phases.of(phase)
    const [startNs, endNs] = [run.startNs[0]!, run.endNs[run.count - 1]!]
    let [fromNs, now, byteNs] = [startNs, 0, 0]
    let [peak, atNs, peakStep, last] = [-1, startNs, -1, 0]
    this.times.live(layout, run, (sampleNs, bytes, step) => {
      const untilNs = Math.min(Math.max(sampleNs, fromNs), endNs)
      byteNs += now * (untilNs - fromNs)
      fromNs = untilNs
      now = bytes
      if (sampleNs <= endNs) last = bytes
      watch?.sample(layout.buffer, run, index, sampleNs, bytes, step)
      if (bytes > peak) {
        peak = bytes
        atNs = sampleNs
        peakStep = step
      }
    })
    sums.byteNs += byteNs + now * (endNs - fromNs)
    sums.timeNs += endNs - startNs
    sums.runs++
    sums.peaks += Math.max(peak, 0)
    sums.peak = Math.max(sums.peak, peak)
    const { bytes, offsets } = this.placedIn(layout)
    sums.placed += layout.lives.length
    sums.placedBytes += bytes
    sums.offsets += offsets
    if (layout.lives.length > arena.tensors) {
      arena.tensors = layout.lives.length
      arena.tensorBytes = bytes
    }
    if (endNs > arena.lastNs) {
      arena.lastNs = endNs
      arena.last = last
    }
    watch?.peak(layout.buffer, peak, () => this.peakAt(peakStep, atNs, layout, run, phase))
    if (peak <= arena.peak) return
    arena.peak = peak
    arena.at = this.peakAt(peakStep, atNs, layout, run, phase)
  }

  private placedIn(layout: ArenaLayout): Placed {
    return getOrMake(this.placed, layout, () => {
      const { lives } = layout
      const bytes = lives.reduce((sum, life) => sum + life.bytes, 0)
      return { bytes, offsets: new Set(lives.map(({ offset }) => offset)).size }
    })
  }

  private peakAt(step: number, atNs: number, layout: ArenaLayout, run: RunColumns, phase: Phase | 'none'): LivePeak {
    const lives = this.times.livesAt(step, layout, run).sort((a, b) => b.bytes - a.bytes)
    const rest = lives.slice(LIVE_MAX)
    return {
      call: run.call,
      phase,
      at_ns: atNs,
      step,
      tensor: step < 0 ? '' : this.nameOf(run.last[step]!),
      op: step < 0 ? '' : this.opOf(run.last[step]!),
      live: lives.slice(0, LIVE_MAX).map((life) => this.liveTensor(life)),
      further_tensors: rest.length,
      further_bytes: rest.reduce((sum, { bytes }) => sum + bytes, 0),
    }
  }

  private liveTensor({ tensor, offset, bytes, lastReader }: Life): LiveTensor {
    const last_reader = lastReader < 0 ? '' : this.nameOf(lastReader)
    return { tensor: this.nameOf(tensor), op: this.opOf(tensor), offset, bytes, last_reader }
  }

  private nameOf(id: number): string {
    return this.defined.names.text(this.defined.tensors[id]!.name)
  }

  private opOf(id: number): string {
    return this.defined.names.text(this.defined.tensors[id]!.op)
  }

  /** By buffer. `sizeOf`: its size, if it is known; `firstNs`: time of the first event. */
  finish(sizeOf: (buffer: number) => number | undefined, firstNs: number): Map<number, ArenaUse> {
    return new Map([...this.arenas].map(([buffer, arena]) => [buffer, figuresOf(arena, sizeOf(buffer), firstNs)]))
  }
}

const newSums = (): Sums => {
  return { runs: 0, timeNs: 0, byteNs: 0, peak: 0, peaks: 0, placed: 0, placedBytes: 0, offsets: 0 }
}

function figuresOf({ phases, peak, at, ...arena }: Arena, size: number | undefined, firstNs: number): ArenaUse {
  const all = [...phases.values()].reduce(plus, newSums())
  return {
    tensors: arena.tensors,
    tensor_bytes: arena.tensorBytes,
    runs: all.runs,
    peak_live_bytes: peak,
    peak_share: size ? peak / size : null,
    mean_live_bytes: meanOf(all),
    last_live_bytes: arena.last,
    reuse: reuseOf(all),
    writes_per_offset: all.placed / all.offsets,
    peak: { ...at!, at_ns: at!.at_ns - firstNs },
    by_phase: [...phases].map(
      ([phase, sums]): ArenaPhase => ({
        phase,
        runs: sums.runs,
        peak_live_bytes: sums.peak,
        mean_live_bytes: meanOf(sums),
        placed_tensors: sums.placed / sums.runs,
        placed_bytes: sums.placedBytes / sums.runs,
        reuse: reuseOf(sums),
        writes_per_offset: sums.placed / sums.offsets,
      }),
    ),
  }
}

const meanOf = ({ byteNs, timeNs, peak }: Sums) => (timeNs > 0 ? byteNs / timeNs : peak)
const reuseOf = ({ placedBytes, peaks }: Sums) => (peaks > 0 ? placedBytes / peaks : 0)

function plus(a: Sums, b: Sums): Sums {
  return {
    runs: a.runs + b.runs,
    timeNs: a.timeNs + b.timeNs,
    byteNs: a.byteNs + b.byteNs,
    peak: Math.max(a.peak, b.peak),
    peaks: a.peaks + b.peaks,
    placed: a.placed + b.placed,
    placedBytes: a.placedBytes + b.placedBytes,
    offsets: a.offsets + b.offsets,
  }
}
