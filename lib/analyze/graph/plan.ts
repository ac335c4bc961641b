import type { BufferEvent, TensorEvent } from '../../model/events.ts'
import { copiedName } from '../../model/tensors.ts'
import type { RunColumns } from './runs.ts'
import type { Views } from './views.ts'

/** The lifetime of a tensor in a compute arena during a run of a graph. Steps are those of the {@link RunColumns}. */
export interface Life {
  /** Id of the tensor that owns the memory. */
  readonly tensor: number
  readonly buffer: number
  readonly offset: number
  readonly bytes: number
  /** The step that writes it first; -1: an input, written before the run. */
  readonly birth: number
  /** Of inputs: the last earlier step that used the same memory, or -1. */
  readonly after: number
  /** The last step that reads it or writes to it; -1: none, as for the graph's outputs. */
  last: number
  /** The node of that step. */
  lastReader: number
  /** The step that writes another tensor into the same memory; -1: none. */
  cut: number
  /** Inputs (of other backends) that are copies of it. */
  copies: Life[]
  /** Index in the plan. */
  index: number
}

/** Lifetimes of a run; the same each time the same nodes run in the same order. */
export interface Plan {
  readonly nodes: Int32Array
  readonly lasts: Int32Array
  /** In order of birth; inputs at their earliest possible start. */
  readonly lives: readonly Life[]
  /** The same by buffer. */
  readonly arenas: ReadonlyMap<number, readonly Life[]>
}

/** Maximum number of nodes that ggml fuses, with views between them: a router of experts has eleven. */
const FUSED_MAX = 16

/** Definitions that plans are made from. */
export interface PlanContext {
  readonly tensors: readonly TensorEvent[]
  readonly buffers: ReadonlyMap<number, BufferEvent>
  readonly views: Views
  readonly nameOf: (tensor: TensorEvent) => string
}

/**
 * The nodes of a step, in order: one, or several fused ones. These are what the last one depends on, from the first one on: a product of a gate
 * and another product is fused with both.
 */
export function nodesOf(tensors: readonly TensorEvent[], first: number, last: number): number[] {
  if (first === last) return [last]
  const nodes = new Set([last])
  for (const node of nodes) {
    for (const source of tensors[node]!.sources)
      if (source >= first && source < node && tensors[source]!.sources.length > 0) nodes.add(source)
    if (nodes.size > FUSED_MAX) break
  }
  const isWhole = nodes.has(first) && nodes.size <= FUSED_MAX
  return isWhole ? [...nodes].sort((a, b) => a - b) : chainOf(tensors, first, last)
}

/** Nodes that each read the one before, where ids are not in the order of the graph. */
function chainOf(tensors: readonly TensorEvent[], first: number, last: number): number[] {
  const nodes = [last]
  for (let node = last; node !== first && nodes.length < FUSED_MAX; ) {
    const { sources } = tensors[node]!
    const before = sources.includes(first) ? first : sources.find((id) => tensors[id]!.sources.includes(first))
    if (before === undefined) return [first, last]
    nodes.unshift(before)
    node = before
  }
  return nodes
}

/** Ids of the tensors that a step reads; results between fused nodes are never in memory. */
export function readsOf(tensors: readonly TensorEvent[], nodes: readonly number[]): number[] {
  if (nodes.length === 1) return tensors[nodes[0]!]!.sources as number[]
  return nodes.flatMap((node) => tensors[node]!.sources.filter((source) => !nodes.includes(source)))
}

/** Computes the lives of one run, step by step, from the reads and writes of its nodes. */
class Planner {
  readonly lives: Life[] = []
  private readonly known = new Map<number, Life>()
  /** Lives whose memory was not overwritten yet. */
  private open: Life[] = []

  constructor(private readonly context: PlanContext) {}

  step(step: number, first: number, last: number): void {
    const { tensors, views } = this.context
    const nodes = nodesOf(tensors, first, last)
    for (const source of readsOf(tensors, nodes)) {
      const life = this.lifeOf(views.root(source), -1, step)
      if (life && life.cut < 0) this.use(life, step, last)
    }
    const root = views.root(last)
    // A result that is a view writes to its base tensor.
    const life = this.lifeOf(root, step, step)
    if (life && (root !== last || life.birth !== step) && life.cut < 0) this.use(life, step, last)
  }

  private use(life: Life, step: number, node: number): void {
    life.last = step
    life.lastReader = node
  }

