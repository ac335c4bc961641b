import type { Arg } from '../../model/args.ts'
import type { ApiEvent, Facts, GpuEvent, GpuPlace, GpuSyncEvent } from '../../model/gpu-events.ts'
import type { Label } from '../../sink/label.ts'
import type { GpuQueue } from '../../sink/writer.ts'
import { arrowIds } from '../arrow-ids.ts'
import type { ArgMaker, Detail } from '../labels.ts'
import { NestedRows } from '../nested.ts'
import { Lanes, LazyGroup, rowName, type TrackTree, threadTitle } from '../tracks.ts'

const CALLS_RANK = 7 * 16 + 10
const WAITS_RANK = CALLS_RANK + 2
const WORK_RANK = CALLS_RANK + 3

/** A call and its work share an id: the process, from 1, and its correlation id. */
const CORRELATIONS = 2 ** 32

const LIBRARIES = {
  cuda: { name: 'CUDA API', description: 'Calls of the CUDA runtime, driver and libraries, by thread.' },
  hip: { name: 'HIP API', description: 'Calls of the HIP runtime, by thread.' },
  os: {
    name: 'OS runtime',
    description: 'Calls of the operating system’s libraries that took long or wait, by thread.',
  },
} as const

/** A stream of a GPU, its rows. */
interface Stream {
  readonly queue: GpuQueue
  readonly work: Lanes
  readonly waits: Lanes
}

/** What GPUs did, stream by stream, the waits for it, and the calls that launched it. */
export class Gpu {
  private readonly streams = new Map<string, Stream>()
  private readonly calls = new Map<string, NestedRows>()
  private latestCall: ApiEvent | undefined
  private latestRows: NestedRows | undefined
  private latestPlace: GpuPlace | undefined
  private latestStream: Stream | undefined
  private readonly processes = new Map<number, number>()
  private readonly groups: Readonly<Record<ApiEvent['library'] | 'waits' | 'work', LazyGroup>>
  /** Arguments that most have, and their keys: looked up once. */
  private readonly kinds: Readonly<Record<GpuEvent['what'], Arg>>
  private readonly keys: { readonly correlation: number; readonly work: number }
  private readonly arrowIds: ReturnType<typeof arrowIds>

  constructor(
    private readonly tree: TrackTree,
    root: number,
    private readonly make: ArgMaker,
    private readonly detail: Detail,
    input: number,
  ) {
    this.arrowIds = arrowIds(input)
    const kind = (what: GpuEvent['what']) => make.word('kind', what)
    this.kinds = { kernel: kind('kernel'), memcpy: kind('memcpy'), memset: kind('memset'), graph: kind('graph') }
    this.keys = { correlation: make.names.id('correlation'), work: make.names.id('gpu_work') }
    const group = (name: string, description: string, rank: number) =>
      new LazyGroup(tree, root, { name, description, rank })
    this.groups = {
      cuda: group(LIBRARIES.cuda.name, LIBRARIES.cuda.description, CALLS_RANK),
      hip: group(LIBRARIES.hip.name, LIBRARIES.hip.description, CALLS_RANK),
      os: group(LIBRARIES.os.name, LIBRARIES.os.description, CALLS_RANK + 1),
      waits: group('GPU synchronization', 'Waits of the host, by the stream that is waited for.', WAITS_RANK),
      work: group('GPU', 'Work of the GPUs, by stream.', WORK_RANK),
    }
  }

  work(event: GpuEvent): void {
    const { what, name, startNs, endNs, pid, correlation, facts, signature } = event
    const { queue, work } = this.stream(event)
    const extra: Arg[] = [this.kinds[what]]
    if (this.detail !== 'names') {
      if (correlation >= 0) extra.push({ key: this.keys.correlation, int: correlation })
      for (const arg of this.factArgs(facts)) extra.push(arg)
      if (signature !== 0 && this.detail === 'full') extra.push(this.make.arg('signature', { name: signature }))
    }
    const { writer } = this.tree
    if (writer.gpu) {
      const id = correlation < 0 ? this.tree.addLooseWork() : this.workId(pid, correlation)
      writer.gpu.work({ queue, stage: what, startNs, endNs, name, id, submission: correlation, extra })
    } else {
      work.place(startNs, endNs, { name, category: 'gpu', extra })
    }
  }

