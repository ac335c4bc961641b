import {
  type AccessEvent,
  type IssueEvent,
  lastTimeOf,
  type MappingEvent,
  type OperatorEvent,
  type TraceEvent,
} from '../model/events.ts'
import { issueOf } from '../model/issues.ts'
import {
  CORRELATION_MAX,
  COUNTED_MAX,
  CPU_MAX,
  ID_MAX,
  INT32_MAX,
  METER_MAX,
  TIME_NS_MAX,
  WORKER_MAX,
} from '../model/limits.ts'
import {
  notFinite,
  orUnknown,
  tooFar,
  type Wrong,
  wrongAmount,
  wrongBufferSize,
  wrongBytes,
  wrongFact,
  wrongFlows,
  wrongNumber,
  wrongOrigin,
  wrongPriority,
  wrongReadings,
  wrongSize,
  wrongSpan,
  wrongTime,
  wrongValue,
} from './event-ranges.ts'
import { placeSwitch, SwitchOrder } from './order.ts'
import { StreamWork } from './stream-work.ts'

/**
 * Checks every event of every input, between the readers and all passes. In checked events, times and the numbers that
 * identify threads, CPUs, tensors and launches are in their ranges (model/limits.ts), and the switches of each CPU are in order.
 * Work within other work of its stream is an issue, and stays.
 * A wrong number becomes -1 where -1 means unknown; otherwise the event is left out. Both are issues at the last valid time.
 */
export class EventBounds {
  private lastNs = 0
  private readonly order = new SwitchOrder()
  private readonly streams = new StreamWork()

  /** Returns the batch itself if all of its events are valid. */
  check(batch: TraceEvent[]): TraceEvent[] {
    let checked: TraceEvent[] | undefined
    for (let i = 0; i < batch.length; i++) {
      const event = batch[i]!
      if (event.kind !== 'operator' || !isSound(event)) checked = this.checkOne(event, i, batch, checked)
      else if (checked) checked.push(event)
    }
    const sound = checked ?? batch
    this.lastNs = this.lastOf(sound)
    return sound
  }

  /** Checks one event. Returns all checked events so far, or undefined while they are the batch itself. */
  private checkOne(
    event: TraceEvent,
    at: number,
    batch: TraceEvent[],
    before?: TraceEvent[],
  ): TraceEvent[] | undefined {
    const wrong = wrongIn(event)
    const issue = wrong ? undefined : this.orderIssue(event)
    const checked = before ?? (wrong || issue ? batch.slice(0, at) : undefined)
    if (wrong) this.mend(event, wrong, checked!)
    else if (issue && event.kind === 'switch') placeSwitch(event, issue, checked!)
    else if (issue) checked!.push(event, issue)
    else checked?.push(event)
    return checked
  }

  private orderIssue(event: TraceEvent): IssueEvent | undefined {
    if (event.kind === 'switch') return this.order.follow(event)
    return event.kind === 'gpu' ? this.streams.follow(event) : undefined
  }

  private mend(event: TraceEvent, first: Wrong, into: TraceEvent[]): void {
    const atNs = this.lastOf(into)
    if (event.kind === 'issue') {
      into.push({ ...event, atNs })
      return
    }
    const issues: IssueEvent[] = []
    let mended = event
    for (let wrong: Wrong | undefined = first; wrong; wrong = wrongIn(mended)) {
      const { code, field, expected, found, instead } = wrong
      const done = instead ? 'not used' : 'left out'
      const detail = `${event.kind}: expected ${field} ${expected}, found ${found}; ${done}`
      issues.push(issueOf(code, detail, { byte: 0 }, atNs))
      if (!instead) {
        into.push(...issues)
        return
      }
      mended = { ...mended, ...instead }
    }
    if (mended.kind === 'switch') placeSwitch(mended, this.order.follow(mended), into)
    else into.push(mended)
    into.push(...issues)
  }

  /** The time of the last event that has one. */
  private lastOf(events: readonly TraceEvent[]): number {
    for (let i = events.length - 1; i >= 0; i--) {
      const ns = lastTimeOf(events[i]!)
      if (ns !== undefined) return ns
    }
    return this.lastNs
  }
}

