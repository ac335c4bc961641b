import { Ascii } from '../../bytes/ascii.ts'
import { parsedJson } from '../../input/json-bytes.ts'
import { OWN_TIME, ownTime } from '../common/own-time.ts'

/** A line of a log, without what others wrote before it. */
export interface LogLine {
  /** The server's own words: a message, or a part of one. */
  readonly message: string
  /** Since the server's start, by its own clock; undefined: not in the line. In ns. */
  readonly ownNs: number | undefined
  /** When the collector of the log got it; undefined: not in the line. */
  readonly wall: WallTime | undefined
  /** Of a router: the number that it writes before the lines of one of its servers; 0: not in the line. */
  readonly child: number
  /** Was it written by llama.cpp's logger, as far as its form shows? */
  readonly isOwn: boolean
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: colours of terminals
const COLOURS = /\x1b\[[0-9;]*m/g
const LEVEL = /^[IWED] (?=[a-z])/
const TAGGED = /^(?:slot|srv|que|res|cmn|spc) +\S+: /
const COMPOSE = /^[\w.-]+ +\| /
/** Host and program, as journald and syslog write them after the time. */
const PROGRAM = /^ (?:[\w.-]+ +)?[^\s:[\]]+(?:\[\d+\])?: ?/
const CHILD = /^\[(\d{1,5})\] ?/
const JSON_LINE = /^\{"(?:type|time|level|msg|log|stream)"/

/** Is the text the start of a line that llama.cpp's logger wrote, or of one that a collector of such lines wrote? */
export function isServerLine(text: string): boolean {
  const { message, isOwn } = readLine(text)
  return isOwn && (TAGGED.test(message) || OWN_TIME.test(text) || JSON_LINE.test(text))
}

/** Reads a line of a log, with or without a collector's columns and colours. */
export function readLine(text: string): LogLine {
  let rest = text.includes('\x1b') ? text.replace(COLOURS, '') : text
  let wall: WallTime | undefined
  let child = 0
  if (!startsOwn(rest)) {
    rest = rest.replace(COMPOSE, '')
    const collected = wallTime(rest)
    if (collected) {
      wall = collected.wall
      rest = withoutProgram(rest.slice(collected.length))
    }
    const router = CHILD.exec(rest)
    if (router) {
      child = Number(router[1])
      rest = rest.slice(router[0].length)
    }
  }
  const json = rest.charCodeAt(0) === Ascii.OpenCurly && JSON_LINE.test(rest) ? jsonLine(rest) : undefined
  return json ? { ...json, wall: json.wall ?? wall, child: json.child || child } : { ...ownLine(rest), wall, child }
}

/** Is there nothing before the server's own words? */
function startsOwn(text: string): boolean {
  return OWN_TIME.test(text) || TAGGED.test(text)
}

/** The text after the time of a collector, without the program's name. */
function withoutProgram(text: string): string {
  const rest = text.slice(1)
  return startsOwn(rest) ? rest : text.slice(PROGRAM.exec(text)?.[0].length ?? 1)
}

function ownLine(text: string): Pick<LogLine, 'message' | 'ownNs' | 'isOwn'> {
  const own = ownTime(text)
  if (own) return { message: own.message, ownNs: own.ns, isOwn: true }
  const message = LEVEL.test(text) ? text.slice(2) : text
  return { message, ownNs: undefined, isOwn: message !== text || TAGGED.test(text) }
}

/** A line of `--log-jsonl`, or one that Docker keeps as JSON. */
function jsonLine(text: string): LogLine | undefined {
  const { type, time, msg, log } = parsed(text)
  if (typeof log === 'string') {
    const wall = typeof time === 'string' ? wallTime(`${time} `)?.wall : undefined
    return { ...readLine(log.replace(/\n$/, '')), wall }
  }
  if (type !== 'log' || typeof msg !== 'string') return undefined
  const ownNs = typeof time === 'number' && Number.isSafeInteger(time) && time > 0 ? time * 1000 : undefined
  return { message: msg.replace(/\n$/, ''), ownNs, wall: undefined, child: 0, isOwn: true }
}

function parsed(text: string): Readonly<Record<string, unknown>> {
  try {
    return parsedJson(text) as Readonly<Record<string, unknown>>
  } catch {
    return {}
  }
}

/** A time that journald, syslog, Docker or Kubernetes wrote before a line. */
interface WallTime {
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
function wallTime(text: string): { readonly wall: WallTime; readonly length: number } | undefined {
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
