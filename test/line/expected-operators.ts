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
  const tracks = new Map<string, DrawnOperator[]>()
  for (const operator of operators) {
    if (!tracks.has(operator.track)) tracks.set(operator.track, [])
    tracks.get(operator.track)!.push(operator)
  }
  return [...tracks.values()].flatMap((own) => {
    const first = own.findIndex(({ event }) => event.waitEndNs > event.endNs)
    return own.flatMap(({ row, track, event, name, args }, i) => {
      const { startNs, endNs, waitEndNs, inferred } = event
      const before = own[i - 1]?.event
      const shown = {
        ...args,
        ...argsAfter(before, event, detail),
        ...(first >= 0 && i - 1 > first && pause(before!, event, detail)),
      }
      const texts = [{ row, text: sliceRow(track, 'operator', name, at(startNs), endNs - startNs, shown) }]
      const isShort = waitEndNs - endNs < SHORT_NS && own[i + 1]?.event.startNs === waitEndNs
      if (waitEndNs <= endNs) return texts
      if (detail !== 'full' && i !== first && isShort)
        return texts.map((own) => ({ ...own, shortNs: waitEndNs - endNs }))
      const waitArgs = {
        ...(detail !== 'names' && inferredArg(inferred & WAIT_BIT)),
        ...(detail !== 'full' && i === first && { drawn_from_ns: '1000' }),
      }
      return [
        ...texts,
        { row: -1, text: sliceRow(track, 'barrier', 'barrier', at(endNs), waitEndNs - endNs, waitArgs) },
      ]
    })
  })
}

/** The number of the call: of the first of its operators in a row, and in full of all. */
function argsAfter(before: OperatorEvent | undefined, { call }: OperatorEvent, detail: string): Args {
  if (detail === 'names') return {}
  const isShown = detail === 'full' ? call >= 0 : call !== (before?.call ?? -1)
  return isShown ? { call: `${call}` } : {}
}

/** A pause that is as short as a wait that is not drawn. */
function pause(before: OperatorEvent, { startNs }: OperatorEvent, detail: string): Args {
  const gapNs = startNs - before.endNs
  const isPause = detail !== 'full' && before.waitEndNs <= before.endNs && gapNs > 0 && gapNs < SHORT_NS
  return isPause ? { gap_before: 'pause' } : {}
}
