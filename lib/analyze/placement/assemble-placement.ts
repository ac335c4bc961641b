import type { CallTime } from '../operators/figures.ts'
import type { PlacementDevice, PlacementFigures } from './figures.ts'
import { placingOptions } from './options.ts'
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
  const decided = decidedIn(attributes)
  return {
    devices: devicesOf(attributes),
    options: placingOptions(String(attributes['command'] ?? '')),
    ...placement,
    refusals: placement.refusals.map((row) => ({ ...row, decided: decided(row.device, [row.op], row.example) })),
    phases,
    moved: placement.moved.map((row) => ({ ...row, decided: decided(row.layer_backend, row.ops, row.refused) })),
  }
}

/** Facts of `record`, which asked devices again, begin so; then the device, a dot, the op and a number. */
const ASKED = 'asked.'
const UNKNOWN = 'unknown: '

/** What decided about a refusal of a device, by types and shapes. */
function decidedIn(attributes: Readonly<Record<string, string | number>>) {
  const answers = Object.entries(attributes).filter(([key]) => key.startsWith(ASKED))
  return (device: string, ops: readonly string[], refused: string | null): string | null => {
    if (refused === null) return null
    for (const [key, value] of answers) {
      const [asked, answer] = splitOnce(`${value}`, ': ')
      const isOfOp = ops.some((op) => key.startsWith(`${ASKED}${device}.${op}.`))
      if (isOfOp && typesOf(asked) === typesOf(refused) && !answer.startsWith(UNKNOWN) && hasSizes(refused, answer))
        return answer
    }
    return null
  }
}

function splitOnce(text: string, by: string): readonly [string, string] {
  const at = text.indexOf(by)
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + by.length)]
}

/** Devices are asked about one shape of an op and its types. */
const typesOf = (description: string) => description.replace(/ \d+(×\d+)*(?=,| of|$)/g, '')

/** Are the sizes that decided those of this shape, too? */
const hasSizes = (description: string, decided: string) =>
  [...decided.matchAll(/(?:heads|rows) of (\d+)/g)].every(([, size]) => new RegExp(`\\b${size}\\b`).test(description))

/** Facts of devices begin so. */
const DEVICE = 'device.'

function devicesOf(attributes: Readonly<Record<string, string | number>>): PlacementDevice[] | null {
  const devices = Object.entries(attributes).flatMap(([key, value]): PlacementDevice[] =>
    key.startsWith(DEVICE) ? [deviceOf(key.slice(DEVICE.length), String(value), attributes[`free.${key}`])] : [],
  )
  return devices.length > 0 ? devices : null
}

const deviceOf = (name: string, description: string, free: string | number | undefined): PlacementDevice => ({
  ...{ name, description, free_bytes: Number(free) || null },
})

const waitingNs = ({ parts }: CallTime) => parts.find(({ what }) => what === 'waiting for a backend')?.time_ns ?? 0
