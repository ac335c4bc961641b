/** A time at the start of a row. */
export interface Stamp {
  /** In ns since 1970; of a local time, as if it were UTC; of a time without a date, since midnight; of `monotonic`, of CLOCK_MONOTONIC. */
  readonly ns: bigint
  readonly zone: 'utc' | 'local' | 'no date' | 'monotonic'
  /** Of its last digit. In ns. */
  readonly resolutionNs: number
}

/** `2025/04/24 15:58:57.879` of nvidia-smi, `10-01-2025 20:05:55` of tegrastats, `20250424 15:58:57` of dmon, ISO 8601 of wrappers. */
const DATED =
  /^(?:(\d{4})[/-](\d\d)[/-](\d\d)|(\d\d)-(\d\d)-(\d{4})|(\d{4})(\d\d)(\d\d))[T ]+(\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?\d*(?: ?(Z|UTC|[+-]\d\d:?\d\d))?(?=$|[\s,])/
/** `15:58:57`, of `dmon -o T`. */
const CLOCK = /^(\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?(?=$|[\s,])/
/** Seconds since 1970, or with three, six or nine more digits. */
const EPOCH = /^(\d{10})(\d{3}|\d{6}|\d{9})?(?:\.(\d{1,9}))?\d*(?=$|[\s,])/

/** The time at the start of a text, and its length; undefined where there is none. */
export function stampOf(text: string): { readonly stamp: Stamp; readonly length: number } | undefined {
  const dated = DATED.exec(text)
  if (dated) {
    const [all, y1, m1, d1, m2, d2, y2, y3, m3, d3, hours, minutes, seconds, fraction = '', zone = ''] = dated
    const [year, month, day] = [y1 ?? y2 ?? y3, m1 ?? m2 ?? m3, d1 ?? d2 ?? d3].map(Number) as [number, number, number]
    const ms = Date.UTC(year, month - 1, day, Number(hours), Number(minutes), Number(seconds)) - offsetMs(zone)
    if (month < 1 || month > 12 || day < 1 || day > 31) return undefined
    return stamp(all, ms, fraction, zone === '' ? 'local' : 'utc')
  }
  const clock = CLOCK.exec(text)
  if (clock) {
    const [all, hours, minutes, seconds, fraction = ''] = clock
    return stamp(all, ((Number(hours) * 60 + Number(minutes)) * 60 + Number(seconds)) * 1000, fraction, 'no date')
  }
  const epoch = EPOCH.exec(text)
  if (!epoch) return undefined
  const [all, seconds, more = '', fraction = ''] = epoch
  return stamp(all, Number(seconds) * 1000, (more + fraction).slice(0, 9), 'utc')
}

/** A line and the time at its start, if there is one. */
export function splitStamp(line: string): { readonly rest: string; readonly stamp: Stamp | undefined } {
  const found = stampOf(line)
  return found ? { rest: line.slice(found.length).trimStart(), stamp: found.stamp } : { rest: line, stamp: undefined }
}

function stamp(all: string, ms: number, fraction: string, zone: Stamp['zone']) {
  if (!Number.isFinite(ms) || ms < 0) return undefined
  const ns = BigInt(Math.round(ms)) * 1_000_000n + BigInt(fraction.padEnd(9, '0'))
  return { stamp: { ns, zone, resolutionNs: 10 ** (9 - fraction.length) }, length: all.length }
}

/** `+02:00`, `-0530`; 0 for `Z` and nothing. */
function offsetMs(zone: string): number {
  const [, sign, hours, minutes] = /^([+-])(\d\d):?(\d\d)$/.exec(zone) ?? []
  const ms = (Number(hours ?? 0) * 60 + Number(minutes ?? 0)) * 60_000
  return sign === '-' ? -ms : ms
}
