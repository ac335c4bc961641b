import * as Plot from '@observablehq/plot'
import type { Roofline } from '../../analyze/analysis.ts'
import { limitOf } from '../../analyze/findings/roofline.ts'
import { duration, percent, threeDigits } from '../../model/units.ts'
import { byName, chart, legend, logarithmic } from '../chart.ts'
import type { Context } from '../context.ts'
import { known } from '../context.ts'
import { figureHtml, type Section, tableOf } from '../figure.ts'

/** Points that are drawn, those with most time first. */
const POINTS_MAX = 60

type Point = Roofline & { readonly intensity: number; readonly phase: NonNullable<Roofline['phase']> }
const isPoint = (roofline: Roofline): roofline is Point =>
  roofline.scope === 'operator' && roofline.intensity !== null && roofline.intensity > 0 && roofline.flop_per_s > 0

/** Measured speeds against the work per byte, and what the machine can do. */
export function rooflineSection({ analysis: { rooflines }, stats }: Context): Section | undefined {
  const points = rooflines.filter(isPoint).slice(0, POINTS_MAX)
  if (points.length === 0) return undefined
  const phases = [...new Set(points.map(({ phase }) => phase))]
  const peak = rooflines.find(({ ridge }) => ridge !== null)
  const roofs = rooflines.find(
    ({ peak_bytes_per_s, peak_flop_per_s }) => (peak_bytes_per_s ?? 0) > 0 || (peak_flop_per_s ?? 0) > 0,
  )
  const [left, right] = [
    Math.min(...points.map(({ intensity }) => intensity)) / 2,
    Math.max(...points.map(({ intensity }) => intensity), peak?.ridge ?? 0) * 2,
  ]
  const roof = roofOf(roofs, left, right)
  const timeMax = Math.max(...points.map(({ time_ns }) => time_ns))
  const about = roofs
    ? `The line is the most that the machine can do: ${known(roofs.peak_bytes_per_s, (value) => `${threeDigits(value / 1e9)} GB/s`)} ${known(roofs.peak_flop_per_s, (value) => `and ${threeDigits(value / 1e9)} GFLOP/s`)}${peak ? `; above ${threeDigits(peak.ridge!)} FLOP/byte (the ridge) computing is the limit` : ''}.`
    : 'The peaks of the machine are not known: report --peaks measure, on the machine that recorded, draws the roof.'
  const figure = figureHtml({
    title: 'Speed of operators by their work per byte',
    about: `Each point is an operator of a phase, in all layers; a larger one has more time. ${about}`,
    legend: legend(phases),
    chart: chart('Speed of operators in GFLOP/s by FLOP per byte', () => ({
      height: 380,
      marginLeft: 56,
      x: logarithmic('FLOP/byte', [left, right], threeDigits),
      y: logarithmic(
        'GFLOP/s',
        [...points.map(({ flop_per_s }) => flop_per_s / 1e9), ...roof.map(({ y }) => y)],
        threeDigits,
      ),
      r: { range: [3, 12], domain: [0, timeMax] },
      color: byName(phases),
      marks: [
        Plot.line(roof, { x: 'x', y: 'y', strokeWidth: 2 }),
        ...(peak ? [Plot.ruleX([peak.ridge!], { strokeDasharray: '4,4', strokeOpacity: 0.6 })] : []),
        Plot.dot(points, {
          ...{ x: 'intensity', r: 'time_ns', fill: 'phase', stroke: 'phase', fillOpacity: 0.55 },
          y: ({ flop_per_s }) => flop_per_s / 1e9,
          title: textOf,
        }),
      ],
    })),
    table: tableOf(points, {
      '<operator': ({ what }) => what,
      '<phase': ({ phase }) => phase,
      time: ({ time_ns }) => duration(time_ns),
      'GFLOP/s': ({ flop_per_s }) => threeDigits(flop_per_s / 1e9),
      'GB/s': ({ bytes_per_s }) => known(bytes_per_s, (value) => threeDigits(value / 1e9)),
      'FLOP/byte': ({ intensity }) => threeDigits(intensity),
      MFU: ({ mfu_share }) => known(mfu_share, percent),
      MBU: ({ mbu_share }) => known(mbu_share, percent),
      '<bound by': limitOf,
    }),
    source: `${stats('--json')} (rooflines)`,
  })
  return { id: 'roofline', title: 'Roofline', content: [figure] }
}

function textOf({
  what,
  phase,
  time_ns,
  flop_per_s,
  bytes_per_s,
  intensity,
  roof_share,
  bytes_are_max,
}: Point): string {
  return [
    `${what} (${phase})`,
    `${threeDigits(flop_per_s / 1e9)} GFLOP/s, ${known(bytes_per_s, (value) => `${threeDigits(value / 1e9)} GB/s`)}`,
    `${bytes_are_max ? 'at least ' : ''}${threeDigits(intensity)} FLOP/byte, ${duration(time_ns)}`,
    ...(roof_share === null ? [] : [`${percent(roof_share)} of what is attainable`]),
  ].join('\n')
}

function roofOf(roofline: Roofline | undefined, left: number, right: number): { x: number; y: number }[] {
  if (!roofline) return []
  const [flop, bytes] = [roofline.peak_flop_per_s, roofline.peak_bytes_per_s].map((peak) => (peak || Infinity) / 1e9)
  const at = (x: number) => ({ x, y: Math.min(flop!, bytes! * x) })
  const ridge = flop! / bytes!
  return [left, ...(ridge > left && ridge < right ? [ridge] : []), right].map(at)
}
