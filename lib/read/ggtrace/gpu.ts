import { CUDA_FUNCTIONS, GPU_APIS, GPU_WAITS, GPU_WORKS, NONE, RecordType } from '../../log/ggtrace-layout.ts'
import { DefaultMap } from '../../model/default-map.ts'
import type { FactsEvent, TraceEvent } from '../../model/events.ts'
import { type ApiEvent, type GpuEvent, type GpuPlace, UNKNOWN_PLACE, type UntimedWork } from '../../model/gpu-events.ts'
import type { Names } from '../../model/names.ts'
import { copyName, FILL_NAME, shortKernelName } from '../common/cuda.ts'
import { type LogClock, readU64 } from './fields.ts'

/** A queue that a GPU_QUEUE record defines. */
interface Queue {
  readonly place: GpuPlace
  /** The times at which it worked are recorded. */
  readonly isTimed: boolean
  readonly api: (typeof GPU_APIS)[number]
  /** Times are of events on the stream: of spans, not of kernels. */
  readonly isByEvents: boolean
}

/** What the records of GPUs refer to. */
export interface GpuReferences {
  readonly names: Names
  readonly clock: LogClock
  /** The name, and the tensor event's id, of a log's id. */
  readonly name: (id: number, byte: number) => number
  readonly tensor: (id: number, byte: number) => number
  /** Name of the backend of a log's graph; 0: not known. */
  readonly backend: (graph: number) => number
}

/** The start of a record, its thread, and its place in the input. */
interface Place {
  readonly atNs: number
  readonly tid: number
  readonly byte: number
}

/** VkQueueFlagBits. */
/** What queues can do, by their bits of Vulkan's flags; ggml uses them for the first of these that they can do. */
const QUEUE_USES = [
  ['compute', 2],
  ['transfer', 4],
  ['graphics', 1],
] as const
/** `flags` of a stream of CUDA. */
const BY_EVENTS = 1
const WORKS: Readonly<Record<(typeof GPU_WORKS)[number], GpuEvent['what']>> = {
  operator: 'kernel',
  copy: 'memcpy',
  fill: 'memset',
  graph: 'graph',
}
/** Submissions of a thread that wait for their graph: it is written after them. */
const SUBMISSIONS_MAX = 4096

/** Turns the records of GPUs into events. */
export class GpuRecords {
  private readonly queues = new Map<number, Queue>()
  /** Names by number. */
  private readonly devices = new Map<number, string>()
  /** Submissions without work that was recorded by itself. */
  private readonly whole = new Set<number>()
  /** Submissions of graphs, by thread. */
  private readonly ofGraphs = new DefaultMap<number, { startNs: number; correlation: number }[]>(() => [])
  /** Works without times, of the submission of a thread that follows. */
  private readonly untimed = new Map<number, { readonly correlation: number; readonly works: UntimedWork[] }>()
  private clockErrorNs = -1

  constructor(private readonly references: GpuReferences) {}

  /** Reads the definition of a queue. Returns the names of the devices so far, as a fact. */
  define(view: DataView, at: number, byte: number): FactsEvent {
    const [id, device, name, family, index, flags, bits, number] = numbersAt(view, at + 4, 8)
    const { names } = this.references
    const [use] = QUEUE_USES.find(([, bit]) => (flags! & bit) !== 0) ?? ['queue']
    const gpu = names.text(this.references.name(name!, byte))
    const queue = names.id(`${use} ${family}.${index} · GPU ${device}`) // short: the viewer cuts names
    this.devices.set(device!, gpu)
    const api = GPU_APIS[number!] ?? 'vulkan'
    const place =
      api === 'vulkan'
        ? { ...UNKNOWN_PLACE, device: device!, stream: id!, queue }
        : { ...UNKNOWN_PLACE, device: device!, stream: index! }
    this.queues.set(id!, { place, isTimed: bits !== 0, api, isByEvents: api === 'cuda' && flags === BY_EVENTS })
    const gpus = [...this.devices].sort(([a], [b]) => a - b).map(([subject, named]) => `${subject} ${named}`)
    return { kind: 'facts', attributes: { gpus: gpus.join(', ') } }
  }

