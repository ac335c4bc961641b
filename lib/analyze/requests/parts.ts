import type { RequestPartKind } from '../../model/events.ts'
import type { RequestParts } from './figures.ts'

/** Sums of parts, to be added to. */
export type PartSums = { -readonly [K in keyof RequestParts]: number }

/** Keys of parts, in the order of a request. */
export const PART_KEYS = [
  'queued_ns',
  'prepare_ns',
  'prefill_ns',
  'draft_ns',
  'decode_ns',
  'verify_ns',
  'sample_ns',
  'text_ns',
  'stalled_ns',
  'preempted_ns',
  'send_ns',
  'other_ns',
] as const satisfies readonly (keyof RequestParts)[]

const KEYS: Readonly<Record<RequestPartKind, keyof RequestParts>> = {
  queued: 'queued_ns',
  prepare: 'prepare_ns',
  prefill: 'prefill_ns',
  draft: 'draft_ns',
  decode: 'decode_ns',
  verify: 'verify_ns',
  sample: 'sample_ns',
  text: 'text_ns',
  stalled: 'stalled_ns',
  send: 'send_ns',
  other: 'other_ns',
}

/** The sum to which a part counts. */
export const keyOfPart = (what: RequestPartKind): keyof RequestParts => KEYS[what]

/** Sums of nothing. */
export function noParts(): PartSums {
  return Object.fromEntries(PART_KEYS.map((key) => [key, 0])) as unknown as PartSums
}

/** Adds the parts of one request to sums. */
export function addParts(sums: PartSums, parts: RequestParts): void {
  for (const key of PART_KEYS) sums[key] += parts[key]
}

/** Parts in which something is done for a request. */
export const WORK = ['prefill_ns', 'draft_ns', 'decode_ns', 'verify_ns', 'sample_ns', 'text_ns'] as const
