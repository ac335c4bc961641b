import { DefaultMap, getOrMake } from '../../model/default-map.ts'
import type { FactsEvent, InputEvent, TokenEvent, TraceEvent } from '../../model/events.ts'
import type { ApiEvent, GpuEvent, NvtxGpuEvent } from '../../model/gpu-events.ts'
import type { Names } from '../../model/names.ts'
import type { NvtxEvent } from '../../model/nvtx-events.ts'
import type { OwnSliceEvent, OwnTrackEvent } from '../../model/own-events.ts'
import { WITHOUT_TIMES } from '../../model/times.ts'
import { plural } from '../../model/units.ts'
import type { Undetermined } from '../common/figures.ts'
import type { Statistic } from '../common/statistic.ts'
import { deviceFigures } from './device-figures.ts'
import type { GpuFigures, GpuRange } from './figures.ts'
import { HostActivity, type HostActivityEvent } from './host-activity.ts'
import { HostCalls } from './host-calls.ts'
import { HostRanges, RANGE_KINDS, type ThreadIds } from './host-ranges.ts'
import { Launches } from './launches.ts'
import { measure } from './measure.ts'
import { StepList } from './steps.ts'
import { boundedBy, restOf } from './tables.ts'
import { GpuWork, WORK_MAX } from './work.ts'

/**
 * Names of NVTX ranges with their domains: `TSL:XlaCompile`; without one in the default domain. PyTorch's emit_nvtx writes a number into
 * each name (`aten::mm, op_id = 5`, `aten::mm, seq = 7, sizes = […]`), which is left out.
 */
class NvtxLabels {
  private readonly known = new Map<number, number>()

  constructor(private readonly names: Names) {}

  /** Id of the name of a range. */
  of(domain: number, message: number): number {
    const key = domain * 2 ** 26 + message
    return getOrMake(this.known, key, () => {
      const prefix = this.names.text(domain)
      const text = this.names.text(message).replace(/, (?:op_id|seq) = \d.*$/s, '')
      return this.names.id(prefix === '' ? text : `${prefix}:${text}`)
    })
  }
}

interface RangeSum {
  readonly name: number
  readonly kind: GpuRange['kind']
  count: number
  timeNs: number
  busyNs: number
  work: number
}

/** NVTX ranges and annotations that were projected onto the GPU, by name. */
class ProjectedRanges {
  /** By kind and name. */
  private readonly sums = new Map<number, RangeSum>()

  constructor(
    private readonly names: Names,
    private readonly labels: NvtxLabels,
  ) {}

  nvtx({ name, domain, startNs, endNs, busyNs, launched }: NvtxGpuEvent): void {
    const sum = this.sumOf('nvtx', this.labels.of(domain, name))
    sum.count++
    sum.timeNs += endNs - startNs
    sum.busyNs += busyNs
    sum.work += launched
  }

  annotation({ name, startNs, endNs }: OwnSliceEvent): void {
    const sum = this.sumOf('annotation', name)
    sum.count++
    sum.timeNs += endNs - startNs
  }

  figures(): Pick<GpuFigures, 'ranges' | 'other_ranges'> {
    const { shown, rest } = boundedBy([...this.sums.values()])
    const ranges = shown.map(({ name, kind, count, timeNs, busyNs, work }): GpuRange => {
      const isNvtx = kind === 'nvtx'
      const text = this.names.text(name)
      return { name: text, kind, count, time_ns: timeNs, busy_ns: isNvtx ? busyNs : null, work: isNvtx ? work : null }
    })
    return { ranges, other_ranges: restOf(rest) }
  }

  private sumOf(kind: GpuRange['kind'], name: number): RangeSum {
    const key = 2 * name + Number(kind === 'nvtx')
    return getOrMake(this.sums, key, () => ({ name, kind, count: 0, timeNs: 0, busyNs: 0, work: 0 }))
  }
}

const KINDS = [
  ...(['input', 'facts', 'gpu', 'api', 'nvtx-gpu', 'own-track', 'own-slice', 'nvtx'] as const),
  ...(['token', 'graph', 'part', 'copy', 'function'] as const),
]
type Kind = (typeof KINDS)[number]

/** Figures of the GPUs of one input. */
export interface GpuOfInput {
  readonly figures: GpuFigures
  readonly undetermined: readonly Undetermined[]
}

const [OPERATOR, MODULE, ANNOTATION, NVTX] = [0, 1, 2, RANGE_KINDS.indexOf('nvtx')]
/** Formats whose ranges are not held: they have many, and what launched GPU work are calls of llama.cpp. */
const WITHOUT_RANGES: ReadonlySet<string> = new Set(['ggtrace'])

