import { Ascii } from '../../../bytes/ascii.ts'
import type { ByteTable } from '../../../input/byte-table.ts'
import type { SwitchEvent, ThreadEvent, WakingEvent } from '../../../model/events.ts'
import { pluginStateOf, stateOf } from '../tracepoints/states.ts'
import { key, type Scan } from './scan.ts'

/** The columns of an event: thread, CPU and time. */
export interface Context {
  readonly atNs: number
  readonly cpu: number
  readonly tid: number
  readonly tgid: number
  readonly isIrq: boolean
}

type MakeWaking = (tid: number, comm: number, prio: number, targetCpu: number) => WakingEvent

/** Most bytes of a command name (TASK_COMM_LEN, without the zero). It may contain anything except a line break. */
const COMM_MAX = 15
/** How `trace-cmd report -R` prints a name that is not ASCII: `ARRAY[77, c3, b6, 00]`. */
const ARRAY = key('ARRAY[')
const ARRAY_BYTES = /^ARRAY\[([0-9a-f]{2}(?:, [0-9a-f]{2}){15})\]$/
const ARRAY_MAX = 'ARRAY[]'.length + 16 * '00, '.length
const KEYS = {
  prevComm: key('prev_comm='),
  prevPid: key(' prev_pid='),
  prevPrio: key(' prev_prio='),
  prevState: key(' prev_state='),
  arrow: key(' ==>'),
  nextComm: key(' next_comm='),
  nextPid: key(' next_pid='),
  nextPrio: key(' next_prio='),
  comm: key('comm='),
  parentComm: key('parent_comm='),
  pid: key(' pid='),
  parentPid: key(' parent_pid='),
  prio: key(' prio='),
  success: key(' success='),
  targetCpu: key(' target_cpu='),
  childComm: key(' child_comm='),
  childPid: key(' child_pid='),
  firstPid: key('pid='),
  oldComm: key('oldcomm='),
  newComm: key(' newcomm='),
  oomScore: key(' oom_score_adj='),
  fileName: key('filename='),
  oldPid: key(' old_pid='),
  colon: key(':'),
  openBracket: key(' ['),
  cpu: key(' CPU:'),
  state: key('state='),
  cpuId: key(' cpu_id='),
} as const

/** The command name of a text, decoded from an array. */
export function commOf(text: string): string {
  const bytes = text.length > COMM_MAX ? ARRAY_BYTES.exec(text)?.[1] : undefined
  if (bytes === undefined) return text
  const values = Uint8Array.from(bytes.split(', '), (hex) => Number.parseInt(hex, 16))
  return new TextDecoder().decode(values).replace(/\0.*$/s, '')
}

/**
 * Reads the fields of scheduler events, as the kernel and trace-cmd print them. A command name may contain text like a field:
 * it ends where the whole rest of the line matches.
 */
export class Bodies {
  private commStart = 0
  private commEnd = 0
  /** The second number of {@link commAnd} and {@link bracketed}. */
  private value = -1

  constructor(
    private readonly scan: Scan,
    private readonly comms: ByteTable<number>,
  ) {}

  /** `prev_comm=… prev_pid=1 prev_prio=120 prev_state=S ==> next_comm=… next_pid=2 next_prio=120`; undefined: no match. */
  readSwitch(context: Context): SwitchEvent | undefined {
    const { scan } = this
    const whole = scan.at
    const read = scan.eat(KEYS.prevComm) ? this.readKernelSwitch(context) : undefined
    if (read) return read
    scan.at = whole
    return this.readPluginSwitch(context)
  }

  private readKernelSwitch(context: Context): SwitchEvent | undefined {
    const { scan } = this
    const start = scan.at
    for (let at = this.next(KEYS.prevPid, start, start); at >= 0; at = this.next(KEYS.prevPid, start, at + 1)) {
      const prevTid = scan.integer()
      if (Number.isNaN(prevTid) || !scan.eat(KEYS.prevPrio)) continue
      const prevPrio = scan.integer()
      if (Number.isNaN(prevPrio) || !scan.eat(KEYS.prevState)) continue
      const state = scan.at
      scan.skipWord()
      const prevState = this.stateAt(state)
      scan.eat(KEYS.arrow)
      if (prevState < 0 || !scan.eat(KEYS.nextComm)) continue
      const nextTid = this.commAnd(KEYS.nextPid, KEYS.nextPrio)
      if (nextTid < 0) continue
      return {
        kind: 'switch',
        cpu: context.cpu,
        atNs: context.atNs,
        prevTid,
        prevComm: this.comms.get(scan.bytes, start, at),
        prevPrio,
        prevState,
        nextTid,
        nextComm: this.comms.get(scan.bytes, this.commStart, this.commEnd),
        nextPrio: this.value,
      }
    }
    return undefined
  }

