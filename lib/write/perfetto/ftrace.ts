import {
  CompactSched,
  FtraceEvent,
  FtraceEventBundle,
  ProcessDescriptor,
  SchedSwitchFtraceEvent,
  SchedWakingFtraceEvent,
  ThreadDescriptor,
  Trace,
  TracePacket,
  TrackDescriptor,
} from '../../generated/perfetto.ts'
import { DefaultMap } from '../../model/default-map.ts'
import type { SwitchEvent, WakingEvent } from '../../model/events.ts'
import type { Names } from '../../model/names.ts'
import type { SchedulerSink } from '../../sink/writer.ts'
import type { ProtoWriter } from './proto-writer.ts'

/** Maximum number of switches, or of wakings, in a bundle: some 8 KiB. */
const BUNDLE_MAX = 1024
/** The kernel's TRACE_FLAG_HARDIRQ: an interrupt woke the thread, not the waker. */
const IRQ_FLAG = 0x08

/** Times of events of one kind, as deltas after the first one. */
class TimeColumn {
  firstNs = 0
  lastNs = 0
  readonly deltas: number[] = []
  count = 0

  add(atNs: number): void {
    if (this.count++ === 0) this.firstNs = atNs
    else this.deltas.push(atNs - this.lastNs)
    this.lastNs = atNs
  }
}

/** Events of one CPU that are not written yet. */
class EventBundle {
  /** By name: its index in the bundle's table. */
  readonly comms: DefaultMap<number, number> = new DefaultMap(() => this.comms.size)
  readonly switches = new TimeColumn()
  readonly prevStates: number[] = []
  readonly nextTids: number[] = []
  readonly nextPrios: number[] = []
  readonly nextComms: number[] = []
  readonly wakings = new TimeColumn()
  readonly wokenTids: number[] = []
  readonly targetCpus: number[] = []
  readonly wokenPrios: number[] = []
  readonly wokenComms: number[] = []
  readonly flags: number[] = []
}

interface Cpu {
  bundle: EventBundle
  /** The thread that runs there after the last written switch; -1 before the first one. */
  tid: number
}

/**
 * Writes scheduler events as Perfetto's ftrace packets, from which Perfetto draws CPU tracks, thread states and wakeup arrows: a
 * bundle per CPU at a time, in the compact encoding (about 8 bytes a switch). Compact switches do not contain the previous
 * thread, so the first switch of each CPU is written in full; so is a waking by a thread that does not run on its CPU.
 */
export class PerfettoScheduler implements SchedulerSink {
  draws = 0
  private readonly cpus = new DefaultMap<number, Cpu>(() => ({ bundle: new EventBundle(), tid: -1 }))
  /** The last events with the same time: their time, CPU and kind of the last one, and its shift. */
  private readonly tie = { atNs: -Infinity, cpu: 0, kind: '', laterNs: 0 }

  /** `timestamp` returns the absolute time of an event in BOOTTIME, the clock of bundles. */
  constructor(
    private readonly out: ProtoWriter,
    private readonly names: Names,
    private readonly timestamp: (atNs: number) => bigint,
  ) {}

  linkThread(uuid: number, tid: number, pid: number): void {
    const { out } = this
    this.descriptor(uuid, () => {
      const thread = out.begin(TrackDescriptor.thread)
      out.varint(ThreadDescriptor.pid, pid)
      out.varint(ThreadDescriptor.tid, tid)
      out.end(thread)
    })
  }

  nameProcess(uuid: number, pid: number, name: string, description: string): void {
    const { out } = this
    this.descriptor(uuid, () => {
      if (description !== '') out.string(TrackDescriptor.description, description)
      const message = out.begin(TrackDescriptor.process)
      out.varint(ProcessDescriptor.pid, pid)
      out.string(ProcessDescriptor.process_name, name)
      out.end(message)
    })
  }

  private descriptor(uuid: number, write: () => void): void {
    const { out } = this
    const packet = out.begin(Trace.packet)
    const descriptor = out.begin(TracePacket.track_descriptor)
    out.varint(TrackDescriptor.uuid, uuid)
    write()
    out.end(descriptor)
    out.end(packet)
  }

  switched(given: SwitchEvent): void {
    this.draws++
    const event = this.inOrder(given)
    const cpu = this.cpus.of(event.cpu)
    if (cpu.tid < 0) this.fullSwitch(event)
    else {
      const { switches } = cpu.bundle
      if (switches.count === BUNDLE_MAX || event.atNs < switches.lastNs) this.flush(event.cpu, cpu)
      this.compactSwitch(cpu.bundle, event)
    }
    cpu.tid = event.nextTid
  }

  waking(given: WakingEvent): void {
    this.draws++
    const event = this.inOrder(given)
    const cpu = this.cpus.of(event.cpu)
    const isKnown = event.wakerTid < 0 || event.wakerTid === cpu.tid
    if (cpu.tid >= 0 && isKnown) {
      const { wakings } = cpu.bundle
      if (wakings.count === BUNDLE_MAX || event.atNs < wakings.lastNs) this.flush(event.cpu, cpu)
      this.compactWaking(cpu.bundle, event)
    } else if (event.wakerTid >= 0) {
      this.flush(event.cpu, cpu)
      this.fullWaking(event)
    }
  }

