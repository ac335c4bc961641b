import * as Plot from '@observablehq/plot'
import type { CallRow, CallTime } from '../../analyze/analysis.ts'
import { duration, percent, threeDigits } from '../../model/units.ts'
import { byName, chart, legend, type PlotOptions, stackedBars } from '../chart.ts'
import { type Context, comparedCalls, inGroups, mean } from '../context.ts'
import { columns, figureHtml, type Section } from '../figure.ts'
import type { Html } from '../html.ts'

/** Bars of a chart over calls; of more calls, a bar is a mean. */
const BARS_MAX = { wide: 160, narrow: 80 } as const
/** Of the largest part: a smaller one is not drawn. */
const VISIBLE_MIN = 0.001
/** Width of a bar; the rest is the space to the next one. */
const BAR_SHARE = 0.94
/** Parts with a smaller share of all phases are one. */
const SHARE_MIN = 0.005

/** Where the time of calls goes: of each phase, and over calls. */
export function callTimeSection(context: Context): Section | undefined {
  const { call_time } = context.analysis
  const { rows, note } = comparedCalls(context.analysis)
  const phases = [...new Set(rows.map(({ phase }) => phase))]
  const content = [
    ...(call_time.length > 0 ? [partsFigure(call_time, context)] : []),
    ...phases.flatMap(
      (phase) =>
        overCalls(
          phase,
          rows.filter((row) => row.phase === phase),
          note,
          context,
        ) ?? [],
    ),
  ]
  if (content.length === 0) return undefined
  return { id: 'call-time', title: 'Where the time of calls goes', content }
}

function partsFigure(call_time: readonly CallTime[], { stats }: Context): Html {
  const most = new Map<string, number>()
  for (const { parts } of call_time)
    for (const { what, share } of parts) most.set(what, Math.max(most.get(what) ?? 0, share))
  const names = [...most]
    .filter(([, share]) => share >= SHARE_MIN)
    .sort((a, b) => b[1] - a[1])
    .map(([what]) => what)
  const shown = call_time.flatMap(({ phase, parts }) =>
    parts
      .filter(({ what }) => names.includes(what))
      .map(({ what, time_ns, share }) => {
        const text = `${phase}: ${what}\n${percent(share)}, ${duration(time_ns)}`
        return { row: phase, name: what as string, value: share, text }
      }),
  )
  return figureHtml({
    title: 'Parts of the time of calls, by phase',
    about:
      'On the thread that makes the calls; the parts sum to the time of the calls. Smaller parts than 0.5 % are only in the table.',
    ...stackedBars('Parts of the time of calls by phase, in percent', shown, names, {
      ...{ rows: call_time.map(({ phase }) => phase), height: 60 + 46 * call_time.length, marginLeft: 64 },
      x: { percent: true, domain: [0, 100], label: 'share of the time of calls, %' },
    }),
    table: {
      columns: columns('<phase', '<part', 'time', 'share'),
      rows: call_time.flatMap(({ phase, parts }) =>
        parts.map(({ what, time_ns, share }) => [phase, what, duration(time_ns), percent(share)]),
      ),
    },
    source: `${stats('--json')} (call_time)`,
  })
}

/** A bar: one call, or the mean of neighbours. */
interface Bar {
  readonly first: CallRow
  readonly calls: number
  readonly timeNs: number
  /** By block, of waits, and without a CPU; of all workers. */
  readonly parts: Readonly<Record<string, number>>
}

const WAIT = 'at barriers'
const OFF = 'without a CPU'
const CALL = 'call'

const inBlock = (times: CallRow['operator_time_ns'], block: string) =>
  (times as Record<string, number> | null)?.[block] ?? 0

