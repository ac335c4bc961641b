import { NumberList } from '../../bytes/number-list.ts'
import { orderOf } from '../../bytes/order.ts'
import { DefaultMap } from '../../model/default-map.ts'
import type { Facts, GpuEvent, GpuPlace } from '../../model/gpu-events.ts'
import type { Names } from '../../model/names.ts'
import { isPlaced } from '../../model/times.ts'
import { classOf, directionOf, isMigration, memoryOf } from './classes.ts'
import { Durations } from './durations.ts'
import type { GpuKind, GpuTransfer } from './figures.ts'

/** Copies of one direction between the same kinds of memory. */
interface TransferSum {
  /** Its place among those of its device. */
  readonly index: number
  readonly direction: string
  readonly from: string
  readonly to: string
  readonly all: Transferred
  /** Those of calls of `llama_decode`. */
  readonly ofCalls: Transferred
}

interface Transferred {
  count: number
  bytes: number
  timeNs: number
  unknownSizes: number
}

const nothing = (): Transferred => ({ count: 0, bytes: 0, timeNs: 0, unknownSizes: 0 })

/** Copies and fills of a device, by direction and memory. */
class TransferSums {
  private readonly sums = new Map<string, TransferSum>()
  private readonly bytesKey: number

  constructor(private readonly names: Names) {
    this.bytesKey = names.id('bytes')
  }

  add({ what, name, facts, call }: GpuEvent, durationNs: number): TransferSum {
    const text = this.names.text(name)
    const own = isList(facts) ? memoryOf(text) : ([textOf(facts['from']), textOf(facts['to'])] as const)
    const sum = this.sumOf(directionOf(what, text), own[0], own[1])
    const bytes = this.bytesOf(facts)
    for (const transferred of call === undefined ? [sum.all] : [sum.all, sum.ofCalls]) {
      transferred.count++
      transferred.timeNs += durationNs
      if (bytes === undefined) transferred.unknownSizes++
      else transferred.bytes += bytes
    }
    return sum
  }

  /** Most bytes first. `exposedNs`: by index; undefined where only sums are known. */
  figures(exposedNs: readonly number[] | undefined, which: 'all' | 'ofCalls' = 'all'): GpuTransfer[] {
    return [...this.sums.values()]
      .map(({ index, direction, from, to, [which]: sums }) => ({ index, direction, from, to, ...sums }))
      .filter(({ count }) => count > 0)
      .sort((a, b) => b.bytes - a.bytes || b.timeNs - a.timeNs)
      .map(({ index, direction, from, to, count, bytes, timeNs, unknownSizes }) => ({
        ...{
          direction,
          from,
          to,
          count,
          bytes,
          time_ns: timeNs,
          exposed_ns: exposedNs ? (exposedNs[index] ?? 0) : null,
        },
        gb_per_s: bytes > 0 && timeNs > 0 && unknownSizes === 0 ? bytes / timeNs : null,
        unknown_sizes: unknownSizes,
      }))
  }

  /** By direction, without their shares. */
  kinds(): Omit<GpuKind, 'share'>[] {
    const kinds = new Map<string, { kind: string; count: number; time_ns: number }>()
    for (const {
      direction,
      all: { count, timeNs },
    } of this.sums.values()) {
      const kind = direction === 'memset' || isMigration(direction) ? direction : `memcpy ${direction}`
      const sum = kinds.get(kind) ?? { kind, count: 0, time_ns: 0 }
      sum.count += count
      sum.time_ns += timeNs
      kinds.set(kind, sum)
    }
    return [...kinds.values()]
  }

  private sumOf(direction: string, from: string, to: string): TransferSum {
    const key = `${direction} ${from} > ${to}`
    const known = this.sums.get(key)
    if (known) return known
    const made = { index: this.sums.size, direction, from, to, all: nothing(), ofCalls: nothing() }
    this.sums.set(key, made)
    return made
  }

  /** The reports of nsys stats have megabytes only, rounded: not used. */
  private bytesOf(facts: Facts): number | undefined {
    if (!isList(facts)) return facts['bytes'] === undefined ? undefined : Number(facts['bytes'])
    const arg = facts.find(({ key }) => key === this.bytesKey)
    if (arg === undefined) return undefined
    const bytes = 'int' in arg ? arg.int : 'double' in arg ? arg.double : 'big' in arg ? Number(arg.big) : NaN
    return Number.isFinite(bytes) ? bytes : undefined
  }
}

const isList = (facts: Facts): facts is Extract<Facts, readonly unknown[]> => Array.isArray(facts)
const textOf = (value: unknown) => (typeof value === 'string' ? value : '')

/** A device of a process. */
export interface Device {
  readonly index: number
  readonly device: number
  readonly pid: number
  work: number
  workNs: number
  /** The starts of all its pieces are recorded. */
  isPlaced: boolean
  readonly transfers: TransferSums
  readonly streams: Stream[]
  readonly rows: WorkRow[]
}

/** A stream of a device. */
export interface Stream extends GpuPlace {
  readonly index: number
  readonly of: Device
  readonly rows: WorkRow[]
}

/** Work of one name on one stream. */
export interface WorkRow {
  readonly stream: Stream
  readonly name: number
  readonly what: GpuEvent['what']
  /** {@link WorkClass} */
  readonly kind: number
  /** Of copies and fills: their {@link TransferSum.index}; else -1. */
  readonly transfer: number
  count: number
  timeNs: number
  /** Some are sums of several pieces, whose durations are not known. */
  isSummed: boolean
}

