import { firstIndex } from '../../bytes/search.ts'
import { DefaultMap } from '../../model/default-map.ts'
import type { CopyEvent, TokenEvent } from '../../model/events.ts'
import type { Life, Plan } from './plan.ts'
import type { RunColumns } from './runs.ts'
import type { Views } from './views.ts'

/** Transfers of one tensor that are kept, as no life may need them. */
const REMEMBERED_MAX = 256

interface Span {
  readonly startNs: number
  readonly endNs: number
}

/** Transfers of tensors' data, in (set, copy) and out (get), until a life uses them. */
class Transfers {
  private readonly writes = new DefaultMap<number, Span[]>(() => [])
  private readonly reads = new DefaultMap<number, Span[]>(() => [])

  /** `root`: the tensor that owns the memory. The tensor of a copy is its destination. */
  add(root: number, { what, startNs, endNs }: CopyEvent): void {
    const spans = (what === 'get' ? this.reads : this.writes).of(root)
    if (spans.push({ startNs, endNs }) > REMEMBERED_MAX) spans.shift()
  }

  /** Number of tensors with transfers out. */
  get tensorsRead(): number {
    return this.reads.size
  }

  /** Has there been a transfer out of this tensor? */
  areRead(root: number): boolean {
    return this.reads.has(root)
  }

  /** The last transfer into a tensor that began by `untilNs`. It and earlier ones are removed. */
  written(root: number, untilNs: number): Span | undefined {
    return take(this.writes.get(root), untilNs).at(-1)
  }

  /** End of the last transfer out of a tensor that began from `fromNs` to `untilNs`, or -Infinity. Removes those up to it. */
  readUntil(root: number, fromNs: number, untilNs: number): number {
    const spans = take(this.reads.get(root), untilNs)
    return spans.reduce((last, { startNs, endNs }) => (startNs < fromNs ? last : Math.max(last, endNs)), -Infinity)
  }
}

const NONE: readonly Span[] = []

/** Removes and returns the spans that began by a time. */
function take(spans: Span[] | undefined, untilNs: number): readonly Span[] {
  if (!spans || spans.length === 0) return NONE
  const after = spans.findIndex(({ startNs }) => startNs > untilNs)
  return spans.splice(0, after < 0 ? spans.length : after)
}

/** Ends of calls, and of warm-up calls, that are kept. */
const CALL_ENDS_MAX = 1 << 16
const OTHER_ENDS_MAX = 64

/** Bits: the ends of a life that are not recorded. */
export const UnknownEnds = { begin: 1, end: 2 } as const

type Sample = readonly [atNs: number, bytes: number]

/** Gets the live bytes of an arena where they change; `step`: of the graph run, -1: before its first one or after its last one. */
export type OnLive = (atNs: number, bytes: number, step: number) => void

/** The part of an arena's live bytes that is the same in each graph run of a plan. */
export interface ArenaLayout {
  readonly buffer: number
  /** Tensors placed in it: inputs and results. */
  readonly lives: readonly Life[]
  /** Change of the live bytes at each step, and after the last one, by tensors whose lives begin and end at steps. */
  readonly steady: Float64Array
  /** Lives that begin or end between steps. */
  readonly unsteady: readonly Life[]
}

interface Layout {
  readonly arenas: readonly ArenaLayout[]
  /** In all arenas. */
  readonly unsteady: readonly Life[]
  /** Number of tensors of which a transfer was recorded when the layout was computed. */
  readonly tensorsRead: number
}

/** Times of the lives of tensors in compute arenas, one graph run after the other, and the bytes that are live. */
export class Lifetimes {
  /** By index of the run's lives: times, and bits of {@link UnknownEnds}. */
  begins = new Float64Array(256)
  ends = new Float64Array(256)
  unknowns = new Uint8Array(256)
  private readonly transfers = new Transfers()
  private readonly callEnds = new Map<number, number>()
  private readonly otherEnds: number[] = []
  private readonly layouts = new WeakMap<Plan, Layout>()
  /** By step of the current graph run: the change of the live bytes. */
  private deltas = new Float64Array(256)

  constructor(private readonly views: Views) {}

  /** Keeps the end of a call, which is after the ends of its graph runs. */
  token({ call, endNs }: TokenEvent): void {
    if (call < 0) {
      if (this.otherEnds.push(endNs) > OTHER_ENDS_MAX) this.otherEnds.shift()
      return
    }
    this.callEnds.set(call, endNs)
    if (this.callEnds.size > CALL_ENDS_MAX) this.callEnds.delete(this.callEnds.keys().next().value!)
  }

  copy(event: CopyEvent): void {
    if (event.tensor >= 0) this.transfers.add(this.views.root(event.tensor), event)
  }

  /**
   * Times the lives of a graph run; only those that begin or end between steps, unless `all` are asked for. `hasNext`: the same call has
   * another run after it. Returns the arenas; valid until the next run.
   */
  run(run: RunColumns, plan: Plan, hasNext: boolean, all: boolean): readonly ArenaLayout[] {
    const untilNs = this.endOf(run, hasNext)
    if (plan.lives.length > this.begins.length || run.count >= this.deltas.length)
      this.grow(plan.lives.length + run.count)
    const layout = this.layoutOf(plan)
    const timed = all ? plan.lives : layout.unsteady
    for (const life of timed) this.begin(life, run)
    for (const life of timed) this.end(life, run, untilNs)
    return layout.arenas
  }