function barOf(calls: readonly CallRow[]): Bar {
  const withOperators = calls.filter(({ operator_time_ns }) => operator_time_ns !== null)
  const blocks = new Set(withOperators.flatMap(({ operator_time_ns }) => Object.keys(operator_time_ns!)))
  const partOf = (block: string) =>
    mean(withOperators.map((row) => inBlock(row.operator_time_ns, block) - inBlock(row.off_cpu_ns, block)))
  const parts = [...blocks].map((block) => [block, partOf(block)] as const)
  const waits = mean(withOperators.map(({ wait_ns, wait_preempted_ns }) => (wait_ns ?? 0) - (wait_preempted_ns ?? 0)))
  const off = mean(
    withOperators.map(({ off_cpu_ns, wait_preempted_ns }) =>
      Object.values(off_cpu_ns ?? {}).reduce((sum, ns) => sum + ns, wait_preempted_ns ?? 0),
    ),
  )
  const timeNs = mean(calls.map(({ time_ns }) => time_ns))
  const all =
    withOperators.length > 0
      ? [...parts, [WAIT, waits] as const, ...(off > 0 ? [[OFF, off] as const] : [])]
      : [[CALL, timeNs] as const]
  return { first: calls[0]!, calls: calls.length, timeNs, parts: Object.fromEntries(all) }
}

const callText = ({ first, calls }: Bar) => (calls === 1 ? `call ${first.call}` : `${calls} calls from ${first.call}`)

/** Bars over calls. Parts that would be thinner than a line are only in the table. */
function drawn(bars: readonly Bar[], names: readonly string[]): PlotOptions {
  const most = bars.reduce((most, { parts }) => Math.max(most, ...Object.values(parts)), 0)
  const data = bars.flatMap((bar, i) =>
    Object.entries(bar.parts)
      .filter(([, ns]) => ns > most * VISIBLE_MIN)
      .map(([name, ns]) => ({
        i,
        name,
        ms: ns / 1e6,
        text: `${callText(bar)}: ${name}\n${duration(ns)} of ${duration(bar.timeNs)}`,
      })),
  )
  const every = Math.ceil(bars.length / 8)
  return {
    height: 280,
    marginLeft: 52,
    x: {
      label: 'call',
      ticks: bars.flatMap((_, i) => (i % every === 0 ? [i + BAR_SHARE / 2] : [])),
      tickFormat: (i: number) => String(bars[Math.floor(i)]?.first.call ?? ''),
      domain: [0, bars.length],
    },
    y: { grid: true, label: 'ms per call', tickFormat: threeDigits },
    color: byName(names),
    marks: [
      Plot.rectY(
        data,
        Plot.stackY({
          ...{ x1: 'i', x2: ({ i }: { i: number }) => i + BAR_SHARE, y: 'ms' },
          ...{ fill: 'name', order: [...names], title: 'text' },
        }),
      ),
      Plot.ruleY([0]),
    ],
  }
}

function overCalls(phase: string, rows: readonly CallRow[], note: string, { stats }: Context): Html | undefined {
  if (rows.length < 2) return undefined
  const barsOf = (max: number) => inGroups(rows, max).map(barOf)
  const bars = barsOf(BARS_MAX.wide)
  const sums = new Map<string, number>()
  for (const { parts } of bars)
    for (const [name, ns] of Object.entries(parts)) sums.set(name, (sums.get(name) ?? 0) + ns)
  const names = [...sums].sort((a, b) => b[1] - a[1]).map(([name]) => name)
  const per = bars[0]!.calls
  const what = names.includes(CALL)
    ? 'Time of the call'
    : 'Time of all workers together: operators by block, waits at barriers, and what they lost without a CPU'
  return figureHtml({
    title: `Time of ${phase} over calls`,
    about: `${what}${per > 1 ? `; a bar is the mean of ${per} calls` : ''}.${note}`,
    legend: legend(names),
    chart: chart(`Time of ${phase} calls by block, in milliseconds`, (_, isNarrow) =>
      drawn(isNarrow ? barsOf(BARS_MAX.narrow) : bars, names),
    ),
    table: {
      columns: columns('call', 'calls', 'time of a call', ...names),
      rows: bars.map((bar) => [
        bar.first.call,
        bar.calls,
        duration(bar.timeNs),
        ...names.map((name) => duration(bar.parts[name] ?? 0)),
      ]),
    },
    source: `${stats('--calls --json')} (series.calls)`,
  })
}
