// ProfInfer's scheduler log (ktrace_*.txt, written by artifact/Linux/trace_kernel.py): sched_switch and sched_wakeup of
// the traced threads, written buffer by buffer of the CPUs, so not sorted. The last line has no line break.
//
//   Children PIDs are: 4242,4243
//   3917038898440 [1] sched_wakeup: 4243 llama-cli
//   3917038901200 [1] sched_switch: [llama-cli 4242 120 0] => [kworker/1:2 77 120]
//
//   ns of CLOCK_MONOTONIC, [CPU], [comm tid priority state] => [comm tid priority]
//   state  as the kernel prints it: 0 (or R+, 256) = preempted, still runnable
//
// A build with kprobes writes the parent's id after each tid. Switches between threads that are not traced are left out.

import type { Position } from '../../errors.ts'
import { getOrMake } from '../../model/default-map.ts'
import type { StateEvent, ThreadOfCpu, ThreadState } from '../../model/events.ts'
import { issueOf } from '../../model/issues.ts'
import { LeftOut } from '../../model/left-out.ts'
import { LineLog, type Origin } from '../common/line-log.ts'
import { LookAhead, type Preview } from '../common/look-ahead.ts'
import type { Format, ReadContext } from '../format.ts'

const LINE = /^(?:Children PIDs are: ?\d|\d+ \[\d+\] sched_(?:switch: \[|wakeup: \d))/m

export const profinferKtrace: Format = {
  name: 'profinfer-ktrace',
  title: "ProfInfer's ktrace text: sched_switch and sched_wakeup of the traced threads",
  sniff: (head) => LINE.test(new TextDecoder().decode(head)),
  read: (source, context) => new KtraceLog(source, profinferKtrace.name, context).read(),
}

const TRACED = /^Children PIDs are: *(\d+(?: *, *\d+)*) *$/
const STAMP = /^\d{1,20}(?= \[)/
const SWITCH = /^(\d{1,20}) \[(\d{1,5})\] sched_switch: \[(.{0,64})\] => \[(.{0,64})\]$/
const WAKEUP = /^(\d{1,20}) \[(\d{1,5})\] sched_wakeup: (\d{1,10}) /
/** Bytes at a line's start that contain its time. */
const STAMP_BYTES = 32
const ROWS = '"<ns> [<cpu>] sched_switch: […] => […]" or "<ns> [<cpu>] sched_wakeup: <tid> <comm>"'

/** Reads ProfInfer's `ktrace` text. */
class KtraceLog extends LineLog<SchedStates> {
  constructor(source: AsyncIterable<Uint8Array>, format: string, context: ReadContext) {
    super(source, format, new SchedStates(format, context))
  }

  protected override stampOf(bytes: Uint8Array, start: number, end: number): bigint | undefined {
    const stamp = STAMP.exec(decoder.decode(bytes.subarray(start, Math.min(end, start + STAMP_BYTES))))
    return stamp ? BigInt(stamp[0]) : undefined
  }

  protected override readLine(origin: Origin): void {
    const { lines, maker: states } = this
    const text = decoder.decode(lines.bytes.subarray(lines.start, lines.end))
    const row = SWITCH.exec(text) ?? WAKEUP.exec(text)
    if (!row) {
      const traced = TRACED.exec(text)
      if (traced) states.trace(traced[1]!.split(',').map(Number))
      else this.reject('unreadable-row', `expected ${ROWS}, found "${printable(text)}"`)
      return
    }
    const [, stamp, cpu, first, next] = row as unknown as [string, string, string, string, string | undefined]
    const atNs = (Number(stamp.slice(0, -9)) - origin.high) * 1e9 + (Number(stamp.slice(-9)) - origin.low)
    if (!this.believes(atNs)) return
    const what = next === undefined ? { woken: Number(first), prev: '', next: '' } : { woken: -1, prev: first, next }
    states.add({ atNs, at: lines.position, cpu: Number(cpu), ...what })
  }
}

/** The start of a line, for a message. */
function printable(text: string): string {
  return text.slice(0, 60).replace(/[^\x20-\x7e]/g, '.')
}

const decoder = new TextDecoder()

/** A sched_switch, or a sched_wakeup. */
interface SchedRow {
  readonly atNs: number
  readonly at: Position
  readonly cpu: number
  /** Thread that was woken; -1 = a switch. */
  readonly woken: number
  /** Texts in the brackets of a switch. */
  readonly prev: string
  readonly next: string
}

interface Switch {
  readonly prevTid: number
  readonly prevComm: string
  readonly prevState: number
  readonly nextTid: number
  readonly nextComm: string
}

interface Thread {
  readonly name: number
  state: ThreadState | undefined
  cpu: number
}

/** Rows in the preview, and by how many a row may be late. */
const WINDOW = 32_768

/** Texts in a switch's brackets. A command name may contain blanks and end in a number: the preview chooses the form. */
const FORMS = {
  plain: { prev: /^(.*) (\d+) \d+ (\d+)$/, next: /^(.*) (\d+) \d+$/ },
  parents: { prev: /^(.*) (\d+) \d+ \d+ (\d+)$/, next: /^(.*) (\d+) \d+ \d+$/ },
} as const
type Form = keyof typeof FORMS

/** Bits of a state that mean waiting; without any, the thread is runnable (linux/sched.h). */
const WAITS = 0xff
/** Dead, zombie; as task state and as exit state. */
const ENDED = 0x10 | 0x20 | 0x80

/** States of the traced threads, from switches and wakeups of these alone. */
class SchedStates extends LookAhead<SchedRow> {
  private readonly threads = new Map<number, Thread>()
  private readonly commands = new Map<number, string>()
  private traced: Set<number> | undefined
  private form: Form = 'plain'
  private lastNs = -Infinity
  private readonly leftOut = new LeftOut()

  constructor(format: string, context: ReadContext) {
    super(format, context, WINDOW)
  }

  /** Adds the log's list of traced threads. */
  trace(tids: readonly number[]): void {
    this.traced = new Set([...(this.traced ?? []), ...tids])
  }

  protected override preview(rows: readonly SchedRow[]): Preview {
    const isListed = this.traced !== undefined
    this.traced ??= new Set(rows.flatMap(({ woken }) => (woken >= 0 ? [woken] : [])))
    const switches = rows.filter(({ woken }) => woken < 0)
    const count = (form: Form) => switches.filter((row) => this.concerns(parse(row, form))).length
    const [plain, parents] = [count('plain'), count('parents')]
    this.form = parents > plain ? 'parents' : 'plain'
    for (const row of switches) this.learnCommands(row)
    const { form } = this
    const inWords = form === 'plain' ? 'without' : 'with'
    const how = isListed ? 'as the log lists them' : 'inferred: the log lists none; these were woken'
    return {
      attributes: {
        traced_threads: `${[...this.traced].join(', ') || 'none'} (${how})`,
        switches: `${inWords} parents' ids, inferred: read so, ${Math.max(plain, parents)} of ${switches.length} concern a traced thread`,
      },
    }
  }

  protected override release(row: SchedRow): void {
    const { atNs, at, woken, cpu } = row
    if (atNs < this.lastNs) return this.reportLate('rows', this.lastNs - atNs, at, atNs)
    this.lastNs = atNs
    if (woken >= 0) return this.wake(woken, atNs)
    const found = parse(row, this.form)
    if (!found) {
      const form = this.form === 'plain' ? '' : ' parent'
      const expected = `expected [comm tid${form} priority state] => [comm tid${form} priority]`
      this.report(issueOf('unreadable-row', `${expected}, found something else`, at, atNs))
      return
    }
    const { prevTid, nextTid } = found
    if (!this.concerns(found)) this.leftOut.add('switches between threads that were not traced')
    if (this.traced!.has(prevTid)) this.takeOff(found, cpu, atNs, at)
    if (this.traced!.has(nextTid)) this.putOn(found, cpu, atNs, at)
  }

  protected override close(): void {
    for (const event of this.leftOut.events()) this.emit(event)
  }

  /** A wakeup of a running or runnable thread changes nothing. */
  private wake(tid: number, atNs: number): void {
    if (!this.traced!.has(tid)) return this.leftOut.add('wakeups of threads that were not traced')
    const thread = this.thread(tid)
    if (thread.state === 'blocked' || thread.state === undefined) this.change(tid, thread, 'woken', thread.cpu, atNs)
  }

  private takeOff(found: Switch, cpu: number, atNs: number, at: Position): void {
    const { prevTid, prevComm, prevState, nextTid, nextComm } = found
    const thread = this.thread(prevTid, prevComm)
    if (thread.state !== undefined && (thread.state !== 'running' || thread.cpu !== cpu)) {
      const was = thread.state === 'running' ? `it was put on CPU ${thread.cpu}` : `it was ${thread.state}`
      this.report(
        issueOf('lost-records', `thread ${prevTid} leaves CPU ${cpu}, but ${was}: a switch is missing`, at, atNs),
      )
    }
    const isPreempted = (prevState & WAITS) === 0
    const state = isPreempted ? 'runnable' : (prevState & ENDED) === 0 ? 'blocked' : 'ended'
    const takenBy = isPreempted && nextTid !== 0 ? { tid: nextTid, comm: this.names.id(nextComm) } : undefined
    this.change(prevTid, thread, state, cpu, atNs, takenBy)
    if (state === 'ended') this.threads.delete(prevTid)
  }

  private putOn({ nextTid, nextComm }: Switch, cpu: number, atNs: number, at: Position): void {
    const thread = this.thread(nextTid, nextComm)
    if (thread.state === 'running') {
      const detail = `thread ${nextTid} is put on CPU ${cpu}, but it has CPU ${thread.cpu}: a switch is missing`
      this.report(issueOf('lost-records', detail, at, atNs))
    }
    this.change(nextTid, thread, 'running', cpu, atNs)
  }

  private change(
    tid: number,
    thread: Thread,
    state: ThreadState,
    cpu: number,
    atNs: number,
    takenBy?: ThreadOfCpu,
  ): void {
    thread.state = state
    thread.cpu = cpu
    const event: StateEvent = { kind: 'state', tid, cpu, state, atNs, thread: thread.name }
    this.emit(takenBy === undefined ? event : { ...event, takenBy })
  }

  private thread(tid: number, command = 'thread'): Thread {
    return getOrMake(this.threads, tid, () => {
      return { name: this.names.id(`${this.commands.get(tid) ?? command} ${tid}`), state: undefined, cpu: -1 }
    })
  }

  private concerns(found: Switch | undefined): boolean {
    return found !== undefined && (this.traced!.has(found.prevTid) || this.traced!.has(found.nextTid))
  }

  private learnCommands(row: SchedRow): void {
    const found = parse(row, this.form)
    if (!found) return
    for (const [tid, command] of [
      [found.prevTid, found.prevComm],
      [found.nextTid, found.nextComm],
    ] as const) {
      if (this.traced!.has(tid) && !this.commands.has(tid)) this.commands.set(tid, command)
    }
  }
}

function parse({ prev, next }: SchedRow, form: Form): Switch | undefined {
  const [before, after] = [FORMS[form].prev.exec(prev), FORMS[form].next.exec(next)]
  if (!before || !after) return undefined
  return {
    prevTid: Number(before[2]),
    prevComm: before[1]!,
    prevState: Number(before[3]) >>> 0,
    nextTid: Number(after[2]),
    nextComm: after[1]!,
  }
}
