import type { OperatorEvent } from '../../lib/core.ts'
import { type Args, sliceRow } from './comparer.ts'
import { inferredArg, WAIT_BIT } from './expected-args.ts'

/** An operator that is drawn: what of it does not depend on others in its row. */
export interface DrawnOperator {
  /** Index of its text among the rows of the trace. */
  readonly row: number
  readonly track: string
  readonly event: OperatorEvent
  readonly name: string
  readonly args: Args
}

const SHORT_NS = 1000

/**
 * Texts of operators and of the waits after them (row -1: a further one). What is said only once, or not drawn, depends on the
 * operators before and after in the row. `shortNs`: of a wait that is not drawn.
 */
export function operatorRows(
  operators: readonly DrawnOperator[],
  detail: string,
  at: (ns: number) => bigint,
): { readonly row: number; readonly text: string; readonly shortNs?: number }[] {
  const lasts = lastOnes(operators)
  const tracks = new Map<string, DrawnOperator[]>()
  for (const operator of operators) {
    if (!tracks.has(operator.track)) tracks.set(operator.track, [])
    tracks.get(operator.track)!.push(operator)
  }
  return [...tracks.values()].flatMap((own) => {
    const first = own.findIndex(({ event }) => event.waitEndNs > event.endNs)
    let thread = -1
    return own.flatMap(({ row, track, event, name, args }, i) => {
      const { startNs, endNs, waitEndNs, inferred } = event
      const before = own[i - 1]?.event
      const shown = {
        ...args,
        ...argsAfter(before, event, detail),
        ...(detail === 'shapes' && event.tid >= 0 && event.tid !== thread && { tid: `${event.tid}` }),
        ...(first >= 0 && i > first && pause(before!, event, detail)),
      }
      if (event.tid >= 0) thread = event.tid
      const texts = [{ row, text: sliceRow(track, 'operator', name, at(startNs), endNs - startNs, shown) }]
      const isTied = own[i + 1]?.event.startNs === waitEndNs
      if (waitEndNs <= endNs) return texts
      if (detail !== 'full' && i !== first && waitEndNs - endNs < SHORT_NS && isTied)
        return texts.map((own) => ({ ...own, shortNs: waitEndNs - endNs }))
      const waitArgs = {
        ...(detail !== 'names' && inferredArg(inferred & WAIT_BIT)),
      }
      const isCut = detail !== 'full' && isTied
      const parts = partsOf(event, lasts.get(event), isCut && i !== first).map(({ name, fromNs, toNs }, part) => {
        const from = part === 0 && detail !== 'full' && i === first ? { drawn_from_ns: '1000' } : {}
        const ns = Math.min(toNs, isCut ? waitEndNs - 1 : waitEndNs) - fromNs
        return { row: -1, text: sliceRow(track, 'barrier', name, at(fromNs), ns, { ...waitArgs, ...from }) }
      })
      return [...texts, ...parts]
    })
  })
}

/** Slices of a wait. `areLong`: of two parts, a short one is the gap beside the other one. */
function partsOf({ endNs, waitEndNs }: OperatorEvent, last: OperatorEvent | undefined, areLong: boolean) {
  if (!last) return [{ name: 'barrier', fromNs: endNs, toNs: waitEndNs }]
  const openNs = Math.min(Math.max(last.endNs, endNs), waitEndNs)
  const parts = [
    { name: `wait for worker ${last.worker}`, fromNs: endNs, toNs: openNs },
    { name: 'barrier open, not running', fromNs: openNs, toNs: waitEndNs },
  ].filter(({ fromNs, toNs }) => toNs > fromNs)
  const lengths = parts.map(({ fromNs, toNs }) => toNs - fromNs)
  const most = Math.max(...lengths)
  const isDrawn = (ns: number, i: number) => ns >= SHORT_NS || (ns === most && lengths.indexOf(most) === i)
  return areLong ? parts.filter((_, i) => isDrawn(lengths[i]!, i)) : parts
}

/** The operator that ends last, of all workers of the call: they compute the same node, and none leaves the barrier before all have arrived. */
function lastOnes(operators: readonly DrawnOperator[]): Map<OperatorEvent, OperatorEvent> {
  const found = new Map<OperatorEvent, OperatorEvent>()
  for (const ofCall of grouped(
    operators.map(({ event }) => event),
    ({ call }) => call,
  ).values()) {
    const workers = [...grouped(ofCall, ({ worker }) => worker).values()].map((own) =>
      grouped(own, ({ tensor }) => tensor),
    )
    if (workers.length < 2) continue
    for (const one of ofCall) {
      const step = workers.map((own) =>
        own
          .get(one.tensor)
          ?.find(
            (other) =>
              other === one ||
              (other.worker !== one.worker && other.startNs <= one.waitEndNs && one.startNs <= other.waitEndNs),
          ),
      )
      if (step.some((other) => !other)) continue
      found.set(one, step.reduce((a, b) => (b!.endNs > a!.endNs ? b : a))!)
    }
  }
  return found
}

function grouped<T>(items: readonly T[], keyOf: (item: T) => number): Map<number, T[]> {
  const groups = new Map<number, T[]>()
  for (const item of items) {
    const group = groups.get(keyOf(item))
    if (group) group.push(item)
    else groups.set(keyOf(item), [item])
  }
  return groups
}

/** The number of the call: of the first of its operators in a row, and in full of all. */
function argsAfter(before: OperatorEvent | undefined, { call }: OperatorEvent, detail: string): Args {
  if (detail === 'names') return {}
  const isShown = detail === 'full' ? call >= 0 : call !== (before?.call ?? -1)
  return isShown ? { call: `${call}` } : {}
}

/** A pause that is as short as a wait that is not drawn. */
function pause(before: OperatorEvent, { startNs }: OperatorEvent, detail: string): Args {
  const gapNs = startNs - Math.max(before.endNs, before.waitEndNs)
  const isPause = detail !== 'full' && gapNs > 0 && gapNs < SHORT_NS
  return isPause ? { gap_before: 'pause' } : {}
}
