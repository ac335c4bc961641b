import type { CallTime } from '../operators/figures.ts'
import type { PlacementFigures } from './figures.ts'
import type { PlacementOfInput } from './placement.ts'

interface OfInput {
  readonly placement: PlacementOfInput | null
  readonly call_time: readonly CallTime[]
}

/** The placement of a run, with the waits that are parts of the time of its calls. */
export function placementOf({ placement, call_time }: OfInput): PlacementFigures | null {
  if (!placement) return null
  const phases = placement.phases.map((row) => {
    const time = call_time.find(({ phase }) => phase === row.phase)
    return { ...row, waiting_ns: time ? waitingNs(time) : null }
  })
  return { ...placement, phases }
}

const waitingNs = ({ parts }: CallTime) => parts.find(({ what }) => what === 'waiting for a backend')?.time_ns ?? 0