/** Are all fields valid? The same checks as in {@link wrongIn}, in a few nanoseconds: most events are operators. */
function isSound({ startNs, endNs, waitEndNs, tensor, worker, tid, cpu, call, fusedTo }: OperatorEvent): boolean {
  return (
    startNs >= -TIME_NS_MAX &&
    endNs >= startNs &&
    waitEndNs >= endNs &&
    waitEndNs <= TIME_NS_MAX &&
    waitEndNs - startNs <= TIME_NS_MAX &&
    Number.isInteger(startNs) &&
    Number.isInteger(endNs) &&
    Number.isInteger(waitEndNs) &&
    tensor >>> 0 === tensor &&
    tensor <= ID_MAX &&
    worker >>> 0 === worker &&
    worker <= WORKER_MAX &&
    tid >> 0 === tid &&
    tid >= -1 &&
    cpu >> 0 === cpu &&
    cpu >= -1 &&
    cpu <= CPU_MAX &&
    call >> 0 === call &&
    call >= -1 &&
    fusedTo === undefined
  )
}

/** The first wrong field. Each kind reads its fields itself: property loads that see one object shape are fast. */
function wrongIn(event: TraceEvent): Wrong | undefined {
  switch (event.kind) {
    case 'operator': {
      const { startNs, endNs, waitEndNs, tensor, worker, tid, cpu, call, fusedTo } = event
      return (
        wrongSpan(startNs, endNs) ??
        wrongSpan(endNs, waitEndNs) ??
        wrongNumber('tensor', tensor, ID_MAX) ??
        wrongNumber('worker', worker, WORKER_MAX) ??
        wrongNumber('fusedTo', fusedTo ?? 0, ID_MAX) ??
        orUnknown('tid', tid) ??
        orUnknown('cpu', cpu, CPU_MAX) ??
        orUnknown('call', call)
      )
    }
    case 'range':
      return wrongTime(event.atNs) ?? orUnknown('tid', event.tid) ?? (event.flows && wrongFlows(event.flows))
    case 'nvtx':
      return wrongTime(event.atNs) ?? orUnknown('tid', event.tid)
    case 'counter':
      return wrongTime(event.atNs) ?? notFinite(event.value)
    case 'issue':
      return wrongTime(event.atNs)
    case 'input':
      return wrongOrigin(event) ?? wrongFact(event)
    case 'clocks':
      return wrongReadings(event)
    case 'facts':
      return wrongFact(event)
    default:
      return wrongInFurther(event)
  }
}

/** The first wrong field of events of which there are few: definitions, and one for each call or request. */
function wrongInFew(event: TraceEvent): Wrong | undefined {
  switch (event.kind) {
    case 'tensor':
      return wrongNumber('id', event.id, ID_MAX) ?? orUnknown('layer', event.layer) ?? wrongSize(event)
    case 'buffer':
      return wrongNumber('id', event.id, ID_MAX) ?? wrongBufferSize(event)
    case 'counted':
      return wrongNumber('index', event.index, COUNTED_MAX)
    case 'graph':
    case 'part':
    case 'sums':
      return wrongSpan(event.startNs, event.endNs) ?? orUnknown('call', event.call)
    case 'token':
      return wrongSpan(event.startNs, event.endNs) ?? orUnknown('call', event.call) ?? orUnknown('tid', event.tid)
    case 'experts':
      return wrongTime(event.atNs) ?? wrongNumber('tensor', event.tensor, ID_MAX) ?? orUnknown('call', event.call)
    case 'copy':
      return (
        wrongSpan(event.startNs, event.endNs) ??
        orUnknown('tid', event.tid) ??
        orUnknown('tensor', event.tensor, ID_MAX)
      )
    case 'allocation':
    case 'nvtx-name':
      return wrongTime(event.atNs)
    case 'function':
      return (
        wrongSpan(event.startNs, event.endNs) ?? orUnknown('tid', event.tid) ?? orUnknown('sequence', event.sequence)
      )
    case 'sequence':
    case 'task':
      return wrongTime(event.atNs) ?? orUnknown('tid', event.tid)
    case 'request':
    case 'benchmark':
      return wrongSpan(event.startNs, event.endNs)
    case 'blas':
      return wrongSpan(event.startNs, event.endNs) ?? wrongNumber('count', event.count, Number.MAX_SAFE_INTEGER)
    case 'meter':
      return wrongNumber('id', event.id, METER_MAX)
    default:
      return undefined
  }
}

