import { isObject } from '../../input/json.ts'
import { parsedJson, textIn } from '../../input/json-bytes.ts'
import type { Clock } from '../../model/events.ts'
import { LeftOut, PERFETTO_READS_IT } from '../../model/left-out.ts'
import type { ReadContext } from '../format.ts'
import { OF_KINETO } from './start.ts'

const BASE = 'baseTimeNanoseconds'
/** Facts that are copied. The others contain hosts, users, jobs, paths and the environment. */
const COPIED =
  /^(?:schemaVersion|(?:cupti|roctracer)_version|(?:cuda|hip)_(?:runtime|driver)_version|record_shapes|profile_memory|with_stack|with_flops|with_modules)$/
const WANTED: ReadonlySet<string> = new Set([BASE, 'deviceProperties', 'distributedInfo', 'metadata'])
const ORIGIN_END = 1n << 61n
/** Members of the outermost object that contain events of other kinds. */
const MEMBERS: Readonly<Record<string, string>> = {
  samples: 'samples with stackFrames',
  systemTraceEvents: 'systemTraceEvents (a trace of ftrace as a text)',
  powerTraceAsString: 'powerTraceAsString',
}

/** Facts about a file: members of its outermost object. */
export class About {
  /** Origin of the times in the file, in nanoseconds since 1970; undefined if it is not recorded. */
  baseNs: bigint | undefined
  isKineto = false
  readonly leftOut = new LeftOut()
  /** Facts that were not passed on yet. */
  attributes: Record<string, string | number> = {}
  /** Of files that ggml2perfetto wrote: the clock, and its time at the 0 of the file's times, in nanoseconds. */
  own: { readonly clock: Clock; readonly zeroNs: bigint } | undefined

  /** Is the value of this member of the outermost object needed? */
  wants(key: string): boolean {
    if (OF_KINETO.test(key)) this.isKineto = true
    return WANTED.has(key) || COPIED.test(key)
  }

  /** Counts a skipped member; `items`: the number of lists and objects in it. */
  skip(key: string, items: number): void {
    if (!Object.hasOwn(MEMBERS, key)) return
    this.leftOut.add(MEMBERS[key]!, key === 'samples' ? items : 1, PERFETTO_READS_IT)
  }

  /** The earliest time in the file that is known, in nanoseconds of its own times. */
  earliestNs = 0n

  /** The times are moved by so much, as none may be below 0: the 0 of the file may be a trigger. */
  get shiftNs(): bigint {
    return this.baseNs === undefined && this.own === undefined && this.earliestNs < 0n ? -this.earliestNs : 0n
  }

  /** Notes times in the file; those far from `firstNs` are damaged. */
  noteTimes(times: readonly bigint[], firstNs: bigint): void {
    for (const ns of times) if (ns < this.earliestNs && firstNs - ns <= DAY_NS) this.earliestNs = ns
  }

  /** Reads the value `[start, end)` of a needed member. */
  take(key: string, bytes: Uint8Array, start: number, end: number): void {
    if (key === BASE) this.takeBase(textIn(bytes, start, end))
    else if (COPIED.test(key)) this.attributes[key] = Number(textIn(bytes, start, end)) || textIn(bytes, start, end)
    else if (key === 'deviceProperties') this.takeDevices(parsed(bytes, start, end))
    else if (key === 'distributedInfo') this.takeRank(parsed(bytes, start, end))
    else if (key === 'metadata') this.takeOwn(textIn(bytes, start, end))
  }

  /** Searches a part of the file for members that may come after the events. */
  search(text: string, firstNs: bigint): void {
    const base = /"baseTimeNanoseconds"\s*:\s*(\d+)/.exec(text)?.[1]
    if (base !== undefined) this.takeBase(base)
    this.takeOwn(text)
    this.noteTimes(Array.from(text.matchAll(BELOW_ZERO), belowZero), firstNs)
  }

  private takeBase(digits: string): void {
    if (!/^\d{1,19}$/.test(digits) || BigInt(digits) >= ORIGIN_END) return
    this.isKineto = true
    this.baseNs = BigInt(digits)
  }

  private takeDevices(devices: unknown): void {
    if (!Array.isArray(devices)) return
    const gpus = devices.flatMap((device) => {
      const { id, name } = isObject(device) ? device : {}
      const parts = [Number.isSafeInteger(id) ? id : '', typeof name === 'string' ? name : '']
      return parts.join(' ').trim() || []
    })
    if (gpus.length > 0) this.attributes['gpus'] = gpus.join(', ')
  }

  private takeRank(info: unknown): void {
    for (const key of ['backend', 'rank', 'world_size']) {
      const value = (info as Record<string, unknown> | null | undefined)?.[key]
      if (typeof value === 'string' || typeof value === 'number') this.attributes[key] = value
    }
  }

  /** Reads the members that our writer of Chrome JSON adds. */
  private takeOwn(text: string): void {
    const clock = /"clock":"CLOCK_(MONOTONIC|MONOTONIC_RAW|BOOTTIME|REALTIME)"/.exec(text)?.[1] as Clock | undefined
    const [, originNs, originMicros] = /"origin_ns":"(\d{1,18})","origin_ts":(\d{1,15})\b/.exec(text) ?? []
    if (clock === undefined || originMicros === undefined) return
    this.own = { clock, zeroNs: BigInt(originNs!) - BigInt(originMicros) * 1000n }
  }
}

function parsed(bytes: Uint8Array, start: number, end: number): unknown {
  try {
    return parsedJson(textIn(bytes, start, end))
  } catch {
    return undefined
  }
}

/** Maximum length of a key with its value, which may be split between chunks. */
const OVERLAP = 256
const MARKS = /"baseTimeNanoseconds"|"origin_ns"/
const DAY_NS = 86_400_000_000_000n
const BELOW_ZERO = /"ts": ?-(\d{1,15})(?:\.(\d{1,3})(\d?))?/g
/** Nanoseconds of a match, rounded down. */
const belowZero = ([, micros, nanos = '', more = '']: RegExpMatchArray) =>
  -BigInt(micros! + nanos.padEnd(3, '0')) - (more === '' ? 0n : 1n)
/** Looks for minus signs, which are rare: the search for a key that each event has would stop at each of its quotes. */
function isBelowZero(text: string): boolean {
  for (let at = text.indexOf('-'); at >= 0; at = text.indexOf('-', at + 1)) {
    if (text.endsWith('"ts":', at) || text.endsWith('"ts": ', at)) return true
  }
  return false
}
const latin1 = new TextDecoder('latin1')

/**
 * Searches the whole file for what must be known before the events: members that may come after them, times below 0. It reads the file once more,
 * as members of any size may follow.
 */
export async function searchWhole(about: About, firstNs: bigint, { range, again }: ReadContext): Promise<void> {
  let rest = ''
  for await (const chunk of again?.() ?? range?.(0, Number.MAX_SAFE_INTEGER) ?? []) {
    const text = latin1.decode(chunk)
    const seam = rest + text.slice(0, OVERLAP)
    if (MARKS.test(seam) || MARKS.test(text) || isBelowZero(seam) || isBelowZero(text)) {
      about.search(rest + text, firstNs)
    }
    rest = text.slice(-OVERLAP)
  }
}
