import type { Resources } from '../../model/resources.ts'
import { readNumber, readU64 } from './fields.ts'

/** Reads RESOURCES records: each is of the next call or function of its thread, which starts at the same time. */
export class ResourceRecords {
  private readonly threads = new Map<number, { readonly atNs: number; readonly resources: Resources }>()

  read(view: DataView, at: number, tid: number, atNs: number): void {
    const value = (offset: number) => readU64(view, at + offset)
    const time = (offset: number) => (readNumber(view, at + offset + 4) < 0 ? -1 : value(offset))
    const [minorFaults, majorFaults, bytesRead, processCpuNs] = [value(12), value(20), value(28), value(36)]
    this.threads.set(tid, {
      atNs,
      resources: { minorFaults, majorFaults, bytesRead, processCpuNs, cpuNs: time(44), waitingNs: time(52) },
    })
  }

  /** Those of what starts at that time; once. */
  of(tid: number, startNs: number): Resources | undefined {
    const found = this.threads.get(tid)
    if (found === undefined) return undefined
    this.threads.delete(tid)
    return found.atNs === startNs ? found.resources : undefined
  }
}