  /** `comm=… pid=1 prio=120 target_cpu=001`; undefined: no match. `wakerTid` -1: not the thread of the line. */
  readWaking(context: Context, wakerTid: number): WakingEvent | undefined {
    const { scan } = this
    const { atNs, cpu, isIrq } = context
    const make: MakeWaking = (tid, comm, prio, targetCpu) => {
      return { kind: 'waking', cpu, atNs, wakerTid, tid, comm, prio, targetCpu, isIrq }
    }
    const whole = scan.at
    const read = scan.eat(KEYS.comm) ? this.readKernelWaking(make) : undefined
    if (read) return read
    scan.at = whole
    return this.readPluginWaking(make)
  }

  private readKernelWaking(make: MakeWaking): WakingEvent | undefined {
    const { scan } = this
    const start = scan.at
    for (let at = this.next(KEYS.pid, start, start); at >= 0; at = this.next(KEYS.pid, start, at + 1)) {
      const tid = scan.integer()
      if (Number.isNaN(tid) || !scan.eat(KEYS.prio)) continue
      const prio = scan.integer()
      if (scan.eat(KEYS.success)) scan.integer()
      if (Number.isNaN(prio) || !scan.eat(KEYS.targetCpu)) continue
      const target = scan.integer()
      if (!Number.isNaN(target)) return make(tid, this.comms.get(scan.bytes, start, at), prio, target)
    }
    return undefined
  }

  /** `comm=… pid=1 child_comm=… child_pid=2`, also with `parent_comm`; undefined: no match. */
  readFork({ atNs }: Context): ThreadEvent | undefined {
    const { scan } = this
    const isNamed = scan.eat(KEYS.parentComm)
    if (!isNamed && !scan.eat(KEYS.comm)) return undefined
    const pid = isNamed ? KEYS.parentPid : KEYS.pid
    const parentTid = this.commAnd(pid, undefined)
    if (parentTid < 0 || !scan.eat(KEYS.childComm)) return undefined
    const tid = this.commAnd(KEYS.childPid, undefined)
    if (tid < 0) return undefined
    return { kind: 'thread', what: 'fork', atNs, tid, tgid: -1, comm: this.comm(), parentTid }
  }

  /** `comm=… pid=1 prio=120`; undefined: no match. */
  readExit({ atNs, tid: lineTid, tgid }: Context): ThreadEvent | undefined {
    if (!this.scan.eat(KEYS.comm)) return undefined
    const tid = this.commAnd(KEYS.pid, KEYS.prio)
    if (tid < 0) return undefined
    const comm = this.comm()
    return { kind: 'thread', what: 'exit', atNs, tid, tgid: tid === lineTid ? tgid : -1, comm, parentTid: -1 }
  }

  /** `pid=1 oldcomm=… newcomm=… oom_score_adj=0`, newer kernels without `pid`; undefined: no match. */
  readRename({ atNs, tid: lineTid, tgid }: Context): ThreadEvent | undefined {
    const { scan } = this
    const tid = scan.eat(KEYS.firstPid) ? scan.integer() : lineTid
    scan.skipBlanks()
    if (Number.isNaN(tid) || !scan.eat(KEYS.oldComm)) return undefined
    const start = scan.at
    for (let at = this.next(KEYS.newComm, start, start); at >= 0; at = this.next(KEYS.newComm, start, at + 1)) {
      const name = scan.at
      const end = this.next(KEYS.oomScore, name, name)
      if (end < 0) continue
      const comm = this.comms.get(scan.bytes, name, end)
      return { kind: 'thread', what: 'rename', atNs, tid, tgid: tid === lineTid ? tgid : -1, comm, parentTid: -1 }
    }
    return undefined
  }

  /** `filename=/usr/bin/true pid=1 old_pid=1`: the thread has the file's name from now on. Undefined: no match. */
  readExec({ atNs, tgid }: Context): ThreadEvent | undefined {
    const { scan } = this
    if (!scan.eat(KEYS.fileName)) return undefined
    const start = scan.at
    let end = -1
    let tid = Number.NaN
    for (let at = scan.find(KEYS.pid, start, scan.end); at >= 0; at = scan.find(KEYS.pid, at + 1, scan.end)) {
      scan.at = at + KEYS.pid.length
      const pid = scan.integer()
      if (Number.isNaN(pid) || !scan.eat(KEYS.oldPid)) continue
      tid = pid
      end = at
    }
    if (end < 0) return undefined
    const name = scan.bytes.lastIndexOf(0x2f, end - 1) + 1
    const from = Math.max(start, name)
    const comm = this.comms.get(scan.bytes, from, Math.min(end, from + COMM_MAX))
    return { kind: 'thread', what: 'rename', atNs, tid, tgid, comm, parentTid: -1 }
  }

