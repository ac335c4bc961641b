import { Works } from '../../analyze/graph/work.ts'
import { type Arg, areArgs } from '../../model/args.ts'
import { DefaultMap, getOrMake } from '../../model/default-map.ts'
import { Inferred } from '../../model/events.ts'
import type {
  ApiEvent,
  Facts,
  GpuActivityEvent,
  GpuEvent,
  GpuNode,
  GpuPlace,
  GpuSyncEvent,
  SummedWork,
  UntimedWork,
} from '../../model/gpu-events.ts'
import { type JoinedProfile, KERNEL_FIGURES, type KernelProfileEvent } from '../../model/kernel-profiles.ts'
import type { GpuQueue } from '../../sink/writer.ts'
import { arrowIds, submissionArrows } from '../arrow-ids.ts'
import type { TrackContext } from '../context.ts'
import { NodeArgs } from '../ggml/node-args.ts'
import { NodeNames } from '../ggml/node-names.ts'
import { sumArgs, sumName } from '../ggml/sums.ts'
import { type ArgMaker, intArg, labelOf, PALE } from '../labels.ts'
import { LAYOUT } from '../layout.ts'
import type { NestedRows } from '../nested.ts'
import { specOf } from '../place.ts'
import type { Lanes } from '../tracks.ts'
import { BusiestQueues } from './busiest.ts'

/** A call and its work share an id: the number of the process, from 1, and the correlation id. */
const CORRELATIONS = 2 ** 32

/** A GPU stream and its rows. */
interface Stream {
  readonly queue: GpuQueue
  /** For writers without a {@link GpuSink}. */
  readonly work: Lanes | undefined
  readonly subject: { readonly device: number; readonly stream: string }
  /** Rows of waits for it, if there are any. */
  waits?: Lanes
}

/** The name of a node's slices, and their common arguments. */
interface NodeLabel {
  readonly name: number
  readonly args: readonly Arg[]
}

/** Draws GPU work by stream, the waits for it, and the calls that launched it. */
export class GpuArea {
  private readonly streams = new Map<string, Stream>()
  /** Streams that were waited for. */
  private waited = 0
  private readonly calls = new Map<string, NestedRows>()
  private latestCall: ApiEvent | undefined
  private latestRows: NestedRows | undefined
  private latestPlace: GpuPlace | undefined
  private latestStream: Stream | undefined
  private readonly processes = new DefaultMap<number, number>(() => this.context.tree.addProcess())
  /** Frequent arguments and keys, looked up once. */
  private readonly kinds: Readonly<Record<GpuEvent['what'], Arg>>
  private readonly keys: { readonly correlation: number; readonly work: number; readonly call: number }
  private readonly arrowIds: ReturnType<typeof arrowIds>
  private readonly nodeNames: NodeNames
  private readonly profiles: ProfileArgs
  private readonly nodeArgs: NodeArgs
  /** By tensor and `fusedTo`. */
  private readonly nodes = new Map<string, NodeLabel>()
  private readonly busiest: BusiestQueues

  constructor(private readonly context: TrackContext) {
    const { make, names, input, tensors } = context
    this.nodeNames = new NodeNames(context, context.opName)
    this.nodeArgs = new NodeArgs(context, new Works(tensors, (tensor) => names.text(tensor.op)))
    this.arrowIds = arrowIds(input)
    this.profiles = new ProfileArgs(make)
    this.busiest = new BusiestQueues(context)
    const kind = (what: GpuEvent['what']) => make.word('kind', what)
    this.kinds = {
      ...{ kernel: kind('kernel'), memcpy: kind('memcpy'), memset: kind('memset') },
      ...{ graph: kind('graph'), migration: kind('migration') },
    }
    this.keys = { correlation: names.id('correlation'), work: names.id('gpu_work'), call: names.id('call') }
  }

  take(event: GpuActivityEvent): void {
    switch (event.kind) {
      case 'gpu':
        return this.work(event)
      case 'gpu-sync':
        return this.sync(event)
      case 'api':
        return this.call(event)
    }
  }

  /** Ends all open slices. */
  finish(): void {
    for (const rows of this.calls.values()) rows.finish()
    this.busiest.finish()
  }

