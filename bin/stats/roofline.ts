import type { Roofline } from '../../lib/index.ts'
import { duration, percent, threeDigits } from '../units.ts'
import type { Section } from './section.ts'

/** Rooflines of operators that are printed, those with most time first. */
const OPERATORS_MAX = 12

/** Measured speeds against the peaks; without peaks the speeds alone, of operators not here: their own table has them. */
export function rooflineSection(rooflines: readonly Roofline[]): Section | undefined {
  if (rooflines.length === 0) return undefined
  const hasPeak = ({ mfu_share, mbu_share }: Roofline) => mfu_share !== null || mbu_share !== null
  const operators = rooflines.filter((line) => line.scope === 'operator' && hasPeak(line)).slice(0, OPERATORS_MAX)
  const shown = [...rooflines.filter(({ scope }) => scope !== 'operator'), ...operators]
  const known = (value: number | null, unit: number) => (value === null ? '' : threeDigits(value / unit))
  const share = (value: number | null) => (value === null ? '' : percent(value))
  const rows = shown.map((line) => [
    titleOf(line),
    duration(line.time_ns),
    known(line.flop_per_s, 1e9),
    known(line.bytes_per_s, 1e9),
    known(line.intensity, 1),
    share(line.mfu_share),
    share(line.mbu_share),
    boundOf(line),
  ])
  const titles = ['what', 'time', 'GFLOP/s', 'GB/s', 'FLOP/byte', 'MFU', 'MBU', 'bound by']
  const columns = titles.map((title, i) => ({ title, isText: i === 0 || i === titles.length - 1 }))
  const notes = new Map<string, string[]>()
  for (const line of shown) {
    if (line.note !== null) notes.set(line.note, [...(notes.get(line.note) ?? []), titleOf(line)])
  }
  const explained = [...notes].map(([note, titles]) => `${titles.join(', ')}: ${note}`)
  return { title: 'roofline', tables: [{ columns, rows }], lines: [...peakLines(shown), ...explained] }
}

function titleOf({ scope, what, phase }: Roofline): string {
  if (scope === 'range') return `range "${what}"`
  return scope === 'operator' && phase !== null ? `${what} (${phase})` : what
}

function boundOf({ bound, margin }: Roofline): string {
  if (bound === null || margin === null) return ''
  if (bound === 'near the ridge') return bound
  return margin === 0 ? bound : `${bound}, ${threeDigits(Math.max(margin, 1 / margin))}× from the ridge`
}

function peakLines(rooflines: readonly Roofline[]): string[] {
  const first = rooflines.find(({ ridge }) => ridge !== null)
  if (!first) return []
  const { peak_flop_per_s, peak_bytes_per_s, ridge } = first
  return [
    `peaks: ${threeDigits(peak_flop_per_s! / 1e9)} GFLOP/s, ${threeDigits(peak_bytes_per_s! / 1e9)} GB/s, ` +
      `ridge at ${threeDigits(ridge!)} FLOP/byte (${first.what})`,
  ]
}
