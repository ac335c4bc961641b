/** Calls that are remembered: operators of a call that come after those of so many others count as another call. */
const CALLS_MAX = 1024

/** The workers of each call that were counted: operators of a very long call come in several parts. */
export class CallWorkers {
  private readonly calls = new Map<number, boolean[]>()

  /** Is it the first time that the worker is seen in the call? */
  isNew(call: number, worker: number): boolean {
    let workers = this.calls.get(call)
    if (!workers) {
      workers = []
      this.calls.set(call, workers)
      if (this.calls.size > CALLS_MAX) this.calls.delete(this.calls.keys().next().value!)
    }
    const isNew = workers[worker] !== true
    workers[worker] = true
    return isNew
  }
}
