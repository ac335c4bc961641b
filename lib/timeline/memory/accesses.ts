import type { AccessHit, JoinedAccesses } from '../../analyze/graph/accesses/join.ts'
import type { AccessWhat } from '../../model/access-events.ts'
import type { Arg } from '../../model/args.ts'
import { DefaultMap } from '../../model/default-map.ts'
import { parseTensorName } from '../../model/tensors.ts'
import type { TrackContext } from '../context.ts'

/** Rows of roles; further roles share the last one. */
const ROLES_MAX = 32
/** Intervals of the whole time, about; the shortest one. */
const [INTERVALS, INTERVAL_NS_MIN] = [1000, 1e5]
const OTHERS = 'other tensors'
const NOWHERE = 'no tensor'

const WORDS: Readonly<Record<AccessWhat, string>> = {
  fault: 'page faults',
  'minor-fault': 'minor faults',
  'major-fault': 'major faults',
  load: 'loads',
  store: 'stores',
  other: 'accesses',
}

/** Samples of one row in one interval. */
interface Cell {
  samples: number
  events: number
  latencies: number
  cycles: number
  readonly levels: Map<string, number>
  /** Samples by tensor. */
  readonly tensors: Map<number, number>
}

/** Draws samples of data addresses: their number over time, and a row for each role of tensors. */
export class AccessRows {
  private firstNs = Infinity
  private widthNs = INTERVAL_NS_MIN

  /** `timeOf`: a time of the log in the trace's. */
  constructor(
    private readonly context: TrackContext,
    private readonly joined: JoinedAccesses,
    private readonly timeOf: (ns: number) => number,
  ) {}

  draw(): void {
    const rows = this.rows()
    if (this.firstNs === Infinity) return
    const rates = new DefaultMap<string, Map<number, number>>(() => new Map())
    const cells = new DefaultMap<string, Map<number, Cell>>(() => new Map())
    for (const hit of this.joined.hits()) {
      const at = Math.floor((hit.atNs - this.firstNs) / this.widthNs)
      const { what, level, count } = hit.sample
      for (const series of [WORDS[what], ...(level === '' ? [] : [`${WORDS[what]} from ${level}`])]) {
        const rate = rates.of(series)
        rate.set(at, (rate.get(at) ?? 0) + count)
      }
      const role = this.roleOf(hit)
      addTo(cells.of(rows.has(role) ? role : OTHERS), at, hit)
    }
    for (const [nth, [what, rate]] of [...rates].sort().entries()) this.drawRate(nth, what, rate)
    const drawn = [...rows, OTHERS].filter((role) => cells.has(role))
    for (const [nth, role] of drawn.entries()) this.drawRow(nth, role, cells.get(role)!)
  }

  /** Roles with a row, most events first, then what is in no tensor. Finds the interval, too. */
  private rows(): Set<string> {
    const events = new Map<string, number>()
    let lastNs = -Infinity
    for (const hit of this.joined.hits()) {
      this.firstNs = Math.min(this.firstNs, hit.atNs)
      lastNs = Math.max(lastNs, hit.atNs)
      const role = this.roleOf(hit)
      events.set(role, (events.get(role) ?? 0) + hit.sample.count)
    }
    while (this.widthNs * INTERVALS < lastNs - this.firstNs) this.widthNs *= 2
    events.delete(NOWHERE)
    const most = [...events].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1))
    return new Set([...most.slice(0, ROLES_MAX).map(([role]) => role), NOWHERE])
  }

  private roleOf({ tensor }: AccessHit): string {
    if (tensor < 0) return NOWHERE
    const { names, tensors, buffers } = this.joined
    const name = names.text(tensors[tensor]!.name)
    const role = parseTensorName(name).role || name || OTHERS
    return buffers.get(tensors[tensor]!.buffer)?.usage === 'compute' ? `${role} (result)` : role
  }

  /** Samples where the rate changes; 0 in intervals without any. */
  private drawRate(nth: number, what: string, rate: ReadonlyMap<number, number>): void {
    const { tracks, writer } = this.context
    const track = tracks.add('accessRate', { nth, what })
    for (const [at, events] of [...rate].sort((a, b) => a[0] - b[0])) {
      writer.counter(track, this.startOf(at), (events * 1e6) / this.widthNs)
      if (!rate.has(at + 1)) writer.counter(track, this.startOf(at + 1), 0)
    }
  }

  private drawRow(nth: number, role: string, cells: ReadonlyMap<number, Cell>): void {
    const { tracks, make } = this.context
    const row = tracks.lanes('accessRole', { nth, tensors: role })
    for (const [at, cell] of [...cells].sort((a, b) => a[0] - b[0])) {
      const power = Math.floor(Math.log2(Math.max(cell.events, 1)))
      const name = make.names.id(power === 0 ? '1' : `${2 ** power} to ${2 ** (power + 1) - 1}`)
      const colour = make.names.id(`heat ${'x'.repeat(power)}`)
      const extra = make.shown(this.args(cell))
      row.place(this.startOf(at), this.startOf(at + 1), { name, category: 'access', colour, extra })
    }
  }

  private args({ samples, events, latencies, cycles, levels, tensors }: Cell): Arg[] {
    const { make } = this.context
    const args = [make.int('samples', samples), make.int('events', events)]
    const most = (counts: ReadonlyMap<number, number>) => [...counts].reduce((a, b) => (b[1] > a[1] ? b : a))[0]
    if (tensors.size > 0) {
      const { name, layer } = this.joined.tensors[most(tensors)]!
      args.push(make.name('tensor', name))
      if (layer >= 0) args.push(make.int('layer', layer))
      args.push(make.int('tensors', tensors.size))
    }
    for (const [level, count] of levels) args.push(make.int(`from_${level.replace(/\W/g, '_')}`, count))
    if (latencies > 0) args.push(make.int('mean_latency_cycles', Math.round(cycles / latencies)))
    return args
  }

  private startOf(at: number): number {
    return this.timeOf(this.firstNs + at * this.widthNs)
  }
}

function addTo(cells: Map<number, Cell>, at: number, { sample, tensor }: AccessHit): void {
  let cell = cells.get(at)
  if (!cell) {
    cell = { samples: 0, events: 0, latencies: 0, cycles: 0, levels: new Map(), tensors: new Map() }
    cells.set(at, cell)
  }
  cell.samples++
  cell.events += sample.count
  if (tensor >= 0) cell.tensors.set(tensor, (cell.tensors.get(tensor) ?? 0) + 1)
  if (sample.level !== '') cell.levels.set(sample.level, (cell.levels.get(sample.level) ?? 0) + 1)
  if (sample.latency < 0) return
  cell.latencies++
  cell.cycles += sample.latency
}
