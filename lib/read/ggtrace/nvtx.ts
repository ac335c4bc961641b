import { NVTX_OBJECTS, NVTX_PAYLOADS, RecordType } from '../../log/ggtrace-layout.ts'
import { DefaultMap, getOrMake } from '../../model/default-map.ts'
import type { Names } from '../../model/names.ts'
import type { NvtxEvent, NvtxNameEvent, NvtxPayload } from '../../model/nvtx-events.ts'
import type { Report } from './blocks.ts'
import { readU64 } from './fields.ts'

/** `color_type` of a record with a colour, the only one in NVTX. */
const ARGB = 1

/** Names of the domains, categories and threads of NVTX. */
export class NvtxNames {
  private readonly domains = new Map<number, number>()
  private readonly categories = new DefaultMap<number, Map<number, number>>(() => new Map())
  private readonly threads = new Map<number, number>()

  constructor(
    private readonly names: Names,
    /** The name of a log's id. */
    readonly name: (id: number, byte: number) => number,
    private readonly report: Report,
  ) {}

  /** Reads a definition; ignores those of other types. */
  define(type: number, view: DataView, at: number, byte: number): void {
    const number = (index: number) => view.getUint32(at + 4 + 4 * index, true)
    if (type === RecordType.NvtxDomain) this.domains.set(number(0), this.name(number(1), byte))
    else if (type === RecordType.Thread) this.threads.set(number(0), this.name(number(1), byte))
    else if (type === RecordType.NvtxCategory) {
      this.categories.of(number(0)).set(number(1), this.name(number(2), byte))
    }
  }

  /** The name of a domain; 0 is the default one. */
  domain(id: number, byte: number): number {
    if (id === 0) return 0
    return getOrMake(this.domains, id, () => {
      this.report('undefined-id', `expected a definition of domain ${id} before its first use, found none`, byte)
      return this.names.id(`domain ${id}`)
    })
  }

  /** The name of a category, or its number; 0 for none. */
  category(domain: number, number: number): number {
    return number === 0 ? 0 : (this.categories.get(domain)?.get(number) ?? this.names.id(`${number}`))
  }

  /** The program's name of a thread; 0: none. */
  thread(tid: number): number {
    return this.threads.get(tid) ?? 0
  }
}

/** Arguments of {@link readNvtx}. */
interface Context {
  readonly names: NvtxNames
  readonly tid: number
  readonly atNs: number
  readonly byte: number
}

/** The event of an NVTX record; undefined for records of other types. */
export function readNvtx(
  type: number,
  view: DataView,
  at: number,
  context: Context,
): NvtxEvent | NvtxNameEvent | undefined {
  const { names, byte } = context
  switch (type) {
    case RecordType.NvtxPush:
      return eventOf('push', 0, view, at, context)
    case RecordType.NvtxMark:
      return eventOf('mark', 0, view, at, context)
    case RecordType.NvtxStart:
      return eventOf('start', readU64(view, at + 40), view, at, context)
    case RecordType.NvtxPop:
      return endOf('pop', 0, names.domain(view.getUint32(at + 12, true), byte), context)
    case RecordType.NvtxEnd:
      return endOf('end', readU64(view, at + 12), 0, context)
    case RecordType.NvtxNamed: {
      const what = NVTX_OBJECTS[view.getUint32(at + 20, true)] ?? 'resource'
      const name = names.name(view.getUint32(at + 24, true), byte)
      return { kind: 'nvtx-name', what, handle: view.getBigUint64(at + 12, true), name, atNs: context.atNs }
    }
    default:
      return undefined
  }
}

function eventOf(what: NvtxEvent['what'], range: number, view: DataView, at: number, context: Context): NvtxEvent {
  const { names, tid, atNs, byte } = context
  const domain = view.getUint32(at + 12, true)
  return {
    kind: 'nvtx',
    what,
    tid,
    atNs,
    thread: names.thread(tid),
    domain: names.domain(domain, byte),
    range,
    message: names.name(view.getUint32(at + 16, true), byte),
    category: names.category(domain, view.getUint32(at + 20, true)),
    color: view.getUint16(at + 28, true) === ARGB ? view.getUint32(at + 24, true) : -1,
    payload: payloadOf(view.getUint16(at + 30, true), view, at + 32),
  }
}

function endOf(what: NvtxEvent['what'], range: number, domain: number, { names, tid, atNs }: Context): NvtxEvent {
  const thread = names.thread(tid)
  return { kind: 'nvtx', what, tid, atNs, thread, domain, range, message: 0, category: 0, color: -1 }
}

function payloadOf(number: number, view: DataView, at: number): NvtxPayload | undefined {
  const type = NVTX_PAYLOADS[number] ?? 'unknown'
  switch (type) {
    case 'none':
      return undefined
    case 'unknown':
      return { type }
    case 'u64':
      return { type, value: exact(view.getBigUint64(at, true)) }
    case 'i64':
      return { type, value: exact(view.getBigInt64(at, true)) }
    case 'f64':
      return { type, value: view.getFloat64(at, true) }
    case 'u32':
      return { type, value: view.getUint32(at, true) }
    case 'i32':
      return { type, value: view.getInt32(at, true) }
    case 'f32':
      return { type, value: view.getFloat32(at, true) }
  }
}

function exact(value: bigint): number | bigint {
  const number = Number(value)
  return Number.isSafeInteger(number) ? number : value
}
