import type { FirstTokenFigures } from './figures.ts'

/** Is more known of the time to the first token than its calls: loading, a context, or a warm-up? */
export function hasStart(figures: FirstTokenFigures | null): figures is FirstTokenFigures {
  const known = figures?.parts.filter(({ time_ns }) => time_ns !== null) ?? []
  return known.length > 1 && known.some(({ what }) => what === 'load' || what === 'context' || what === 'warm-up')
}
