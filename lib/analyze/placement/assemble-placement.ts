import type { CallTime } from '../operators/figures.ts'
import type { PlacementDevice, PlacementFigures } from './figures.ts'
import type { PlacementOfInput } from './placement.ts'

interface OfInput {
  readonly placement: PlacementOfInput | null
  readonly call_time: readonly CallTime[]
}

/** The placement of a run, with the waits that are parts of the time of its calls, and the devices among the facts of its log. */
export function placementOf(
  { placement, call_time }: OfInput,
  attributes: Readonly<Record<string, string | number>>,
): PlacementFigures | null {
  if (!placement) return null
  const phases = placement.phases.map((row) => {
    const time = call_time.find(({ phase }) => phase === row.phase)
    return { ...row, waiting_ns: time ? waitingNs(time) : null }
  })
  return { devices: devicesOf(attributes), ...placement, phases }
}

/** Facts of devices begin so. */
const DEVICE = 'device.'

function devicesOf(attributes: Readonly<Record<string, string | number>>): PlacementDevice[] | null {
  const devices = Object.entries(attributes).flatMap(([key, value]): PlacementDevice[] =>
    key.startsWith(DEVICE) ? [{ name: key.slice(DEVICE.length), description: String(value) }] : [],
  )
  return devices.length > 0 ? devices : null
}

const waitingNs = ({ parts }: CallTime) => parts.find(({ what }) => what === 'waiting for a backend')?.time_ns ?? 0
