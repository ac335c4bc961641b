import { AllocationsByName } from '../../model/allocations.ts'
import { getOrMake } from '../../model/default-map.ts'
import type { AllocationEvent, CopyEvent, TokenEvent } from '../../model/events.ts'
import type { Undetermined } from '../common/figures.ts'
import type { CallParts, Statistic } from '../common/statistic.ts'
import type { Defined } from '../graph/defined.ts'
import type { CallOperators } from '../graph/operators/call-operators.ts'
import { type Plan, Plans } from '../graph/plan.ts'
import { Arenas, type ArenaUse } from './arenas.ts'
import { CacheUse } from './caches.ts'
import type { AllocatedType, AllocationFigures, BufferFigures, MemoryFigures } from './figures.ts'
import type { LiveBytes } from './live-bytes.ts'

/** Buffers, and types of allocations, that are listed. */
const ROWS_MAX = 64

/** What memory the graph runs, calls and allocations of one input show. */
export type MemoryOfInput = Pick<MemoryFigures, 'buffers' | 'further_buffers' | 'kv_caches' | 'allocations'>

/** Sums the use of memory: arenas graph run by graph run, KV caches call by call, allocations. */
export class Memory implements Statistic<object, 'token' | 'copy' | 'allocation'> {
  readonly kinds = ['token', 'copy', 'allocation'] as const
  /** Of the first graph run of the latest call. */
  firstPlan: Plan | undefined
  private readonly plans: Plans
  private readonly arenas: Arenas
  private readonly caches: CacheUse
  private readonly allocations = new AllocationsByName()

  /** `watchOf`: what gets the live bytes of the graph runs of a call. */
  constructor(
    private readonly defined: Defined,
    private readonly watchOf: (operators: CallOperators) => LiveBytes | undefined,
  ) {
    const { tensors, buffers, views, names } = defined
    this.plans = new Plans({ tensors, buffers, views, nameOf: (tensor) => names.text(tensor.name) })
    this.arenas = new Arenas(defined)
    this.caches = new CacheUse(defined)
  }

  event(event: TokenEvent | CopyEvent | AllocationEvent): void {
    if (event.kind === 'copy') return this.arenas.copy(event)
    if (event.kind === 'allocation') return this.allocations.add(event)
    this.arenas.token(event)
    this.caches.token(event)
  }

  call({ operators, steps }: CallParts): void {
    const { call, event } = operators
    this.arenas.watch = this.watchOf(operators)
    const phase = event?.phase ?? 'none'
    const runs = steps.runs(call)
    for (const [i, run] of runs.entries()) {
      const plan = this.plans.of(run)
      if (i === 0) this.firstPlan = plan
      this.arenas.run(run, plan, i, i + 1 < runs.length, phase)
      this.caches.run(call, plan)
    }
  }

  finish(firstNs: number): { readonly memory: MemoryOfInput } {
    return { memory: this.figures(firstNs) }
  }

  private figures(firstNs: number): MemoryOfInput {
    const { buffers } = this.defined
    const arenas = this.arenas.finish((id) => buffers.get(id)?.sizeBytes, firstNs)
    const all = this.buffersOf(arenas).sort((a, b) => largest(b) - largest(a))
    return {
      buffers: all.slice(0, ROWS_MAX),
      further_buffers: Math.max(0, all.length - ROWS_MAX),
      kv_caches: this.caches.finish(),
      allocations: this.allocated(firstNs),
    }
  }

  private buffersOf(arenas: ReadonlyMap<number, ArenaUse>): BufferFigures[] {
    const { names, buffers } = this.defined
    const placed = this.placed()
    return [...buffers.values()].flatMap(({ id, usage, name = 0, label, sizeBytes }): BufferFigures[] => {
      const use = arenas.get(id)
      const own = placed.get(id)
      if (!use && !own) return []
      const { tensors, tensor_bytes, ...arena } = use ?? { tensors: own!.tensors, tensor_bytes: own!.bytes }
      const row = { usage, name: names.text(name), label, size_bytes: sizeBytes ?? null, tensors }
      return [{ ...row, tensor_bytes: tensor_bytes < 0 ? null : tensor_bytes, arena: 'runs' in arena ? arena : null }]
    })
  }

