import { DefaultMap } from '../../model/default-map.ts'
import type { AffinityEvent, InputEvent, PagesEvent } from '../../model/events.ts'
import { nodesOf } from '../../model/topology.ts'
import type { CallParts, Statistic } from '../common/statistic.ts'
import type { Defined } from '../graph/defined.ts'
import type { CallOperators } from '../graph/operators/call-operators.ts'

/** Pages events that are held: the recorder looks at most so often. */
const PAGES_MAX = 1 << 13
/** Above the numbers of workers and of CPUs. */
const WORKERS_END = 1 << 12
const CPUS_END = 1 << 16

/** How often workers computed a node on a CPU; -1: the CPU is not known. */
export interface Executions {
  readonly tensor: number
  /** Workers of its calls. */
  readonly workers: number
  readonly of: readonly { readonly worker: number; readonly cpu: number; readonly times: number }[]
}

/** Choices of a router: how often, and by expert how often it was chosen, by one token or more. */
export interface ChosenExperts {
  choices: number
  readonly times: Map<number, number>
}

/** What the input contains of NUMA nodes. */
export interface NumaOfInput {
  readonly defined: Defined
  /** By the tensor that contains the choice. */
  readonly chosen: ReadonlyMap<number, ChosenExperts>
  readonly pages: readonly PagesEvent[]
  readonly executions: readonly Executions[]
  /** Policies of threads. */
  readonly policies: readonly string[]
}

type Kind = 'input' | 'pages' | 'affinity'

/** Counts which worker computed which product, and on which CPU, on a machine with several nodes. */
export class Numa implements Statistic<{ readonly numa: NumaOfInput | null }, Kind> {
  readonly kinds = ['input', 'pages', 'affinity'] as const
  private hasNodes = false
  private readonly pages: PagesEvent[] = []
  private readonly policies = new Set<number>()
  /** By tensor and number of workers; in each by worker and CPU. */
  private readonly times = new DefaultMap<number, Map<number, number>>(() => new Map())
  private readonly chosen = new DefaultMap<number, ChosenExperts>(() => ({ choices: 0, times: new Map() }))

  /** `cpusOf`: the CPUs on which the workers of the call that is read began it. */
  constructor(
    private readonly defined: Defined,
    private readonly cpusOf: () => readonly number[],
  ) {}

  event(event: InputEvent | PagesEvent | AffinityEvent): void {
    if (event.kind === 'input') this.hasNodes ||= nodesOf(event.attributes).length > 1
    else if (event.kind === 'affinity') {
      if (event.policy) this.policies.add(event.policy)
    } else if (this.pages.length < PAGES_MAX) this.pages.push(event)
  }

  call({ operators, weight }: CallParts): void {
    if (!this.hasNodes) return
    this.choose(operators, weight)
    const { count, tensor, worker, cpu } = operators
    const cpus = this.cpusOf()
    let workers = cpus.length
    for (let i = 0; i < count; i++) workers = Math.max(workers, worker[i]! + 1)
    for (let i = 0; i < count; i++) {
      if (worker[i]! < 0 || !reads(this.defined, tensor[i]!)) continue
      const on = cpu[i]! >= 0 ? cpu[i]! : (cpus[worker[i]!] ?? -1)
      const times = this.times.of(tensor[i]! * WORKERS_END + workers)
      const key = worker[i]! * CPUS_END + on + 1
      times.set(key, (times.get(key) ?? 0) + weight)
    }
  }

  /** Parts of a choice have the same time. */
  private choose({ choices }: CallOperators, weight: number): void {
    const experts = new DefaultMap<string, Set<number>>(() => new Set())
    for (const { tensor, atNs, ids } of choices) {
      const chosen = experts.of(`${tensor} ${atNs}`)
      for (const id of ids) chosen.add(id)
    }
    for (const [key, ids] of experts) {
      const chosen = this.chosen.of(Number.parseInt(key, 10))
      chosen.choices += weight
      for (const id of ids) chosen.times.set(id, (chosen.times.get(id) ?? 0) + weight)
    }
  }

  finish(): { readonly numa: NumaOfInput | null } {
    const { defined, pages } = this
    if (pages.length === 0) return { numa: null }
    const executions = [...this.times].map(([key, times]) => ({
      tensor: Math.floor(key / WORKERS_END),
      workers: key % WORKERS_END,
      of: [...times].map(([key, times]) => {
        return { worker: Math.floor(key / CPUS_END), cpu: (key % CPUS_END) - 1, times }
      }),
    }))
    const policies = [...this.policies].map((id) => defined.names.text(id))
    return { numa: { defined, chosen: this.chosen, pages, executions, policies } }
  }
}

const PRODUCTS = new Set(['MUL_MAT', 'MUL_MAT_ID'])

/** The sources of a node that are weights or caches, of which each worker reads a part: empty for other nodes. */
export function readBy(defined: Defined, tensor: number): readonly number[] {
  const { tensors, names } = defined
  const { op, sources } = tensors[tensor]!
  const name = names.text(op)
  const read = PRODUCTS.has(name) ? sources.slice(0, 1) : name === 'FLASH_ATTN_EXT' ? sources.slice(1, 3) : []
  return read.filter((id) => (tensors[id]?.address ?? 0) > 0)
}

function reads({ tensors, names }: Defined, tensor: number): boolean {
  const name = names.text(tensors[tensor]?.op ?? 0)
  return PRODUCTS.has(name) || name === 'FLASH_ATTN_EXT'
}
