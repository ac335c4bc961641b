import type { NvtxGpuEvent } from '../../model/gpu-events.ts'
import type { ArgMaker, Detail } from '../labels.ts'
import { NestedRows } from '../nested.ts'
import { LazyGroup, rowName, type TrackTree, threadTitle } from '../tracks.ts'

const RANK = 7 * 16 + 9

/** NVTX ranges as the GPU saw them, by thread and domain. */
export class NvtxOnGpu {
  private readonly rows = new Map<string, NestedRows>()
  private readonly group: LazyGroup

  constructor(
    private readonly tree: TrackTree,
    root: number,
    private readonly make: ArgMaker,
    private readonly detail: Detail,
  ) {
    const description =
      'NVTX ranges as the GPU saw them: from the first to the last piece of work that was launched in each.'
    this.group = new LazyGroup(tree, root, { name: 'NVTX on the GPU', description, rank: RANK })
  }

  place(event: NvtxGpuEvent): void {
    const { name, startNs, endNs, launched, busyNs, domain } = event
    const { make } = this
    const extra = [make.int('gpu_work', launched), make.int('busy_ns', busyNs)]
    if (domain !== 0) extra.push(make.arg('domain', { name: domain }))
    const shown = this.detail === 'names' ? undefined : extra
    this.rowsOf(event).place(startNs, endNs, { name, category: 'nvtx_gpu', extra: shown })
  }

  /** Ends what is still open. */
  finish(): void {
    for (const rows of this.rows.values()) rows.finish()
  }

  private rowsOf({ tid, thread, domain }: NvtxGpuEvent): NestedRows {
    const key = `${tid} ${domain}`
    const known = this.rows.get(key)
    if (known) return known
    const { names } = this.make
    const inDomain = domain === 0 ? 'the default domain' : `the domain ${names.text(domain)}`
    const title = `${threadTitle(names.text(thread), tid)}${domain === 0 ? '' : `, ${names.text(domain)}`}`
    const description = `GPU work that was launched within ranges of ${inDomain}, on their thread.`
    const rank = this.rows.size
    const rows = new NestedRows(this.tree.writer, (row) =>
      this.group.add({ name: rowName(title, row), description, rank }),
    )
    this.rows.set(key, rows)
    return rows
  }
}
