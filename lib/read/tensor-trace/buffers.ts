import { isObject, type JsonObject, textOf, wholeOf } from '../../input/json.ts'
import type { BufferUsage, TraceEvent } from '../../model/events.ts'
import type { Names } from '../../model/names.ts'

/** ggml_backend_buffer_usage. */
const USAGE_COMPUTE = 2
const ID_BITS = 64

/** Converts the backend buffers of companions to events. */
export class BufferLog {
  private readonly live = new Map<bigint, { readonly name: number; readonly bytes: number }>()
  private count = 0

  constructor(private readonly names: Names) {}

  /** A buffer was allocated at `atNs`. Returns an error text where the object is incomplete. */
  allocate(object: JsonObject, idKey: string, atNs: number): TraceEvent[] | string {
    const id = idOf(object, idKey)
    const bytes = wholeOf(object, 'size')
    if (id === undefined || bytes === undefined) return `expected ${idKey} and size of a buffer`
    const text = textOf(object, 'name')
    const name = this.names.id(text)
    const before = this.live.get(id)
    this.live.set(id, { name, bytes })
    const events: TraceEvent[] = [
      {
        kind: 'buffer',
        id: this.count++,
        usage: usageOf(object, text),
        label: `0x${id.toString(16)}`,
        offsetsFrom: 'its base',
        name,
        address: addressOf(object),
        sizeBytes: bytes,
      },
      { kind: 'allocation', buffer: name, atNs, bytes },
    ]
    // The id is in use again: the buffer was freed in between.
    if (before) events.unshift({ kind: 'allocation', buffer: before.name, atNs, bytes: -before.bytes })
    return events
  }

  /** A buffer was freed. */
  free(object: JsonObject, idKey: string, atNs: number): TraceEvent[] | string {
    const id = idOf(object, idKey)
    if (id === undefined) return `expected ${idKey} of a buffer`
    const buffer = this.live.get(id)
    if (!buffer) return `no buffer 0x${id.toString(16)} was allocated before`
    this.live.delete(id)
    return [{ kind: 'allocation', buffer: buffer.name, atNs, bytes: -buffer.bytes }]
  }

  /** Summary of the contents. */
  get about(): string {
    return `${this.count} backend buffer${this.count === 1 ? '' : 's'}`
  }
}

/** Nanoseconds of CLOCK_MONOTONIC from milliseconds with three decimals; undefined for invalid times. */
export function stampOf(ms: unknown): bigint | undefined {
  if (typeof ms !== 'number' || !(ms >= 0) || ms > 2 ** 42) return undefined
  return BigInt(Math.round(ms * 1000)) * 1000n
}

/** An id has 64 bits; the JSON reader returns long ones as texts. */
function idOf(object: JsonObject, key: string): bigint | undefined {
  const value = object[key]
  const isWhole = typeof value === 'number' ? Number.isSafeInteger(value) && value >= 0 : /^\d{1,20}$/.test(`${value}`)
  return isWhole && !isObject(value) ? BigInt.asUintN(ID_BITS, BigInt(value as number | string)) : undefined
}

function addressOf(object: JsonObject): number | undefined {
  const id = idOf(object, 'buffer_ptr')
  return id === undefined || id > BigInt(Number.MAX_SAFE_INTEGER) ? undefined : Number(id)
}

function usageOf(object: JsonObject, name: string): BufferUsage {
  if (/kv_?cache/i.test(name)) return 'kv-cache'
  return object['usage'] === USAGE_COMPUTE ? 'compute' : 'other'
}