  /** Tensors that own memory, by buffer. A tensor has several ids where its op or its shape changes from graph to graph. */
  private placed(): Map<number, { tensors: number; bytes: number }> {
    const { tensors } = this.defined
    const seen = new Set<string>()
    const found = new Map<number, { tensors: number; bytes: number }>()
    for (const tensor of tensors) {
      // Ids of damaged logs may have gaps.
      if (!tensor || tensor.buffer < 0 || this.defined.views.root(tensor.id) !== tensor.id) continue
      const { buffer, name, offset, address, sizeBytes } = tensor
      const key = `${buffer} ${name} ${offset ?? address}`
      if (seen.has(key)) continue
      seen.add(key)
      const sum = getOrMake(found, buffer, () => ({ tensors: 0, bytes: 0 }))
      sum.tensors++
      sum.bytes = sizeBytes < 0 || sum.bytes < 0 ? -1 : sum.bytes + sizeBytes
    }
    return found
  }

  private allocated(firstNs: number): AllocationFigures | null {
    const { names } = this.defined
    const all = this.allocations.all()
    if (all.length === 0) return null
    const peak = peakOf(all.flatMap(({ events }) => events).sort((a, b) => a.atNs - b.atNs))
    const types = all.map(({ name, events }): AllocatedType => {
      const { bytes, last, earlier } = peakOf(events)
      const allocations = events.filter((event) => event.bytes > 0).length
      return { name: names.text(name), peak_bytes: bytes, last_bytes: last, allocations, earlier_bytes: earlier }
    })
    return {
      peak_bytes: peak.bytes,
      peak_at_ns: peak.atNs - firstNs,
      last_bytes: peak.last,
      by_type: types.sort((a, b) => b.peak_bytes - a.peak_bytes).slice(0, ROWS_MAX),
    }
  }
}

const largest = ({ size_bytes, tensor_bytes }: BufferFigures) => size_bytes ?? tensor_bytes ?? 0

/** The most bytes that are allocated at once, first; and at the end. `earlier`: of them, those allocated before the log begins. */
function peakOf(events: readonly AllocationEvent[]): { bytes: number; atNs: number; last: number; earlier: number } {
  let [last, before] = [0, 0]
  const peak = { bytes: 0, atNs: events[0]!.atNs, earlier: 0 }
  for (const { atNs, bytes, isEarlier } of events) {
    last += bytes
    if (isEarlier) before += bytes
    if (last > peak.bytes) Object.assign(peak, { bytes: last, atNs, earlier: before })
  }
  return { ...peak, last }
}

/** The figures that are not known, and why. */
export function unknownMemory({
  buffers,
  allocations,
  kv_caches,
  page_faults,
  weights_read,
}: MemoryFigures): Undetermined[] {
  const unknown: Undetermined[] = []
  const add = (what: string, why: string, hint: string) => unknown.push({ what: `memory.${what}`, why, hint })
  const withRecord = 'record the run with ggml2perfetto record'
  if (buffers.length === 0) add('buffers', 'the log contains no buffers', withRecord)
  else if (buffers.every(({ arena }) => arena === null))
    add('buffers.arena', 'the places of results in compute buffers were not recorded', withRecord)
  if (weights_read.some(({ bytes }) => bytes === null))
    add('weights_read.bytes', 'the log contains no sizes of weights, or not of all', withRecord)
  if (page_faults === null) add('page_faults', 'page faults were not counted', 'record with --faults')
  if (kv_caches.length === 0) add('kv_caches', 'the log contains no positions of sequences', withRecord)
  if (allocations === null) add('allocations', 'allocations were not recorded', withRecord)
  return unknown
}