/** Numbers of categories of PyTorch's profiler. */
interface Categories {
  readonly operator: number
  readonly annotation: number
  readonly python: number
  readonly onGpu: number
}

/**
 * Figures of GPUs: events come in any order and are held as numbers, 20 bytes for a piece of work, 12 for a launch, 18 for an operator or a
 * range, and 8 more each while figures are made: 10 million kernels with a launch each take 400 MB.
 */
export class GpuStatistics implements Statistic<object, Kind> {
  readonly kinds = KINDS
  private readonly work: GpuWork
  private readonly launches = new DefaultMap<number, Launches>(() => new Launches())
  private readonly ranges = new HostRanges()
  private readonly calls: HostCalls
  private readonly projected: ProjectedRanges
  private readonly steps = new StepList()
  private readonly categories: Categories
  /** Threads of tracks. */
  private readonly threads = new Map<number, ThreadIds>()
  private readonly stacks = new DefaultMap<string, number[]>(() => [])
  private readonly started = new Map<number, number>()
  private readonly labels: NvtxLabels
  /** By name of a Python function, that of its kind of module; 0: it is none. */
  private readonly modules: (number | undefined)[] = []
  /** By name of an annotation: is it a step? */
  private readonly stepNames: (boolean | undefined)[] = []
  private readonly host: HostActivity
  private gpus = ''
  private times: string | null = null
  private made: { readonly figures: GpuOfInput | undefined } | undefined
  private hasRanges = true
  private rangesLeftOut = 0

  /** `workMax`: pieces of work, launches and ranges that are held. */
  constructor(
    private readonly names: Names,
    private readonly workMax = WORK_MAX,
  ) {
    this.work = new GpuWork(names, workMax)
    this.calls = new HostCalls(names)
    this.host = new HostActivity(names)
    this.labels = new NvtxLabels(names)
    this.projected = new ProjectedRanges(names, this.labels)
    const [operator, annotation] = [names.id('cpu_op'), names.id('user_annotation')]
    this.categories = {
      ...{ operator, annotation, python: names.id('python_function'), onGpu: names.id('gpu_user_annotation') },
    }
  }

  event(event: Extract<TraceEvent, { readonly kind: Kind }>): void {
    switch (event.kind) {
      case 'gpu':
        return this.gpu(event)
      case 'api':
        return this.api(event)
      case 'own-slice':
        return this.slice(event)
      case 'nvtx':
        return this.hasRanges ? this.nvtx(event) : undefined
      case 'nvtx-gpu':
        return this.onGpu(event)
      case 'own-track':
        return this.track(event)
      case 'token':
        this.step(event)
        return this.onHost(event)
      case 'graph':
      case 'part':
      case 'copy':
      case 'function':
        return this.onHost(event)
      case 'input':
        this.hasRanges = !WITHOUT_RANGES.has(event.format)
        return this.name(event)
      case 'facts':
        return this.name(event)
    }
  }

  finish(): { readonly gpu: GpuOfInput | undefined } {
    return { gpu: this.figures }
  }

  /** Undefined where the input contains neither GPU work nor calls. */
  get figures(): GpuOfInput | undefined {
    this.made ??= { figures: this.make() }
    return this.made.figures
  }

  private make(): GpuOfInput | undefined {
    const processes = this.calls.figures()
    const { work, launches, ranges, steps, names } = this
    if (work.devices.length === 0 && processes.length === 0) return undefined
    steps.settle()
    const measures = work.isOver ? undefined : measure(work, launches, ranges, steps, this.host.sums())
    const devices = work.devices
      .toSorted((a, b) => a.device - b.device || a.pid - b.pid)
      .map((device) => deviceFigures(device, { measures, steps, names, gpus: this.gpus, times: this.times }))
    const figures = { devices, processes, ...this.projected.figures() }
    return { figures, undetermined: this.undetermined(figures) }
  }

  private gpu(event: GpuEvent): void {
    this.work.add(event)
  }

  private name({ attributes }: InputEvent | FactsEvent): void {
    this.gpus = String(attributes['gpus'] ?? this.gpus)
    const times = attributes['gpu.times']
    if (times !== undefined) this.times = String(times)
  }

  private api(event: ApiEvent): void {
    const { library, launched, correlation, pid, tid, startNs } = event
    if (library === 'os') return
    this.calls.add(event)
    this.onHost(event)
    if (launched === 0 || correlation < 0 || this.work.isOver) return
    this.launches.of(pid).add(startNs, correlation, tid)
  }

