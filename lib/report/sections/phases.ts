import * as Plot from '@observablehq/plot'
import type { Analysis } from '../../analyze/analysis.ts'
import { duration, threeDigits } from '../../model/units.ts'
import { chart } from '../chart.ts'
import { colour } from '../colours.ts'
import { type Context, comparedCalls, inGroups, known, mean } from '../context.ts'
import { columns, figureHtml, type Section, sourceHtml, tableHtml } from '../figure.ts'
import { type Html, html } from '../html.ts'

/** Points of a chart. */
const POINTS_MAX = 300

/** Speed of prefill and decode, and how TPOT depends on the context. */
export function phasesSection(context: Context): Section | undefined {
  const { calls } = context.analysis
  if (calls.count === 0) return undefined
  const content = [
    speedTable(context.analysis),
    sourceHtml(`${context.stats('--json')} (calls, rooflines)`),
    tpotFigure(context),
    sequencesTable(context),
  ]
  return { id: 'phases', title: 'Prefill and decode', content: content.filter((html) => html !== undefined) }
}

function speedTable({ calls, rooflines }: Analysis): Html {
  const phases = Object.entries(calls.by_phase)
  const roofOf = (phase: string) => rooflines.find(({ scope, what }) => scope === 'phase' && what === phase)
  const speed = (phase: string) =>
    phase === 'prefill' ? calls.prefill_tokens_per_s : phase === 'decode' ? calls.decode_tokens_per_s : null
  const textOf = (phase: string, text: string) => (phase === 'decode' ? text : '')
  const rows = phases.map(([phase, { calls: number, tokens }]) => [
    phase,
    number,
    tokens,
    known(speed(phase), threeDigits),
    phase === 'prefill' ? known(calls.ttft_ns, duration) : '',
    ...[calls.tpot?.mean_ns, calls.tpot?.p50_ns, calls.tpot?.p99_ns].map((ns) => textOf(phase, known(ns, duration))),
    known(roofOf(phase)?.flop_per_s, (value) => threeDigits(value / 1e9)),
    known(roofOf(phase)?.bytes_per_s, (value) => threeDigits(value / 1e9)),
    known(roofOf(phase)?.intensity, threeDigits),
  ])
  const titles = [
    'calls',
    'tokens',
    'tok/s',
    'TTFT',
    'TPOT mean',
    'TPOT p50',
    'TPOT p99',
    'GFLOP/s',
    'GB/s',
    'FLOP/byte',
  ]
  return tableHtml({ columns: columns('<phase', ...titles), rows }, 'Speed by phase')
}

function tpotFigure({ analysis, stats }: Context): Html | undefined {
  const { rows, note } = comparedCalls(analysis)
  const timed = rows.filter((row) => row.phase === 'decode' && row.tpot_ns !== null)
  if (timed.length < 2) return undefined
  const hasContext = timed.every(({ context_tokens }) => context_tokens !== null)
  const points = inGroups(timed, POINTS_MAX).map((inGroup) => ({
    x: hasContext ? mean(inGroup.map(({ context_tokens }) => context_tokens!)) : inGroup[0]!.call,
    ms: mean(inGroup.map(({ tpot_ns }) => tpot_ns!)) / 1e6,
    call: inGroup[0]!.call,
    calls: inGroup.length,
  }))
  const { slope } = analysis.calls
  const line = hasContext && slope?.is_clear ? slope : undefined
  const at = (tokens: number) => ({
    x: tokens,
    ms: line!.tpot.at_0_ns / 1e6 + (line!.tpot.ms_per_1000_tokens * tokens) / 1000,
  })
  const axis = hasContext ? 'tokens in the context' : 'call'
  return figureHtml({
    title: 'Time per output token',
    about: line
      ? `Each point is a decode call.${note} The line grows by ${threeDigits(line.tpot.ms_per_1000_tokens)} ± ${threeDigits(line.tpot.standard_error_ms)} ms per 1 000 tokens of context (least squares, standard error).`
      : `Each point is a decode call.${note}${hasContext && slope ? ' TPOT does not clearly change with the context.' : ''}`,
    chart: chart(`Time per output token by ${axis}, in milliseconds`, () => ({
      height: 260,
      marginLeft: 52,
      x: { label: axis, nice: true, tickFormat: threeDigits },
      y: { label: 'TPOT, ms', grid: true, zero: true, tickFormat: threeDigits },
      marks: [
        Plot.ruleY([0]),
        Plot.dot(points, {
          x: 'x',
          y: 'ms',
          r: 3,
          fill: colour(0),
          title: ({ x, ms, call, calls }) =>
            `${calls > 1 ? `${calls} calls from ` : 'call '}${call}\n${axis}: ${threeDigits(x)}\nTPOT ${duration(ms * 1e6)}`,
        }),
        ...(line
          ? [
              Plot.line([at(line.from_tokens), at(line.to_tokens)], {
                x: 'x',
                y: 'ms',
                stroke: colour(9),
                strokeWidth: 2,
              }),
            ]
          : []),
      ],
    })),
    table: {
      columns: columns('call', 'calls', axis, 'TPOT'),
      rows: points.map(({ x, ms, call, calls }) => [call, calls, threeDigits(x), duration(ms * 1e6)]),
    },
    source: `${stats('--calls --json')} (series.calls, calls.slope)`,
  })
}

/** The sequences that decoded: requests of a server. */
function sequencesTable({
  analysis: {
    calls: { contexts },
  },
  stats,
}: Context): Html | undefined {
  const sequences = contexts.flatMap(({ by_sequence }, context) =>
    by_sequence.map((sequence) => ({ context, ...sequence })),
  )
  if (sequences.length < 2) return undefined
  const rows = sequences.map(({ context, sequence, tpot, jitter }) => [
    sequence,
    context,
    tpot.count,
    ...[tpot.mean_ns, tpot.p50_ns, tpot.p99_ns, tpot.max_ns, jitter.standard_deviation_ns].map(duration),
  ])
  const titles = ['tokens', 'TPOT mean', 'p50', 'p99', 'max', 'standard deviation']
  const table = { columns: columns('<sequence', 'context', ...titles), rows }
  return html`${tableHtml(table, 'Sequences that decoded (of requests)')}${sourceHtml(`${stats('--json')} (calls.contexts.by_sequence)`)}`
}