  private work(event: GpuEvent): void {
    const { what, startNs, endNs, pid, correlation, facts, signature, node, call } = event
    const { make, detail, tree, writer } = this.context
    const { queue, work } = this.stream(event)
    const ofNode = node && this.nodeLabel(node)
    const name = event.summed ? this.sumName(event.name, event.summed) : (ofNode?.name ?? event.name)
    const extra: Arg[] = [this.kinds[what]]
    if (event.summed) extra.push(...this.sumArgs(event.name, call!, event.summed))
    else if (detail !== 'names') {
      if (ofNode) extra.push(...ofNode.args, make.name('kernel', event.name))
      if (call !== undefined) extra.push(intArg(this.keys.call, call))
      if (correlation >= 0) extra.push(intArg(this.keys.correlation, correlation))
      for (const arg of this.factArgs(facts)) extra.push(arg)
      if (event.inferred) extra.push(...make.inferred(event.inferred))
      if (event.profile) extra.push(...this.profiles.of(event.profile))
      if (signature !== 0 && detail === 'full') extra.push(make.name('signature', signature))
    }
    if (work) return work.place(startNs, endNs, { name, category: 'gpu', extra })
    this.busiest.add(queue, startNs, endNs, name)
    const id = correlation < 0 ? tree.addLooseWork() : this.workId(pid, correlation)
    writer.gpu?.work({ queue, stage: what, startNs, endNs, name, id, submission: correlation, extra })
  }

  private nodeLabel({ tensor, fusedTo }: GpuNode): NodeLabel {
    const key = `${tensor} ${fusedTo}`
    return getOrMake(this.nodes, key, () => {
      const { make, tensors } = this.context
      const args = this.nodeArgs.of(tensor, fusedTo, 0)
      if (fusedTo !== undefined) args.push(make.name('fused_to', tensors[fusedTo]!.name))
      return { name: this.nodeNames.of(tensor, fusedTo), args }
    })
  }

  private sync(event: GpuSyncEvent): void {
    const { name, startNs, endNs, correlation, facts } = event
    const extra = this.context.make.shown([...this.correlationArg(correlation), ...this.factArgs(facts)])
    const stream = this.stream(event)
    stream.waits ??= this.context.tracks.lanes('streamWaits', { ...stream.subject, nth: this.waited++ }, true)
    stream.waits.place(startNs, endNs, { name, category: 'sync', extra })
  }

  private call(event: ApiEvent): void {
    if (event.summed) return this.summedCall(event, event.summed)
    const { name, startNs, endNs, pid, correlation, launched, result, facts, call } = event
    const { make } = this.context
    const extra = this.correlationArg(correlation)
    if (call !== undefined) extra.push(intArg(this.keys.call, call))
    if (launched > 0) extra.push(intArg(this.keys.work, launched))
    if (result !== 0) extra.push(make.int('result', result))
    if (facts) extra.push(...this.factArgs(facts))
    if (event.untimed) extra.push(...this.untimedArgs(event.untimed))
    const flows = this.arrowIds(event.flows)
    const flowEnds = this.arrowIds(event.flowEnds)
    const work = launched > 0 ? this.workId(pid, correlation) : undefined
    const arrowsIn = event.isOfGraph ? [submissionArrows(this.context.input, correlation).fromGraph] : undefined
    const label = make.with(make.common(name, 'api'), make.shown(extra), arrowsIn, flows, flowEnds, work)
    this.rowsOf(event).place(startNs, endNs, label)
  }

  private summedCall(event: ApiEvent, summed: SummedWork): void {
    const { name, startNs, endNs, launched, call } = event
    const extra = [...this.sumArgs(name, call!, summed)]
    if (launched > 0 && extra.length > 0) extra.push(intArg(this.keys.work, launched))
    const label = labelOf(this.sumName(name, summed), 'api_sum', extra, this.context.names.id(PALE))
    this.rowsOf(event).place(startNs, endNs, label)
  }

  private sumName(name: number, { count }: SummedWork): number {
    const { names } = this.context
    return names.id(sumName(names.text(name), count))
  }

  private sumArgs(name: number, call: number, summed: SummedWork): readonly Arg[] {
    const { make } = this.context
    return make.shown([...sumArgs(make, name, { ...summed, call }), ...make.inferred(Inferred.Place)]) ?? []
  }

  /** Of what a call launched, where no work of a GPU is drawn: of one, all that is known; of more, their number. */
  private untimedArgs(works: readonly UntimedWork[]): Arg[] {
    const { make, detail } = this.context
    const [work, ...others] = works
    if (detail === 'names' || !work) return []
    if (others.length > 0) return [make.int('launched_works', works.length)]
    const { node, name, facts } = work
    return [...(node ? this.nodeLabel(node).args : []), make.name('kernel', name), ...this.factArgs(facts)]
  }

  private rowsOf(event: ApiEvent): NestedRows {
    const { library, pid, tid } = event
    const latest = this.latestCall
    if (latest && latest.tid === tid && latest.pid === pid && latest.library === library) return this.latestRows!
    this.latestCall = event
    this.latestRows = this.findRows(event)
    return this.latestRows
  }

  private findRows({ library, pid, tid, thread }: ApiEvent): NestedRows {
    const key = `${library} ${pid} ${tid}`
    return getOrMake(this.calls, key, () => {
      const { tracks, names } = this.context
      return tracks.nested(`${library}Thread`, { thread: names.text(thread), tid, nth: this.calls.size })
    })
  }

