import { bytesOfCells, type CacheOf, KvCaches } from '../../analyze/graph/kv-cache.ts'
import type { Plan } from '../../analyze/graph/plan.ts'
import type { GraphRun } from '../../analyze/graph/runs.ts'
import { DefaultMap } from '../../model/default-map.ts'
import type { TokenEvent } from '../../model/events.ts'
import type { TrackContext } from '../context.ts'

/** Tracks of a cache; 0: not there yet. */
interface Shown {
  cells: number
  bytes: number
}

/** Draws the growth of KV caches, call by call. */
export class KvCache {
  private readonly caches: KvCaches
  /** By number of the context. */
  private readonly shown = new DefaultMap<number, Shown>(() => ({ cells: 0, bytes: 0 }))

  constructor(private readonly context: TrackContext) {
    this.caches = new KvCaches(context, (cache, { endNs }) => this.draw(cache, endNs))
  }

  call(event: TokenEvent): void {
    this.caches.call(event)
  }

  run({ call }: GraphRun, plan: Plan): void {
    this.caches.run(call, plan)
  }

  finish(): void {
    this.caches.finish()
  }

  private draw(cache: CacheOf, endNs: number): void {
    const { tracks, writer } = this.context
    const { number, cells } = cache
    const shown = this.shown.of(number)
    if (shown.cells === 0) shown.cells = tracks.add('kvCells', cache, number)
    writer.counter(shown.cells, endNs, cells)
    if (cache.tensors.length === 0) return
    if (shown.bytes === 0) shown.bytes = tracks.add('kvBytes', cache, number)
    writer.counter(shown.bytes, endNs, bytesOfCells(cache, cells))
  }
}
