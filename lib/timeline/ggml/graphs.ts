import { layerOf } from '../../analyze/graph/layers.ts'
import type { Arg } from '../../model/args.ts'
import { isFailed, statusWord } from '../../model/calls.ts'
import { DefaultMap } from '../../model/default-map.ts'
import {
  type CopyEvent,
  type FunctionEvent,
  type GraphEvent,
  type GraphNodesEvent,
  Inferred,
  type PartEvent,
  type SumsEvent,
  type TokenEvent,
} from '../../model/events.ts'
import { GraphDefinitions } from '../../model/graph-nodes.ts'
import type { Names } from '../../model/names.ts'
import type { Label } from '../../sink/label.ts'
import { submissionArrows } from '../arrow-ids.ts'
import type { TrackContext } from '../context.ts'
import { labelOf, PALE } from '../labels.ts'
import type { Lanes } from '../tracks.ts'
import { Sums } from './sums.ts'

/** Slices that wait for the end of their call. */
const HELD_MAX = 1 << 15
/** Copies, and waits for backends, of one thread that are held. */
const COPIES_MAX = 4096
/** Shorter stretches between slices, and shorter copies, are not drawn: there is one after each split. */
const STRETCH_NS_MIN = 1000

/** Ops that a slice of a split names, those with most nodes. */
const OPS_MAX = 6

const OUTSIDE = 'time of the call in which no graph ran: what it did then is not recorded'
const BUILD = 'time of the call before it allocates a graph; contains dividing the batch and preparing the KV cache'
const PART_NAMES = { allocate: 'allocate', reserve: 'reserve memory', recorder: 'recorder: describe graph' } as const

interface Piece {
  readonly startNs: number
  readonly endNs: number
  readonly label: Label
  /** Of a {@link PartEvent}. */
  readonly what?: PartEvent['what']
}

/** Name of the slice of a graph, as an id of the names. */
export function graphName({ backend, status }: GraphEvent, names: Names): number {
  const text = names.text(backend)
  const failed = status ? ` failed (${status}: ${statusWord(status)})` : ''
  return names.id(`${text ? `${text} ` : ''}graph${failed}`)
}

/** Name of the slice of a part; 0 if it is too short to be drawn. */
export function partName({ what, startNs, endNs }: PartEvent, names: Names): number {
  return endNs - startNs < STRETCH_NS_MIN ? 0 : names.id(PART_NAMES[what])
}

/**
 * The Graphs row: each split of a graph, and between them the rest of the time of its call, so that the row covers the call. A log
 * contains a call after its graphs and parts: they are held until then.
 */
export class Graphs {
  private readonly lanes: Lanes
  /** Graphs and parts by call; -1: of calls without a number, which are found by time. */
  private readonly held = new DefaultMap<number, Piece[]>(() => [])
  private heldCount = 0
  private readonly usedBackends = new Set<number>()
  private hasGraphs = false
  /** By thread: copies, and waits for backends. */
  private readonly copies = new DefaultMap<number, Piece[]>(() => [])

  /** By graph, arguments that say where it is in the model. */
  private readonly places = new Map<number, readonly Arg[]>()
  private readonly definitions = new GraphDefinitions()
  private readonly sums: Sums

  constructor(private readonly context: TrackContext) {
    this.sums = new Sums(context)
    this.lanes = context.tracks.lanes('graphs', {}, true)
  }

  define(event: GraphNodesEvent): void {
    if (this.context.detail === 'full') this.definitions.add(event)
  }

