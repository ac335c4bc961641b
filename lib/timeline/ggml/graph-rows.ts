import { Plans } from '../../analyze/graph/plan.ts'
import { GraphRuns } from '../../analyze/graph/runs.ts'
import type { Views } from '../../analyze/graph/views.ts'
import type { CopyEvent, ExpertsEvent, OperatorEvent, TensorEvent, TokenEvent } from '../../model/events.ts'
import type { ArgMaker, Detail } from '../labels.ts'
import type { Buffers } from '../memory/buffers.ts'
import { KvCache } from '../memory/kv-cache.ts'
import { Lifetimes } from '../memory/lifetimes.ts'
import type { MemoryRows } from '../memory/memory.ts'
import { Transfers } from '../memory/transfers.ts'
import type { LazyGroup, TrackTree } from '../tracks.ts'
import { Rates } from './rates.ts'

/** What {@link GraphRows} are made of. */
export interface GraphRowsContext {
  readonly tree: TrackTree
  readonly rates: LazyGroup
  readonly buffers: Buffers
  readonly tensors: readonly TensorEvent[]
  readonly views: Views
  readonly make: ArgMaker
  readonly detail: Detail
  readonly memory: MemoryRows
}

/** The rows that need a graph's run as a whole, with all its workers: lifetimes, rates, growth of the KV cache. */
export class GraphRows {
  private readonly runs: GraphRuns
  private readonly transfers = new Transfers()
  private readonly lifetimes: Lifetimes
  private readonly rates: Rates
  private readonly cache: KvCache

  constructor(private readonly context: GraphRowsContext) {
    const { tree, rates, buffers, tensors, views, make, detail, memory } = context
    const nameOf = (tensor: TensorEvent) => make.names.text(tensor.name)
    const opOf = (tensor: TensorEvent) => make.names.text(tensor.op)
    const plans = new Plans({ tensors, buffers: buffers.events, views, nameOf })
    const draws = memory === 'lifetimes'
    this.lifetimes = new Lifetimes(tree, buffers, tensors, make, detail, draws, this.transfers)
    this.rates = new Rates(tree, rates, tensors, opOf)
    this.cache = new KvCache(tree, buffers, tensors, views, nameOf)
    this.runs = new GraphRuns((run, next) => {
      const plan = plans.of(run)
      this.lifetimes.run(run, plan, next)
      this.rates.run(run, plan)
      this.cache.run(run, plan)
    })
  }

  operator(event: OperatorEvent): void {
    this.runs.add(event)
  }

  copy(event: CopyEvent): void {
    if (event.tensor >= 0) this.transfers.add(this.context.views.root(event.tensor), event)
  }

  choose(event: ExpertsEvent): void {
    this.rates.choose(event)
  }

  /** A call that ended; they may come out of order. */
  token(event: TokenEvent): void {
    this.lifetimes.token(event)
  }

  /** The same, in order. */
  readonly call = (event: TokenEvent): void => {
    this.rates.call(event)
    this.cache.call(event)
  }

  finish(): void {
    this.runs.finish()
    this.cache.finish()
  }
}