  /** `state=2000000 cpu_id=1`, of cpu_frequency and cpu_idle; NaN: no match. */
  readCpu(): [cpu: number, state: number] {
    const { scan } = this
    const state = scan.eat(KEYS.state) ? scan.integer() : Number.NaN
    return [scan.eat(KEYS.cpuId) ? scan.integer() : Number.NaN, state]
  }

  private readPluginSwitch(context: Context): SwitchEvent | undefined {
    const { scan } = this
    const start = scan.at
    for (let at = this.next(KEYS.colon, start, start); at >= 0; at = this.next(KEYS.colon, start, at + 1)) {
      const prevTid = scan.integer()
      if (Number.isNaN(prevTid) || !this.bracketed()) continue
      const prevPrio = this.value
      const state = scan.at
      scan.skipWord()
      const prevState = pluginStateOf(scan.bytes, state, scan.at)
      if (prevState < 0 || !scan.eat(KEYS.arrow) || !scan.eatByte(Ascii.Blank)) continue
      const nextStart = scan.at
      for (
        let to = this.next(KEYS.colon, nextStart, nextStart);
        to >= 0;
        to = this.next(KEYS.colon, nextStart, to + 1)
      ) {
        const nextTid = scan.integer()
        if (Number.isNaN(nextTid) || !this.bracketed() || scan.at < scan.end) continue
        const { cpu, atNs } = context
        const prevComm = this.comms.get(scan.bytes, start, at)
        const nextComm = this.comms.get(scan.bytes, nextStart, to)
        const prev = { prevTid, prevComm, prevPrio, prevState }
        return { kind: 'switch', cpu, atNs, ...prev, nextTid, nextComm, nextPrio: this.value }
      }
    }
    return undefined
  }

  private readPluginWaking(make: MakeWaking): WakingEvent | undefined {
    const { scan } = this
    const start = scan.at
    for (let at = this.next(KEYS.colon, start, start); at >= 0; at = this.next(KEYS.colon, start, at + 1)) {
      const tid = scan.integer()
      if (Number.isNaN(tid) || !this.bracketed()) continue
      const prio = this.value
      scan.at-- // the blank before the next key
      if (scan.eat(KEYS.success)) scan.integer()
      if (!scan.eat(KEYS.cpu)) continue
      const targetCpu = scan.digits()
      if (targetCpu >= 0) return make(tid, this.comms.get(scan.bytes, start, at), prio, targetCpu)
    }
    return undefined
  }

  /** Reads a command name, the number after `first`, and the one after `second`; -1: no match. */
  private commAnd(first: Uint8Array, second: Uint8Array | undefined): number {
    const { scan } = this
    const start = scan.at
    for (let at = this.next(first, start, start); at >= 0; at = this.next(first, start, at + 1)) {
      const number = scan.integer()
      if (Number.isNaN(number)) continue
      if (second) {
        if (!scan.eat(second)) continue
        this.value = scan.integer()
        if (Number.isNaN(this.value)) continue
      }
      const end = scan.at
      if (scan.eat(first)) continue // all of that was part of the name
      scan.at = end
      this.commStart = start
      this.commEnd = at
      return number
    }
    return -1
  }

  private comm(): number {
    return this.comms.get(this.scan.bytes, this.commStart, this.commEnd)
  }

  /** Skips to after `word`, from `from` on, that may end a command name that begins at `start`. Returns its place, or -1. */
  private next(word: Uint8Array, start: number, from: number): number {
    const isArray = this.scan.isAt(start, ARRAY)
    const at = this.scan.find(word, from, start + (isArray ? ARRAY_MAX : COMM_MAX) + 1)
    if (at >= 0) this.scan.at = at + word.length
    return at
  }

  /** Reads ` [120] `, at the line's end without the last blank: sets {@link value}. */
  private bracketed(): boolean {
    const { scan } = this
    if (!scan.eat(KEYS.openBracket)) return false
    this.value = scan.integer()
    if (Number.isNaN(this.value) || !scan.eatByte(Ascii.CloseSquare)) return false
    return scan.eatByte(Ascii.Blank) || scan.at === scan.end
  }

  private stateAt(start: number): number {
    const { scan } = this
    const state = stateOf(scan.bytes, start, scan.at)
    if (state >= 0 && !(scan.bytes[start] === 0x30 && scan.bytes[start + 1] === 0x78)) return state
    const end = scan.at
    scan.at = start
    const value = scan.integer() // 0x1 (1)
    if (Number.isNaN(value)) scan.at = end
    return Number.isNaN(value) ? -1 : value
  }
}