  /** The layers and ops of a graph, found at its first run: all of its nodes are defined then. */
  private placeOf(graph: number): readonly Arg[] {
    const definition = this.definitions.take(graph)
    if (!definition) return this.places.get(graph) ?? []
    const { tensors, names, make } = this.context
    const ops = new DefaultMap<number, { count: number }>(() => ({ count: 0 }))
    let [first, last] = [Infinity, -1]
    for (const node of definition.nodes) {
      const tensor = tensors[node]
      if (!tensor) continue
      ops.of(tensor.op).count++
      const layer = layerOf(tensor, tensors, names)
      if (layer >= 0) [first, last] = [Math.min(first, layer), Math.max(last, layer)]
    }
    const most = [...ops].sort((a, b) => b[1].count - a[1].count).slice(0, OPS_MAX)
    const layers = last < 0 ? 'none' : first === last ? `${first}` : `${first}–${last}`
    const texts = most.map(([op, { count }]) => `${names.text(op)} ${count}`)
    const place = [make.word('layers', layers), make.word('ops', texts.join(', '))]
    this.places.set(graph, place)
    return place
  }

  /** Adds the compute of a split. */
  add(event: GraphEvent): void {
    const { startNs, endNs, call, status, split, nodes } = event
    const { make } = this.context
    const backend = make.names.text(event.backend)
    const extra = [make.int('operators', nodes)]
    if (backend) extra.push(make.name('backend', event.backend))
    if (call >= 0) extra.push(make.int('call', call))
    if (split !== undefined && split >= 0) extra.push(make.int('split', split))
    if (status) extra.push(make.int('status', status))
    extra.push(...this.placeOf(event.graph ?? -1), ...make.inferred(event.inferred))
    const name = graphName(event, make.names)
    this.hasGraphs = true
    if (backend) this.usedBackends.add(event.backend)
    const arrows = event.submissions?.map((id) => submissionArrows(this.context.input, id))
    const arrowsIn = call >= 0 ? arrows?.slice(0, 1).map((arrow) => arrow.fromCall) : undefined
    const arrowsOut = arrows?.map((arrow) => arrow.fromGraph)
    this.hold(call, {
      ...{ startNs, endNs },
      label: labelOf(name, 'graph', make.shown(extra), undefined, arrowsOut, arrowsIn),
    })
  }

  /** Draws sums of graphs and parts. */
  placeSums(event: SumsEvent): void {
    this.sums.place(event, this.lanes)
  }

  /** Adds a part of a call. */
  part(event: PartEvent): void {
    const { what, startNs, endNs, call } = event
    const { make, detail } = this.context
    const name = partName(event, make.names)
    if (name === 0) return
    const ofCall = call >= 0 ? [make.int('call', call)] : []
    const extra = detail === 'names' ? undefined : ofCall
    this.hold(call, { startNs, endNs, what, label: labelOf(name, 'outside', extra) })
  }

  /** Time of a call, before it is drawn, that the recorder took to describe graphs. */
  recorderNs({ call, startNs, endNs }: TokenEvent): number {
    let sumNs = 0
    for (const piece of this.held.get(call) ?? [])
      if (piece.what === 'recorder' && piece.startNs >= startNs && piece.endNs <= endNs)
        sumNs += piece.endNs - piece.startNs
    return sumNs
  }

  /** Arrows from a call, before it is drawn, to its graph runs that submitted work to a GPU. */
  arrowsOf({ call }: TokenEvent): readonly number[] {
    return call < 0 ? [] : (this.held.get(call) ?? []).flatMap(({ label }) => label.arrowsIn ?? [])
  }

  /** Names of the backends of all graphs, in order of first use. */
  get backends(): readonly string[] {
    return [...this.usedBackends].map((backend) => this.context.names.text(backend))
  }

  /** Adds a copy inside a call. */
  copy({ what, startNs, endNs, bytes, tid }: CopyEvent): void {
    if (endNs - startNs < STRETCH_NS_MIN) return
    const { make } = this.context
    const extra = make.shown([make.word('what', what), make.int('bytes', bytes)])
    this.within(tid, { startNs, endNs, label: labelOf(make.names.id('copy'), 'outside', extra) })
  }

  /** Adds a wait for a backend inside a call. */
  wait({ name, startNs, endNs, tid }: FunctionEvent): void {
    if (name === 0 || endNs - startNs < STRETCH_NS_MIN) return
    const { make } = this.context
    const title = make.names.id(`waiting for ${make.names.text(name)}`)
    this.within(tid, { startNs, endNs, label: labelOf(title, 'outside', undefined, make.names.id(PALE)) })
  }

