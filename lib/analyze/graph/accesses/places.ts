import { firstIndex } from '../../../bytes/search.ts'
import { DefaultMap } from '../../../model/default-map.ts'
import type { BufferEvent, TensorEvent } from '../../../model/events.ts'
import type { Names } from '../../../model/names.ts'
import type { Views } from '../views.ts'

/** Bytes of a tensor, or of a buffer. */
interface Region {
  readonly start: number
  readonly end: number
  /** Id of the tensor, or of the buffer. */
  readonly id: number
  /** Time of the last event before the log defined it. */
  readonly knownNs: number
}

/** Regions of memory, which may overlap: memory that was freed may be used again. */
class Regions {
  private readonly all: Region[] = []
  private readonly seen = new Set<string>()
  /** By index: the largest end up to it. */
  private ends: Float64Array | undefined

  add(start: number, bytes: number, id: number, knownNs: number): void {
    const key = `${start} ${bytes} ${id}`
    if (bytes <= 0 || this.seen.has(key)) return
    this.seen.add(key)
    this.ends = undefined
    this.all.push({ start, end: start + bytes, id, knownNs })
  }

  /** Of the regions that contain an address, the next one that the log defines after a time, else the last one. */
  at(address: number, atNs: number): number {
    const { all } = this
    this.ends ??= this.sorted()
    let found: Region | undefined
    for (let i = firstIndex(0, all.length, (at) => all[at]!.start > address) - 1; i >= 0; i--) {
      if (this.ends[i]! <= address) break
      const region = all[i]!
      if (region.end > address && (!found || isNearer(region, found, atNs))) found = region
    }
    return found?.id ?? -1
  }

  private sorted(): Float64Array {
    this.all.sort((a, b) => a.start - b.start || a.knownNs - b.knownNs)
    let end = -Infinity
    return Float64Array.from(this.all, (region) => {
      end = Math.max(end, region.end)
      return end
    })
  }
}

function isNearer(a: Region, b: Region, atNs: number): boolean {
  const [isAfter, wasAfter] = [a.knownNs >= atNs, b.knownNs >= atNs]
  if (isAfter !== wasAfter) return isAfter
  return isAfter ? a.knownNs < b.knownNs : a.knownNs > b.knownNs
}

/** Where tensors and buffers of a log are in memory, and in files of models. */
export class TensorPlaces {
  /** Tensors that have their memory alone: weights, caches. */
  private readonly tensors = new Regions()
  private readonly buffers = new Regions()
  private readonly files = new DefaultMap<string, Regions>(() => new Regions())
  /** Does the log contain addresses of tensors? */
  areKnown = false

  constructor(
    private readonly known: {
      readonly buffers: ReadonlyMap<number, BufferEvent>
      readonly views: Views
      readonly names: Names
    },
  ) {}

  /** Adds a tensor; `knownNs`: time of the last event before. */
  add(tensor: TensorEvent, knownNs: number): void {
    const { id, address, sizeBytes, offset } = tensor
    const buffer = this.known.buffers.get(tensor.buffer)
    if (address > 0) this.areKnown = true
    if (!buffer || sizeBytes <= 0) return
    if (
      address > 0 &&
      buffer.usage !== 'weights' &&
      offset !== undefined &&
      offset >= 0 &&
      buffer.sizeBytes !== undefined
    ) {
      this.buffers.add(address - offset, buffer.sizeBytes, buffer.id, -1)
    }
    if (this.known.views.root(id) !== id) return
    if (address > 0 && buffer.usage !== 'compute') this.tensors.add(address, sizeBytes, id, knownNs)
    if (buffer.file === undefined || offset === undefined) return
    this.files.of(this.known.names.text(buffer.file)).add(offset, sizeBytes, id, knownNs)
  }

  /** Id of the weight or cache at an address, or -1. */
  tensorAt(address: number, atNs: number): number {
    return this.tensors.at(address, atNs)
  }

  /** Id of the buffer at an address, or -1; of those whose begin is known. */
  bufferAt(address: number, atNs: number): number {
    return this.buffers.at(address, atNs)
  }

  /** Id of the weight at an offset of a model's file, or -1. */
  weightIn(path: string, offset: number, atNs: number): number {
    return this.files.get(path)?.at(offset, atNs) ?? -1
  }
}
