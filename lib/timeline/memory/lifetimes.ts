import type { Life, Plan } from '../../analyze/graph/plan.ts'
import type { GraphRun } from '../../analyze/graph/runs.ts'
import { firstIndex } from '../../bytes/search.ts'
import type { Arg } from '../../model/args.ts'
import type { CopyEvent, TokenEvent } from '../../model/events.ts'
import { parseTensorName } from '../../model/tensors.ts'
import type { ArgSet, Label } from '../../sink/label.ts'
import type { TrackContext } from '../context.ts'
import type { Lanes } from '../tracks.ts'
import type { Buffers } from './buffers.ts'
import { Transfers } from './transfers.ts'

/** Offsets of an arena with separate rows; tensors at other offsets share further rows. */
const OFFSET_ROWS_MAX = 64
/** Ends of warm-up calls that are kept. */
const ENDS_MAX = 64

const BEGIN_WORDS = 'first write: start of its graph, or the last use of the tensor before it at this place'
const END_WORDS = 'last read: end of the call, of the graph, or of its place, as no read of it is recorded'

/** Ends of a life that are not recorded. */
const Unknown = { begin: 1, end: 2 } as const

type Sample = readonly [atNs: number, bytes: number]

/** The part of an arena's live bytes that is the same in each graph run of a plan. */
interface ArenaLayout {
  readonly buffer: number
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

interface Arena {
  readonly live: number
  lanes: Map<number, Lanes> | undefined
  /** The group of the rows. */
  group: number
  others: Lanes | undefined
}

/** Draws the lives of tensors in compute arenas: the live bytes as a counter, and each life as a slice. */
export class Lifetimes {
  private readonly transfers = new Transfers()
  private readonly arenas = new Map<number, Arena>()
  private readonly callEnds = new Map<number, number>()
  private readonly otherEnds: number[] = []
  private readonly labels = new WeakMap<Life, Label[]>()
  private readonly layouts = new WeakMap<Plan, Layout>()
  /** By step of the current graph run: the change of the live bytes. */
  private deltas = new Float64Array(256)
  /** By index of its lives: begins and ends, and bits of {@link Unknown}. */
  private begins = new Float64Array(256)
  private ends = new Float64Array(256)
  private unknowns = new Uint8Array(256)

  constructor(
    private readonly context: TrackContext,
    private readonly buffers: Buffers,
    private readonly draws: boolean,
  ) {}

  /** Keeps the end of a call, which is after the ends of its graph runs. */
  token({ call, endNs }: TokenEvent): void {
    if (call >= 0) this.callEnds.set(call, endNs)
    else if (this.otherEnds.push(endNs) > ENDS_MAX) this.otherEnds.shift()
  }

  copy(event: CopyEvent): void {
    if (event.tensor >= 0) this.transfers.add(this.context.views.root(event.tensor), event)
  }

  /** Draws a graph run; `next`: the next one of the same call, if any. */
  run(run: GraphRun, plan: Plan, next: GraphRun | undefined): void {
    const untilNs = this.endOf(run, next)
    if (plan.lives.length > this.begins.length || run.count > this.deltas.length)
      this.grow(plan.lives.length + run.count)
    const layout = this.layoutOf(plan)
    const timed = this.draws ? plan.lives : layout.unsteady
    for (const life of timed) this.begin(life, run)
    for (const life of timed) this.end(life, run, untilNs)
    for (const arena of layout.arenas) this.sample(arena, run)
    if (!this.draws) return
    const { begins, ends, unknowns } = this
    for (const life of plan.lives) {
      const { index } = life
      this.lane(life).place(begins[index]!, ends[index]!, this.label(life, unknowns[index]!))
    }
  }