  private layoutOf(plan: Plan): Layout {
    const known = this.layouts.get(plan)
    const { tensorsRead } = this.transfers
    if (known?.tensorsRead === tensorsRead) return known
    const isSteady = ({ birth, last, copies, tensor }: Life) =>
      birth >= 0 && last >= 0 && copies.length === 0 && !this.transfers.areRead(tensor)
    const arenas = [...plan.arenas].map(([buffer, lives]) => {
      const steady = new Float64Array(plan.nodes.length + 1)
      for (const life of lives.filter(isSteady)) {
        steady[life.birth]! += life.bytes
        steady[steadyEnd(life)]! -= life.bytes
      }
      return { buffer, lives, steady, unsteady: lives.filter((life) => !isSteady(life)) }
    })
    const layout = { tensorsRead, arenas, unsteady: plan.lives.filter((life) => !isSteady(life)) }
    this.layouts.set(plan, layout)
    return layout
  }

  /** The time until which results without a reader are kept. */
  private endOf(run: RunColumns, hasNext: boolean): number {
    const runEndNs = run.endNs[run.count - 1]!
    if (hasNext) return runEndNs // the next graph run reuses the memory
    if (run.call < 0) return this.otherEnds.find((endNs) => endNs >= runEndNs) ?? runEndNs
    const endNs = this.callEnds.get(run.call) ?? runEndNs
    this.callEnds.delete(run.call)
    return Math.max(endNs, runEndNs)
  }

  private begin({ index, tensor, birth, after, last }: Life, run: RunColumns): void {
    this.unknowns[index] = 0
    if (birth >= 0) {
      this.begins[index] = run.startNs[birth]!
      return
    }
    const written = this.transfers.written(tensor, run.startNs[Math.max(last, 0)]!)
    if (!written) this.unknowns[index] = UnknownEnds.begin
    const earliestNs = after < 0 ? -Infinity : run.endNs[after]!
    this.begins[index] = Math.max(earliestNs, written?.startNs ?? run.startNs[0]!)
  }

  private end({ index, tensor, last, cut, copies }: Life, run: RunColumns, untilNs: number): void {
    const beginNs = this.begins[index]!
    let endNs = last < 0 ? -Infinity : stepEnd(run, last)
    if (this.transfers.areRead(tensor)) {
      endNs = Math.max(endNs, this.transfers.readUntil(tensor, beginNs, untilNs))
    }
    for (const copy of copies) endNs = Math.max(endNs, this.begins[copy.index]!)
    if (endNs === -Infinity) {
      this.unknowns[index]! |= UnknownEnds.end
      endNs = untilNs
    }
    if (cut >= 0) endNs = Math.min(endNs, run.startNs[cut]!)
    this.ends[index] = Math.max(endNs, beginNs)
  }

  /** The live bytes of an arena in the current run: where inputs are written, at each step that changes them, and where outputs end. */
  live({ steady, unsteady }: ArenaLayout, run: RunColumns, onLive: OnLive): void {
    const { begins, ends, deltas } = this
    const { startNs: starts, count } = run
    deltas.set(steady)
    const early: Sample[] = []
    const late: Sample[] = []
    if (steady[count]! < 0) late.push([run.endNs[count - 1]!, steady[count]!])
    for (const life of unsteady) {
      const { index, bytes } = life
      const born = this.born(life, run)
      if (born < 0) early.push([begins[index]!, bytes])
      else if (born < count) deltas[born]! += bytes
      const dead = this.dead(life, run)
      if (dead < count) deltas[dead]! -= bytes
      else late.push([ends[index]!, -bytes])
    }
    let sum = sampleAll(early, 0, onLive)
    for (let step = 0; step < count; step++) {
      if (deltas[step] === 0) continue
      sum += deltas[step]!
      onLive(starts[step]!, sum, step)
    }
    sampleAll(late, sum, onLive)
  }

  /** The tensors of an arena that are live in a step of the current run; -1: before its first one. */
  livesAt(step: number, { lives, unsteady }: ArenaLayout, run: RunColumns): Life[] {
    const timed = new Set(unsteady)
    return lives.filter((life) => {
      if (timed.has(life)) return this.born(life, run) <= step && step < this.dead(life, run)
      return life.birth <= step && step < steadyEnd(life)
    })
  }

  /** The step with which a life begins; -1: before the first one. */
  private born({ index, birth }: Life, { startNs: starts, count }: RunColumns): number {
    const beginNs = this.begins[index]!
    if (beginNs < starts[0]!) return -1
    return birth >= 0 ? birth : stepFrom(starts, count, beginNs)
  }

  /** The step before which a life ends; the number of steps: after the last one. */
  private dead({ index, last }: Life, run: RunColumns): number {
    const endNs = this.ends[index]!
    return last >= 0 && endNs === stepEnd(run, last) ? last + 1 : stepFrom(run.startNs, run.count, endNs)
  }

  private grow(size: number): void {
    this.deltas = new Float64Array(2 * size)
    this.begins = new Float64Array(2 * size)
    this.ends = new Float64Array(2 * size)
    this.unknowns = new Uint8Array(2 * size)
  }
}

/** The step before which a life ends that ends at a step. */
const steadyEnd = ({ cut, last }: Life) => (cut >= 0 ? Math.min(cut, last + 1) : last + 1)

function sampleAll(samples: Sample[], from: number, onLive: OnLive): number {
  let sum = from
  for (const [atNs, bytes] of samples.sort((a, b) => a[0] - b[0])) {
    sum += bytes
    onLive(atNs, sum, -1)
  }
  return sum
}

/** The end of a step. There is a barrier before the next step, but the clocks of CPUs differ by some ns. */
function stepEnd({ endNs: ends, startNs: starts, count }: RunColumns, step: number): number {
  return step + 1 < count ? Math.min(ends[step]!, starts[step + 1]!) : ends[step]!
}

/** The first step that starts at or after a time; `count` if none does. */
function stepFrom(starts: Float64Array, count: number, atNs: number): number {
  return firstIndex(0, count, (step) => starts[step]! >= atNs)
}
