import { type AccessWhat, DATA_LEVELS, type DataLevel } from '../../model/access-events.ts'
import { DefaultMap } from '../../model/default-map.ts'
import type { BufferUsage, Phase } from '../../model/events.ts'
import { parseTensorName } from '../../model/tensors.ts'
import type { Undetermined } from '../common/figures.ts'
import type { AccessHit, JoinedAccesses } from '../graph/accesses/join.ts'
import type { AccessSample } from '../graph/accesses/store.ts'
import type {
  AccessFigures,
  AccessTime,
  DataAccessFigures,
  LevelAccesses,
  PageFaultFigures,
  RoleAccesses,
  RoleLayerAccesses,
  TensorAccesses,
  WeightFaults,
} from './figures.ts'

const [TENSORS_MAX, PLACES_MAX, ROLES_MAX, NAMED_MAX] = [64, 16, 32, 16]
/** Bytes of a page, of the smallest size: perf records addresses of bytes. */
const PAGE_BYTES = 4096
const FAULTS: ReadonlySet<AccessWhat> = new Set(['fault', 'minor-fault', 'major-fault'])
const MEMORY: ReadonlySet<DataLevel> = new Set(['DRAM', 'remote DRAM', 'PMEM', 'CXL'])
const OTHERS = 'other places'

/** The parts of an Analysis about samples of data addresses. */
export interface AccessParts {
  readonly page_faults: PageFaultFigures | null
  readonly data_accesses: DataAccessFigures | null
  readonly undetermined: readonly Undetermined[]
}

/** Without samples. */
export const NO_ACCESSES: AccessParts = { page_faults: null, data_accesses: null, undetermined: [] }

/** Sums the samples of data addresses of a log's process. */
export function accessParts(joined: JoinedAccesses): AccessParts {
  const [faults, data] = [new FaultSums(joined), new DataSums(joined)]
  for (const hit of joined.hits()) (FAULTS.has(hit.sample.what) ? faults : data).add(hit)
  const why = 'the log does not contain the addresses of its tensors'
  return {
    page_faults: faults.samples > 0 ? faults.finish() : null,
    data_accesses: data.samples > 0 ? data.finish() : null,
    undetermined: joined.hasAddresses
      ? []
      : [{ what: 'page_faults.by_tensor', why, hint: 'record the run with ggml2perfetto record' }],
  }
}

/** Latencies of samples, as far as they were recorded. */
class Latencies {
  private count = 0
  private cycles = 0

  add(latency: number): void {
    if (latency < 0) return
    this.count++
    this.cycles += latency
  }

  get mean(): number | null {
    return this.count > 0 ? this.cycles / this.count : null
  }
}

interface OfTensor {
  samples: number
  events: number
  readonly pages: Set<number>
  readonly latencies: Latencies
}

/** Sums of events by a key. */
class Events<K> extends DefaultMap<K, { events: number }> {
  constructor() {
    super(() => ({ events: 0 }))
  }

  add(key: K, count: number): void {
    this.of(key).events += count
  }

  /** Keys and events, most first. */
  most(): [K, number][] {
    return [...this].map(([key, { events }]): [K, number] => [key, events]).sort((a, b) => b[1] - a[1])
  }

  /** By ascending keys, which are numbers. */
  ascending(): [K, number][] {
    return this.most().sort((a, b) => Number(a[0]) - Number(b[0]))
  }
}

/** Sums of one kind of accesses. */
class AccessSums {
  samples = 0
  private events = 0
  private readonly names = new Set<number>()
  private readonly times = new Events<AccessTime>()
  private readonly workers = new Events<number>()
  private readonly nodes = new Events<number>()
  private readonly places = new Events<string>()
  /** By name, buffer and place: a tensor has several ids where its op or its shape changes. */
  private readonly tensors = new DefaultMap<string, OfTensor & { id: number }>(() => {
    return { id: -1, samples: 0, events: 0, pages: new Set(), latencies: new Latencies() }
  })
  private readonly keys: string[] = []

  constructor(protected readonly joined: JoinedAccesses) {}

  add({ sample, tensor, place, worker, phase }: AccessHit): void {
    const { count } = sample
    this.samples++
    this.events += count
    this.names.add(sample.event)
    this.times.add(phase, count)
    this.workers.add(worker, count)
    if (sample.node >= 0) this.nodes.add(sample.node, count)
    if (tensor < 0) return this.places.add(place, count)
    const sums = this.tensors.of(this.keyOf(tensor))
    sums.id = tensor
    sums.samples++
    sums.events += count
    // In the tensor's memory, or in its mapped file.
    sums.pages.add(pageOf(sample.address))
    sums.latencies.add(sample.latency)
  }

