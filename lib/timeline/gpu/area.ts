import type { Arg } from '../../model/args.ts'
import { DefaultMap } from '../../model/default-map.ts'
import type { ApiEvent, Facts, GpuActivityEvent, GpuEvent, GpuPlace, GpuSyncEvent } from '../../model/gpu-events.ts'
import type { Label } from '../../sink/label.ts'
import type { GpuQueue } from '../../sink/writer.ts'
import { arrowIds } from '../arrow-ids.ts'
import type { TrackContext } from '../context.ts'
import { LAYOUT } from '../layout.ts'
import type { NestedRows } from '../nested.ts'
import { specOf } from '../place.ts'
import type { Lanes } from '../tracks.ts'

/** A call and its work share an id: the number of the process, from 1, and the correlation id. */
const CORRELATIONS = 2 ** 32

/** A GPU stream and its rows. */
interface Stream {
  readonly queue: GpuQueue
  /** For writers without a {@link GpuSink}. */
  readonly work: Lanes | undefined
  readonly waits: Lanes
}

/** Draws GPU work by stream, the waits for it, and the calls that launched it. */
export class GpuArea {
  private readonly streams = new Map<string, Stream>()
  private readonly calls = new Map<string, NestedRows>()
  private latestCall: ApiEvent | undefined
  private latestRows: NestedRows | undefined
  private latestPlace: GpuPlace | undefined
  private latestStream: Stream | undefined
  private readonly processes = new DefaultMap<number, number>(() => this.context.tree.addProcess())
  /** Frequent arguments and keys, looked up once. */
  private readonly kinds: Readonly<Record<GpuEvent['what'], Arg>>
  private readonly keys: { readonly correlation: number; readonly work: number }
  private readonly arrowIds: ReturnType<typeof arrowIds>

  constructor(private readonly context: TrackContext) {
    const { make, names, input } = context
    this.arrowIds = arrowIds(input)
    const kind = (what: GpuEvent['what']) => make.word('kind', what)
    this.kinds = { kernel: kind('kernel'), memcpy: kind('memcpy'), memset: kind('memset'), graph: kind('graph') }
    this.keys = { correlation: names.id('correlation'), work: names.id('gpu_work') }
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
  }

  private work(event: GpuEvent): void {
    const { what, name, startNs, endNs, pid, correlation, facts, signature } = event
    const { make, detail, tree, writer } = this.context
    const { queue, work } = this.stream(event)
    const extra: Arg[] = [this.kinds[what]]
    if (detail !== 'names') {
      if (correlation >= 0) extra.push({ key: this.keys.correlation, int: correlation })
      for (const arg of this.factArgs(facts)) extra.push(arg)
      if (signature !== 0 && detail === 'full') extra.push(make.arg('signature', { name: signature }))
    }
    if (work) return work.place(startNs, endNs, { name, category: 'gpu', extra })
    const id = correlation < 0 ? tree.addLooseWork() : this.workId(pid, correlation)
    writer.gpu?.work({ queue, stage: what, startNs, endNs, name, id, submission: correlation, extra })
  }

  private sync(event: GpuSyncEvent): void {
    const { name, startNs, endNs, correlation, facts } = event
    const extra = this.context.make.shown([...this.correlationArg(correlation), ...this.factArgs(facts)])
    this.stream(event).waits.place(startNs, endNs, { name, category: 'sync', extra })
  }

  private call(event: ApiEvent): void {
    const { name, startNs, endNs, pid, correlation, launched, result, facts } = event
    const { make } = this.context
    const extra = this.correlationArg(correlation)
    if (launched > 0) extra.push({ key: this.keys.work, int: launched })
    if (result !== 0) extra.push(make.int('result', result))
    if (facts) extra.push(...this.factArgs(facts))
    const { id, category, args } = make.common(name, 'api')
    const flows = this.arrowIds(event.flows)
    const flowEnds = this.arrowIds(event.flowEnds)
    const work = launched > 0 ? this.workId(pid, correlation) : undefined
    const label: Label = { id, name, category, args, extra: make.shown(extra), flows, flowEnds, launched: work }
    this.rowsOf(event).place(startNs, endNs, label)
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
    const { tracks, names } = this.context
    const rows = tracks.nested(`${library}Thread`, { thread: names.text(thread), tid, nth: this.calls.size })
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
    const { names, tracks, tree, writer } = this.context
    const name = titleOf(place, names.text(streamName), names.text(contextName))
    const of = { device, stream: name, nth: this.streams.size }
    const { description } = specOf(LAYOUT.streamWork, of)
    const made: Stream = {
      queue: { id: tree.addQueue(), name, description, gpu: Math.max(0, device), pid },
      work: writer.gpu ? undefined : tracks.lanes('streamWork', of, true),
      waits: tracks.lanes('streamWaits', of, true),
    }
    this.streams.set(key, made)
    return made
  }

  private workId(pid: number, correlation: number): number {
    return this.processes.of(pid) * CORRELATIONS + correlation
  }

  private correlationArg(correlation: number): Arg[] {
    return correlation < 0 ? [] : [{ key: this.keys.correlation, int: correlation }]
  }

  private factArgs(facts: Facts): readonly Arg[] {
    if (isReady(facts)) return facts
    const { make } = this.context
    const args: Arg[] = []
    for (const key in facts) {
      const value = facts[key]!
      if (typeof value === 'bigint') args.push(make.arg(key, { big: value }))
      else args.push(typeof value === 'number' ? make.int(key, value) : make.word(key, value))
    }
    return args
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
