import type { AccessEvent, AccessWhat, MappingEvent } from '../../../model/events.ts'
import { INT32_MAX } from '../../../model/limits.ts'
import { addressOf, dataSource, sourceOf } from '../perf-data/data-sample.ts'

/** Events that count page faults, by their names in perf. */
const FAULTS: ReadonlyMap<string, AccessWhat> = new Map([
  ['page-faults', 'fault'],
  ['faults', 'fault'],
  ['minor-faults', 'minor-fault'],
  ['major-faults', 'major-fault'],
])
/** `7f44ea725040      1e05080021 |OP LOAD|LVL L1 hit|… |BLK  N/A     213`: address, data source, weight; -F without ip and sym. */
const FIELDS = /^([0-9a-f]{1,16})(?: {1,40}([0-9a-f]{1,16}) \|OP [^\n]{0,160}?)?(?: {1,40}(\d{1,16}))?$/
/** `415/418: [0x7f2384588000(0x2000) @ 0x1000 fe:00 16039950 1181257765]: r--p /usr/lib/libc.so.6` */
const MAPPING =
  /^(\d{1,10})\/\d+: \[0x([0-9a-f]{1,16})\(0x([0-9a-f]{1,16})\) @ (0x[0-9a-f]{1,16}|0)[^\]]{0,64}\]: \S{1,8} (.+)$/

/** The columns of a line. */
interface Columns {
  readonly atNs: number
  readonly pid: number
  readonly tid: number
  readonly cpu: number
}

/** The event of a sample with the address of data; undefined for other lines. `name`: of the event, without modifiers. */
export function accessOf(
  text: string,
  name: string,
  event: number,
  period: number,
  columns: Columns,
): AccessEvent | undefined {
  const [, address, bits, weight] = FIELDS.exec(text) ?? []
  const fault = FAULTS.get(name)
  if (address === undefined || (fault === undefined && bits === undefined)) return undefined
  const { high, low } = halves(address)
  const data = halves(bits ?? '0')
  const source = dataSource(data.high, data.low)
  return {
    kind: 'access',
    what: fault ?? source.what,
    ...columns,
    node: -1,
    address: addressOf(high, low, () => {}),
    count: period,
    event,
    source: sourceOf(source, weight === undefined ? -1 : Math.min(Number(weight), INT32_MAX)),
  }
}

/** The event of a mapping; undefined where it cannot be read, or is the kernel's. `nameOf` interns its path. */
export function mappingOf(text: string, atNs: number, nameOf: (path: string) => number): MappingEvent | undefined {
  const [, pid, start, size, offset, path] = MAPPING.exec(text) ?? []
  if (path === undefined) return undefined
  const [address, bytes, fileOffset] = [Number(`0x${start}`), Number(`0x${size}`), Number(offset)]
  if (!Number.isSafeInteger(address + bytes)) return undefined
  const at = Number.isSafeInteger(fileOffset) ? fileOffset : 0
  return { kind: 'mapping', atNs, pid: Number(pid), address, bytes, fileOffset: at, name: nameOf(path) }
}

function halves(hex: string): { readonly high: number; readonly low: number } {
  const all = hex.padStart(16, '0')
  return { high: Number(`0x${all.slice(0, 8)}`), low: Number(`0x${all.slice(8)}`) }
}
