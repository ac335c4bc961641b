import { NEEDS_LOG } from '../../model/left-out.ts'
import type { Summary } from './figures.ts'

/**
 * The summary of an input of a trace. `isEmpty`: its events belong to threads that no other input has, so that none of them is drawn.
 */
export function asDrawn(summary: Summary, isEmpty: boolean): Summary {
  const { scheduler, nvtx, drawn, left_out } = summary
  if (!isEmpty || drawn === 0) return summary
  const { switches = 0, wakings = 0 } = scheduler ?? {}
  const counted = [
    { what: 'switches', count: switches },
    { what: 'wakings', count: wakings },
    { what: 'NVTX events', count: nvtx },
    { what: 'events of threads', count: drawn - switches - wakings - nvtx },
  ].filter(({ count }) => count > 0)
  return { ...summary, drawn: 0, left_out: [...counted.map((kind) => ({ ...kind, hint: NEEDS_LOG })), ...left_out] }
}
