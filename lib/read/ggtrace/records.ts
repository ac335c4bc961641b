import { COPY_KINDS, Header, PARTS, RECORD_BYTES, RecordType, THREAD_STATES } from '../../log/ggtrace-layout.ts'
import { Inferred, type TraceEvent } from '../../model/events.ts'
import { issueOf } from '../../model/issues.ts'
import { LeftOut } from '../../model/left-out.ts'
import { WORKER_MAX } from '../../model/limits.ts'
import type { EventBatch } from '../common/batches.ts'
import { type Block, forEachRecord, type Report } from './blocks.ts'
import { CallRecords } from './calls.ts'
import type { LogDefinitions } from './definitions.ts'
import { type LogClock, readNumber, readU64 } from './fields.ts'
import { ReadTimes } from './kept.ts'
import { lessBecause, lossOf } from './loss.ts'
import { readNvtx } from './nvtx.ts'
import { MessageRecords, readFunction, readSequence, readTask } from './requests.ts'
import { ResourceRecords } from './resources.ts'
import { readRpc } from './rpc.ts'

const IMPOSSIBLE = 'a record has no time, or an impossible one; it is left out'

interface Span {
  readonly startNs: number
  readonly endNs: number
}

/** Turns the records of event blocks into events. */
export class EventRecords {
  /** Number of records so far. */
  count = 0
  /** Of which the log has all records: others are left out. */
  readonly times = new ReadTimes()
  /** Ends of operators were not recorded: each is the start of the thread's next one. */
  areEndsInferred = false
  /** Records of unknown types, of later versions. */
  readonly leftOut = new LeftOut()
  private view: DataView = new DataView(new ArrayBuffer(0))
  private tid = 0
  private worker = -1
  private call = -1
  /** The end of the wait after the last operator. NaN: a double from the start; times are small integers up to 2 s, then V8 would compile again. */
  private cursorNs = Number.NaN
  /** Of the operator that is read. As fields, not arguments: V8 allocates an object for each argument that is no small integer. */
  private startNs = Number.NaN
  private endNs = Number.NaN
  /** Add to a place in the view for its offset in the input. */
  private shift = 0
  private hasStrayOperators = false
  /** Counts of the next operator. */
  private counts: readonly number[] | undefined
  private countsInferred = 0
  private readonly messages: MessageRecords
  private readonly calls: CallRecords
  private readonly resources = new ResourceRecords()

  constructor(
    private readonly definitions: LogDefinitions,
    private readonly clock: LogClock,
    private readonly batch: EventBatch,
    private readonly report: Report,
  ) {
    this.messages = new MessageRecords(definitions.names, report)
    this.calls = new CallRecords(batch)
  }

  /** Reads a block. */
  read(block: Block): void {
    const { view, at, byte } = block
    this.clock.enter(block.state === 'sealed')
    const baseNs = this.clock.read(view, at + Header.base)
    if (baseNs === undefined) {
      return this.report('impossible-time', 'a block starts at an impossible time; it is left out', byte)
    }
    this.clock.lastNs = baseNs
    this.cursorNs = baseNs
    this.view = view
    this.shift = byte - at
    this.tid = view.getUint32(at + Header.tid, true)
    const worker = view.getUint32(at + Header.worker, true)
    this.worker = worker <= WORKER_MAX ? worker : -1
    this.call = readNumber(view, at + Header.call)
    this.hasStrayOperators = false
    this.counts = undefined
    this.countsInferred = 0
    this.count += forEachRecord(block, this.report, this.readRecord)
    this.clock.lastNs = Math.max(this.clock.lastNs, this.cursorNs)
  }

  /** Call it after the last {@link read}. `hasEnd`: the log was closed. */
  finish(hasEnd: boolean): void {
    this.calls.settle()
    for (const off of this.times.finish(hasEnd)) this.batch.add(off)
  }