  private stream(place: GpuPlace): Stream {
    const { latestPlace: latest } = this
    const isSame = latest && latest.stream === place.stream && latest.device === place.device
    if (isSame && latest.context === place.context && latest.pid === place.pid) return this.latestStream!
    this.latestPlace = place
    this.latestStream = this.findStream(place)
    return this.latestStream
  }

  private findStream(place: GpuPlace): Stream {
    const { device, context, contextName, stream, streamName, pid } = place
    const key = `${device} ${context} ${stream} ${pid}`
    return getOrMake(this.streams, key, () => {
      const { names, tracks, tree, writer } = this.context
      const isVulkan = place.queue !== undefined
      const name = isVulkan ? names.text(place.queue!) : titleOf(place, names.text(streamName), names.text(contextName))
      const subject = { device, stream: name }
      const nth = this.streams.size
      const about = [
        streamName !== 0 && `Stream ${names.text(streamName)}.`,
        context >= 0 && `Context ${context}${contextName === 0 ? '' : `, ${names.text(contextName)}`}.`,
        pid >= 0 && `Process ${pid}.`,
      ].filter(Boolean)
      const description = [specOf(LAYOUT.streamWork, { ...subject, nth }).description, ...about].join(' ')
      const api = isVulkan ? 'VULKAN' : 'CUDA'
      return {
        queue: { id: tree.addQueue(), name, description, gpu: Math.max(0, device), pid, api },
        subject,
        work: writer.gpu ? undefined : tracks.lanes('streamWork', { ...subject, nth }, true),
      }
    })
  }

  private workId(pid: number, correlation: number): number {
    return this.processes.of(pid) * CORRELATIONS + correlation
  }

  private correlationArg(correlation: number): Arg[] {
    return correlation < 0 ? [] : [intArg(this.keys.correlation, correlation)]
  }

  private factArgs(facts: Facts): readonly Arg[] {
    if (areArgs(facts)) return facts
    const { make } = this.context
    const args: Arg[] = []
    for (const key in facts) {
      const value = facts[key]!
      if (typeof value === 'number' && !Number.isFinite(value)) continue // the input has no such fact
      if (typeof value === 'bigint') args.push(make.arg(key, { big: value }))
      else args.push(typeof value === 'number' ? make.int(key, value) : make.word(key, value))
    }
    return args
  }
}

/** Viewers cut longer titles. */
const TITLE_CHARS_MAX = 28

/**
 * `stream 7 (default), ctx 2, pid 112`: what distinguishes a stream comes first; contexts without names are named from the second one of a process on.
 * A title that would be too long is without the word *stream*, or without the names that the program gave.
 */
function titleOf({ context, stream, pid }: GpuPlace, streamName: string, contextName: string): string {
  const ofStream = (name: string) => (stream < 0 ? 'all streams' : `stream ${stream}${name === '' ? '' : ` (${name})`}`)
  const number = context > (contextName === '' ? 1 : -1) ? `ctx ${context}` : ''
  const ofProcess = pid >= 0 ? `pid ${pid}` : ''
  const title = [ofStream(streamName), contextName || number, ofProcess].filter(Boolean).join(', ')
  const plain = [ofStream(''), number, ofProcess].filter(Boolean).join(', ')
  const titles = [title, plain].flatMap((text) => [text, text.replace(/^stream /, '')])
  return titles.find((text) => text.length <= TITLE_CHARS_MAX) ?? titles.at(-1)!
}

/** Arguments of kernels that a profiler of single kernels measured. */
class ProfileArgs {
  private readonly known = new Map<KernelProfileEvent, readonly Arg[]>()

  constructor(private readonly make: ArgMaker) {}

  /** `ncu_match` and the figures as `ncu_…`; at full also all metrics by their own names. */
  of({ of: event, match }: JoinedProfile): Arg[] {
    const { make } = this
    const how = match === 'launch' ? 'the same launch' : 'another launch of the same name, grid and block'
    return [make.word('ncu_match', how), ...(this.known.get(event) ?? this.figures(event))]
  }

  private figures(event: KernelProfileEvent): readonly Arg[] {
    const { make } = this
    const args = KERNEL_FIGURES.flatMap((figure): Arg[] => {
      const value = event.figures[figure]
      return value === undefined ? [] : [numberArg(make.names.id(`ncu_${figure}`), value)]
    })
    args.push(make.int('ncu_id', event.id), make.name('ncu_name', event.name))
    for (const [key, value] of event.metrics ?? []) args.push(numberArg(key, value))
    this.known.set(event, args)
    return args
  }
}

const numberArg = (key: number, value: number): Arg =>
  Number.isSafeInteger(value) ? { key, int: value } : { key, double: value }
