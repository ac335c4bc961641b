import { type ArenaLayout, Lifetimes, UnknownEnds } from '../../analyze/graph/lifetimes.ts'
import type { Life, Plan } from '../../analyze/graph/plan.ts'
import type { GraphRun } from '../../analyze/graph/runs.ts'
import type { Arg } from '../../model/args.ts'
import { getOrMake } from '../../model/default-map.ts'
import type { CopyEvent, TokenEvent } from '../../model/events.ts'
import { parseTensorName } from '../../model/tensors.ts'
import { threeDigits } from '../../model/units.ts'
import type { ArgSet, Label } from '../../sink/label.ts'
import type { TrackContext } from '../context.ts'
import { CounterLine } from '../counter-line.ts'
import type { Lanes } from '../tracks.ts'
import type { Buffers } from './buffers.ts'

/** Offsets of an arena with separate rows; tensors at other offsets share further rows. */
const OFFSET_ROWS_MAX = 64

const BEGIN_WORDS = 'first write: start of its graph, or the last use of the tensor before it at this place'
const END_WORDS = 'last read: end of the call, of the graph, or of its place, as no read of it is recorded'

interface Arena {
  readonly live: CounterLine
  lanes: Map<number, Lanes> | undefined
  /** Offsets as the names of its rows have them. */
  readonly places: Set<string>
  /** The group of the rows. */
  group: number
  others: Lanes | undefined
}

/** Draws the lives of tensors in compute arenas: the live bytes as a counter, and each life as a slice. */
export class Lives {
  private readonly times: Lifetimes
  private readonly arenas = new Map<number, Arena>()
  private readonly labels = new WeakMap<Life, Label[]>()

  constructor(
    private readonly context: TrackContext,
    private readonly buffers: Buffers,
    private readonly draws: boolean,
  ) {
    this.times = new Lifetimes(context.views)
  }

  token(event: TokenEvent): void {
    this.times.token(event)
  }

  copy(event: CopyEvent): void {
    this.times.copy(event)
  }

  /** Draws a graph run; `next`: the next one of the same call, if any. */
  run(run: GraphRun, plan: Plan, next: GraphRun | undefined): void {
    for (const arena of this.times.run(run, plan, next !== undefined, this.draws)) this.sample(arena, run)
    if (!this.draws) return
    const { begins, ends, unknowns } = this.times
    for (const life of plan.lives) {
      const { index } = life
      this.lane(life).place(begins[index]!, ends[index]!, this.label(life, unknowns[index]!))
    }
  }

  finish(): void {
    for (const { live } of this.arenas.values()) live.finish()
  }

  private sample(arena: ArenaLayout, run: GraphRun): void {
    const { live } = this.arena(arena.buffer, run.startNs[0]!)
    this.times.live(arena, run, (atNs, bytes) => live.sample(atNs, bytes))
  }

  private arena(id: number, atNs: number): Arena {
    const known = this.arenas.get(id)
    if (known) return known
    const { tracks, writer, detail } = this.context
    const buffer = this.buffers.get(id)
    const live = new CounterLine(writer, tracks.add('live', buffer), detail)
    const { sizeBytes } = buffer.event
    if (sizeBytes !== undefined) writer.counter(tracks.add('size', buffer), atNs, sizeBytes)
    const arena: Arena = { live, lanes: undefined, places: new Set(), group: 0, others: undefined }
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
    const place = offsetText(offset, arena.places)
    arena.places.add(place)
    const lane = tracks.lanes('tensors', { offset, place }, false, arena.group)
    arena.lanes.set(offset, lane)
    return lane
  }

  private addGroup(arena: Arena, buffer: number): Map<number, Lanes> {
    arena.group = this.context.tracks.add('arena', this.buffers.get(buffer))
    return new Map()
  }

  private label(life: Life, unknown: number): Label {
    const labels = getOrMake(this.labels, life, () => [])
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
    const args: Arg[] = [make.name('tensor', name)]
    if (op !== 0) args.push(make.name('op', op))
    if (layer >= 0) args.push(make.int('layer', layer))
    args.push(make.int('bytes', life.bytes), make.int('offset', life.offset))
    if (detail === 'full' && address > 0) args.push(make.arg('address', { pointer: address }))
    const reader = tensors[life.lastReader]
    if (reader) args.push(make.name('last_reader', reader.name))
    const words = [(unknown & UnknownEnds.begin) !== 0 && BEGIN_WORDS, (unknown & UnknownEnds.end) !== 0 && END_WORDS]
    const inferred = words.filter(Boolean).join('; ')
    if (inferred) args.push(make.word('inferred', inferred))
    return make.set(args)
  }
}

/** `1.05 MB`, in the units that the viewer has for bytes; `1.04864 MB`, exact, if another row has that name: rows of one name would be one row. */
function offsetText(bytes: number, taken: ReadonlySet<string>): string {
  if (bytes < 1e3) return `${bytes}`
  const [scale, unit] = bytes < 1e6 ? [1e3, 'KB'] : [1e6, 'MB']
  const texts = [threeDigits(bytes / scale), `${bytes / scale}`].map((number) => `${number} ${unit}`)
  return texts.find((text) => !taken.has(text)) ?? `${bytes}`
}
