import { isOnHost } from '../../model/backends.ts'
import { getOrMake } from '../../model/default-map.ts'
import type { CopyEvent, GraphEvent, PartEvent, TokenEvent } from '../../model/events.ts'
import type { ApiEvent } from '../../model/gpu-events.ts'
import type { Names } from '../../model/names.ts'
import type { FunctionEvent, FunctionPurpose } from '../../model/request-events.ts'
import { Intervals } from '../common/intervals.ts'
import { callKindOf } from './classes.ts'
import type { GpuHostTime } from './figures.ts'

/** Events that show what a program does. */
export type HostActivityEvent = CopyEvent | GraphEvent | PartEvent | TokenEvent | ApiEvent | FunctionEvent

type What = GpuHostTime['what']

/** Of several at a time the first one counts: the most specific. */
const ORDER: readonly Exclude<What, 'another GPU' | 'outside calls' | 'launch latency'>[] = [
  ...([
    'between graphs',
    'compiling pipelines',
    'preparing graphs',
    'waiting',
    'copying',
    'allocating',
    'sampling',
    'text',
    'state',
    'media',
  ] as const),
  ...(['submitting', 'graphs elsewhere', 'rest of calls'] as const),
]
const PURPOSES: Readonly<Partial<Record<FunctionPurpose, What>>> = {
  ...{ sample: 'sampling', accept: 'sampling', 'create-sampler': 'sampling', synchronize: 'waiting' },
  ...{ tokenize: 'text', detokenize: 'text', 'token-to-piece': 'text' },
  ...{ 'save-state': 'state', 'restore-state': 'state' },
  ...{ 'tokenize-media': 'media', 'encode-media': 'media', 'decode-media': 'media' },
}
/** Intervals that are held: 16 bytes each. */
const HELD_MAX = 4 << 20

/**
 * What a recorded program did at each time, on any of its threads, so that a GPU's waiting for it can be explained. Intervals of one activity
 * that overlap are one.
 */
export class HostActivity {
  private readonly intervals = new Map<What, Intervals>()
  /** Activities of functions, by the number of their names. */
  private readonly ofCalls: (What | null | undefined)[] = []
  /** Graph runs that submit work, by the number of the device. */
  private readonly submitting = new Map<number, Intervals>()
  /** Numbers of devices, by the number of their backend's name. */
  private readonly devices: number[] = []
  private lastGraph: GraphEvent | undefined
  private held = 0

  constructor(private readonly names: Names) {}

  take(event: HostActivityEvent): void {
    if (event.kind === 'graph') return this.graph(event)
    const what = event.kind === 'api' ? this.ofCall(event.name) : activityOf(event)
    if (what) this.add(this.intervals, what, event)
  }

  /** Undefined where nothing was recorded, or more than is held. */
  sums(): HostTimes | undefined {
    if (this.held === 0 || this.held > HELD_MAX) return undefined
    return new HostTimes(
      ORDER.flatMap((what) => {
        const intervals = this.intervals.get(what)
        return intervals ? [{ what, intervals: intervals.merged() }] : []
      }),
      [...this.submitting].map(([device, intervals]) => ({ device, intervals: intervals.merged() })),
    )
  }

  private add<Key>(
    to: Map<Key, Intervals>,
    key: Key,
    time: { readonly startNs: number; readonly endNs: number },
  ): void {
    if (this.held > HELD_MAX) return
    if (getOrMake(to, key, () => new Intervals()).add(time.startNs, time.endNs)) this.held++
  }

  private graph(event: GraphEvent): void {
    const { lastGraph: last } = this
    this.lastGraph = event
    const isNext = last !== undefined && last.call === event.call && last.split === (event.split ?? -1) - 1
    // Inputs are looked up on the CPU in the first split of each model: what follows it is no cost of a division.
    const isFirst = last?.split === 0 && !last.submissions && isOnHost(this.names.text(last.backend))
    if (isNext && !isFirst) this.add(this.intervals, 'between graphs', { startNs: last.endNs, endNs: event.startNs })
    if (event.submissions) this.add(this.submitting, this.deviceOf(event.backend), event)
    else this.add(this.intervals, 'graphs elsewhere', event)
  }