  private layoutOf(plan: Plan): Layout {
    const known = this.layouts.get(plan)
    const { tensorsRead } = this.transfers
    if (known?.tensorsRead === tensorsRead) return known
    const isSteady = ({ birth, last, copies, tensor }: Life) =>
      birth >= 0 && last >= 0 && copies.length === 0 && !this.transfers.areRead(tensor)
    const arenas = [...plan.arenas].map(([buffer, lives]) => {
      const steady = new Float64Array(plan.nodes.length + 1)
      for (const { birth, last, cut, bytes } of lives.filter(isSteady)) {
        steady[birth]! += bytes
        steady[cut >= 0 ? Math.min(cut, last + 1) : last + 1]! -= bytes
      }
      return { buffer, steady, unsteady: lives.filter((life) => !isSteady(life)) }
    })
    const layout = { tensorsRead, arenas, unsteady: plan.lives.filter((life) => !isSteady(life)) }
    this.layouts.set(plan, layout)
    return layout
  }

  /** The time until which results without a reader are kept. */
  private endOf(run: GraphRun, next: GraphRun | undefined): number {
    const runEndNs = run.ends[run.count - 1]!
    if (next) return runEndNs // the next graph run reuses the memory
    if (run.call < 0) return this.otherEnds.find((endNs) => endNs >= runEndNs) ?? runEndNs
    const endNs = this.callEnds.get(run.call) ?? runEndNs
    this.callEnds.delete(run.call)
    return Math.max(endNs, runEndNs)
  }

  private begin({ index, tensor, birth, after, last }: Life, run: GraphRun): void {
    this.unknowns[index] = 0
    if (birth >= 0) {
      this.begins[index] = run.starts[birth]!
      return
    }
    const written = this.transfers.written(tensor, run.starts[Math.max(last, 0)]!)
    if (!written) this.unknowns[index] = Unknown.begin
    const earliestNs = after < 0 ? -Infinity : run.ends[after]!
    this.begins[index] = Math.max(earliestNs, written?.startNs ?? run.starts[0]!)
  }

  private end({ index, tensor, last, cut, copies }: Life, run: GraphRun, untilNs: number): void {
    const beginNs = this.begins[index]!
    let endNs = last < 0 ? -Infinity : stepEnd(run, last)
    if (this.transfers.areRead(tensor)) {
      endNs = Math.max(endNs, this.transfers.readUntil(tensor, beginNs, untilNs))
    }
    for (const copy of copies) endNs = Math.max(endNs, this.begins[copy.index]!)
    if (endNs === -Infinity) {
      this.unknowns[index]! |= Unknown.end
      endNs = untilNs
    }
    if (cut >= 0) endNs = Math.min(endNs, run.starts[cut]!)
    this.ends[index] = Math.max(endNs, beginNs)
  }

  /** Samples an arena's live bytes: where inputs are written, at each step that changes them, and where outputs end. */
  private sample({ buffer, steady, unsteady }: ArenaLayout, run: GraphRun): void {
    const { begins, ends, deltas } = this
    const { starts, count } = run
    const { live } = this.arena(buffer, starts[0]!)
    deltas.set(steady)
    const early: Sample[] = []
    const late: Sample[] = []
    if (steady[count]! < 0) late.push([run.ends[count - 1]!, steady[count]!])
    for (const { index, birth, last, bytes } of unsteady) {
      const [beginNs, endNs] = [begins[index]!, ends[index]!]
      if (beginNs < starts[0]!) early.push([beginNs, bytes])
      else {
        const born = birth >= 0 ? birth : stepFrom(starts, count, beginNs)
        if (born < count) deltas[born]! += bytes
      }
      const dead = last >= 0 && endNs === stepEnd(run, last) ? last + 1 : stepFrom(starts, count, endNs)
      if (dead < count) deltas[dead]! -= bytes
      else late.push([endNs, -bytes])
    }
    let sum = this.sampleAll(live, early, 0)
    for (let step = 0; step < count; step++) {
      if (deltas[step] === 0) continue
      sum += deltas[step]!
      this.context.writer.counter(live, starts[step]!, sum)
    }
    this.sampleAll(live, late, sum)
  }

