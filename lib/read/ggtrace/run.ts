import { Header, RecordType } from '../../log/ggtrace-layout.ts'
import type { Clock, TraceEvent } from '../../model/events.ts'
import { type Block, forEachRecord, type Report } from './blocks.ts'
import { type LogClock, readAbsolute, readText, readU64 } from './fields.ts'
import { redactCommand } from './redact.ts'

type Readings = Extract<TraceEvent, { kind: 'clocks' }>['readings']

/** The supported version. */
const VERSION = '0'
/** In the order in which a CLOCKS record has them. */
const CLOCKS: readonly Clock[] = ['MONOTONIC', 'BOOTTIME', 'REALTIME']
/** Most facts of a log: a recorder writes some twenty. */
const FACTS_MAX = 256
/** Facts of so many characters are not extended. */
const FACT_CHARS_MAX = 4096

/** Older recorders write END records without the reason for dropped records. */
const END_WITH_REASON_BYTES = 32

/** The contents of one run block. */
export interface RunBlock {
  /** Without a prototype: any text may be a key. */
  readonly facts: Record<string, string>
  readonly clocks: readonly Readings[]
  /** Place of the first MONOTONIC reading in the block's view. */
  readonly clockAt: number | undefined
  /** Total event records written and dropped, and why (`full`, as in docs/reference/ggtrace-format.md), from an END record. */
  readonly end: { readonly written: number; readonly dropped: number; readonly full: number } | undefined
}

/** Reads a run block. */
export function readRun(block: Block, clock: LogClock, report: Report): RunBlock {
  const { view } = block
  const shift = block.byte - block.at
  const facts: Record<string, string> = Object.create(null)
  const clocks: Readings[] = []
  let clockAt: number | undefined
  let last: RunBlock['end']
  clock.enter(block.state === 'sealed')
  forEachRecord(block, report, (type, at, end) => {
    if (type === RecordType.Clocks) {
      const readings = CLOCKS.flatMap((name, i) => {
        const ns = readAbsolute(view, at + 4 + 8 * i)
        return ns === undefined ? [] : { clock: name, ns }
      })
      if (readings[0]?.clock !== 'MONOTONIC') {
        return report('impossible-time', 'a CLOCKS record has no time of MONOTONIC; left out', at + shift)
      }
      clockAt ??= at + 4
      if (readings.length > 1) clocks.push(readings)
    } else if (type === RecordType.End) {
      const full = end - at >= END_WITH_REASON_BYTES ? view.getUint32(at + 28, true) : 0
      last = { written: readU64(view, at + 12), dropped: readU64(view, at + 20), full }
      const endNs = clock.read(view, at + 4)
      if (endNs !== undefined) clock.lastNs = Math.max(clock.lastNs, endNs)
    } else if (type === RecordType.Fact) {
      const key = readText(view, at + 4, end)
      const value = key && readText(view, key.next, end)
      if (!value) return report('damaged-record', 'expected two texts within its FACT record, found less', at + shift)
      if (key.text === '') return report('damaged-record', 'expected a key in a FACT record, found none', at + shift)
      addFact(facts, key.text, value.text)
    }
  })
  redactCommandOf(facts)
  const version = facts['format.version']
  if (version !== undefined && version !== VERSION) {
    const detail = `expected format.version ${VERSION}, found ${version.slice(0, 40)}; unknown records are left out`
    report('unknown-version', detail, block.byte)
  }
  return { facts, clocks, clockAt, end: last }
}

/** Older recorders write secrets. */
function redactCommandOf(facts: Record<string, string>): void {
  const { command } = facts
  if (command === undefined) return
  const { text, count } = redactCommand(command)
  facts['command'] = text
  if (count > 0) facts['redacted'] = `${count + Number(facts['redacted'] ?? 0)}`
}

/** Place of a block's base time. */
export function baseAt(block: Block): number {
  return block.at + Header.base
}

/** Adds a fact; a second one of the same key, such as a note, is appended to the first. */
export function addFact(facts: Record<string, string>, key: string, value: string): void {
  const before = facts[key]
  if (before === undefined) {
    if (Object.keys(facts).length < FACTS_MAX) facts[key] = value
  } else if (!before.split('; ').includes(value) && before.length < FACT_CHARS_MAX) facts[key] = `${before}; ${value}`
}
