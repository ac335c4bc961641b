import { DefaultMap } from '../../model/default-map.ts'
import type { FunctionEvent, FunctionPurpose } from '../../model/events.ts'
import type { Names } from '../../model/names.ts'
import type { Resources } from '../../model/resources.ts'
import type { FunctionFigures, LoadFigures, LoadStage, SamplerFigures, SamplingFigures } from './figures.ts'

/** Functions of a thread that may lie within one that is read later. */
const OPEN_MAX = 256
/** Names of functions with separate figures; those of all others count together. */
const NAMES_MAX = 256

const SAMPLING = ['sample', 'accept', 'create-sampler'] as const satisfies readonly FunctionPurpose[]
const LOADING = [
  ...(['read-header', 'map', 'copy-weights', 'load-model', 'reserve', 'create-context', 'load-lora'] as const),
] as const satisfies readonly LoadStage['stage'][]
/** Purposes whose values are bytes. */
const OF_BYTES: readonly FunctionPurpose[] = [...LOADING, 'save-state', 'restore-state', 'write-log']

/** Functions of one purpose and name. */
class FunctionSum {
  calls = 0
  ownNs = 0
  maxNs = 0
  value = 0
  hasValue = false
  /** Undefined where one of them has none. */
  resources: OwnResources | undefined = { cpuNs: 0, waitingNs: 0, processCpuNs: 0, bytesRead: 0, majorFaults: 0 }

  constructor(
    readonly what: FunctionPurpose,
    readonly name: string,
  ) {}

  get size(): number | null {
    return this.hasValue ? this.value : null
  }
}

/** The counts of a stage. Small ones below 0 come from the costs of counting. */
function countsOf(
  sums: readonly FunctionSum[],
): Pick<LoadStage, 'cpu_ns' | 'runnable_ns' | 'process_cpu_ns' | 'disk_bytes' | 'major_faults'> {
  const all = sums.map(({ resources }) => resources)
  const total = (key: keyof OwnResources) =>
    all.every((resources) => resources !== undefined && resources[key] >= 0)
      ? all.reduce((sum, resources) => sum + resources![key], 0)
      : null
  return {
    ...{ cpu_ns: total('cpuNs'), runnable_ns: total('waitingNs'), process_cpu_ns: total('processCpuNs') },
    ...{ disk_bytes: total('bytesRead'), major_faults: total('majorFaults') },
  }
}

interface Open {
  readonly startNs: number
  readonly endNs: number
  readonly sum: FunctionSum
  readonly resources: Resources | undefined
}

type OwnResources = { -readonly [key in Exclude<keyof Resources, 'minorFaults'>]: number }

/** Of a function, or (`sign` −1) of one within it. Times that are not known make all unknown: -1. */
function addTo(sum: FunctionSum, resources: Resources | undefined, sign: 1 | -1): void {
  const own = sum.resources
  if (own === undefined || resources === undefined) {
    if (sign > 0) sum.resources = undefined
    return
  }
  own.processCpuNs += sign * resources.processCpuNs
  own.bytesRead += sign * resources.bytesRead
  own.majorFaults += sign * resources.majorFaults
  for (const key of ['cpuNs', 'waitingNs'] as const)
    own[key] = own[key] < 0 || resources[key] < 0 ? -1 : own[key] + sign * resources[key]
}

/**
 * Sums functions by purpose and name, each without the functions within it, so that no time counts twice. On a thread they come in the
 * order of their ends, inner before outer.
 */
export class FunctionSums {
  private readonly sums = new Map<string, FunctionSum>()
  private readonly threads = new DefaultMap<number, Open[]>(() => [])

  constructor(private readonly names: Names) {}

