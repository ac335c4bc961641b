import { NumberList } from '../../bytes/number-list.ts'
import { orderOf } from '../../bytes/order.ts'
import { firstIndex } from '../../bytes/search.ts'
import { getOrMake } from '../../model/default-map.ts'
import type { CopyEvent, GraphEvent, PartEvent, TokenEvent } from '../../model/events.ts'
import type { ApiEvent } from '../../model/gpu-events.ts'
import type { Names } from '../../model/names.ts'
import type { FunctionEvent, FunctionPurpose } from '../../model/request-events.ts'
import { callKindOf } from './classes.ts'
import type { GpuHostTime } from './figures.ts'

/** Events that show what a program does. */
export type HostActivityEvent = CopyEvent | GraphEvent | PartEvent | TokenEvent | ApiEvent | FunctionEvent

type What = GpuHostTime['what']

/** Of several at a time the first one counts: the most specific. */
const ORDER: readonly Exclude<What, 'outside calls' | 'launch latency'>[] = [
  ...([
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
  private held = 0

  constructor(private readonly names: Names) {}

  take(event: HostActivityEvent): void {
    const what = event.kind === 'api' ? this.ofCall(event.name) : activityOf(event)
    if (!what || this.held > HELD_MAX) return
    const intervals = getOrMake(this.intervals, what, () => new Intervals())
    if (intervals.add(event.startNs, event.endNs)) this.held++
  }

  /** Undefined where nothing was recorded, or more than is held. */
  sums(): HostTimes | undefined {
    if (this.held === 0 || this.held > HELD_MAX) return undefined
    return new HostTimes(
      ORDER.flatMap((what) => {
        const intervals = this.intervals.get(what)
        return intervals ? [{ what, intervals: intervals.merged() }] : []
      }),
    )
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

function activityOf(event: Exclude<HostActivityEvent, ApiEvent>): What | undefined {
  switch (event.kind) {
    case 'copy':
      return 'copying'
    case 'part':
      return 'allocating'
    case 'token':
      return 'rest of calls'
    case 'graph':
      return event.submissions ? 'submitting' : 'graphs elsewhere'
    case 'function':
      return PURPOSES[event.what]
  }
}

/** Sums of what the program did within the gaps of one device. */
export class HostTimes {
  private readonly timesNs: Float64Array
  private outsideNs = 0
  private latencyNs = 0

  constructor(private readonly activities: readonly { readonly what: What; readonly intervals: Intervals }[]) {
    this.timesNs = new Float64Array(activities.length)
  }

  /** Sums of another device. */
  another(): HostTimes {
    return new HostTimes(this.activities)
  }

  /** A gap, and the launch in it of the work at its end. */
  add(fromNs: number, launchNs: number, untilNs: number): void {
    this.latencyNs += untilNs - launchNs
    let left: [number, number][] = [[fromNs, launchNs]]
    for (let i = 0; i < this.activities.length && left.length > 0; i++) {
      const without: [number, number][] = []
      for (const [from, until] of left) {
        const restNs = this.activities[i]!.intervals.outside(from, until, without)
        this.timesNs[i]! += until - from - restNs
      }
      left = without
    }
    for (const [from, until] of left) this.outsideNs += until - from
  }

  figures(): GpuHostTime[] {
    const sums = this.activities.map(({ what }, i) => ({ what, time_ns: this.timesNs[i]! }))
    const others = [
      { what: 'outside calls' as const, time_ns: this.outsideNs },
      { what: 'launch latency' as const, time_ns: this.latencyNs },
    ]
    return [...sums, ...others].filter(({ time_ns }) => time_ns > 0).sort((a, b) => b.time_ns - a.time_ns)
  }
}

class Intervals {
  private readonly starts = new NumberList(Float64Array)
  private readonly ends = new NumberList(Float64Array)

  /** Returns whether it is a further one; one that follows or extends the latest becomes part of it. */
  add(startNs: number, endNs: number): boolean {
    const { starts, ends } = this
    const last = starts.length - 1
    if (last >= 0 && startNs >= starts.at(last) && startNs <= ends.at(last)) {
      if (endNs > ends.at(last)) ends.set(last, endNs)
      return false
    }
    starts.push(startNs)
    ends.push(endNs)
    return true
  }

  /** In order and without overlaps. */
  merged(): Intervals {
    const { starts, ends } = this
    const order = orderOf(starts.length, (a, b) => starts.at(a) - starts.at(b))
    if (!order) return this
    const merged = new Intervals()
    for (const id of order) merged.add(starts.at(id), ends.at(id))
    return merged
  }

  /** Adds what of a time is in none of the intervals to `rest`; returns its length. */
  outside(fromNs: number, untilNs: number, rest: [number, number][]): number {
    const { starts, ends } = this
    let [atNs, sumNs] = [fromNs, 0]
    const take = (toNs: number) => {
      if (toNs <= atNs) return
      rest.push([atNs, toNs])
      sumNs += toNs - atNs
    }
    for (let at = firstIndex(0, ends.length, (i) => ends.at(i) > fromNs); at < starts.length; at++) {
      if (starts.at(at) >= untilNs) break
      take(starts.at(at))
      atNs = Math.max(atNs, ends.at(at))
    }
    take(untilNs)
    return sumNs
  }
}
