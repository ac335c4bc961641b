import { textIn } from '../../input/json-bytes.ts'
import type { Clock } from '../../model/events.ts'
import { LeftOut } from '../../model/left-out.ts'
import { leaveMember } from './left-out.ts'

const BASE = 'baseTimeNanoseconds'
/** What the profiler of PyTorch writes at the top of its files and others do not. */
export const OF_KINETO =
  /^(?:schemaVersion|deviceProperties|distributedInfo|(?:cupti|roctracer)_version|(?:cuda|hip)_\w+_version)$/
/** Facts that are copied. Hosts, users, jobs, paths and the environment are among the others. */
const COPIED =
  /^(?:schemaVersion|(?:cupti|roctracer)_version|(?:cuda|hip)_(?:runtime|driver)_version|record_shapes|profile_memory|with_stack|with_flops|with_modules)$/
const WANTED: ReadonlySet<string> = new Set([BASE, 'deviceProperties', 'distributedInfo', 'metadata'])
const ORIGIN_END = 1n << 61n

/** What a file tells of itself beside its events. */
export class About {
  /** From 1970 to 0 of the times in the file, in nanoseconds; undefined where it is not told. */
  baseNs: bigint | undefined
  isKineto = false
  readonly leftOut = new LeftOut()
  /** Facts that have not been told yet. */
  attributes: Record<string, string | number> = {}
  /** Of files that we wrote: the clock, and where its 0 lies on the file's own times, in nanoseconds. */
  own: { readonly clock: Clock; readonly zeroNs: bigint } | undefined

  /** A member of the outermost object begins: is its value to be taken? */
  wants(key: string): boolean {
    if (OF_KINETO.test(key)) this.isKineto = true
    return WANTED.has(key) || COPIED.test(key)
  }

  /** A member that is not looked into, of so many lists and objects. */
  pass(key: string, items: number): void {
    leaveMember(this.leftOut, key, items)
  }

  /** Takes the value `[start, end)` of a member that is wanted. */
  take(key: string, bytes: Uint8Array, start: number, end: number): void {
    if (key === BASE) this.takeBase(textIn(bytes, start, end))
    else if (COPIED.test(key)) this.attributes[key] = Number(textIn(bytes, start, end)) || textIn(bytes, start, end)
    else if (key === 'deviceProperties') this.takeDevices(parsed(bytes, start, end))
    else if (key === 'distributedInfo') this.takeRank(parsed(bytes, start, end))
    else if (key === 'metadata') this.takeOwn(textIn(bytes, start, end))
  }

  /** Looks for what is told behind the events in a part of the file. */
  search(text: string): void {
    const base = /"baseTimeNanoseconds"\s*:\s*(\d+)/.exec(text)?.[1]
    if (base !== undefined) this.takeBase(base)
    this.takeOwn(text)
  }

  private takeBase(digits: string): void {
    if (!/^\d{1,19}$/.test(digits) || BigInt(digits) >= ORIGIN_END) return
    this.isKineto = true
    this.baseNs = BigInt(digits)
  }

  private takeDevices(devices: unknown): void {
    if (!Array.isArray(devices)) return
    const gpus = devices.map((device) => `${device?.id} ${device?.name ?? ''}`.trim())
    if (gpus.length > 0) this.attributes['gpus'] = gpus.join(', ')
  }

  private takeRank(info: unknown): void {
    for (const key of ['backend', 'rank', 'world_size']) {
      const value = (info as Record<string, unknown> | null | undefined)?.[key]
      if (typeof value === 'string' || typeof value === 'number') this.attributes[key] = value
    }
  }

  /** What our own writer of Chrome JSON tells. */
  private takeOwn(text: string): void {
    const clock = /"clock":"CLOCK_(MONOTONIC|MONOTONIC_RAW|BOOTTIME|REALTIME)"/.exec(text)?.[1] as Clock | undefined
    const [, originNs, originMicros] = /"origin_ns":"(\d{1,18})","origin_ts":(\d{1,15})\b/.exec(text) ?? []
    if (clock === undefined || originMicros === undefined) return
    this.own = { clock, zeroNs: BigInt(originNs!) - BigInt(originMicros) * 1000n }
  }
}

function parsed(bytes: Uint8Array, start: number, end: number): unknown {
  try {
    return JSON.parse(textIn(bytes, start, end))
  } catch {
    return undefined
  }
}