  private readonly readRecord = (type: number, at: number, end: number): void => {
    switch (type) {
      case RecordType.OperatorSmall:
        return this.readSmallOperator(at, 0, 0)
      case RecordType.OperatorSmallInner:
        return this.readSmallOperator(at, this.view.getUint32(at + 12, true), 0)
      case RecordType.OperatorSmallFused:
        return this.readSmallOperator(at, 0, this.view.getUint32(at + 12, true))
      case RecordType.Operator:
        return this.readOperator(at, 0, 0)
      case RecordType.OperatorInner:
        return this.readOperator(at, this.view.getUint32(at + 20, true), 0)
      case RecordType.OperatorFused:
        return this.readOperator(at, 0, this.view.getUint32(at + 20, true))
      case RecordType.OperatorLong:
        return this.readLongOperator(at)
      case RecordType.Counts:
        return this.readCounts(at, end, 0)
      case RecordType.CountsScaled:
        return this.readCounts(at, end, Inferred.Counts)
      case RecordType.Cursor:
        return this.readCursor(at)
      case RecordType.Token:
        return this.readToken(at, end)
      case RecordType.GraphRun:
        return this.readGraph(at)
      case RecordType.Experts:
        return this.readExperts(at, end)
      case RecordType.Copy:
        return this.readCopy(at)
      case RecordType.Part:
        return this.readPart(at)
      case RecordType.Function:
        return this.readFunction(at)
      default:
        return this.readInstant(type, at, end)
    }
  }

  private readOperator(at: number, innerWaitNs: number, fusedTo: number): void {
    const { view } = this
    this.startNs = this.cursorNs + view.getUint32(at + 8, true)
    this.endNs = this.startNs + view.getUint32(at + 12, true)
    this.cursorNs = this.endNs + view.getUint32(at + 16, true)
    this.emitOperator(at, view.getUint32(at + 4, true), fusedTo, innerWaitNs)
  }

  /** Its u64 contains 20 bits of the tensor, 20 of the wait, 24 of the computing. */
  private readSmallOperator(at: number, innerWaitNs: number, fusedTo: number): void {
    const { view } = this
    const low = view.getUint32(at + 4, true)
    const high = view.getUint32(at + 8, true)
    this.startNs = this.cursorNs
    this.endNs = this.startNs + (high >>> 8)
    this.cursorNs = this.endNs + (((high & 0xff) << 12) | (low >>> 20))
    this.emitOperator(at, low & 0xfffff, fusedTo, innerWaitNs)
  }

  private readLongOperator(at: number): void {
    const span = this.readSpan(at)
    if (!span) return
    const { view } = this
    this.startNs = span.startNs
    this.endNs = span.endNs
    this.cursorNs = Math.max(span.endNs, this.readTime(at, at + 20) ?? span.endNs)
    this.emitOperator(at, view.getUint32(at + 28, true), view.getUint32(at + 36, true), view.getUint32(at + 32, true))
  }

  /** Adds an operator from `startNs` to `endNs`, whose worker waited after it up to `cursorNs`. */
  private emitOperator(at: number, tensor: number, fusedTo: number, innerWaitNs: number): void {
    const { startNs } = this
    if (this.worker < 0) return this.strayOperator(at)
    if (this.times.areLeftOut(startNs)) {
      this.counts = undefined
      this.countsInferred = 0
      return
    }
    const byte = at + this.shift
    this.batch.add({
      kind: 'operator',
      tensor: this.definitions.tensor(tensor, byte),
      worker: this.worker,
      tid: this.tid,
      cpu: -1,
      call: this.call,
      startNs,
      endNs: this.endNs,
      waitEndNs: this.cursorNs,
      innerWaitNs: innerWaitNs === 0 ? undefined : innerWaitNs,
      fusedTo: fusedTo === 0 ? undefined : this.definitions.tensor(fusedTo, byte),
      experts: undefined,
      counts: this.counts,
      inferred: this.countsInferred | (this.areEndsInferred ? Inferred.End : 0),
    })
    this.counts = undefined
    this.countsInferred = 0
  }

  private strayOperator(at: number): void {
    if (this.hasStrayOperators) return
    this.hasStrayOperators = true
    const detail = `expected operators in blocks of worker 0 to ${WORKER_MAX} only; the block's operators are left out`
    this.report('operator-without-worker', detail, at + this.shift)
  }

  private readCounts(at: number, end: number, inferred: number): void {
    const { view } = this
    const [present, wide] = [view.getUint16(at + 4, true), view.getUint16(at + 6, true)]
    const counts: number[] = []
    let place = at + 8
    for (let i = 0, bits = present; bits !== 0; i++, bits >>= 1) {
      const bytes = (bits & 1) === 0 ? 0 : (wide >> i) & 1 ? 8 : 4
      if (place + bytes > end) {
        const detail = `expected a value of ${bytes} bytes for counter ${i} within its COUNTS record, found ${end - place}`
        return this.report('damaged-record', `${detail}; left out`, at + this.shift)
      }
      if (bytes > 0) this.definitions.needCounter(i, at + this.shift)
      counts.push(bytes === 0 ? 0 : bytes === 4 ? view.getUint32(place, true) : readU64(view, place))
      place += bytes
    }
    this.counts = counts
    this.countsInferred = inferred
  }