/** The first wrong field of kernel, GPU and own events. */
function wrongInFurther(event: TraceEvent): Wrong | undefined {
  switch (event.kind) {
    case 'switch':
      return (
        wrongTime(event.atNs) ??
        wrongNumber('nextTid', event.nextTid, INT32_MAX) ??
        wrongNumber('prevState', event.prevState, INT32_MAX) ??
        orUnknown('cpu', event.cpu, CPU_MAX) ??
        orUnknown('prevTid', event.prevTid, INT32_MAX) ??
        wrongPriority('prevPrio', event.prevPrio) ??
        wrongPriority('nextPrio', event.nextPrio)
      )
    case 'waking':
      return (
        wrongTime(event.atNs) ??
        wrongNumber('tid', event.tid, INT32_MAX) ??
        orUnknown('cpu', event.cpu, CPU_MAX) ??
        orUnknown('wakerTid', event.wakerTid, INT32_MAX) ??
        orUnknown('targetCpu', event.targetCpu, CPU_MAX) ??
        wrongPriority('prio', event.prio)
      )
    case 'thread':
      return (
        wrongTime(event.atNs) ??
        wrongNumber('tid', event.tid, INT32_MAX) ??
        orUnknown('tgid', event.tgid, INT32_MAX) ??
        orUnknown('parentTid', event.parentTid, INT32_MAX)
      )
    case 'state':
      return wrongTime(event.atNs) ?? orUnknown('tid', event.tid) ?? orUnknown('cpu', event.cpu, CPU_MAX)
    case 'access':
    case 'mapping':
      return wrongInAccess(event)
    case 'gpu':
    case 'gpu-sync':
      return (
        wrongSpan(event.startNs, event.endNs) ??
        orUnknown('correlation', event.correlation, CORRELATION_MAX) ??
        orUnknown('device', event.device, INT32_MAX) ??
        orUnknown('context', event.context) ??
        orUnknown('stream', event.stream) ??
        orUnknown('pid', event.pid) ??
        wrongBytes(event)
      )
    case 'api':
      return (
        wrongSpan(event.startNs, event.endNs) ??
        orUnknown('correlation', event.correlation, CORRELATION_MAX) ??
        orUnknown('tid', event.tid) ??
        orUnknown('pid', event.pid) ??
        wrongNumber('launched', event.launched, Number.MAX_SAFE_INTEGER)
      )
    case 'nvtx-gpu':
      return wrongSpan(event.startNs, event.endNs) ?? orUnknown('tid', event.tid)
    case 'reading':
      return (
        wrongNumber('meter', event.meter, METER_MAX) ??
        wrongSpan(event.startNs, event.endNs) ??
        wrongValue('value', event.value)
      )
    case 'own-slice':
      return tooFar('startNs', event.startNs) ?? tooFar('endNs', event.endNs)
    case 'own-instant':
    case 'own-sample':
      return tooFar('atNs', event.atNs)
    default:
      return wrongInFew(event) ?? wrongAmount(event)
  }
}

/** The first wrong field of a sample of a data address, or of a mapping. */
function wrongInAccess(event: AccessEvent | MappingEvent): Wrong | undefined {
  if (event.kind === 'access') {
    return (
      wrongTime(event.atNs) ??
      wrongNumber('count', event.count, Number.MAX_SAFE_INTEGER) ??
      orUnknown('address', event.address) ??
      orUnknown('pid', event.pid, INT32_MAX) ??
      orUnknown('tid', event.tid, INT32_MAX) ??
      orUnknown('cpu', event.cpu, CPU_MAX)
    )
  }
  return (
    wrongTime(event.atNs) ??
    wrongNumber('address', event.address, Number.MAX_SAFE_INTEGER) ??
    wrongNumber('bytes', event.bytes, Number.MAX_SAFE_INTEGER) ??
    wrongNumber('fileOffset', event.fileOffset, Number.MAX_SAFE_INTEGER) ??
    wrongNumber('pid', event.pid, INT32_MAX)
  )
}
