import type { IssueEvent } from '../model/events.ts'
import type { GpuEvent } from '../model/gpu-events.ts'
import { issueOf } from '../model/issues.ts'

/** Issues of one input. */
const ISSUES_MAX = 1000
/** Events of a batch have no position. */
const NOWHERE = { byte: 0 }

/** A piece of work of a stream. */
interface Piece {
  readonly startNs: number
  readonly endNs: number
  readonly correlation: number
  isReported: boolean
}

/** The work of a stream: the piece before, and the one that ended last. */
interface Latest {
  before: Piece
  last: Piece
}

/**
 * Finds work within other work of its stream: a stream runs one piece after the other, so that one of the two has a wrong end. Pieces of
 * graphs and of queues of other APIs run at the same time, and are not looked at; nor are pieces that overlap in a part only, as kernels of
 * programmatic dependent launch do. Each piece is compared with the one before it in the file, and with the one that ended last.
 */
export class StreamWork {
  private readonly streams = new Map<string, Latest>()
  private issues = 0

  /** The issue of a piece, if any. */
  follow(event: GpuEvent): IssueEvent | undefined {
    const { startNs, endNs, correlation, device, context, stream, pid } = event
    if (stream < 0 || event.queue !== undefined || event.what === 'graph' || (event.count ?? 1) > 1 || event.node)
      return undefined
    if (isOfGraph(event)) return undefined
    const key = `${pid} ${device} ${context} ${stream}`
    const piece = { startNs, endNs, correlation, isReported: false }
    const latest = this.streams.get(key)
    if (!latest) {
      this.streams.set(key, { before: piece, last: piece })
      return undefined
    }
    const outer = [latest.last, latest.before].find((other) => contains(other, piece))
    const pair = outer ? [outer, piece] : contains(piece, latest.before) ? [piece, latest.before] : undefined
    latest.before = piece
    if (endNs >= latest.last.endNs) latest.last = piece
    return pair && this.report(`stream ${stream} of device ${device}`, pair[0]!, pair[1]!)
  }

  private report(where: string, outer: Piece, inner: Piece): IssueEvent | undefined {
    if (outer.isReported || this.issues++ >= ISSUES_MAX) return undefined
    outer.isReported = true
    const found = `${where}: work from ${outer.startNs} to ${outer.endNs} ns contains work from ${inner.startNs} to ${inner.endNs} ns`
    return issueOf(
      'overlapping-work',
      `expected one piece of work after the other, found ${found}`,
      NOWHERE,
      outer.startNs,
    )
  }
}

/** Pieces of one launch may run at the same time. */
function contains(outer: Piece, inner: Piece): boolean {
  const isOfOneLaunch = outer.correlation >= 0 && outer.correlation === inner.correlation
  return !isOfOneLaunch && inner.endNs > inner.startNs && outer.startNs <= inner.startNs && outer.endNs >= inner.endNs
}

const isOfGraph = ({ facts }: GpuEvent) => !Array.isArray(facts) && 'graph_node' in facts