  /**
   * trace_processor sorts events of one time (texts round to the microsecond) in any order if they are of several CPUs or kinds: a
   * thread could be woken before it sleeps. So an event of another CPU or kind than the one before is written a nanosecond later.
   */
  private inOrder<T extends SwitchEvent | WakingEvent>(event: T): T {
    const { tie } = this
    const { atNs, cpu, kind } = event
    if (atNs !== tie.atNs) {
      tie.atNs = atNs
      tie.laterNs = 0
    } else if (cpu !== tie.cpu || kind !== tie.kind) tie.laterNs++
    tie.cpu = cpu
    tie.kind = kind
    return tie.laterNs === 0 ? event : { ...event, atNs: atNs + tie.laterNs }
  }

  /** Writes the remaining events. */
  finish(): void {
    for (const number of [...this.cpus.keys()].sort((a, b) => a - b)) this.flush(number, this.cpus.get(number)!)
  }

  private compactSwitch(bundle: EventBundle, event: SwitchEvent): void {
    bundle.switches.add(event.atNs)
    bundle.prevStates.push(event.prevState)
    bundle.nextTids.push(event.nextTid)
    bundle.nextPrios.push(event.nextPrio)
    bundle.nextComms.push(bundle.comms.of(event.nextComm))
  }

  private compactWaking(bundle: EventBundle, event: WakingEvent): void {
    bundle.wakings.add(event.atNs)
    bundle.wokenTids.push(event.tid)
    bundle.targetCpus.push(event.targetCpu)
    bundle.wokenPrios.push(event.prio)
    bundle.wokenComms.push(bundle.comms.of(event.comm))
    bundle.flags.push(event.isIrq ? IRQ_FLAG : 0)
  }

  private flush(number: number, cpu: Cpu): void {
    const { bundle } = cpu
    const { switches, wakings } = bundle
    if (switches.count + wakings.count === 0) return
    cpu.bundle = new EventBundle()
    const { out } = this
    this.packet(number, () => {
      const sched = out.begin(FtraceEventBundle.compact_sched)
      for (const name of bundle.comms.keys()) out.string(CompactSched.intern_table, this.names.text(name))
      if (switches.count > 0) {
        out.packed(CompactSched.switch_timestamp, switches.deltas, this.timestamp(switches.firstNs))
        out.packed(CompactSched.switch_prev_state, bundle.prevStates)
        out.packed(CompactSched.switch_next_pid, bundle.nextTids)
        out.packed(CompactSched.switch_next_prio, bundle.nextPrios)
        out.packed(CompactSched.switch_next_comm_index, bundle.nextComms)
      }
      if (wakings.count > 0) {
        out.packed(CompactSched.waking_timestamp, wakings.deltas, this.timestamp(wakings.firstNs))
        out.packed(CompactSched.waking_pid, bundle.wokenTids)
        out.packed(CompactSched.waking_target_cpu, bundle.targetCpus)
        out.packed(CompactSched.waking_prio, bundle.wokenPrios)
        out.packed(CompactSched.waking_comm_index, bundle.wokenComms)
        out.packed(CompactSched.waking_common_flags, bundle.flags)
      }
      out.end(sched)
    })
  }

  private fullSwitch(event: SwitchEvent): void {
    const { out, names } = this
    const prevTid = Math.max(0, event.prevTid) // the idle task if it is unknown
    this.full(event, prevTid, false, () => {
      const message = out.begin(FtraceEvent.sched_switch)
      out.string(SchedSwitchFtraceEvent.prev_comm, names.text(event.prevComm))
      out.int64(SchedSwitchFtraceEvent.prev_pid, prevTid)
      out.int64(SchedSwitchFtraceEvent.prev_prio, event.prevPrio)
      out.int64(SchedSwitchFtraceEvent.prev_state, event.prevState)
      out.string(SchedSwitchFtraceEvent.next_comm, names.text(event.nextComm))
      out.int64(SchedSwitchFtraceEvent.next_pid, event.nextTid)
      out.int64(SchedSwitchFtraceEvent.next_prio, event.nextPrio)
      out.end(message)
    })
  }

  private fullWaking(event: WakingEvent): void {
    const { out, names } = this
    this.full(event, event.wakerTid, event.isIrq, () => {
      const message = out.begin(FtraceEvent.sched_waking)
      out.string(SchedWakingFtraceEvent.comm, names.text(event.comm))
      out.int64(SchedWakingFtraceEvent.pid, event.tid)
      out.int64(SchedWakingFtraceEvent.prio, event.prio)
      out.int64(SchedWakingFtraceEvent.target_cpu, event.targetCpu)
      out.end(message)
    })
  }

  /** Writes an event in full; `tid`: the thread that ran when it was recorded. */
  private full({ cpu, atNs }: SwitchEvent | WakingEvent, tid: number, isIrq: boolean, write: () => void): void {
    const { out } = this
    this.packet(cpu, () => {
      const message = out.begin(FtraceEventBundle.event)
      out.bigVarint(FtraceEvent.timestamp, this.timestamp(atNs))
      out.varint(FtraceEvent.pid, tid)
      if (isIrq) out.varint(FtraceEvent.common_flags, IRQ_FLAG)
      write()
      out.end(message)
    })
  }

  private packet(cpu: number, write: () => void): void {
    const { out } = this
    this.timestamp(0) // may write a packet that declares BOOTTIME
    const packet = out.begin(Trace.packet)
    const bundle = out.begin(TracePacket.ftrace_events)
    out.varint(FtraceEventBundle.cpu, cpu)
    write()
    out.end(bundle)
    out.end(packet)
  }
}