  add({ what, name, startNs, endNs, tid, value, resources }: FunctionEvent): void {
    const sum = this.sumOf(what, name)
    addTo(sum, resources, 1)
    sum.calls++
    const timeNs = endNs - startNs
    sum.ownNs += timeNs
    if (timeNs > sum.maxNs) sum.maxNs = timeNs
    if (value >= 0) {
      sum.value += value
      sum.hasValue = true
    }
    const open = this.threads.of(tid)
    while (open.length > 0 && open.at(-1)!.startNs >= startNs) {
      const inner = open.pop()!
      sum.ownNs -= Math.min(inner.endNs, endNs) - inner.startNs
      addTo(sum, inner.resources, -1)
    }
    open.push({ startNs, endNs, sum, resources })
    if (open.length > OPEN_MAX) open.splice(0, OPEN_MAX / 2)
  }

  private sumOf(what: FunctionPurpose, name: number): FunctionSum {
    const key = `${what} ${name}`
    const known = this.sums.get(key)
    if (known) return known
    const isFull = this.sums.size >= NAMES_MAX
    const other = isFull ? this.sums.get(`${what} other`) : undefined
    const made = other ?? new FunctionSum(what, isFull ? 'other' : name === 0 ? '' : this.names.text(name))
    this.sums.set(isFull ? `${what} other` : key, made)
    return made
  }

  /** `tokens`: those that were sampled; `decodeNs`: time of the calls that made them. Null without samplers. */
  samplingOf(tokens: number | null, decodeNs: number): SamplingFigures | null {
    const sums = this.of(SAMPLING)
    if (sums.length === 0) return null
    const timeNs = sums.reduce((sum, { ownNs }) => sum + ownNs, 0)
    const allNs = decodeNs + timeNs
    const perToken = (ns: number) => (tokens === null || tokens === 0 ? null : ns / tokens)
    const share = (ns: number) => (allNs > 0 ? ns / allNs : 0)
    const samplers = sums.map(
      ({ what, name, calls, ownNs, maxNs }): SamplerFigures => ({
        ...{ what: what as SamplerFigures['what'], name, calls },
        ...{ time_ns: ownNs, per_token_ns: perToken(ownNs), share: share(ownNs), max_ns: maxNs },
      }),
    )
    return { tokens, time_ns: timeNs, per_token_ns: perToken(timeNs), share: share(timeNs), samplers }
  }

  /** Null where nothing was loaded. */
  load(): LoadFigures | null {
    const stages = LOADING.flatMap((stage): LoadStage[] => {
      const sums = this.of([stage])
      if (sums.length === 0) return []
      const total = (figureOf: (sum: FunctionSum) => number) => sums.reduce((all, sum) => all + figureOf(sum), 0)
      const timeNs = total(({ ownNs }) => ownNs)
      const bytes = sums.some(({ hasValue }) => hasValue) ? total(({ value }) => value) : null
      const perSecond = bytes === null || timeNs <= 0 ? null : (bytes * 1e9) / timeNs
      const calls = total(({ calls }) => calls)
      return [{ stage, calls, time_ns: timeNs, bytes, bytes_per_s: perSecond, ...countsOf(sums) }]
    })
    if (stages.length === 0) return null
    return { time_ns: stages.reduce((sum, { time_ns }) => sum + time_ns, 0), stages }
  }

  /** All others. */
  others(): FunctionFigures[] {
    const left: readonly FunctionPurpose[] = [...SAMPLING, ...LOADING]
    return [...this.sums.values()]
      .filter(({ what }) => !left.includes(what))
      .sort((a, b) => b.ownNs - a.ownNs)
      .map((sum) => ({
        ...{ what: sum.what, name: sum.name, calls: sum.calls, time_ns: sum.ownNs, max_ns: sum.maxNs },
        tokens: OF_BYTES.includes(sum.what) ? null : sum.size,
        bytes: OF_BYTES.includes(sum.what) ? sum.size : null,
      }))
  }

  /** Sums of these purposes, most time first. */
  private of(purposes: readonly FunctionPurpose[]): FunctionSum[] {
    return [...this.sums.values()].filter(({ what }) => purposes.includes(what)).sort((a, b) => b.ownNs - a.ownNs)
  }
}