  /** The life of a tensor, which begins at `birth` if it is new; undefined for tensors outside of arenas. */
  private lifeOf(root: number, birth: number, step: number): Life | undefined {
    const { tensors, buffers } = this.context
    const known = this.known.get(root)
    if (known) return known
    const tensor = tensors[root]!
    const { buffer, offset, sizeBytes: bytes } = tensor
    const arena = buffers.get(buffer)
    // Logs without sizes of arenas do not link sources to the nodes that computed them, either.
    if (arena?.usage !== 'compute' || arena.sizeBytes === undefined) return undefined
    if (offset === undefined || bytes <= 0) return undefined
    const life = {
      tensor: root,
      buffer,
      offset,
      bytes,
      birth,
      last: -1,
      lastReader: -1,
      cut: -1,
      copies: [],
      index: -1,
    }
    return this.begin({ ...life, after: birth < 0 ? this.lastUse(life, step) : -1 }, tensor)
  }

  private begin(life: Life, tensor: TensorEvent): Life {
    const from = life.birth < 0 ? life.after + 1 : life.birth
    this.open = this.open.filter((other) => {
      if (!overlap(other, life)) return true
      other.cut = from
      return false
    })
    this.open.push(life)
    this.lives.push(life)
    this.known.set(life.tensor, life)
    if (life.birth < 0) this.noteCopy(life, this.context.nameOf(tensor))
    return life
  }

  /** The last step before `step` that used this memory for another tensor. */
  private lastUse(place: Pick<Life, 'buffer' | 'offset' | 'bytes'>, step: number): number {
    let last = -1
    for (const life of this.lives) {
      if (overlap(life, place)) last = Math.max(last, life.last, life.birth)
    }
    return Math.min(last, step - 1)
  }

  private noteCopy(copy: Life, name: string): void {
    const original = copiedName(name)
    if (original === undefined) return
    const { tensors, nameOf } = this.context
    const source = this.lives.findLast(({ tensor }) => nameOf(tensors[tensor]!) === original)
    source?.copies.push(copy)
  }
}

type Place = Pick<Life, 'buffer' | 'offset' | 'bytes'>

/** Do two tensors share memory? */
function overlap(a: Place, b: Place): boolean {
  return a.buffer === b.buffer && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes
}

/**
 * Computes the lifetimes of the tensors of compute arenas in a run: from the step that writes a tensor to the last step that
 * reads it or a view of it, or to the step that overwrites it with another one, as in-place ops do.
 */
function planOf(run: RunColumns, context: PlanContext): Plan {
  const planner = new Planner(context)
  for (let step = 0; step < run.count; step++) planner.step(step, run.tensor[step]!, run.last[step]!)
  // Logs that do not link sources to the nodes that computed them have inputs only: lifetimes are not known.
  const written = new Set(planner.lives.filter(({ birth }) => birth >= 0).map(({ buffer }) => buffer))
  const lives = planner.lives.filter(({ buffer }) => written.has(buffer))
  const order = (life: Life) => (life.birth < 0 ? life.after + 0.5 : life.birth)
  lives.sort((a, b) => order(a) - order(b))
  for (const [i, life] of lives.entries()) life.index = i
  const arenas = new Map<number, Life[]>(lives.map(({ buffer }) => [buffer, []]))
  for (const life of lives) arenas.get(life.buffer)!.push(life)
  return { nodes: run.tensor.slice(0, run.count), lasts: run.last.slice(0, run.count), lives, arenas }
}

/** Maximum number of cached plans: graphs repeat from token to token, and change sometimes. */
const PLANS_MAX = 64

/** The plans of runs, each computed once. */
export class Plans {
  private plans: Plan[] = []

  constructor(private readonly context: PlanContext) {}

  /** The plan of a run. */
  of(run: RunColumns): Plan {
    const at = this.plans.findIndex((plan) => isPlanOf(plan, run))
    const plan = at < 0 ? planOf(run, this.context) : this.plans[at]!
    // Most recently used first.
    if (at !== 0) this.plans = [plan, ...this.plans.filter((other) => other !== plan)].slice(0, PLANS_MAX)
    return plan
  }
}

function isPlanOf({ nodes, lasts }: Plan, run: RunColumns): boolean {
  if (nodes.length !== run.count) return false
  for (let i = 0; i < nodes.length; i++) if (nodes[i] !== run.tensor[i] || lasts[i] !== run.last[i]) return false
  return true
}