  protected figures(): AccessFigures {
    const { joined, samples, events, names, times, workers, nodes } = this
    const tensors = [...this.tensors.values()]
      .sort((a, b) => b.events - a.events)
      .map((tensor) => this.tensorOf(tensor))
    const [usages, layers] = [new Events<BufferUsage | 'none'>(), new Events<number>()]
    for (const { usage, layer, events } of tensors) {
      usages.add(usage, events)
      layers.add(layer, events)
    }
    const inTensors = tensors.reduce((sum, { events }) => sum + events, 0)
    if (events > inTensors) usages.add('none', events - inTensors)
    const further = tensors.slice(TENSORS_MAX)
    return {
      samples,
      events,
      sampled_events: [...names].map((name) => joined.names.text(name)),
      in_tensors: inTensors,
      other_processes: joined.otherProcesses,
      not_held: joined.notHeld,
      by_time: times.most().map(([time, events]) => ({ time, events })),
      by_usage: usages.most().map(([usage, events]) => ({ usage, events })),
      by_tensor: tensors.slice(0, TENSORS_MAX),
      further_tensors: further.length,
      further_events: further.reduce((sum, { events }) => sum + events, 0),
      by_layer: layers.ascending().map(([layer, events]) => ({ layer, events })),
      by_role_layer: byRoleLayer(tensors),
      by_worker: workers.ascending().map(([worker, events]) => ({ worker, events })),
      by_node: nodes.ascending().map(([node, events]) => ({ node, events })),
      elsewhere: bounded(this.places.most()),
    }
  }

  protected usageOf(id: number): BufferUsage | 'none' {
    return this.joined.buffers.get(this.joined.tensors[id]!.buffer)?.usage ?? 'none'
  }

  private keyOf(id: number): string {
    const { buffer, name, offset, address } = this.joined.tensors[id]!
    this.keys[id] ??= `${buffer} ${name} ${offset ?? address}`
    return this.keys[id]
  }

  private tensorOf({ id, samples, events, pages, latencies }: OfTensor & { id: number }): TensorAccesses {
    const { name, layer, offset, sizeBytes } = this.joined.tensors[id]!
    const text = this.joined.names.text(name)
    const described = { tensor: text, role: parseTensorName(text).role || text, layer, usage: this.usageOf(id) }
    const place = { offset: offset ?? null, bytes: sizeBytes }
    return { ...described, ...place, samples, events, pages: pages.size, mean_latency_cycles: latencies.mean }
  }
}

const pageOf = (address: number) => Math.floor(address / PAGE_BYTES)

/** Sums by role and layer, of the roles with most events. */
function byRoleLayer(tensors: readonly TensorAccesses[]): RoleLayerAccesses[] {
  const roles = new Events<string>()
  const cells = new DefaultMap<string, { role: string; usage: TensorAccesses['usage']; layer: number; events: number }>(
    () => ({ role: '', usage: 'none', layer: -1, events: 0 }),
  )
  for (const { role, usage, layer, events } of tensors) {
    roles.add(`${usage} ${role}`, events)
    const cell = cells.of(`${usage} ${role} ${layer}`)
    Object.assign(cell, { role, usage, layer, events: cell.events + events })
  }
  const order = new Map(roles.most().map(([role], i) => [role, i]))
  const at = ({ usage, role }: RoleLayerAccesses) => order.get(`${usage} ${role}`)!
  return [...cells.values()].filter((cell) => at(cell) < ROLES_MAX).sort((a, b) => at(a) - at(b) || a.layer - b.layer)
}

function bounded(places: readonly [string, number][]): { place: string; events: number }[] {
  const shown = places.length > PLACES_MAX ? places.slice(0, PLACES_MAX - 1) : places
  const rest = places.slice(shown.length).reduce((sum, [, events]) => sum + events, 0)
  return [...shown, ...(rest > 0 ? [[OTHERS, rest] as const] : [])].map(([place, events]) => ({ place, events }))
}

interface OfCalls {
  events: number
  again: number
  major: number
  readonly tensors: Events<number>
}

