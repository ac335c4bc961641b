import type { RequestPartKind } from '../../model/events.ts'
import type { RequestParts } from './figures.ts'

/** Sums of parts, to be added to. */
export type PartSums = { -readonly [K in keyof RequestParts]: RequestParts[K] }

/** Keys of parts, in the order of a request. */
export const PART_KEYS = [
  'call_wait_ns',
  'deferred_ns',
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
  'call-wait': 'call_wait_ns',
  deferred: 'deferred_ns',
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

/** Sums of which nothing is known yet. */
export function noParts(): PartSums {
  return Object.fromEntries(PART_KEYS.map((key) => [key, null])) as unknown as PartSums
}

/** Adds the parts of one request to sums. */
export function addParts(sums: PartSums, parts: RequestParts): void {
  for (const key of PART_KEYS) addPart(sums, key, parts[key])
}

/** Adds a time to a sum; null: not known. */
export function addPart(sums: PartSums, key: keyof RequestParts, ns: number | null): void {
  if (ns !== null) sums[key] = (sums[key] ?? 0) + ns
}

/** Sum of some parts; null where none of them is known. */
export function sumOf(parts: RequestParts, keys: readonly (keyof RequestParts)[]): number | null {
  const known = keys.flatMap((key) => parts[key] ?? [])
  return known.length === 0 ? null : known.reduce((sum, ns) => sum + ns, 0)
}

/** Parts in a queue, before a slot begins with a request. */
export const IN_QUEUE = ['call_wait_ns', 'deferred_ns', 'queued_ns'] as const

/** Parts in which something is done for a request. */
export const WORK = ['prefill_ns', 'draft_ns', 'decode_ns', 'verify_ns', 'sample_ns', 'text_ns'] as const
