import { type Bounds, orUnknown, outOfRange, type Wrong, wrongNumber, wrongTime } from './bounds.ts'
import { CPU_MAX, INT32_MAX, WORKER_MAX } from './limits.ts'

/**
 * State of a thread: it has a CPU, was preempted, is runnable after a wait, waits, has no CPU for an unknown reason, has
 * ended.
 */
export type ThreadState = 'running' | 'runnable' | 'woken' | 'blocked' | 'off' | 'ended'

/** A thread that has a CPU. */
export interface ThreadOfCpu {
  /** 0: the idle task. */
  readonly tid: number
  /** Command name; 0 = not known. */
  readonly comm: number
}

/** A thread of the traced process changes its state. In order for each thread. */
export interface StateEvent {
  readonly kind: 'state'
  readonly tid: number
  /** CPU on which it runs, or ran last; -1 = not known. */
  readonly cpu: number
  readonly state: ThreadState
  readonly atNs: number
  /** Name of the thread, in a log of states without operators: the thread gets a separate row. */
  readonly thread?: number
  /** The thread that took its CPU, if known. */
  readonly takenBy?: ThreadOfCpu
}

/** A worker begins a graph: on another CPU than before, or its thread may run on others. */
export interface AffinityEvent {
  readonly kind: 'affinity'
  readonly worker: number
  readonly tid: number
  readonly atNs: number
  /** -1 = not known. */
  readonly cpu: number
  /** The CPUs on which the thread may run, as a list of the kernel (`0-3,8`); 0 = not known. */
  readonly allowed: number
  /** Policy of its memory on a machine with several NUMA nodes, as the kernel names it (`bind:1`); undefined = the default one, or not known. */
  readonly policy?: number
}

/** A `sched_switch`: `nextTid` takes `cpu` from `prevTid`. */
export interface SwitchEvent {
  readonly kind: 'switch'
  readonly cpu: number
  readonly atNs: number
  readonly prevTid: number
  /** Command name of the thread that leaves; 0 = not known. */
  readonly prevComm: number
  /** Kernel priority, 0 to 139 (120 is nice 0), or -1. */
  readonly prevPrio: number
  /** The kernel's bits, as {@link TaskState} names them: 0 = still runnable (preempted). */
  readonly prevState: number
  /** 0 is the idle task. */
  readonly nextTid: number
  readonly nextComm: number
  readonly nextPrio: number
}

/** Bits of a thread's state in `sched_switch` since Linux 4.14 (fs/proc/array.c); 0 is R. */
export const TaskState = { S: 1, D: 2, T: 4, t: 8, X: 0x10, Z: 0x20, P: 0x40, I: 0x80, '+': 0x100 } as const

/** What a thread does that a switch takes from its CPU. */
export function stateAfter(prevState: number): 'ended' | 'runnable' | 'blocked' {
  if (prevState & (TaskState.X | TaskState.Z)) return 'ended'
  return prevState === 0 || prevState & TaskState['+'] ? 'runnable' : 'blocked'
}

/** A `sched_waking`: a thread becomes runnable. */
export interface WakingEvent {
  readonly kind: 'waking'
  /** CPU of the waker. */
  readonly cpu: number
  readonly atNs: number
  /** Thread that woke it; -1 = not known. */
  readonly wakerTid: number
  readonly tid: number
  readonly comm: number
  readonly prio: number
  readonly targetCpu: number
  /** An interrupt woke it, while the waker had the CPU. */
  readonly isIrq: boolean
}

/** A thread in a recording of the kernel exists, is forked, is renamed, or exits. */
export interface ThreadEvent {
  readonly kind: 'thread'
  readonly what: 'known' | 'fork' | 'rename' | 'exit'
  readonly atNs: number
  readonly tid: number
  /** Its process; -1 = not known. */
  readonly tgid: number
  readonly comm: number
  /** Thread that forked it; -1 = not known. */
  readonly parentTid: number
}

/** Their ranges. */
export const KERNEL_BOUNDS: Bounds<StateEvent | AffinityEvent | SwitchEvent | WakingEvent | ThreadEvent> = {
  affinity: (event) =>
    wrongTime(event.atNs) ??
    orUnknown('tid', event.tid, INT32_MAX) ??
    orUnknown('worker', event.worker, WORKER_MAX) ??
    orUnknown('cpu', event.cpu, CPU_MAX),
  switch: (event) =>
    wrongTime(event.atNs) ??
    wrongNumber('nextTid', event.nextTid, INT32_MAX) ??
    wrongNumber('prevState', event.prevState, INT32_MAX) ??
    orUnknown('cpu', event.cpu, CPU_MAX) ??
    orUnknown('prevTid', event.prevTid, INT32_MAX) ??
    wrongPriority('prevPrio', event.prevPrio) ??
    wrongPriority('nextPrio', event.nextPrio),
  waking: (event) =>
    wrongTime(event.atNs) ??
    wrongNumber('tid', event.tid, INT32_MAX) ??
    orUnknown('cpu', event.cpu, CPU_MAX) ??
    orUnknown('wakerTid', event.wakerTid, INT32_MAX) ??
    orUnknown('targetCpu', event.targetCpu, CPU_MAX) ??
    wrongPriority('prio', event.prio),
  thread: (event) =>
    wrongTime(event.atNs) ??
    wrongNumber('tid', event.tid, INT32_MAX) ??
    orUnknown('tgid', event.tgid, INT32_MAX) ??
    orUnknown('parentTid', event.parentTid, INT32_MAX),
  state: (event) => wrongTime(event.atNs) ?? orUnknown('tid', event.tid) ?? orUnknown('cpu', event.cpu, CPU_MAX),
}

/** Priorities of deadline tasks are below 0. */
function wrongPriority(field: string, value: number): Wrong | undefined {
  if ((value | 0) === value) return undefined
  return outOfRange(field, value, -INT32_MAX - 1, INT32_MAX, { [field]: -1 })
}
