import { limitOf, type Roofline } from '../../lib/cli.ts'
import { duration, percent, threeDigits } from '../units.ts'
import { known, number, type Section, tableOf, text } from './section.ts'

/** Rooflines of operators, and of kernels, that are printed, those with most time first. */
const OPERATORS_MAX = 12

/** Characters of a kernel's name. */
const NAME_MAX = 40

/** Measured speeds against the peaks; without peaks the speeds alone, of operators not here: their own table has them. */
export function rooflineSection(rooflines: readonly Roofline[]): Section | undefined {
  if (rooflines.length === 0) return undefined
  const hasPeak = ({ mfu_share, mbu_share }: Roofline) => mfu_share !== null || mbu_share !== null
  const operators = rooflines.filter((line) => line.scope === 'operator' && hasPeak(line)).slice(0, OPERATORS_MAX)
  const kernels = rooflines.filter(({ scope }) => scope === 'kernel').slice(0, OPERATORS_MAX)
  const others = rooflines.filter(({ scope }) => scope !== 'operator' && scope !== 'kernel')
  const shown = [...others, ...kernels, ...operators]
  const inG = (value: number | null) => known(value, (value) => threeDigits(value / 1e9))
  const table = tableOf(shown, {}, [
    text('what', titleOf),
    number('time', ({ time_ns }) => duration(time_ns)),
    number('GFLOP/s', ({ flop_per_s }) => inG(flop_per_s)),
    number('GB/s', ({ bytes_per_s }) => inG(bytes_per_s)),
    number('FLOP/byte', ({ intensity }) => known(intensity, threeDigits)),
    number('MFU', ({ mfu_share }) => known(mfu_share, percent)),
    number('MBU', ({ mbu_share }) => known(mbu_share, percent)),
    text('bound by', boundOf),
  ])
  const notes = new Map<string, string[]>()
  for (const line of shown) {
    if (line.note !== null) notes.set(line.note, [...(notes.get(line.note) ?? []), titleOf(line)])
  }
  const explained = [...notes].map(([note, titles]) => `${titles.join(', ')}: ${note}`)
  const isFar = shown.some((line) => limitOf(line).endsWith(' side'))
  const side = isFar ? [SIDE] : []
  return { title: 'roofline', tables: [table], lines: [...peakLines(shown), ...side, ...explained] }
}

/** What is far below the roof is limited by something else. */
const SIDE =
  'memory side, compute side: of the ridge, by FLOP/byte; below 60 % of the roof, neither is the limit but something else'

function titleOf({ scope, what, phase, backend }: Roofline): string {
  if (scope === 'range') return `range "${what}"`
  if (scope === 'kernel') return what.length > NAME_MAX ? `${what.slice(0, NAME_MAX - 1)}…` : what
  const place = scope === 'operator' && backend !== null ? ` on ${backend}` : ''
  return scope !== 'phase' && phase !== null ? `${what}${place} (${phase})` : what
}

function boundOf(roofline: Roofline): string {
  const { bound, margin } = roofline
  if (bound === null || margin === null) return ''
  const limit = limitOf(roofline)
  return margin === 0 || bound === 'near the ridge'
    ? limit
    : `${limit}, ${threeDigits(Math.max(margin, 1 / margin))}× from the ridge`
}

/** The peaks of all lines, each with the first line that they apply to. */
function peakLines(rooflines: readonly Roofline[]): string[] {
  const known = rooflines.filter(({ ridge, scope }) => ridge !== null && scope !== 'operator')
  const shown = known.length > 0 ? known : rooflines.filter(({ ridge }) => ridge !== null).slice(0, 1)
  const lines = new Map<string, string>()
  for (const line of shown) {
    const { peak_flop_per_s: flop, peak_bytes_per_s: bytes, ridge } = line
    const text = `${threeDigits(flop! / 1e9)} GFLOP/s, ${threeDigits(bytes! / 1e9)} GB/s, ridge at ${threeDigits(ridge!)} FLOP/byte`
    if (!lines.has(text) && (lines.size === 0 || line.scope === 'backend')) lines.set(text, titleOf(line))
  }
  return [...lines].map(([text, title]) => `peaks: ${text} (${title})`)
}
