import { DefaultMap } from '../../model/default-map.ts'
import type { SwitchEvent } from '../../model/events.ts'
import type { ArgMaker } from '../labels.ts'
import { Tracks, type TrackTree } from '../tracks.ts'

/** Threads on each CPU as rows of slices, for writers without a {@link SchedulerSink}. */
export class CpuRows {
  private readonly tracks: Tracks
  private readonly cpus = new DefaultMap((cpu: number) => ({ track: this.tracks.add('cpu', { cpu }), isBusy: false }))
  private lastNs = 0

  constructor(
    private readonly tree: TrackTree,
    private readonly make: ArgMaker,
  ) {
    this.tracks = new Tracks(tree)
  }

  place({ cpu, atNs, nextTid, nextComm }: SwitchEvent): void {
    const row = this.cpus.of(cpu)
    this.lastNs = Math.max(this.lastNs, atNs)
    if (row.isBusy) this.tree.writer.end(row.track, atNs)
    row.isBusy = nextTid !== 0 // 0 is the idle task
    if (!row.isBusy) return
    const extra = [this.make.int('tid', nextTid)]
    this.tree.writer.begin(row.track, atNs, { name: nextComm, category: 'state', extra })
  }

  /** Ends all open slices at the last switch of any CPU. */
  finish(): void {
    for (const row of this.cpus.values()) if (row.isBusy) this.tree.writer.end(row.track, this.lastNs)
    this.cpus.clear()
  }
}
