import { LEVELS } from '../../log/ggtrace-layout.ts'
import { readU64 } from './fields.ts'

/** The text of a LEVEL record. */
export function lessBecause(view: DataView, at: number): string {
  const level = LEVELS[view.getUint32(at + 12, true)] ?? 'other things'
  const [withNs, withoutNs] = [readU64(view, at + 20), readU64(view, at + 28)]
  const more = Math.round((withNs / withoutNs - 1) * 100)
  const took = `decode took ${(withNs / 1e6).toFixed(3)} ms a call when recorded, ${(withoutNs / 1e6).toFixed(3)} ms when not`
  return `${took}: ${more} % more, above the guard's ${view.getUint32(at + 16, true)} %; from here on only ${level}`
}