  sync(event: GpuSyncEvent): void {
    const { name, startNs, endNs, correlation, facts } = event
    const extra = this.shown([...this.correlationArg(correlation), ...this.factArgs(facts)])
    this.stream(event).waits.place(startNs, endNs, { name, category: 'sync', extra })
  }

  call(event: ApiEvent): void {
    const { name, startNs, endNs, pid, correlation, launched, result, facts } = event
    const { make } = this
    const extra = this.correlationArg(correlation)
    if (launched > 0) extra.push({ key: this.keys.work, int: launched })
    if (result !== 0) extra.push(make.int('result', result))
    if (facts) extra.push(...this.factArgs(facts))
    const { id, category, args } = make.common(name, 'api')
    const flows = this.arrowIds(event.flows)
    const flowEnds = this.arrowIds(event.flowEnds)
    const work = launched > 0 ? this.workId(pid, correlation) : undefined
    const label: Label = { id, name, category, args, extra: this.shown(extra), flows, flowEnds, launched: work }
    this.rowsOf(event).place(startNs, endNs, label)
  }

  /** Ends what is still open. */
  finish(): void {
    for (const rows of this.calls.values()) rows.finish()
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
    const known = this.calls.get(key)
    if (known) return known
    const title = threadTitle(this.make.names.text(thread), tid)
    const rank = this.calls.size
    const { description } = LIBRARIES[library]
    const add = (row: number) => this.groups[library].add({ name: rowName(title, row), description, rank })
    const rows = new NestedRows(this.tree.writer, add)
    this.calls.set(key, rows)
    return rows
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
    const known = this.streams.get(key)
    if (known) return known
    const rank = this.streams.size
    const { names } = this.make
    const name = titleOf(place, names.text(streamName), names.text(contextName))
    const onGpu = `GPU ${device}: ${name}`
    const lanes = (group: LazyGroup, description: string) =>
      new Lanes(this.tree.writer, (row) => group.add({ name: rowName(onGpu, row), description, rank }), true)
    const description = 'Kernels, copies and fills, as the GPU ran them.'
    const made: Stream = {
      queue: { id: this.tree.addQueue(), name, description, gpu: Math.max(0, device), pid },
      work: lanes(this.groups.work, description),
      waits: lanes(
        this.groups.waits,
        'Waits for the stream, its events or its context; events that were recorded on it.',
      ),
    }
    this.streams.set(key, made)
    return made
  }

  private workId(pid: number, correlation: number): number {
    let owner = this.processes.get(pid)
    if (owner === undefined) {
      owner = this.tree.addProcess()
      this.processes.set(pid, owner)
    }
    return owner * CORRELATIONS + correlation
  }

  private correlationArg(correlation: number): Arg[] {
    return correlation < 0 ? [] : [{ key: this.keys.correlation, int: correlation }]
  }

  private factArgs(facts: Facts): readonly Arg[] {
    if (isReady(facts)) return facts
    const { make } = this
    const args: Arg[] = []
    for (const key in facts) {
      const value = facts[key]!
      if (typeof value === 'bigint') args.push(make.arg(key, { big: value }))
      else args.push(typeof value === 'number' ? make.int(key, value) : make.word(key, value))
    }
    return args
  }

  private shown(extra: readonly Arg[]): readonly Arg[] | undefined {
    return this.detail === 'names' || extra.length === 0 ? undefined : extra
  }
}

function isReady(facts: Facts): facts is readonly Arg[] {
  return Array.isArray(facts)
}

function titleOf({ context, stream, pid }: GpuPlace, streamName: string, contextName: string): string {
  const called = (name: string) => (name === '' ? '' : ` (${name})`)
  const parts = [stream < 0 ? 'all streams' : `stream ${stream}${called(streamName)}`]
  if (context >= 0) parts.push(`context ${context}${called(contextName)}`)
  if (pid >= 0) parts.push(`process ${pid}`)
  return parts.join(', ')
}