  private sampleAll(live: number, samples: Sample[], from: number): number {
    let sum = from
    for (const [atNs, bytes] of samples.sort((a, b) => a[0] - b[0])) {
      sum += bytes
      this.context.writer.counter(live, atNs, sum)
    }
    return sum
  }

  private grow(size: number): void {
    this.deltas = new Float64Array(2 * size)
    this.begins = new Float64Array(2 * size)
    this.ends = new Float64Array(2 * size)
    this.unknowns = new Uint8Array(2 * size)
  }

  private arena(id: number, atNs: number): Arena {
    const known = this.arenas.get(id)
    if (known) return known
    const { tracks, writer } = this.context
    const of = this.buffers.get(id)
    const live = tracks.add('live', of)
    const { sizeBytes } = of.event
    if (sizeBytes !== undefined) writer.counter(tracks.add('size', of), atNs, sizeBytes)
    const arena: Arena = { live, lanes: undefined, group: 0, others: undefined }
    this.arenas.set(id, arena)
    return arena
  }

  private lane({ buffer, offset }: Life): Lanes {
    const { tracks } = this.context
    const arena = this.arenas.get(buffer)!
    arena.lanes ??= this.addGroup(arena, buffer)
    const known = arena.lanes.get(offset)
    if (known) return known
    if (arena.lanes.size >= OFFSET_ROWS_MAX) {
      arena.others ??= tracks.lanes('otherTensors', { rowsMax: OFFSET_ROWS_MAX }, false, arena.group)
      return arena.others
    }
    const lane = tracks.lanes('tensors', { offset }, false, arena.group)
    arena.lanes.set(offset, lane)
    return lane
  }

  private addGroup(arena: Arena, buffer: number): Map<number, Lanes> {
    arena.group = this.context.tracks.add('arena', this.buffers.get(buffer))
    return new Map()
  }

  private label(life: Life, unknown: number): Label {
    let labels = this.labels.get(life)
    if (!labels) {
      labels = []
      this.labels.set(life, labels)
    }
    labels[unknown] ??= { name: this.nameOf(life), category: 'tensor', args: this.args(life, unknown) }
    return labels[unknown]
  }

  private nameOf({ tensor }: Life): number {
    const { names, tensors } = this.context
    const { name, op } = tensors[tensor]!
    const text = names.text(name)
    return names.id(parseTensorName(text).role || names.text(op) || text || 'tensor')
  }

  private args(life: Life, unknown: number): ArgSet | undefined {
    const { make, tensors, detail } = this.context
    if (detail === 'names') return undefined
    const { name, op, layer, address } = tensors[life.tensor]!
    const args: Arg[] = [make.arg('tensor', { name })]
    if (op !== 0) args.push(make.arg('op', { name: op }))
    if (layer >= 0) args.push(make.int('layer', layer))
    args.push(make.int('bytes', life.bytes), make.int('offset', life.offset))
    if (detail === 'full' && address > 0) args.push(make.arg('address', { pointer: address }))
    const reader = tensors[life.lastReader]
    if (reader) args.push(make.arg('last_reader', { name: reader.name }))
    const words = [(unknown & Unknown.begin) !== 0 && BEGIN_WORDS, (unknown & Unknown.end) !== 0 && END_WORDS]
    const inferred = words.filter(Boolean).join('; ')
    if (inferred) args.push(make.word('inferred', inferred))
    return make.set(args)
  }
}

/** The end of a step. There is a barrier before the next step, but the clocks of CPUs differ by some ns. */
function stepEnd({ ends, starts, count }: GraphRun, step: number): number {
  return step + 1 < count ? Math.min(ends[step]!, starts[step + 1]!) : ends[step]!
}

/** The first step that starts at or after a time; `count` if none does. */
function stepFrom(starts: Float64Array, count: number, atNs: number): number {
  return firstIndex(0, count, (step) => starts[step]! >= atNs)
}
