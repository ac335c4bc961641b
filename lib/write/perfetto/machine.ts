import { Cpu, CpuInfo, SystemInfo, Trace, TracePacket, Utsname } from '../../generated/perfetto.ts'
import type { Machine } from '../../sink/writer.ts'
import type { ProtoWriter } from './proto-writer.ts'

/** Writes what Perfetto shows as the system: its kernel and its CPUs. */
export function writeMachine(out: ProtoWriter, { release, cpus, cpu }: Machine): void {
  if (release !== undefined || cpus !== undefined) {
    const packet = out.begin(Trace.packet)
    const info = out.begin(TracePacket.system_info)
    if (release !== undefined) {
      const utsname = out.begin(SystemInfo.utsname)
      out.string(Utsname.sysname, 'Linux')
      out.string(Utsname.release, release)
      out.end(utsname)
    }
    if (cpus !== undefined) out.varint(SystemInfo.num_cpus, cpus)
    out.end(info)
    out.end(packet)
  }
  if (cpu === undefined || cpus === undefined) return
  const packet = out.begin(Trace.packet)
  const info = out.begin(TracePacket.cpu_info)
  for (let i = 0; i < cpus; i++) {
    const entry = out.begin(CpuInfo.cpus)
    out.string(Cpu.processor, cpu)
    out.end(entry)
  }
  out.end(info)
  out.end(packet)
}
