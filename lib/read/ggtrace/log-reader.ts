// ggtrace: the log of our recorder (native/), specified in docs/reference/ggtrace-format.md, little-endian. Blocks with zeros
// between them:
//
//     0  u32 magic "GGT0"   4  u32 size (0 = never sealed)   8  u32 checksum of all from here on
//    12  u16 kind: 1 run, 2 definitions, 3 events           14  u16 writer   16  u32 sequence   20  u32 tid
//    24  u64 base time     32  u32 needs   36  u32 dropped   40  u32 worker   44  u32 call
//    48  records: u16 type, u16 size, fields
//
// Blocks of different writers are in any order: blocks of events wait for the definitions that they need.

import { FormatError } from '../../errors.ts'
import { ByteCursor } from '../../input/byte-cursor.ts'
import { BlockKind, HEADER_BYTES } from '../../log/ggtrace-layout.ts'
import type { TraceEvent } from '../../model/events.ts'
import { type IssueCode, issueOf } from '../../model/issues.ts'
import { describeProgramClock, programClockIn } from '../../model/program-clock.ts'
import { type ChunkReader, EventBatch, readBatches } from '../common/batches.ts'
import { grouped } from '../common/holdings.ts'
import type { ReadContext } from '../format.ts'
import { type Block, BlockFinder, forEachRecord, keepBlock, type Report } from './blocks.ts'
import { LogDefinitions } from './definitions.ts'
import { LogClock } from './fields.ts'
import { KeptTimes } from './kept.ts'
import { missingByFacts } from './loss.ts'
import { Waiting, Writers } from './order.ts'
import { EventRecords } from './records.ts'
import { isOfRequests } from './requests.ts'
import { addFact, baseAt, type RunBlock, readRun } from './run.ts'

/** Events of a batch: an input may be one chunk. */
const BATCH_EVENTS = 2048
/** Most issues before the first readable block; more means that there is none. */
const EARLY_ISSUES_MAX = 1000
/** Why records were dropped, by the number in the END record. */
const FULL: readonly (IssueCode | undefined)[] = [
  undefined,
  'log-full',
  'process-limit',
  'disk-full',
  undefined,
  'log-cut',
]

/** Reads a log of the recorder: see {@link Format.read}. */
export function readLog(source: AsyncIterable<Uint8Array>, context: ReadContext): AsyncGenerator<TraceEvent[]> {
  const cursor = new ByteCursor(source)
  return readBatches(cursor, new LogReader(cursor, context))
}

/** Reads a log block by block. */
class LogReader implements ChunkReader {
  readonly batch = new EventBatch()
  private attributes: Record<string, string> = Object.create(null)
  private originNs: bigint | undefined
  private defined = 0
  private end: RunBlock['end']
  /** Block with the times of which the log is complete, where it has a part of the run only. */
  private ring: Block | undefined
  private kept: KeptTimes | undefined
  private readonly open = { blocks: 0, byte: 0 }
  private readonly clock = new LogClock()
  private readonly report: Report = (code, detail, byte) => this.issue(code, detail, byte)
  private readonly blocks = new BlockFinder(this.report)
  private readonly writers = new Writers(this.report)
  private readonly waiting = new Waiting()
  /** Blocks that wait no longer, the last first. */
  private ready: Block[] = []
  private isReleased = false
  private readonly definitions: LogDefinitions
  private readonly records: EventRecords

  constructor(
    private readonly cursor: ByteCursor,
    { names }: ReadContext,
  ) {
    const { batch, report, clock } = this
    this.definitions = new LogDefinitions(names, batch, report, clock)
    this.records = new EventRecords(this.definitions, clock, batch, report)
  }

  readChunk(isLast: boolean): boolean {
    while (this.readBlock(isLast)) if (this.batch.size >= BATCH_EVENTS && this.batch.hasBegun) return true
    if (!isLast) return false
    if (!this.isReleased) {
      this.releaseAll()
      return true
    }
    this.records.finish(this.end !== undefined)
    for (const issue of missingByFacts(this.attributes, this.cursor.offset, this.clock.lastNs)) this.batch.add(issue)
    this.reportEnd(this.cursor.offset)
    for (const event of this.records.leftOut.events()) this.batch.add(event)
    return false
  }

  /** Reads the next block; false where more bytes are needed, or, in the last window, where there is none. */
  private readBlock(isLast: boolean): boolean {
    const released = this.ready.pop()
    if (released) {
      this.records.read(released)
      return true
    }
    const block = this.blocks.next(this.cursor, isLast)
    if (!block) return false
    if (block.state === 'damaged') this.writers.acceptDamaged(block)
    else this.accept(block)
    return true
  }

  /** At the input's end: reads the events that still wait for definitions without these. */
  private releaseAll(): void {
    const byte = this.cursor.offset
    if (this.originNs === undefined) {
      throw new FormatError('ggtrace', { byte: 0 }, 'a block that can be read', `none in ${byte} bytes`)
    }
    this.begin()
    const { needs } = this.waiting
    if (needs > this.defined) {
      const detail = `expected ${needs} definitions, found ${this.defined}; events are read with what is known`
      this.issue('lost-definitions', detail, byte)
    }
    this.release(Infinity)
    this.isReleased = true
  }

  private accept(block: Block): void {
    if (block.kind === BlockKind.Ring) return this.readRing(block)
    if (this.originNs === undefined && block.kind !== BlockKind.Run) this.setOrigin(block, baseAt(block))
    if (block.state === 'sealed' && block.kind === BlockKind.Events) this.clock.goTo(block.view, baseAt(block))
    if (!this.writers.accept(block)) return
    if (block.state === 'open') {
      if (this.open.blocks++ === 0) this.open.byte = block.byte
    }
    if (block.kind === BlockKind.Run) this.readRun(block)
    else if (block.kind === BlockKind.Definitions) this.readDefinitions(block)
    else if (block.kind === BlockKind.Events) this.readEvents(block)
    else this.records.leftOut.add(`blocks of kind ${block.kind}`)
  }