  private within(tid: number, piece: Piece): void {
    const pieces = this.copies.of(tid)
    if (pieces.push(piece) > COPIES_MAX) pieces.shift()
  }

  /** Draws a call: its graphs and parts, and the time between them. Calls come in order. */
  call(event: TokenEvent): void {
    const { startNs, endNs, batch } = event
    const graphs = this.graphsOf(event)
    const copies = this.copiesOf(event)
    // Without a graph, either nothing was computed, or graphs were not recorded.
    const isKnown = graphs.length > 0 || (this.hasGraphs && isFailed(event) && !batch?.isLeftOut)
    if (!isKnown) return
    const pieces = [...graphs, ...copies].sort((a, b) => a.startNs - b.startNs)
    let untilNs = startNs
    for (const [i, piece] of pieces.entries()) {
      const isGraph = piece.label.category === 'graph'
      const isWithin = piece.startNs >= untilNs && piece.endNs <= (pieces[i + 1]?.startNs ?? endNs)
      if (!isGraph && !isWithin) continue
      this.stretch(event, untilNs, piece)
      this.place(piece)
      untilNs = Math.max(untilNs, piece.endNs)
    }
    this.stretch(event, untilNs, { startNs: endNs })
  }

  /** Draws the graphs whose calls are not in the log. */
  finish(): void {
    const rest = [...this.held.values()].flat().sort((a, b) => a.startNs - b.startNs)
    for (const piece of rest) this.place(piece)
    this.held.clear()
    this.heldCount = 0
  }

  private hold(call: number, piece: Piece): void {
    this.held.of(call).push(piece)
    if (++this.heldCount > HELD_MAX) this.finish()
  }

  /** Removes and returns the graphs of a call. Draws those before it that have no call. */
  private graphsOf({ call, startNs, endNs }: TokenEvent): readonly Piece[] {
    const numbered = call < 0 ? [] : (this.held.get(call) ?? [])
    const others = this.held.get(-1) ?? []
    this.held.delete(call)
    this.held.delete(-1)
    const own = [...numbered]
    const later: Piece[] = []
    for (const piece of others) {
      if (piece.startNs >= startNs && piece.endNs <= endNs) own.push(piece)
      else if (piece.endNs > startNs) later.push(piece)
      else this.place(piece)
    }
    if (later.length > 0) this.held.set(-1, later)
    this.heldCount -= numbered.length + others.length - later.length
    return own
  }

  private copiesOf({ tid, startNs, endNs }: TokenEvent): readonly Piece[] {
    const copies = this.copies.get(tid) ?? []
    const later = copies.filter((copy) => copy.endNs > endNs)
    if (later.length > 0) this.copies.set(tid, later)
    else this.copies.delete(tid)
    return copies.filter((copy) => copy.startNs >= startNs && copy.endNs <= endNs)
  }

  private place({ startNs, endNs, label }: Piece): void {
    this.lanes.place(startNs, endNs, label)
  }

  /** Draws a stretch of a call that ends with the start of `next`. A scheduler that computes a graph did not build it in that call. */
  private stretch({ call, inferred }: TokenEvent, startNs: number, next: Pick<Piece, 'startNs' | 'what'>): void {
    if (next.startNs - startNs < STRETCH_NS_MIN) return
    const { make } = this.context
    const builds = (next.what === 'allocate' || next.what === 'reserve') && (inferred & Inferred.Call) === 0
    const extra = [make.word('inferred', builds ? BUILD : OUTSIDE)]
    if (call >= 0) extra.unshift(make.int('call', call))
    const name = make.names.id(builds ? 'build graph' : 'outside graphs')
    const colour = builds ? undefined : make.names.id(PALE)
    this.lanes.place(startNs, next.startNs, labelOf(name, 'outside', make.shown(extra), colour))
  }
}
