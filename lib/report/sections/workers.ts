import * as Plot from '@observablehq/plot'
import type { Analysis } from '../../analyze/analysis.ts'
import { computingNs } from '../../analyze/operators/computing.ts'
import { duration, percent, plural, threeDigits } from '../../model/units.ts'
import { byName, chart, legend } from '../chart.ts'
import { colour } from '../colours.ts'
import { type Context, known, operatorName } from '../context.ts'
import { columns, figureHtml, type Section } from '../figure.ts'
import type { Html } from '../html.ts'

/** Workers and roles that are drawn. */
const WORKERS_MAX = 64
const ROLES_MAX = 12

/** How evenly workers share the work, and when they had no CPU. */
export function workersSection(context: Context): Section | undefined {
  const { workers, scheduling, imbalance } = context.analysis
  if (workers.length === 0) return undefined
  const content = [timesFigure(context)]
  if (imbalance.length > 0) content.push(imbalanceFigure(imbalance.slice(0, ROLES_MAX), context))
  if (scheduling && scheduling.workers.length > 0) content.push(schedulingFigure(scheduling, context))
  return { id: 'workers', title: 'Workers', content }
}

/** A part of the time of a row. */
interface Part {
  readonly row: string
  readonly name: string
  readonly share: number
  readonly ns: number
}

function stacked(parts: readonly Part[], rows: readonly string[], label: string, axis: string, marginLeft: number) {
  const names = [...new Set(parts.map(({ name }) => name))]
  return {
    legend: legend(names),
    chart: chart(label, () => ({
      height: 56 + 24 * rows.length,
      marginLeft,
      x: { percent: true, label: axis, grid: true },
      y: { domain: rows, label: null, tickSize: 0 },
      color: byName(names),
      marks: [
        Plot.barX(
          parts,
          Plot.stackX({
            ...{ x: 'share', y: 'row', fill: 'name', order: names, inset: 0.5 },
            title: ({ row, name, share, ns }: Part) => `${row}: ${name}\n${percent(share)}, ${duration(ns)}`,
          }),
        ),
        Plot.ruleX([0]),
      ],
    })),
  }
}

function timesFigure({ analysis: { workers }, stats }: Context): Html {
  const shown = workers.slice(0, WORKERS_MAX)
  const parts = shown.flatMap((of): Part[] => {
    const idle = of.idle_ns ?? 0
    const all = of.operator_time_ns + of.wait_ns + idle
    const computing = computingNs(of)
    const times = [
      ['computing', computing],
      ['without a CPU', of.operator_time_ns - computing],
      ['barrier wait', of.wait_ns],
      ['idle', idle],
    ] as const
    return times
      .filter(([name, ns]) => ns > 0 || name !== 'without a CPU')
      .map(([name, ns]) => ({ row: `worker ${of.worker}`, name, ns, share: all > 0 ? ns / all : 0 }))
  })
  return figureHtml({
    title: 'Time of each worker',
    about:
      'Computing operators (without a CPU: in them, but preempted or blocked), waiting at the barriers after them, and neither, as parts of the time of the worker’s calls.',
    ...stacked(
      parts,
      shown.map(({ worker }) => `worker ${worker}`),
      'Time of each worker, in percent',
      'share, %',
      76,
    ),
    table: {
      columns: columns(
        '<worker',
        'operators',
        'computing',
        'without a CPU',
        'barrier wait',
        'idle',
        'steps',
        'last to end',
      ),
      rows: workers.map((of) => [
        String(of.worker),
        String(of.executions),
        duration(computingNs(of)),
        known(of.off_cpu_ns ?? null, duration),
        duration(of.wait_ns),
        of.idle_ns === null ? '' : duration(of.idle_ns),
        String(of.steps),
        of.steps > 0 ? percent(of.last / of.steps) : '',
      ]),
    },
    source: `${stats('--json')} (workers)`,
  })
}

function imbalanceFigure(roles: Analysis['imbalance'], { stats }: Context): Html {
  const named = roles.map((of) => ({
    ...of,
    name: `${operatorName(of)} (${of.phase})`,
    lost: of.slowest_ns - of.mean_ns,
  }))
  return figureHtml({
    title: 'Operators that workers share unevenly',
    about: 'Time that the slowest worker of each step needs longer than all workers on average; most time first.',
    chart: chart('Time lost to uneven sharing by operator, in milliseconds', (_, isNarrow) => ({
      height: 56 + 24 * named.length,
      marginLeft: isNarrow ? 150 : 260,
      x: { label: 'ms', grid: true, tickFormat: threeDigits },
      y: {
        domain: named.map(({ name }) => name),
        label: null,
        tickSize: 0,
        tickFormat: (name: string) => (isNarrow && name.length > 21 ? `${name.slice(0, 20)}…` : name),
      },
      marks: [
        Plot.barX(named, {
          ...{ x: ({ lost }) => lost / 1e6, y: 'name', fill: colour(9), inset: 0.5 },
          title: (of) =>
            `${of.name}\n${duration(of.lost)} lost, imbalance ${percent(of.imbalance_share)}\nworker ${of.last_worker} last in ${percent(of.last_share)} of ${plural(of.steps, 'step')}`,
        }),
        Plot.ruleX([0]),
      ],
    })),
    table: {
      columns: columns(
        '<operator',
        '<phase',
        'steps',
        'slowest worker',
        'mean',
        'imbalance',
        'last worker',
        'of steps',
      ),
      rows: roles.map((of) => [
        operatorName(of),
        of.phase,
        String(of.steps),
        duration(of.slowest_ns),
        duration(of.mean_ns),
        percent(of.imbalance_share),
        String(of.last_worker),
        percent(of.last_share),
      ]),
    },
    source: `${stats('--json')} (imbalance)`,
  })
}

function schedulingFigure({ workers, takers }: NonNullable<Analysis['scheduling']>, { stats }: Context): Html {
  const shown = workers.slice(0, WORKERS_MAX)
  const nameOf = ({ worker, phase }: (typeof shown)[number]) => `${worker}, ${phase}`
  const parts = shown.flatMap((of): Part[] => {
    const times = [
      ['running', of.running_ns],
      ['preempted', of.preempted_ns],
      ['woken', of.woken_ns ?? 0],
      ['blocked', of.blocked_ns],
      ['unknown', of.unknown_ns],
    ] as const
    return times
      .filter(([, ns]) => ns > 0)
      .map(([name, ns]) => ({ row: nameOf(of), name, ns, share: of.call_time_ns > 0 ? ns / of.call_time_ns : 0 }))
  })
  const who = takers === 'none' ? '' : ' The table names the programs that had the CPU meanwhile.'
  return figureHtml({
    title: 'Threads of workers in calls',
    about: `Preempted: the thread could run, but had no CPU. Woken: the same right after a wait.${who}`,
    ...stacked(
      parts,
      shown.map(nameOf),
      'States of the threads of workers, in percent of the time of calls',
      'share of the time of calls, %',
      76,
    ),
    table: {
      columns: columns('<worker', '<phase', 'running', 'preempted', 'times', 'blocked', 'migrations', '<CPU taken by'),
      rows: workers.map((of) => [
        String(of.worker),
        of.phase,
        duration(of.running_ns),
        duration(of.preempted_ns),
        String(of.preemptions),
        duration(of.blocked_ns),
        String(of.migrations),
        of.takers.map(({ comm, share }) => `${comm} ${percent(share)}`).join(', '),
      ]),
    },
    source: `${stats('--json')} (scheduling.workers)`,
  })
}
