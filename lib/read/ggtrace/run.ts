import { Header, RecordType } from '../../log/ggtrace-layout.ts'
import type { Clock, TraceEvent } from '../../model/events.ts'
import { type Block, forEachRecord, type Report } from './blocks.ts'
import { type LogClock, readAbsolute, readText, readU64 } from './fields.ts'
import { redactCommand } from './redact.ts'

type Readings = Extract<TraceEvent, { kind: 'clocks' }>['readings']

/** The version that this reader is for. */
const VERSION = '0'
/** In the order in which a CLOCKS record has them. */
const CLOCKS: readonly Clock[] = ['MONOTONIC', 'BOOTTIME', 'REALTIME']
/** Facts that are kept: a recorder tells some twenty. */
const FACTS_MAX = 256
/** Characters from which on nothing is joined to a fact. */
const FACT_CHARS_MAX = 4096

/** What one run block says. */
export interface RunBlock {
  /** Without a prototype: any text may be a key. */
  readonly facts: Record<string, string>
  readonly clocks: readonly Readings[]
  /** Where the first MONOTONIC reading stands in the block's view. */
  readonly clockAt: number | undefined
  /** Event records that were written and dropped in all, if this is the end. */
  readonly end: { readonly written: number; readonly dropped: number } | undefined
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
      last = { written: readU64(view, at + 12), dropped: readU64(view, at + 20) }
      const endNs = clock.read(view, at + 4)
      if (endNs !== undefined) clock.lastNs = Math.max(clock.lastNs, endNs)
    } else if (type === RecordType.Fact) {
      const key = readText(view, at + 4, end)
      const value = key && readText(view, key.next, end)
      if (!value) return report('damaged-record', 'expected two texts within its FACT record, found less', at + shift)
      addFact(facts, key.text, value.text)
    }
  })
  redactCommandOf(facts)
  const version = facts['format.version']
  if (version !== undefined && version !== VERSION) {
    const detail = `expected format.version ${VERSION}, found ${version.slice(0, 40)}; read as far as it is understood`
    report('unknown-version', detail, block.byte)
  }
  return { facts, clocks, clockAt, end: last }
}

/** A log may be of a recorder that wrote secrets. */
function redactCommandOf(facts: Record<string, string>): void {
  const { command } = facts
  if (command === undefined) return
  const { text, count } = redactCommand(command)
  facts['command'] = text
  if (count > 0) facts['redacted'] = `${count + Number(facts['redacted'] ?? 0)}`
}

/** Where a block says when it began. */
export function baseAt(block: Block): number {
  return block.at + Header.base
}

/** Adds a fact to those that are known; one of the same key, such as a note, is joined with it. */
export function addFact(facts: Record<string, string>, key: string, value: string): void {
  const before = facts[key]
  if (before === undefined) {
    if (Object.keys(facts).length < FACTS_MAX) facts[key] = value
  } else if (!before.split('; ').includes(value) && before.length < FACT_CHARS_MAX) facts[key] = `${before}; ${value}`
}
