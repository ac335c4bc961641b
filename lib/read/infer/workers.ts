/**
 * Which worker (ggml's `ith`) a thread is, where a log tells thread ids only. The thread that runs a graph is worker 0
 * (ggml-cpu: ggml_graph_compute's caller takes part as worker 0); the threads active beside it are 1, 2, … in the
 * order in which they show up. llama.cpp may make fresh threads for every graph, so an index is free again when its
 * graph ends; a thread that comes back gets its old index where that is free.
 */
export class Workers {
  private readonly active = new Map<number, number>()
  private readonly previous = new Map<number, number>()
  private readonly taken: boolean[] = []
  /** All from 1 to below this are taken. */
  private free = 1

  /** The worker that runs a graph from now on. */
  host(tid: number): number {
    return this.active.get(tid) ?? this.take(tid, 0)
  }

  /** The worker that `tid` is now. */
  of(tid: number): number {
    return this.active.get(tid) ?? this.take(tid, this.previous.get(tid) ?? 1)
  }

  /** A graph or call has ended: `tid` is no worker any more. */
  release(tid: number): void {
    const worker = this.active.get(tid)
    if (worker === undefined) return
    this.active.delete(tid)
    this.previous.set(tid, worker)
    this.taken[worker] = false
    if (worker > 0 && worker < this.free) this.free = worker
  }

  private take(tid: number, wanted: number): number {
    let worker = wanted
    if (this.taken[worker]) {
      while (this.taken[this.free]) this.free++
      worker = this.free
    }
    this.active.set(tid, worker)
    this.taken[worker] = true
    return worker
  }
}