  /** The event of a record; undefined for records of other types, and for those that are no event. */
  read(type: number, view: DataView, at: number, place: Place): TraceEvent | undefined {
    switch (type) {
      case RecordType.GpuWork:
        return this.work(view, at, place)
      case RecordType.GpuSubmission:
        return this.submission(view, at, place)
      case RecordType.GpuPipeline:
        return this.pipeline(view, at, place)
      case RecordType.GpuWait:
        return this.wait(view, at, place)
      case RecordType.GpuClock:
        return this.reading(view, at)
      case RecordType.GpuComplete:
        return this.complete(view, at)
      default:
        return undefined
    }
  }

  /** Correlation ids of what a thread submitted in a graph run; undefined: nothing. Graph runs of a thread come in order. */
  submissionsIn(tid: number, { startNs, endNs }: { readonly startNs: number; readonly endNs: number }) {
    const waiting = this.ofGraphs.get(tid)
    if (!waiting) return undefined
    this.ofGraphs.delete(tid)
    const own = waiting.filter((submission) => submission.startNs >= startNs && submission.startNs <= endNs)
    return own.length > 0 ? own.map(({ correlation }) => correlation) : undefined
  }

  private work(view: DataView, at: number, place: Place): GpuEvent | undefined {
    const [correlation, queue, , , , call] = numbersAt(view, at + 20, 6)
    const work = this.whatOf(view, at, place.byte)
    if (readU64(view, at + 12) === 0) return this.hold(place.tid, correlation!, work)
    const facts = this.queues.get(queue!)?.isByEvents ? { ...work.facts, times: 'events' } : work.facts
    return {
      kind: 'gpu',
      ...{ ...work, facts },
      startNs: place.atNs,
      endNs: this.end(view, at, place.atNs),
      ...this.placeOf(queue!),
      correlation: correlation! || -1, // 0: of CUDA's work whose launch is not known
      call: call === NONE ? undefined : call!,
    }
  }

  private whatOf(view: DataView, at: number, byte: number): UntimedWork {
    const [, queue, number, tensor, , , , kernel, dispatches, part] = numbersAt(view, at + 20, 10)
    const { names } = this.references
    const what = GPU_WORKS[number!] ?? 'operator'
    const bytes = readU64(view, at + 60)
    const api = this.queues.get(queue!)?.api ?? 'vulkan'
    const signature = this.references.name(kernel!, byte)
    const shape = api === 'vulkan' || what !== 'operator' ? '' : names.text(this.references.name(dispatches!, byte))
    const ofOperator = { ...dispatchesOf(api, dispatches!, shape), ...(part! > 0 && { part }) }
    return {
      what: WORKS[what],
      name:
        api === 'vulkan'
          ? this.references.name(kernel!, byte) || names.id(what)
          : names.id(this.nameOf(what, dispatches!, signature)),
      signature: api === 'vulkan' ? 0 : signature,
      facts: what === 'operator' ? ofOperator : what === 'graph' ? {} : { bytes },
      node: tensor === 0 ? undefined : this.node(view, at, byte),
    }
  }

  private hold(tid: number, correlation: number, work: UntimedWork): undefined {
    const held = this.untimed.get(tid)
    if (held?.correlation === correlation) held.works.push(work)
    else this.untimed.set(tid, { correlation, works: [work] })
  }

  private takeUntimed(tid: number, correlation: number): readonly UntimedWork[] | undefined {
    const held = this.untimed.get(tid)
    this.untimed.delete(tid)
    return held?.correlation === correlation ? held.works : undefined
  }

  /** Of CUDA's work: as nsys names it. */
  private nameOf(what: (typeof GPU_WORKS)[number], kind: number, signature: number): string {
    if (what === 'copy') return copyName(kind)
    return what === 'fill' ? FILL_NAME : shortKernelName(this.references.names.text(signature)) || what
  }

  private node(view: DataView, at: number, byte: number): GpuEvent['node'] {
    const [tensor, last, , graph, , , part] = numbersAt(view, at + 32, 7)
    const fusedTo = last === 0 ? undefined : this.references.tensor(last!, byte)
    return {
      tensor: this.references.tensor(tensor!, byte),
      fusedTo,
      backend: this.references.backend(graph!),
      part: part!,
    }
  }

