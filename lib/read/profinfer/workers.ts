import { FreeNumbers } from '../common/free-numbers.ts'

/**
 * Which worker (ggml's `ith`) a thread is, where a log tells thread ids only. The thread that runs a graph is worker 0
 * (ggml-cpu: ggml_graph_compute's caller takes part as worker 0); the threads active beside it are 1, 2, … in the
 * order in which they show up. llama.cpp may make fresh threads for every graph, so an index is free again when its
 * graph ends; a thread that comes back gets its old index where that is free.
 */
export class Workers {
  private readonly active = new Map<number, number>()
  private readonly previous = new Map<number, number>()
  /** From 1 on: 0 is who runs a graph. */
  private readonly numbers = new FreeNumbers(1)
  private isHostTaken = false

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
    if (worker === 0) this.isHostTaken = false
    else this.numbers.release(worker)
  }

  private take(tid: number, wanted: number): number {
    const worker = this.free(wanted)
    this.active.set(tid, worker)
    return worker
  }

  /** Takes the wanted number, or, where it is taken, the smallest one that is free. */
  private free(wanted: number): number {
    if (wanted > 0) return this.numbers.take(wanted)
    if (this.isHostTaken) return this.numbers.take()
    this.isHostTaken = true
    return 0
  }
}