class FaultSums extends AccessSums {
  private readonly kinds = new Events<AccessWhat>()
  private readonly calls = new DefaultMap<Phase, OfCalls>(() => {
    return { events: 0, again: 0, major: 0, tensors: new Events() }
  })
  /** Pages of weights that have faulted. Two weights may share one. */
  private readonly pages = new Set<number>()
  /** The last fault of each thread. */
  private readonly last = new Map<number, AccessSample>()

  override add(hit: AccessHit): void {
    const { phase, tensor, sample } = hit
    if (tensor >= 0 && this.usageOf(tensor) === 'weights') {
      if (phase !== 'load' && phase !== 'between calls') this.inCall(this.calls.of(phase), hit)
      this.pages.add(pageOf(sample.address))
    }
    super.add(hit)
    this.kinds.add(sample.what, sample.count)
    this.last.set(sample.tid, sample)
  }

  private inCall(calls: OfCalls, hit: AccessHit): void {
    const { tensor, sample } = hit
    const { what, count, tid, address } = sample
    if (what === 'major-fault') calls.major += count
    // One fault is a sample of each recorded event: of `page-faults` and of `major-faults`.
    const last = this.last.get(tid)
    if (last?.address === address && last.what !== what) return
    calls.events += count
    if (this.pages.has(pageOf(address))) calls.again += count
    calls.tensors.add(tensor, count)
  }

  finish(): PageFaultFigures {
    const hasKinds = this.kinds.has('major-fault') || this.kinds.has('minor-fault')
    const calls = [...this.calls].map(([phase, { events, again, major, tensors }]): WeightFaults => {
      const most = tensors.most().slice(0, NAMED_MAX)
      const by_tensor = most.map(([id, events]) => {
        const { name, layer } = this.joined.tensors[id]!
        return { tensor: this.joined.names.text(name), layer, events }
      })
      return { phase, events, again, major: hasKinds ? major : null, by_tensor }
    })
    return {
      ...this.figures(),
      by_kind: this.kinds.most().map(([kind, events]) => ({ kind, events })),
      weights_in_calls: calls.sort((a, b) => b.events - a.events),
    }
  }
}

interface OfLoads {
  samples: number
  events: number
  readonly latencies: Latencies
}

const noLoads = (): OfLoads => ({ samples: 0, events: 0, latencies: new Latencies() })

class DataSums extends AccessSums {
  private readonly whats = new Events<AccessWhat>()
  private readonly levels = new DefaultMap<DataLevel, OfLoads>(noLoads)
  private readonly roles = new DefaultMap<string, OfLoads & { id: number; memory: number }>(() => {
    return { ...noLoads(), id: -1, memory: 0 }
  })
  private translated = 0
  private walked = 0

  override add(hit: AccessHit): void {
    super.add(hit)
    const { sample, tensor } = hit
    const { what, count, level, latency, tlb } = sample
    this.whats.add(what, count)
    if (what !== 'load') return
    const loads = this.levels.of(level)
    loads.samples++
    loads.events += count
    loads.latencies.add(latency)
    if (tlb !== '') this.translated += count
    if (tlb === 'walk' || tlb === 'fault' || tlb === 'miss') this.walked += count
    if (tensor < 0) return
    const role = this.roles.of(`${this.usageOf(tensor)} ${this.roleOf(tensor)}`)
    role.id = tensor
    role.samples++
    role.events += count
    role.latencies.add(latency)
    if (MEMORY.has(level)) role.memory += count
  }

  finish(): DataAccessFigures {
    const { levels, roles, whats, translated, walked } = this
    const loads = whats.get('load')?.events ?? 0
    const byRole = [...roles.values()].sort((a, b) => b.events - a.events).slice(0, ROLES_MAX)
    return {
      ...this.figures(),
      loads,
      stores: whats.get('store')?.events ?? 0,
      by_level: DATA_LEVELS.flatMap((level): LevelAccesses[] => {
        const ofLoads = levels.get(level)
        if (!ofLoads) return []
        const { samples, events, latencies } = ofLoads
        return [{ level, samples, events, share: events / loads, mean_latency_cycles: latencies.mean }]
      }),
      tlb_miss_share: translated > 0 ? walked / translated : null,
      by_role: byRole.map(({ id, samples, events, latencies, memory }): RoleAccesses => {
        const row = { role: this.roleOf(id), usage: this.usageOf(id), samples, events }
        return { ...row, mean_latency_cycles: latencies.mean, memory_share: events > 0 ? memory / events : 0 }
      }),
    }
  }

  private roleOf(id: number): string {
    const text = this.joined.names.text(this.joined.tensors[id]!.name)
    return parseTensorName(text).role || text
  }
}
