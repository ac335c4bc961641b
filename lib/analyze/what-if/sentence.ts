import { duration, threeDigits } from '../../model/units.ts'
import type { Predicted, WhatIf } from './figures.ts'

/** The answer in one line. `reasons`: why nothing changes, where nothing does. */
export function sentenceOf(
  {
    decode_tokens_per_s: speed,
    tpot_ns: tpot,
    ttft_ns: ttft,
  }: Pick<WhatIf, 'decode_tokens_per_s' | 'tpot_ns' | 'ttft_ns'>,
  reasons: readonly string[] | undefined,
): string {
  const rate = (value: number) => threeDigits(value)
  const figures = [
    ...(speed.expected === null ? [] : [`decode ${change(speed, rate)} tok/s`, `TPOT ${change(tpot, duration)}`]),
    ...(ttft.expected === null ? [] : [`TTFT ${change(ttft, duration)}`]),
  ]
  const unchanged = reasons && `no change, as ${reasons.join(' and ')}`
  if (figures.length === 0) return unchanged ?? `cannot say: ${tpot.why ?? ttft.why}`
  return [unchanged, figures.join(', ')].filter((part) => part !== undefined).join(': ')
}

/** `128 → 171 (150 to 190)`. */
function change({ now, expected, low, high }: Predicted, text: (value: number) => string): string {
  if (low === high) return text(now!)
  return `${text(now!)} → ${text(expected!)} (${text(low!)} to ${text(high!)})`
}