  private readCursor(at: number): void {
    const atNs = this.readTime(at, at + 4)
    if (atNs !== undefined) this.cursorNs = atNs
    this.call = readNumber(this.view, at + 12)
  }

  private readToken(at: number, end: number): void {
    const span = this.readSpan(at)
    if (!span) return
    const [{ startNs, endNs }, { tid }] = [span, this]
    if (endNs > this.times.untilNs) return // its events are not all kept
    this.calls.read(this.view, at, end, {
      ...{ startNs, endNs, tid, byte: at + this.shift },
      resources: this.resources.of(tid, startNs),
    })
  }

  private readGraph(at: number): void {
    const span = this.readSpan(at)
    if (!span) return
    const { view, definitions } = this
    const id = view.getUint32(at + 20, true)
    const graph = definitions.graph(id)
    if (!graph && id !== 0)
      this.report('undefined-id', `expected a definition of graph ${id}, found none`, at + this.shift)
    this.batch.add({
      kind: 'graph',
      startNs: span.startNs, // spreads of other than literals cost as much as all else here
      endNs: span.endNs,
      backend: definitions.name(view.getUint32(at + 32, true), at + this.shift) || (graph?.backend ?? 0),
      nodes: graph?.nodes ?? 0,
      graph: graph?.id,
      call: readNumber(view, at + 24),
      status: view.getInt32(at + 28, true),
      split: readNumber(view, at + 36),
      submissions: definitions.gpu.submissionsIn(this.tid, span),
      inferred: 0,
    })
  }

  private readExperts(at: number, end: number): void {
    const atNs = this.readTime(at, at + 4)
    if (atNs === undefined || this.times.areLeftOut(atNs)) return
    const { view } = this
    const [tokens, k] = [view.getUint32(at + 16, true), view.getUint32(at + 20, true)]
    const present = (end - at - 28) / 4
    if (tokens * k > present) {
      const detail = `expected ${tokens} × ${k} ids within its EXPERTS record, found ${present}; left out`
      return this.report('damaged-record', detail, at + this.shift)
    }
    const ids = new Int32Array(tokens * k)
    for (let i = 0; i < ids.length; i++) ids[i] = view.getInt32(at + 28 + 4 * i, true)
    const tensor = this.definitions.tensor(view.getUint32(at + 12, true), at + this.shift)
    this.batch.add({ kind: 'experts', tensor, call: readNumber(view, at + 24), atNs, tokens, k, ids })
  }

  private readCopy(at: number): void {
    const span = this.readSpan(at)
    if (!span) return
    const { view, definitions } = this
    const byte = at + this.shift
    const tensor = view.getUint32(at + 36, true)
    this.batch.add({
      kind: 'copy',
      what: COPY_KINDS[view.getUint32(at + 40, true)] ?? 'copy',
      startNs: span.startNs,
      endNs: span.endNs,
      bytes: readU64(view, at + 20),
      from: definitions.bufferName(view.getUint32(at + 28, true), byte),
      to: definitions.bufferName(view.getUint32(at + 32, true), byte),
      tensor: tensor === 0 ? -1 : definitions.tensor(tensor, byte),
      tid: this.tid,
    })
  }

  private readPart(at: number): void {
    const span = this.readSpan(at)
    if (!span) return
    const number = this.view.getUint32(at + 24, true)
    const what = PARTS[number]
    if (what) this.batch.add({ kind: 'part', what, ...span, call: readNumber(this.view, at + 20) })
    else this.leftOut.add(`parts of kind ${number}`)
  }

  private readFunction(at: number): void {
    const span = this.readSpan(at)
    if (!span) return
    const [{ startNs, endNs }, { tid, definitions: names }] = [span, this]
    const resources = this.resources.of(tid, startNs)
    const place = { startNs, endNs, tid, names, byte: at + this.shift, resources }
    const event = readFunction(this.view, at, place)
    if (typeof event !== 'number' && event.what === 'sample') this.calls.settle(event.context || undefined)
    this.addOr(event, 'functions')
  }

