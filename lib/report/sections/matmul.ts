import * as Plot from '@observablehq/plot'
import { groupOperators } from '../../analyze/operators/groups.ts'
import { duration, threeDigits } from '../../model/units.ts'
import { byName, chart, legend, logarithmic } from '../chart.ts'
import { type Context, known, operatorName } from '../context.ts'
import { figureHtml, type Section, tableOf } from '../figure.ts'

/** Points that are drawn, those with most time first. */
const POINTS_MAX = 120

/** Time of matrix products by their size. */
export function matmulSection({ analysis, stats }: Context): Section | undefined {
  const points = groupOperators(analysis, ['role', 'op', 'phase', 'type', 'shape'])
    .filter(({ op }) => /^MUL_MAT/.test(op ?? ''))
    .flatMap((group) => {
      const sides = /^(\d+)×(\d+)×(\d+)$/
        .exec(group.shape ?? '')
        ?.slice(1)
        .map(Number)
      if (!sides || !group.steps || !group.wall_ns) return []
      const product = sides.reduce((product, side) => product * side, 1)
      return product > 0
        ? [{ ...group, product, us: group.wall_ns / group.steps / 1e3, type: group.type || 'unknown' }]
        : []
    })
    .slice(0, POINTS_MAX)
  if (points.length === 0) return undefined
  const types = [...new Set(points.map(({ type }) => type))]
  const figure = figureHtml({
    title: 'Time of a matrix product by M·N·K',
    about:
      'Each point is a role with one shape: the mean wall time of its steps. Points of one type on a straight line of slope 1 compute equally fast.',
    legend: legend(types),
    chart: chart('Time of matrix products in microseconds by M times N times K', () => ({
      height: 340,
      marginLeft: 60,
      x: logarithmic(
        'M·N·K',
        points.map(({ product }) => product),
        compact,
      ),
      y: logarithmic(
        'µs',
        points.map(({ us }) => us),
        threeDigits,
      ),
      color: byName(types),
      marks: [
        Plot.dot(points, {
          ...{ x: 'product', y: 'us', fill: 'type', stroke: 'type', fillOpacity: 0.5, r: 4.5 },
          title: (product) =>
            `${operatorName(product)} (${product.phase}), ${product.type}\n${product.shape}\n${duration(product.us * 1e3)}, ${known(product.gflop_per_s, threeDigits)} GFLOP/s`,
        }),
      ],
    })),
    table: tableOf(points, {
      '<operator': operatorName,
      '<phase': ({ phase }) => String(phase),
      '<type': ({ type }) => type,
      '<M×N×K': ({ shape }) => String(shape),
      M·N·K: ({ product }) => threeDigits(product),
      steps: ({ steps }) => steps ?? '',
      'mean wall time': ({ us }) => duration(us * 1e3),
      'GFLOP/s': ({ gflop_per_s }) => known(gflop_per_s, threeDigits),
      'GB/s': ({ gb_per_s }) => known(gb_per_s, threeDigits),
    }),
    source: stats('--by role,op,phase,type,shape --csv'),
  })
  return { id: 'matmul', title: 'Matrix products', content: [figure] }
}

/** `2M`, `10B` */
const compact = (value: number) => value.toLocaleString('en', { notation: 'compact' })