  /** Of recordings of programs that use a GPU: other formats have calls without what is around them. */
  private onHost(event: HostActivityEvent): void {
    if (!this.hasRanges && this.gpus !== '') this.host.take(event)
  }

  private slice(event: OwnSliceEvent): void {
    const { category, name } = event
    if (category === undefined) return
    const { operator, annotation, python, onGpu } = this.categories
    if (category === operator) this.range(OPERATOR, event, name)
    else if (category === annotation) this.annotation(event)
    else if (category === python) {
      const module = this.moduleOf(name)
      if (module > 0) this.range(MODULE, event, module)
    } else if (category === onGpu) this.projected.annotation(event)
  }

  private annotation(event: OwnSliceEvent): void {
    const { name, startNs, endNs } = event
    const text = this.names.text(name)
    this.stepNames[name] ??= /^ProfilerStep#\d+$/.test(text)
    if (this.stepNames[name]) this.steps.add({ name: text, startNs, endNs })
    else this.range(ANNOTATION, event, name)
  }

  /** PyTorch's profiler numbers the modules of each kind: `nn.Module: Linear_3`. */
  private moduleOf(name: number): number {
    let module = this.modules[name]
    if (module === undefined) {
      const kind = /^(nn\.Module: .*?)(?:_\d+)?$/.exec(this.names.text(name))?.[1]
      module = kind === undefined ? 0 : this.names.id(kind)
      this.modules[name] = module
    }
    return module
  }

  private range(kind: number, { track, startNs, endNs }: OwnSliceEvent, name: number): void {
    const thread = this.threads.get(track)
    if (thread) this.addRange(kind, thread, startNs, name, endNs)
  }

  private addRange(kind: number, thread: ThreadIds, startNs: number, name: number, endNs?: number): number {
    const isHeld = this.ranges.length < this.workMax
    const id = isHeld ? this.ranges.add(kind, thread, startNs, name, endNs) : -1
    if (id < 0) this.rangesLeftOut++
    return id
  }

  private nvtx({ what, pid = -1, tid, domain, atNs, range, message }: NvtxEvent): void {
    if (what === 'mark') return
    if (what === 'pop') {
      const id = this.stacks.of(`${pid} ${tid} ${domain}`).pop() ?? -1
      if (id >= 0) this.ranges.end(id, atNs)
    } else if (what === 'end') {
      const id = this.started.get(range) ?? -1
      this.started.delete(range)
      if (id >= 0) this.ranges.end(id, atNs)
    } else {
      const id = this.addRange(NVTX, { pid, tid }, atNs, this.labels.of(domain, message))
      if (what === 'push') this.stacks.of(`${pid} ${tid} ${domain}`).push(id)
      else this.started.set(range, id)
    }
  }

  private onGpu(event: NvtxGpuEvent): void {
    this.projected.nvtx(event)
  }

  private track({ id, pid = -1, tid }: OwnTrackEvent): void {
    if (tid !== undefined && tid >= 0) this.threads.set(id, { pid, tid })
  }

  /** A step of an engine: the time in which the CPU launches its work. */
  private step({ step, call, phase, startNs }: TokenEvent): void {
    if (step) this.steps.add({ name: `${phase} ${call}`, startNs, endNs: startNs + step.launchNs })
  }

  private undetermined({ devices }: GpuFigures): Undetermined[] {
    const found: Undetermined[] = []
    const add = (what: string, why: string, hint?: string) => found.push({ what: `gpu.${what}`, why, hint })
    const { isOver, length } = this.work
    if (devices.length === 0) add('devices', 'calls of CUDA or HIP were recorded, but no work of a GPU')
    if (isOver) add('devices.time', `the log contains more than ${length} pieces of GPU work: only sums are known`)
    if (devices.some(({ times }) => times === 'durations')) add('devices.time', WITHOUT_TIMES.durations)
    if (!isOver && devices.some(({ queue, times }) => queue === null && times !== 'durations'))
      add(
        'devices.launch_latency',
        'the log contains no calls that launched the work',
        'nsys profile --trace cuda; torch.profiler with ProfilerActivity.CPU and CUDA',
      )
    const early = devices.reduce((sum, { launches_after_work }) => sum + launches_after_work, 0)
    if (early > 0)
      add(
        'devices.launch_latency',
        `work of ${plural(early, 'launch')} begins before them: the clocks of CPU and GPU are not aligned there`,
      )
    if (this.rangesLeftOut > 0)
      add('devices.launchers', `without ${plural(this.rangesLeftOut, 'range')}, such as operators, that are not held`)
    return found
  }
}
