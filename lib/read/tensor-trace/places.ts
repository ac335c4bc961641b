import type { Definitions } from '../../model/definitions.ts'
import type { BufferEvent, BufferUsage, TraceEvent } from '../../model/events.ts'
import type { Names } from '../../model/names.ts'
import { UNKNOWN } from '../../model/unknown.ts'

/** A source, as recorded. */
export interface Source {
  readonly name: string
  /** The address of the data, or of the ggml_tensor struct. */
  readonly pointer: number
  readonly sizeBytes: number
  readonly layer: number
  readonly onDisk: boolean
  /** Offset in the model file, or the buffer's id; undefined where neither is recorded. */
  readonly place: bigint | undefined
  /** The logger may have truncated the name. */
  readonly isCut: boolean
  /** Elements per dimension, if a companion contains them. */
  readonly ne?: readonly number[] | undefined
  /** The contradiction with a companion, if any. */
  readonly doubt?: string | undefined
}

/**
 * Finds the buffer of a source, and its offset there. Loggers of this family log a pointer per source: some that of the data,
 * others that of the ggml_tensor struct. Weights that overlap in memory prove the latter: then offsets in buffers are not
 * known. The base of a buffer is not logged: offsets are from the lowest address in the preview, unless a companion
 * contains the base.
 */
export class Places {
  /** The attribute `pointers` of the trace. */
  readonly about: string
  private readonly pointersAreData: boolean
  private readonly bases = new Map<bigint, number>()
  private readonly caches = new Set<bigint>()
  private readonly buffers = new Map<bigint | 'disk', number>()
  /** Buffers whose offsets were passed on: their base is fixed. */
  private readonly frozen = new Set<bigint>()
  /** Buffers whose base is not inferred. */
  private readonly known = new Set<bigint>()
  private readonly tensors = new Map<string, number>()

  constructor(
    sources: readonly Source[],
    private readonly definitions: Definitions | undefined,
  ) {
    this.pointersAreData = !weightsOverlap(sources.filter((source) => source.onDisk))
    this.about = this.pointersAreData
      ? 'taken as addresses of tensor data'
      : 'addresses of ggml_tensor structs (weights would overlap if they were data): no offsets in buffers known'
    for (const source of sources) this.observe(source)
    for (const [place, lowest] of this.bases) {
      const { address, sizeBytes } = this.definition(place) ?? {}
      // The logged pointer may be that of a struct, which is not in the buffer.
      if (address === undefined || lowest < address || lowest >= address + (sizeBytes ?? 0)) continue
      this.bases.set(place, address)
      this.known.add(place)
    }
  }

  /** The id of a source's tensor. If it is new, it gets the id `nextId`, and `emit` gets its definitions. */
  tensor(source: Source, names: Names, nextId: number, emit: (event: TraceEvent) => void): number {
    const { name, pointer, sizeBytes, onDisk, place, layer } = source
    const key = `${onDisk} ${place} ${pointer} ${sizeBytes} ${name}`
    const known = this.tensors.get(key)
    if (known !== undefined) return known
    this.tensors.set(key, nextId)
    this.observe(source)
    const buffer = place === undefined ? -1 : this.buffer(onDisk ? 'disk' : place, emit)
    emit({
      ...UNKNOWN.tensor,
      ...{ id: nextId, name: names.id(name), layer, ne: source.ne, sizeBytes, buffer },
      offset: this.offsetOf(source),
      [this.pointersAreData ? 'address' : 'structAddress']: pointer,
    })
    return nextId
  }

  private offsetOf({ onDisk, place, pointer }: Source): number | undefined {
    if (place === undefined) return undefined
    if (onDisk) return Number(place)
    return this.pointersAreData ? pointer - this.bases.get(place)! : undefined
  }

  private observe({ onDisk, place, pointer, name }: Source): void {
    if (onDisk || place === undefined) return
    if (name.startsWith('cache_')) this.caches.add(place)
    if (!this.frozen.has(place) && !this.known.has(place))
      this.bases.set(place, Math.min(this.bases.get(place) ?? Infinity, pointer))
  }

  private buffer(place: bigint | 'disk', emit: (event: TraceEvent) => void): number {
    const known = this.buffers.get(place)
    if (known !== undefined) return known
    const id = this.buffers.size
    this.buffers.set(place, id)
    if (place === 'disk') {
      emit({ kind: 'buffer', id, label: 'model file', usage: 'weights', offsetsFrom: 'the start of the GGUF file' })
      return id
    }
    this.frozen.add(place)
    const { name, usage: listed, sizeBytes } = this.definition(place) ?? {}
    const usage: BufferUsage = this.caches.has(place) ? 'kv-cache' : (listed ?? 'compute')
    const label = [name ? this.definitions!.names.text(name) : '', labelOf(place)].filter(Boolean).join(' ')
    emit({ kind: 'buffer', id, usage, label, offsetsFrom: this.baseOf(place), name, sizeBytes })
    return id
  }

  private baseOf(place: bigint): string {
    if (!this.pointersAreData) return 'an unknown base'
    const base = `0x${this.bases.get(place)!.toString(16)}`
    return this.known.has(place) ? `${base}, its base` : `${base}, the lowest address first seen in it (inferred)`
  }

  private definition(place: bigint): BufferEvent | undefined {
    return this.definitions?.buffer(labelOf(place))
  }
}

/** Label of a buffer that is logged by its id. */
const labelOf = (place: bigint) => `0x${place.toString(16)}`

/** Do most neighbours overlap in memory, though not in the file? (One damaged pointer proves nothing.) */
function weightsOverlap(weights: readonly Source[]): boolean {
  const sorted = [...weights].sort((a, b) => a.pointer - b.pointer)
  let pairs = 0
  let overlaps = 0
  for (let i = 1; i < sorted.length; i++) {
    const [a, b] = [sorted[i - 1]!, sorted[i]!]
    if (overlapsOnDisk(a, b)) continue
    pairs++
    if (a.pointer + a.sizeBytes > b.pointer) overlaps++
  }
  return overlaps * 2 > pairs
}

function overlapsOnDisk(a: Source, b: Source): boolean {
  const [start, next] = [Number(a.place), Number(b.place)]
  return start <= next ? start + a.sizeBytes > next : next + b.sizeBytes > start
}
