import { getOrMake } from '../../../model/default-map.ts'
import type { AccessEvent, FactsEvent, MappingEvent } from '../../../model/events.ts'
import type { Names } from '../../../model/names.ts'
import { count } from '../../../model/units.ts'
import type { PerfAttr, SampleReader } from './attr.ts'
import { addressOf, DataFields, sourceOf } from './data-sample.ts'
import type { PerfFacts } from './head.ts'

/** Longest path of a mapping. */
const PATH_BYTES_MAX = 4096

/** Makes events of samples with addresses of data, and of the mappings that they hit. */
export class AccessReader {
  private readonly fields = new DataFields()
  private readonly names = new Map<PerfAttr, number>()
  private tagged = 0
  private samples = 0

  constructor(
    private readonly texts: Names,
    private readonly head: PerfFacts,
  ) {}

  /** Does the recording contain such samples? */
  get areExpected(): boolean {
    return this.head.attrs.some(({ attr }) => attr.accesses !== undefined)
  }

  /** The event of the sample that `samples` read last; undefined where the record is too short for its fields. */
  sample(view: DataView, end: number, samples: SampleReader, atNs: number): AccessEvent | undefined {
    const { attr, origin, addressAt, periodAt, restAt } = samples
    const { fields } = this
    if (!attr || addressAt < 0 || restAt < 0 || !fields.read(view, attr, restAt, end)) return undefined
    const address = addressOf(view.getUint32(addressAt + 4, true), view.getUint32(addressAt, true), () => this.tagged++)
    const sampled = periodAt < 0 ? 0 : view.getUint32(periodAt, true) + view.getUint32(periodAt + 4, true) * 2 ** 32
    this.samples++
    return {
      kind: 'access',
      what: attr.accesses === 'other' ? fields.source.what : attr.accesses!,
      atNs,
      pid: origin.pid,
      tid: origin.tid,
      cpu: origin.cpu,
      node: this.head.nodeOf.get(origin.cpu) ?? -1,
      address,
      count: Math.min(Math.max(sampled, attr.period), Number.MAX_SAFE_INTEGER),
      event: this.nameOf(attr),
      source: sourceOf(fields.source, fields.latency),
    }
  }

  /** MMAP: u32 pid, tid, u64 address, size, offset, path; MMAP2: 32 bytes more before the path. */
  mapping(view: DataView, start: number, end: number, atNs: number, isLong: boolean): MappingEvent | undefined {
    const pathAt = start + (isLong ? 64 : 32)
    if (pathAt > end) return undefined
    const value = (at: number) => view.getUint32(start + at, true) + view.getUint32(start + at + 4, true) * 2 ** 32
    const [address, bytes, fileOffset] = [value(8), value(16), value(24)]
    const pid = view.getInt32(start, true)
    // Maps of the kernel itself: samples in it have no address.
    if (pid < 0 || address + bytes > Number.MAX_SAFE_INTEGER) return undefined
    let pathEnd = pathAt
    while (pathEnd < end && view.getUint8(pathEnd) !== 0) pathEnd++
    const path = new Uint8Array(view.buffer, view.byteOffset + pathAt, Math.min(pathEnd - pathAt, PATH_BYTES_MAX))
    return {
      kind: 'mapping',
      atNs,
      pid,
      address,
      bytes,
      fileOffset: Number.isSafeInteger(fileOffset) ? fileOffset : 0,
      name: this.texts.id(decoder.decode(path)),
    }
  }

  /** What is known at the end of the input. */
  facts(): FactsEvent[] {
    const { samples, tagged } = this
    if (samples === 0) return []
    const attributes = tagged > 0 ? { 'addresses.tagged': `${tagged}: the top byte is left away` } : {}
    return [{ kind: 'facts', contents: `samples of data addresses: ${count(samples)}`, attributes }]
  }

  /** perf's name of an event, which contains its parameters. */
  private nameOf(attr: PerfAttr): number {
    return getOrMake(this.names, attr, () => {
      const at = this.head.attrs.findIndex((event) => event.attr === attr)
      return this.texts.id(this.head.names[at] ?? attr.name)
    })
  }
}

const decoder = new TextDecoder()
