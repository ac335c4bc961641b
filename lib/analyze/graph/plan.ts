import type { BufferEvent, TensorEvent } from '../../model/events.ts'
import type { GraphRun } from './runs.ts'
import type { Views } from './views.ts'

/** One tensor's stay in a compute arena during a run of a graph. Steps are those of the {@link GraphRun}. */
export interface Life {
  /** Id of the tensor that owns the memory. */
  readonly tensor: number
  readonly buffer: number
  readonly offset: number
  readonly bytes: number
  /** The step that writes it first; -1: an input, written before. */
  readonly birth: number
  /** Of inputs: the last step that used the same memory before, or -1. */
  readonly after: number
  /** The last step that reads it or writes to it; -1: none does, as with the graph's outputs. */
  last: number
  /** The node that does. */
  lastReader: number
  /** The step that writes another tensor into the same memory; -1: none. */
  cut: number
  /** Inputs (of other backends) that are copies of it. */
  copies: Life[]
  /** Its place in the plan. */
  index: number
}

/** What is the same each time the same nodes run in the same order. */
export interface Plan {
  readonly nodes: Int32Array
  readonly lasts: Int32Array
  /** In order of birth, inputs where they may begin. */
  readonly lives: readonly Life[]
  /** The same by buffer. */
  readonly arenas: ReadonlyMap<number, readonly Life[]>
}

/** The scheduler calls its copy of a tensor `<backend>#<tensor>#<n>` (ggml-backend.cpp). */
const COPY_NAME = /^[^#]+#(.+)#\d+$/
/** Nodes that ggml computes in one go, at most. */
const FUSED_MAX = 8

/** What plans are made from. */
export interface PlanContext {
  readonly tensors: readonly TensorEvent[]
  readonly buffers: ReadonlyMap<number, BufferEvent>
  readonly views: Views
  readonly nameOf: (tensor: TensorEvent) => string
}

/** The nodes of a step, in order: one, or several that were computed in one go. */
export function nodesOf(tensors: readonly TensorEvent[], first: number, last: number): number[] {
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

/** Ids of what a step reads; what passes between its nodes is never in memory. */
export function readsOf(tensors: readonly TensorEvent[], nodes: readonly number[]): number[] {
  if (nodes.length === 1) return tensors[nodes[0]!]!.sources as number[]
  return nodes.flatMap((node) => tensors[node]!.sources.filter((source) => !nodes.includes(source)))
}

/** Works out the lives of one run, step by step, from who reads and writes what. */
class Planner {
  readonly lives: Life[] = []
  private readonly known = new Map<number, Life>()
  /** Lives that nothing was written over yet. */
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
    // A result that is a view writes to what it is a view of.
    const life = this.lifeOf(root, step, step)
    if (life && (root !== last || life.birth !== step) && life.cut < 0) this.use(life, step, last)
  }

  private use(life: Life, step: number, node: number): void {
    life.last = step
    life.lastReader = node
  }

  /** The life of a tensor, which begins with `birth` if there was none; undefined for tensors outside of arenas. */
  private lifeOf(root: number, birth: number, step: number): Life | undefined {
    const { tensors, buffers } = this.context
    const known = this.known.get(root)
    if (known) return known
    const tensor = tensors[root]!
    const { buffer, offset, sizeBytes: bytes } = tensor
    const arena = buffers.get(buffer)
    // Logs without the sizes of arenas do not record which node's result a source is, either.
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
    const original = COPY_NAME.exec(name)?.[1]
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
 * Works out which tensors of compute arenas live when, in a run: from the step that writes one to the last that reads it
 * or a view of it, or to the step that writes another one over it, as in-place ops do.
 */
function planOf(run: GraphRun, context: PlanContext): Plan {
  const planner = new Planner(context)
  for (let step = 0; step < run.count; step++) planner.step(step, run.nodes[step]!, run.lasts[step]!)
  // Logs that do not record which node's result a source is have inputs only: nothing is known of what lives there.
  const written = new Set(planner.lives.filter(({ birth }) => birth >= 0).map(({ buffer }) => buffer))
  const lives = planner.lives.filter(({ buffer }) => written.has(buffer))
  const order = (life: Life) => (life.birth < 0 ? life.after + 0.5 : life.birth)
  lives.sort((a, b) => order(a) - order(b))
  for (const [i, life] of lives.entries()) life.index = i
  const arenas = new Map<number, Life[]>(lives.map(({ buffer }) => [buffer, []]))
  for (const life of lives) arenas.get(life.buffer)!.push(life)
  return { nodes: run.nodes.slice(0, run.count), lasts: run.lasts.slice(0, run.count), lives, arenas }
}

/** Plans that are remembered: graphs repeat token after token, and change now and then. */
const PLANS_MAX = 64

/** The plans of runs, each worked out once. */
export class Plans {
  private plans: Plan[] = []

  constructor(private readonly context: PlanContext) {}

  /** The plan of a run. */
  of(run: GraphRun): Plan {
    const at = this.plans.findIndex((plan) => isPlanOf(plan, run))
    const plan = at < 0 ? planOf(run, this.context) : this.plans[at]!
    // The one used last comes first.
    if (at !== 0) this.plans = [plan, ...this.plans.filter((other) => other !== plan)].slice(0, PLANS_MAX)
    return plan
  }
}

function isPlanOf({ nodes, lasts }: Plan, run: GraphRun): boolean {
  if (nodes.length !== run.count) return false
  for (let i = 0; i < nodes.length; i++) if (nodes[i] !== run.nodes[i] || lasts[i] !== run.lasts[i]) return false
  return true
}
