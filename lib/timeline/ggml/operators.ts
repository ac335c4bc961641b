import type { GraphRun, StepOfRun } from '../../analyze/graph/runs.ts'
import type { Works } from '../../analyze/graph/work.ts'
import type { Arg } from '../../model/args.ts'
import { putAt } from '../../model/by-id.ts'
import { getOrMake } from '../../model/default-map.ts'
import { Inferred, type OperatorEvent, type SumsEvent } from '../../model/events.ts'
import type { ArgSet, Label } from '../../sink/label.ts'
import type { TrackContext } from '../context.ts'
import { countArgs, intArg, ROUNDED_NS_MIN } from '../labels.ts'
import type { DrawOptions } from '../options.ts'
import { Barriers } from './barriers.ts'
import { LateWaits } from './late-waits.ts'
import { NodeArgs } from './node-args.ts'
import { NodeNames } from './node-names.ts'
import { Sums } from './sums.ts'
import type { Wait } from './waits.ts'
import { type WaitDrawing, WorkerRows } from './worker-row.ts'

/** Rows of workers: one of each, operators and the barrier waits after them. */
export class Operators {
  private readonly workers: (WorkerRows | undefined)[] = []
  /** By tensor: the latest label, and the properties for which it is valid; `fusedTo` is -1 where it is not known. */
  private readonly labels: (Label | undefined)[] = []
  private readonly fusedTos: number[] = []
  private readonly inferreds: number[] = []
  /** By tensor, `fusedTo` and `inferred`. */
  private readonly allLabels = new Map<string, Label>()
  private readonly innerWait: number
  private readonly waits: WaitDrawing
  /** The argument of an operator after a pause that is as short as a wait. */
  private readonly afterPause: readonly Arg[]
  private readonly nodeNames: NodeNames
  private readonly nodeArgs: NodeArgs
  private readonly allSums: Sums
  private readonly isFull: boolean
  /** The argument of operators that waited within. */
  private readonly inner: { key: number; int: number }[]

  constructor(
    private readonly context: TrackContext,
    private readonly works: Works,
    { opName = 'role', barriers = 'long' }: DrawOptions,
  ) {
    this.nodeNames = new NodeNames(context, opName)
    this.nodeArgs = new NodeArgs(context, works)
    this.allSums = new Sums(context)
    this.innerWait = context.names.id('inner_wait_ns')
    this.inner = [intArg(this.innerWait, 0) as { key: number; int: number }]
    this.isFull = context.detail === 'full'
    const isWhole = this.isFull || barriers === 'all'
    const drawing = new Barriers(context, isWhole)
    const short = isWhole ? undefined : { count: 0, sumNs: 0 }
    const late = new LateWaits(drawing, (worker, track, atNs) => this.arrow(worker, track, atNs))
    this.waits = { barriers: drawing, late, short }
    this.afterPause = [context.make.word('gap_before', 'pause')]
  }

  /** Waits that were too short to be drawn; undefined: all are drawn. */
  get short(): WaitDrawing['short'] {
    return this.waits.short
  }

  /** `wait`: what is known about the wait after it; `flows`: arrows that begin or end at the slice; `at`: its step of a graph run, which is completed later. */
  place(event: OperatorEvent, wait?: Wait, flows?: readonly number[], at?: StepOfRun): void {
    const row = (this.workers[event.worker] ?? this.addWorker(event)).take(event)
    if (!row) return
    const isAfterPause = row.begin(event)
    const { call, tid } = event
    const isOtherCall = row.call !== call
    const isOtherThread = tid >= 0 && row.tid !== tid
    row.call = call
    if (isOtherThread) row.tid = tid
    const extra = this.perRunArgs(event, isOtherCall || (this.isFull && call >= 0), isOtherThread, isAfterPause)
    const arrowsOut = wait?.arrowsOut
    const known = this.label(event)
    const label = flows || arrowsOut ? { ...known, flows, arrowsOut } : known
    row.place(event, label, extra, wait, at)
  }

  /** Draws sums of a worker's operators and waits. */
  sums(event: SumsEvent): void {
    const rows = this.workers[event.worker] ?? this.addWorker(event)
    rows.finish()
    this.allSums.place(event, rows.lanes)
  }

  /** All operators of the run were read. */
  complete(run: GraphRun): void {
    this.waits.late.complete(run)
  }

  finish(): void {
    for (const rows of this.workers) rows?.finish()
  }

  /** Adds to the names of workers where they run. */
  nameWorkers(places: ReadonlyMap<number, string>): void {
    const { tracks } = this.context
    for (const [worker, place] of places) {
      const rows = this.workers[worker]
      for (const [row, track] of (rows?.lanes.tracks ?? []).entries())
        tracks.rename(track, 'worker', { worker, tid: rows!.tid, place }, row)
    }
  }

  /** Number of workers so far. */
  get workerCount(): number {
    return this.workers.filter(Boolean).length
  }

