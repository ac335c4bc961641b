import { Inferred, type InputEvent } from '../../model/events.ts'
import type { LogLine } from './lines.ts'

/** A step back of the server's own times by less than this is one of the system's clock; by more, the server was started again. */
const STEP_BACK_NS_MAX = 1e9
/** A step back by more than this is no inaccuracy of the times. */
const EARLIER_NS_MAX = 1e6
/** A line without any time is drawn so long after the one before it. */
const LINE_NS = 1000
/** Times of collectors with a coarser resolution do not place the server's own times on their clock. */
const FINE_NS = 1e6

/** Times of the lines of a log: those of the server, else those of the log's collector, else the order of the lines. */
export class LineTimes {
  readonly clock: InputEvent['clock']
  readonly originNs: bigint
  /** What the times are, for the trace. */
  readonly attributes: Readonly<Record<string, string | number>>
  /** Of the last line, since the origin. */
  lastNs = 0
  /** {@link Inferred} bits of the time of the last line. */
  inferred = 0
  private readonly kind: 'own' | 'wall' | 'lines'
  private readonly firstNs: bigint

  /** `head`: the first lines, from which the kind of times is chosen. */
  constructor(head: readonly LogLine[]) {
    const own = head.find(({ ownNs, isOwn }) => isOwn && ownNs !== undefined)
    const first = head.find(({ wall }) => wall)?.wall
    this.firstNs = first?.ns ?? 0n
    this.kind = own ? 'own' : first ? 'wall' : 'lines'
    const isFine = first !== undefined && first.resolutionNs <= FINE_NS && first.clock !== 'unknown'
    if (own && isFine) {
      this.clock = first.clock
      this.originNs = startOf(head)
      const how = 'the server counts from its start, which is known from the times that the collector of the log wrote'
      this.attributes = { times: how }
    } else if (own) {
      this.clock = 'unknown'
      this.originNs = 0n
      this.attributes = { times: "the server counts from its start, in steps of the system's clock" }
    } else if (first) {
      this.clock = first.clock
      this.originNs = first.clock === 'unknown' ? 0n : first.ns
      const resolution = `${first.resolutionNs / 1e9} s`
      this.attributes = { times: `when the collector of the log got the lines, to ${resolution}` }
    } else {
      this.clock = 'unknown'
      this.originNs = 0n
      this.attributes = { times: 'none in the log: each line is drawn 1 µs after the one before it' }
    }
  }

  /** Is only the order of the lines known? */
  get isByLine(): boolean {
    return this.kind === 'lines'
  }

  /** The time of the next line, since the origin, in ns; undefined: the server's own times begin again. Never decreases. */
  next({ ownNs, wall, isOwn }: LogLine): number | undefined {
    const atNs = this.kind === 'own' ? ownNs : this.kind === 'wall' ? this.sinceFirst(wall?.ns) : this.lastNs + LINE_NS
    if (this.kind === 'own' && atNs !== undefined && atNs < this.lastNs - STEP_BACK_NS_MAX) return undefined
    // Further lines of a message have no time of their own.
    const isUnknown = this.kind === 'lines' || (atNs === undefined ? isOwn : atNs < this.lastNs - EARLIER_NS_MAX)
    this.inferred = isUnknown ? Inferred.Order : 0
    this.lastNs = Math.max(this.lastNs, atNs ?? 0)
    return this.lastNs
  }

  private sinceFirst(ns: bigint | undefined): number | undefined {
    return ns === undefined ? undefined : Number(ns - this.firstNs)
  }
}

/** The server's start on the collector's clock: the earliest by any line, as collectors only are late. */
function startOf(head: readonly LogLine[]): bigint {
  let start: bigint | undefined
  for (const { wall, ownNs } of head) {
    if (!wall || ownNs === undefined) continue
    const by = wall.ns - BigInt(ownNs)
    if (start === undefined || by < start) start = by
  }
  return start ?? 0n
}