  /** The number at the end of a backend's name, such as `CUDA1`; -1 without one. */
  private deviceOf(backend: number): number {
    this.devices[backend] ??= Number(/(?<!\d)\d+$/.exec(this.names.text(backend))?.[0] ?? -1)
    return this.devices[backend]
  }

  private ofCall(name: number): What | null {
    let what = this.ofCalls[name]
    if (what === undefined) {
      const text = this.names.text(name)
      const kind = callKindOf(text)
      if (text === 'vkCreateComputePipelines') what = 'compiling pipelines'
      else if (/ graph$|Graph(?:Instantiate|ExecUpdate)$/.test(text)) what = 'preparing graphs'
      else what = kind === 'launch' ? 'submitting' : kind === 'synchronize' ? 'waiting' : null
      this.ofCalls[name] = what
    }
    return what
  }
}

function activityOf(event: Exclude<HostActivityEvent, ApiEvent | GraphEvent>): What | undefined {
  switch (event.kind) {
    case 'copy':
      return 'copying'
    case 'part':
      return 'allocating'
    case 'token':
      return 'rest of calls'
    case 'function':
      return PURPOSES[event.what]
  }
}

/** Time of one activity. */
interface Activity {
  readonly what: What
  /** Of `another GPU`: its number. */
  readonly device?: number
  readonly intervals: Intervals
}

/** Time in which a device works, or in which the program submits to it. */
interface OfDevice {
  readonly device: number
  readonly intervals: Intervals
}

/** Sums of what the program and other GPUs did within the gaps of one device. */
export class HostTimes {
  private readonly sums = new Map<string, { readonly what: What; readonly device: number | null; time_ns: number }>()

  /** `submitting`: graph runs that submit work. `others`: work of other GPUs, which may grow. */
  constructor(
    private readonly activities: readonly Activity[],
    private readonly submitting: readonly OfDevice[] = [],
    private readonly others: readonly OfDevice[] = [],
  ) {}

  /** Sums of a device: it waits while the program submits work to another one, and while that one works. */
  ofDevice(device: number, others: readonly OfDevice[]): HostTimes {
    const isOwn = (run: OfDevice) => run.device < 0 || run.device === device
    const own = this.submitting.filter(isOwn).map(({ intervals }) => ({ what: 'submitting' as const, intervals }))
    const foreign = this.submitting
      .filter((run) => !isOwn(run))
      .map((run) => ({ what: 'another GPU' as const, ...run }))
    const at = this.activities.findIndex(({ what }) => ORDER.indexOf(what as never) >= ORDER.indexOf('submitting'))
    const [first, last] = at < 0 ? [this.activities, []] : [this.activities.slice(0, at), this.activities.slice(at)]
    return new HostTimes([...foreign, ...first, ...own, ...last], [], others)
  }

  /** A gap, and the launch in it of the work at its end. */
  add(fromNs: number, launchNs: number, untilNs: number): void {
    let left: Times = [[fromNs, untilNs]]
    for (const { device, intervals } of this.others) left = this.take(left, 'another GPU', intervals, device)
    let early = left.flatMap(([from, until]): Times => (from < launchNs ? [[from, Math.min(until, launchNs)]] : []))
    const lengthOf = (times: Times) => times.reduce((sum, [from, until]) => sum + until - from, 0)
    this.count('launch latency', lengthOf(left) - lengthOf(early))
    for (const { what, intervals, device } of this.activities) {
      if (early.length === 0) return
      early = this.take(early, what, intervals, device)
    }
    this.count('outside calls', lengthOf(early))
  }

  figures(): GpuHostTime[] {
    return [...this.sums.values()].filter(({ time_ns }) => time_ns > 0).sort((a, b) => b.time_ns - a.time_ns)
  }

  /** Counts the part of times that is within intervals; returns the rest. */
  private take(times: Times, what: What, intervals: Intervals, device?: number): Times {
    const without: Times = []
    let ns = 0
    for (const [from, until] of times) ns += until - from - intervals.outside(from, until, without)
    this.count(what, ns, device)
    return without
  }

  private count(what: What, ns: number, device: number | null = null): void {
    getOrMake(this.sums, `${what} ${device}`, () => ({ what, device, time_ns: 0 })).time_ns += ns
  }
}

type Times = [fromNs: number, untilNs: number][]
