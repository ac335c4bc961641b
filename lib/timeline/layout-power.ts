import type { MeterEvent } from '../model/events.ts'
import type { Unit } from '../sink/track.ts'
import type * as of from './of.ts'
import { at, counter, group } from './place.ts'

/** For the track of a meter: what it is, in words. */
export interface Meter extends of.Nth {
  readonly name: string
  readonly unit: Unit
  readonly about: string
}

/** The rows of power, clocks and utilization: a part of the layout, after the numeric series. */
export const POWER = {
  power: group<of.Nth & { readonly device: string }>('run', {
    rank: ({ nth }) => at(8, 1 + Math.min(nth, 14)),
    name: ({ device }) => device,
    description: ({ device }) => `Power, clocks and utilization of ${device}, as a tool or the kernel reported them.`,
  }),
  meter: counter<Meter>('power', {
    rank: ({ nth }) => nth,
    name: ({ name }) => name,
    description: ({ about }) => about,
    unit: ({ unit }) => unit,
  }),
} as const

/** How a meter measures, for the description of its track. */
export function aboutMeter({ what, windowNs, isPart }: MeterEvent, name: string): string {
  const parts = [
    what === 'energy'
      ? `Mean power between two readings of the total energy ${name}: a value lasts from one reading to the next.`
      : `${name}, as reported: a value lasts until the next reading, or since the one before where it is a mean.`,
    ...(windowNs > 0
      ? [
          `A reading is a mean over the ${windowNs / 1e9} s before it, or its time is known only to that: edges are late.`,
        ]
      : []),
    ...(isPart ? ['Another row of the device contains it.'] : []),
  ]
  return parts.join(' ')
}
