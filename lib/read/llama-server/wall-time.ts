/** A time that journald, syslog, Docker or Kubernetes wrote before a line. */
export interface WallTime {
  /** In ns of the clock; where that is not known, of an unknown year and zone: only differences mean something. */
  readonly ns: bigint
  readonly clock: 'REALTIME' | 'MONOTONIC' | 'unknown'
  /** Of its last digit. In ns. */
  readonly resolutionNs: number
}

/** Also `2026-11-23T04:45:16.123456789Z stderr F`, as Kubernetes has it. */
const ISO =
  /^(?:[A-Z][a-z]{2} )?(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))? ?(Z|UTC|[+-]\d\d:?\d\d)?(?= )(?: std(?:out|err) [FP](?= ))?/
const SYSLOG = /^([A-Z][a-z]{2}) +(\d{1,2}) (\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(?= )/
/** `[12345.678901]`: journald's short-monotonic. */
const UPTIME = /^\[ *(\d{1,10})\.(\d{6})\](?= )/
const MONTHS = 'JanFebMarAprMayJunJulAugSepOctNovDec'

/** The time at the start of a line that a collector wrote, and its length. */
export function wallTime(text: string): { readonly wall: WallTime; readonly length: number } | undefined {
  const iso = ISO.exec(text)
  if (iso) {
    const [all, day, time, fraction = '', zone = ''] = iso
    const offset = /^[+-]/.test(zone) ? zone.replace(/^(...):?/, '$1:') : 'Z'
    return timed(all, Date.parse(`${day}T${time}${offset}`), fraction, zone === '' ? 'unknown' : 'REALTIME')
  }
  const syslog = SYSLOG.exec(text)
  if (syslog) {
    const [all, month, day, hours, minutes, seconds, fraction = ''] = syslog
    // The year is not in the line: 2024 has a 29th of February.
    const at = Date.UTC(2024, MONTHS.indexOf(month!) / 3, Number(day), Number(hours), Number(minutes), Number(seconds))
    return timed(all, at, fraction, 'unknown')
  }
  const uptime = UPTIME.exec(text)
  return uptime ? timed(uptime[0], Number(uptime[1]) * 1000, uptime[2]!, 'MONOTONIC') : undefined
}

function timed(all: string, ms: number, fraction: string, clock: WallTime['clock']) {
  if (!Number.isFinite(ms) || ms < 0) return undefined
  const ns = BigInt(Math.round(ms)) * 1_000_000n + BigInt(fraction.padEnd(9, '0'))
  return { wall: { ns, clock, resolutionNs: 10 ** (9 - fraction.length) }, length: all.length }
}