  private submission(view: DataView, at: number, place: Place): ApiEvent {
    const [correlation, queue, buffers, works, call, graph] = numbersAt(view, at + 20, 6)
    const { isTimed, api } = this.queues.get(queue!) ?? { isTimed: false, api: 'vulkan' }
    if (works === 0 && api === 'vulkan') this.whole.add(correlation!)
    const launched = isTimed ? (api === 'cuda' ? works! : works || 1) : 0
    const facts = api === 'vulkan' ? { command_buffers: buffers! } : {}
    const isOfGraph = graph !== 0
    if (isOfGraph) {
      const waiting = this.ofGraphs.of(place.tid)
      if (waiting.length < SUBMISSIONS_MAX) waiting.push({ startNs: place.atNs, correlation: correlation! })
    }
    const untimed = this.takeUntimed(place.tid, correlation!)
    const submission = {
      library: api,
      correlation: correlation!,
      launched,
      facts,
      call: call!,
      ...(isOfGraph && { isOfGraph }),
      ...(untimed && { untimed }),
    }
    return this.call(nameOfSubmission(api, buffers!), view, at, place, submission)
  }

  private pipeline(view: DataView, at: number, place: Place): ApiEvent {
    const [name, pipelines] = numbersAt(view, at + 20, 2)
    const shader = this.references.names.text(this.references.name(name!, place.byte))
    const facts = { ...(shader && { shader }), ...(pipelines !== 1 && { pipelines: pipelines! }) }
    return this.call('vkCreateComputePipelines', view, at, place, { facts })
  }

  private wait(view: DataView, at: number, place: Place): ApiEvent {
    const [what, device, call] = numbersAt(view, at + 20, 3)
    const name = GPU_WAITS[what!] ?? 'wait'
    const library = name.startsWith('cuda') ? 'cuda' : name.startsWith('hip') ? 'hip' : 'vulkan'
    return this.call(name, view, at, place, { library, facts: { device: device! }, call: call! })
  }

  private call(
    name: string,
    view: DataView,
    at: number,
    { atNs, tid }: Place,
    { call = NONE, ...rest }: Partial<ApiEvent>,
  ): ApiEvent {
    return {
      ...{
        kind: 'api',
        library: 'vulkan',
        name: this.references.names.id(name),
        startNs: atNs,
        endNs: this.end(view, at, atNs),
      },
      ...{ pid: -1, tid, correlation: -1, thread: 0, launched: 0, result: 0 },
      ...rest,
      call: call === NONE ? undefined : call,
    }
  }

  /** A reading of the clocks of host and device: its largest error so far is a fact of the run. */
  private reading(view: DataView, at: number): TraceEvent | undefined {
    const late = Math.abs(Number(view.getBigInt64(at + 28, true)))
    const errorNs = readU64(view, at + 20) + late
    if (errorNs <= this.clockErrorNs) return undefined
    this.clockErrorNs = errorNs
    return { kind: 'facts', attributes: { gpu_clock_error_ns: errorNs } }
  }

  /** A submission is drawn as a whole if nothing of it was recorded by itself. */
  private complete(view: DataView, at: number): GpuEvent | undefined {
    const startNs = this.references.clock.read(view, at + 12)
    const [correlation, queue] = numbersAt(view, at + 28, 2)
    if (!this.whole.delete(correlation!) || startNs === undefined) return undefined
    const endNs = Math.max(startNs, this.references.clock.read(view, at + 20) ?? startNs)
    const name = this.references.names.id('submission')
    const shared = { correlation: correlation!, signature: 0, facts: {} }
    return { kind: 'gpu', what: 'graph', name, startNs, endNs, ...this.placeOf(queue!), ...shared }
  }

  private placeOf(queue: number): GpuPlace {
    return this.queues.get(queue)?.place ?? UNKNOWN_PLACE
  }

  private end(view: DataView, at: number, startNs: number): number {
    return Math.max(startNs, this.references.clock.read(view, at + 12) ?? startNs)
  }
}

/** Of a Vulkan operator, how many dispatches it has; of a CUDA kernel, its grid and its blocks. */
function dispatchesOf(api: Queue['api'], dispatches: number, shape: string): Record<string, number | string> {
  if (api === 'vulkan') return dispatches > 1 ? { dispatches } : {}
  const [grid, block] = shape.split(' ')
  return grid && block ? { grid, block } : {}
}

function nameOfSubmission(api: Queue['api'], number: number): string {
  if (api === 'vulkan') return 'vkQueueSubmit'
  const name = CUDA_FUNCTIONS[number] ?? 'launch'
  return api === 'cuda' ? name : name.replace('LaunchKernelExC', 'LaunchKernel').replace(/^cu(?:da)?/, 'hip')
}

function numbersAt(view: DataView, at: number, count: number): number[] {
  return Array.from({ length: count }, (_, i) => view.getUint32(at + 4 * i, true))
}