  /** The log is complete only from the time in this block on. */
  private readRing(block: Block): void {
    if (block.end - block.at < HEADER_BYTES + 8) return
    this.ring = keepBlock(block)
    this.writers.isRing = true
    this.writers.mayHaveGaps = block.end - block.at > HEADER_BYTES + 8
  }

  private setOrigin(block: Block, at: number): void {
    this.originNs ??= this.clock.begin(block.view, at)
  }

  private readRun(block: Block): void {
    const run = readRun(block, this.clock, this.report)
    const isFirst = this.originNs === undefined
    this.setOrigin(block, run.clockAt ?? baseAt(block))
    this.end = run.end ?? this.end
    if (isFirst) {
      this.attributes = run.facts
      this.begin()
    } else this.addFacts(run)
    this.records.areEndsInferred = this.attributes['operators.end'] !== undefined
    for (const readings of run.clocks) this.batch.add({ kind: 'clocks', readings })
  }

  private addFacts({ facts }: RunBlock): void {
    this.begin()
    const news: Record<string, string> = Object.create(null)
    for (const [key, value] of Object.entries(facts)) {
      const before = this.attributes[key]
      addFact(this.attributes, key, value)
      const after = this.attributes[key]
      if (after !== undefined && after !== before) news[key] = after
    }
    if (Object.keys(news).length > 0) this.batch.add({ kind: 'facts', attributes: news })
  }

  private readDefinitions(block: Block): void {
    this.begin()
    const { defined, definitions } = this
    if (block.needs > defined) {
      const detail = `expected definition ${defined}, found ${block.needs}: ${block.needs - defined} are lost`
      this.issue('lost-definitions', detail, block.byte)
    }
    this.clock.enter(block.state === 'sealed')
    const count = forEachRecord(block, this.report, (type, at, end) => {
      definitions.read(type, block.view, at, end, block.byte + at - block.at)
    })
    this.defined = Math.max(defined, block.needs + count)
    this.release(this.defined)
  }

  private readEvents(block: Block): void {
    this.begin()
    const isFree = !this.waiting.has(block.writer) && isOfRequests(block, this.definitions)
    if (isFree || !this.waiting.hold(block, this.defined)) return this.records.read(block)
    this.release(this.defined)
    if (!this.waiting.isFull) return
    const needs = Math.max(this.waiting.needs, this.defined)
    const detail = `expected ${needs} definitions, found ${this.defined}; events wait for them no longer`
    this.issue('lost-definitions', detail, block.byte)
    this.defined = needs
    this.release(Infinity)
  }

  /** Queues blocks that wait no longer, to be read next. */
  private release(defined: number): void {
    const released = this.waiting.release(defined)
    if (released.length > 0) this.ready = [...released.reverse(), ...this.ready]
  }

  /** Adds the input event, once the origin is known. */
  private begin(): void {
    const { batch, attributes, originNs } = this
    if (batch.hasBegun || originNs === undefined) return
    this.kept = this.ring && KeptTimes.in(this.ring, this.clock)
    const fromNs = this.kept ? this.kept.fromNs : this.ring && this.clock.read(this.ring.view, HEADER_BYTES)
    if (fromNs !== undefined) this.records.times.fromNs = this.definitions.fromNs = fromNs
    if (this.kept) {
      this.records.times.keep(this.kept)
      Object.assign(attributes, this.kept.facts)
    }
    batch.begin({ kind: 'input', format: 'ggtrace', clock: 'MONOTONIC', originNs, attributes: { ...attributes } })
    for (const issue of this.kept?.issues() ?? []) batch.add(issue)
  }

  private reportEnd(byte: number): void {
    const { end, open, records, writers } = this
    const clock = programClockIn(this.attributes)
    if (clock) this.issue('program-clock', describeProgramClock(clock), byte)
    const left = open.blocks === 0 ? '' : `${open.blocks} blocks were still open (the first at byte ${open.byte})`
    if (!end) {
      const detail = 'no END record: the process was killed, or the file was cut'
      this.issue('run-without-end', left ? `${detail}; ${left} and are read unchecked` : detail, byte)
      return
    }
    if (left) this.issue('open-blocks', `${left}, though the run ended; they are read unchecked`, open.byte)
    const overwritten = this.ring ? end.written - records.count : 0
    if (overwritten > 0 && this.kept) return
    if (overwritten > 0) this.batch.add({ kind: 'facts', attributes: { overwritten_records: overwritten } })
    else if (end.written > records.count) {
      this.issue('missing-records', `expected ${end.written} event records, found ${records.count}`, byte)
    }
    if (end.dropped > writers.dropped) {
      const detail = `${grouped(end.dropped)} records in all found no space, ${grouped(end.dropped - writers.dropped)} of them not reported before`
      this.issue('dropped-records', detail, byte)
    }
    const why = FULL[end.full]
    if (why && (end.dropped > 0 || why === 'log-cut'))
      this.issue(why, `${grouped(end.dropped)} records were dropped`, byte)
  }

  private issue(code: IssueCode, detail: string, byte: number): void {
    this.batch.add(issueOf(code, detail, { byte }, this.clock.lastNs))
    if (this.batch.hasBegun || this.batch.size <= EARLY_ISSUES_MAX) return
    throw new FormatError('ggtrace', { byte }, 'a block that can be read', `${EARLY_ISSUES_MAX} that cannot`)
  }
}