  private addOr(event: TraceEvent | number, what: string): void {
    if (typeof event === 'number') this.leftOut.add(`${what} of kind ${event}`)
    else this.batch.add(event)
  }

  /** Reads records with one time, at their start. */
  private readInstant(type: number, at: number, end: number): void {
    const atNs = this.readTime(at, at + 4)
    if (atNs === undefined) return
    const { view, definitions, tid, worker } = this
    const byte = at + this.shift
    const nameAt = (offset: number) => definitions.name(view.getUint32(at + offset, true), byte)
    if (type === RecordType.Free) return definitions.free(view.getUint32(at + 12, true), atNs)
    if (this.times.areLeftOut(atNs)) return
    switch (type) {
      case RecordType.State: {
        const [tid, cpu] = [view.getUint32(at + 12, true), readNumber(view, at + 16)]
        const state = THREAD_STATES[view.getUint32(at + 20, true)]
        if (state) for (const off of this.times.enter(tid, state, atNs)) this.batch.add(off)
        return state && this.batch.add({ kind: 'state', tid, cpu, state, atNs })
      }
      case RecordType.Affinity:
        return this.batch.add({
          kind: 'affinity',
          worker,
          tid,
          atNs,
          cpu: readNumber(view, at + 12),
          allowed: nameAt(16),
          ...(end - at >= 24 && { policy: nameAt(20) }),
        })
      case RecordType.Resources:
        return this.resources.read(view, at, tid, atNs)
      case RecordType.Sequence:
        return this.addOr(readSequence(view, at, atNs, tid), 'changes of sequences')
      case RecordType.Task:
        return this.addOr(readTask(view, at, atNs, tid), 'steps of tasks')
      case RecordType.Message:
        for (const step of this.messages.read(view, at, end, { atNs, tid, byte })) this.batch.add(step)
        return
      case RecordType.Rpc: {
        const event = readRpc(view, at, { atNs, tid, byte }, definitions, this.clock)
        return event ? this.batch.add(event) : this.report('impossible-time', IMPOSSIBLE, byte)
      }
      case RecordType.RangeBegin:
        return this.batch.add({ kind: 'range', edge: 'begin', tid, name: nameAt(12), atNs })
      case RecordType.RangeEnd:
        return this.batch.add({ kind: 'range', edge: 'end', tid, name: 0, atNs })
      case RecordType.Counter: {
        const value = view.getFloat64(at + 12, true)
        if (!Number.isFinite(value)) return this.report('value-out-of-range', `expected a number, found ${value}`, byte)
        return this.batch.add({ kind: 'counter', name: nameAt(20), unit: 'count', atNs, value })
      }
      case RecordType.Loss: {
        const loss = lossOf(view, at, definitions.lookUp(view.getUint32(at + 16, true), byte), byte, atNs)
        return void [...this.times.lose(loss), loss].forEach((event) => void this.batch.add(event))
      }
      case RecordType.Level:
        return this.batch.add(issueOf('recorded-less', lessBecause(view, at), { byte }, atNs))
      default: {
        const place = { tid, atNs, byte }
        const event =
          definitions.gpu.read(type, view, at, place) ?? readNvtx(type, view, at, { names: definitions.nvtx, ...place })
        if (event) this.batch.add(event)
        else if (RECORD_BYTES[type] === undefined) this.leftOut.add(`records of type ${type}`)
      }
    }
  }

  /** The start and end that most records begin with; undefined where the log is not complete yet. */
  private readSpan(at: number): Span | undefined {
    const startNs = this.readTime(at, at + 4)
    const endNs = this.readTime(at, at + 12)
    if (startNs === undefined || endNs === undefined || this.times.areLeftOut(startNs)) return undefined
    if (endNs < startNs) {
      const detail = `it ends ${startNs - endNs} ns before it starts; drawn without length`
      this.report('event-without-end', detail, at + this.shift)
    }
    return { startNs, endNs: Math.max(startNs, endNs) }
  }

  private readTime(record: number, at: number): number | undefined {
    const atNs = this.clock.read(this.view, at)
    if (atNs === undefined) {
      this.report('impossible-time', IMPOSSIBLE, record + this.shift)
    } else if (atNs > this.clock.lastNs) this.clock.lastNs = atNs
    return atNs
  }
}