/** Pieces of work that are held, in 20 bytes each; with more, only sums are known. */
export const WORK_MAX = 1 << 24
/** No correlation id, or no launch. */
export const NONE = 0xffffffff
/** Set in the number of the row of work that a call of `llama_decode` launched. */
const OF_CALL = 0x80000000

const WHATS: readonly GpuEvent['what'][] = ['kernel', 'memcpy', 'memset', 'graph', 'migration']

type MapOfMaps<V> = DefaultMap<number, Map<number, V>>
const mapOfMaps = <V>(): MapOfMaps<V> => new DefaultMap(() => new Map())

/** The work of all GPUs of an input, in any order. */
export class GpuWork {
  readonly devices: Device[] = []
  readonly streams: Stream[] = []
  readonly rows: WorkRow[] = []
  /** More than {@link WORK_MAX} pieces: those are not held. */
  isOver = false
  private readonly starts = new NumberList(Float64Array)
  private readonly durations = new Durations()
  private readonly rowIds = new NumberList(Uint32Array)
  /** Correlation ids; then places of launches. */
  readonly launches = new NumberList(Uint32Array)
  /** By process and number. */
  private readonly devicesByPid = mapOfMaps<Device>()
  /** Of each device, by context and number. */
  private readonly streamsOf = new DefaultMap<Device, MapOfMaps<Stream>>(mapOfMaps)
  private readonly rowsByKey = new Map<number | string, number>()
  private latest: Stream | undefined

  constructor(
    private readonly names: Names,
    private readonly max = WORK_MAX,
  ) {}

  get length(): number {
    return this.starts.length
  }

  add(event: GpuEvent): void {
    const { what, startNs, endNs, correlation, inferred = 0 } = event
    const durationNs = endNs - startNs
    const stream = this.streamOf(event)
    const { of: device } = stream
    const transfer = what !== 'kernel' && what !== 'graph' ? device.transfers.add(event, durationNs) : undefined
    const id = this.rowOf(stream, event, transfer)
    const row = this.rows[id]!
    const { count = 1 } = event
    row.count += count
    if (count > 1) row.isSummed = true
    row.timeNs += durationNs
    device.work += count
    device.workNs += durationNs
    if (!isPlaced(inferred)) device.isPlaced = false
    if (this.length >= this.max) {
      this.isOver = true
      return
    }
    this.starts.push(startNs)
    this.durations.push(durationNs)
    this.rowIds.push(event.call === undefined ? id : id + OF_CALL)
    this.launches.push(correlation < 0 ? NONE : correlation)
  }

  /** Ids of the pieces by their starts; undefined: that is their order. */
  order(): Uint32Array | undefined {
    const { starts } = this
    return orderOf(this.length, (a, b) => starts.at(a) - starts.at(b))
  }

  start(id: number): number {
    return this.starts.at(id)
  }

  duration(id: number): number {
    return this.durations.at(id)
  }

  row(id: number): WorkRow {
    return this.rows[this.rowIds.at(id) & ~OF_CALL]!
  }

  /** Whether a call of `llama_decode` launched it, other than a warm-up. */
  isOfCall(id: number): boolean {
    return this.rowIds.at(id) >= OF_CALL
  }

  private streamOf(event: GpuEvent): Stream {
    const { latest } = this
    if (latest && isSame(latest, event)) return latest
    const device = this.devicesByPid.of(event.pid).get(event.device) ?? this.newDevice(event)
    this.latest = this.streamsOf.of(device).of(event.context).get(event.stream) ?? this.newStream(device, event)
    return this.latest
  }

  private newStream(owner: Device, { device, context, contextName, stream, streamName, pid }: GpuPlace): Stream {
    const made: Stream = {
      ...{ index: this.streams.length, of: owner, rows: [], device, context, contextName, stream, streamName, pid },
    }
    this.streams.push(made)
    owner.streams.push(made)
    this.streamsOf.of(owner).of(context).set(stream, made)
    return made
  }

  private newDevice({ device, pid }: GpuPlace): Device {
    const sums = { work: 0, workNs: 0, isPlaced: true, transfers: new TransferSums(this.names), streams: [], rows: [] }
    const made = { index: this.devices.length, device, pid, ...sums }
    this.devices.push(made)
    this.devicesByPid.of(pid).set(device, made)
    return made
  }

  private rowOf(stream: Stream, { what, name }: GpuEvent, transfer: TransferSum | undefined): number {
    const ofName = (stream.index * WHATS.length + WHATS.indexOf(what)) * 2 ** 32 + name
    const key = transfer ? `${ofName} ${transfer.index}` : ofName
    const known = this.rowsByKey.get(key)
    if (known !== undefined) return known
    const kind = classOf(what, this.names.text(name))
    this.rowsByKey.set(key, this.rows.length)
    const sums = { count: 0, timeNs: 0, isSummed: false }
    const row: WorkRow = { stream, name, what, kind, transfer: transfer?.index ?? -1, ...sums }
    stream.rows.push(row)
    stream.of.rows.push(row)
    return this.rows.push(row) - 1
  }
}

function isSame(stream: Stream, place: GpuPlace): boolean {
  const isOfDevice = stream.device === place.device && stream.pid === place.pid
  return isOfDevice && stream.stream === place.stream && stream.context === place.context
}