  private addWorker({ worker, tid }: OperatorEvent | SumsEvent): WorkerRows {
    const { tracks, writer } = this.context
    const rows = new WorkerRows(tracks.lanes('worker', { worker, tid }), tid, writer, this.waits)
    this.workers[worker] = rows
    return rows
  }

  /** Draws an arrow to a wait, from the operator of a worker. Where this has several rows, the one of the operator is not known. */
  private arrow(worker: number, track: number, atNs: number): void {
    const [from, ...others] = this.workers[worker]!.lanes.tracks
    if (from !== undefined && others.length === 0) this.context.writer.arrow(from, track, atNs)
  }

  /** The label of the slices of this node, the same in each graph run. */
  private label(event: OperatorEvent): Label {
    const { tensor, fusedTo, inferred } = event
    const isLatest = this.fusedTos[tensor] === (fusedTo ?? -1) && this.inferreds[tensor] === inferred
    return (isLatest ? this.labels[tensor] : undefined) ?? this.otherLabel(event)
  }

  private otherLabel(event: OperatorEvent): Label {
    const { tensor, fusedTo, inferred } = event
    const key = `${tensor} ${fusedTo} ${inferred}`
    const label = getOrMake(this.allLabels, key, () => {
      const name = this.nodeNames.of(tensor, fusedTo)
      const args = this.context.detail === 'names' ? undefined : this.args(event, name)
      return this.context.make.label({ name, category: 'operator', args })
    })
    putAt(this.labels, tensor, label, undefined)
    putAt(this.fusedTos, tensor, fusedTo ?? -1, -1)
    putAt(this.inferreds, tensor, inferred, -1)
    return label
  }

  private args({ tensor, fusedTo, inferred }: OperatorEvent, name: number): ArgSet | undefined {
    return this.context.make.set(this.nodeArgs.of(tensor, fusedTo, inferred & ~Inferred.Wait, name)) // a wait is the barrier slice's
  }

  /**
   * Arguments that differ from graph run to graph run. `hasCall`, `isOtherThread`: with its call and its thread, which operators of the same ones in
   * a row do not repeat. They are valid until the next operator: the array of the most frequent one is used again.
   */
  private perRunArgs(
    event: OperatorEvent,
    hasCall: boolean,
    isOtherThread: boolean,
    isAfterPause: boolean,
  ): readonly Arg[] | undefined {
    const { experts, innerWaitNs, counts } = event
    // The fast path: most operators have at most the time that they waited within.
    const isPlain = !experts && !counts && (innerWaitNs ?? 0) < ROUNDED_NS_MIN
    if (isPlain && !hasCall && !this.isFull && !isOtherThread && !isAfterPause) {
      if (!innerWaitNs || this.context.detail === 'names') return undefined
      this.inner[0]!.int = innerWaitNs
      return this.inner
    }
    const pause = isAfterPause ? this.afterPause : undefined
    return this.context.detail === 'names' ? pause : this.allArgs(event, hasCall, isOtherThread, pause)
  }

  private allArgs(event: OperatorEvent, hasCall: boolean, isOtherThread: boolean, pause: readonly Arg[] = []) {
    const { make } = this.context
    const { experts, innerWaitNs, counts, fusedTo, startNs, endNs, call, tid, cpu } = event
    const args: Arg[] = hasCall ? [make.int('call', call)] : []
    if (experts) args.push(make.text('experts', experts.join(',')))
    if (innerWaitNs) args.push(...make.time('inner_wait', innerWaitNs))
    if (counts) args.push(...this.counts(counts, endNs - startNs))
    if (tid >= 0 && (this.isFull || isOtherThread)) args.push(make.int('tid', tid))
    if (this.isFull) {
      if (endNs > startNs && fusedTo === undefined) args.push(...this.rateArgs(event))
      if (cpu >= 0) args.push(make.int('cpu', cpu))
    }
    args.push(...pause)
    return args.length > 0 ? args : undefined
  }

  private counts(counts: readonly number[], durationNs: number): Arg[] {
    const { make, counters } = this.context
    const rates = counters.rates(counts, durationNs).map(({ key, value }) => make.double(key, value))
    return [...countArgs(make, counters, counts), ...rates]
  }

  /** The work of all workers, divided by the time of this one. */
  private rateArgs({ tensor, startNs, endNs }: OperatorEvent): Arg[] {
    const { make } = this.context
    const { flop, bytesRead, bytesWritten, isUpperBound } = this.works.node(tensor)
    const args: Arg[] = []
    if (flop > 0) args.push(make.double('gflop_per_s', flop / (endNs - startNs)))
    if (bytesRead >= 0 && bytesWritten >= 0 && !isUpperBound) {
      args.push(make.double('gb_per_s', (bytesRead + bytesWritten) / (endNs - startNs)))
    }
    return args
  }
}
