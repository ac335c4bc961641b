import * as Plot from '@observablehq/plot'
import type { Analysis } from '../../analyze/analysis.ts'
import { partsOfWorker } from '../../analyze/operators/computing.ts'
import { duration, percent, plural, threeDigits } from '../../model/units.ts'
import { chart, type Part, stackedBars } from '../chart.ts'
import { colour } from '../colours.ts'
import { type Context, known, operatorName } from '../context.ts'
import { columns, figureHtml, type Section, tableOf } from '../figure.ts'
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

/** Parts of the time of rows, as shares of it. */
const shares = (label: string, axis: string, rows: readonly string[], parts: readonly Part[]) =>
  stackedBars(label, parts, [...new Set(parts.map(({ name }) => name))], {
    ...{ rows, height: 56 + 24 * rows.length, marginLeft: 76 },
    x: { percent: true, label: axis, grid: true },
  })

const partOf = (row: string, name: string, ns: number, all: number): Part => {
  const value = all > 0 ? ns / all : 0
  return { row, name, value, text: `${row}: ${name}\n${percent(value)}, ${duration(ns)}` }
}

function timesFigure({ analysis: { workers }, stats }: Context): Html {
  const shown = workers.slice(0, WORKERS_MAX)
  const parts = shown.flatMap((figures): Part[] => {
    const times = partsOfWorker(figures).map(({ what, time_ns }) => [what, time_ns ?? 0] as const)
    const all = times.reduce((sum, [, ns]) => sum + ns, 0)
    return times
      .filter(([name, ns]) => ns > 0 || name !== 'without a CPU')
      .map(([name, ns]) => partOf(`worker ${figures.worker}`, name, ns, all))
  })
  return figureHtml({
    title: 'Time of each worker',
    about:
      'Computing operators, without a CPU (preempted anywhere, or blocked in operators), waiting at the barriers after operators, and neither, as parts of the time of the worker’s calls.',
    ...shares(
      'Time of each worker, in percent',
      'share, %',
      shown.map(({ worker }) => `worker ${worker}`),
      parts,
    ),
    table: {
      columns: columns(
        '<worker',
        'operators',
        'computing',
        'without a CPU',
        'at barriers',
        'idle',
        'steps',
        'last to end',
      ),
      rows: workers.map((worker) => [
        worker.worker,
        worker.executions,
        ...partsOfWorker(worker).map(({ time_ns }) => known(time_ns, duration)),
        worker.steps,
        worker.steps > 0 ? percent(worker.last / worker.steps) : '',
      ]),
    },
    source: `${stats('--json')} (workers)`,
  })
}

function imbalanceFigure(roles: Analysis['imbalance'], { stats }: Context): Html {
  const named = roles.map((role) => ({
    ...role,
    name: `${operatorName(role)} (${role.phase})`,
    lost: role.slowest_ns - role.mean_ns,
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
          title: (dot) =>
            `${dot.name}\n${duration(dot.lost)} lost, imbalance ${percent(dot.imbalance_share)}\nworker ${dot.last_worker} last in ${percent(dot.last_share)} of ${plural(dot.steps, 'step')}`,
        }),
        Plot.ruleX([0]),
      ],
    })),
    table: tableOf(roles, {
      '<operator': operatorName,
      '<phase': ({ phase }) => phase,
      steps: ({ steps }) => steps,
      'slowest worker': ({ slowest_ns }) => duration(slowest_ns),
      mean: ({ mean_ns }) => duration(mean_ns),
      imbalance: ({ imbalance_share }) => percent(imbalance_share),
      'last worker': ({ last_worker }) => last_worker,
      'of steps': ({ last_share }) => percent(last_share),
    }),
    source: `${stats('--json')} (imbalance)`,
  })
}

function schedulingFigure({ workers, takers }: NonNullable<Analysis['scheduling']>, { stats }: Context): Html {
  const shown = workers.slice(0, WORKERS_MAX)
  const nameOf = ({ worker, phase }: (typeof shown)[number]) => `${worker}, ${phase}`
  const parts = shown.flatMap((scheduling): Part[] => {
    const times = [
      ['running', scheduling.running_ns],
      ['preempted', scheduling.preempted_ns],
      ['woken', scheduling.woken_ns ?? 0],
      ['blocked', scheduling.blocked_ns],
      ['unknown', scheduling.unknown_ns],
    ] as const
    return times
      .filter(([, ns]) => ns > 0)
      .map(([name, ns]) => partOf(nameOf(scheduling), name, ns, scheduling.call_time_ns))
  })
  const who = takers === 'none' ? '' : ' The table names the programs that had the CPU meanwhile.'
  return figureHtml({
    title: 'Threads of workers in calls',
    about: `Preempted: the thread could run, but had no CPU. Woken: the same right after a wait.${who}`,
    ...shares(
      'States of the threads of workers, in percent of the time of calls',
      'share of the time of calls, %',
      shown.map(nameOf),
      parts,
    ),
    table: tableOf(workers, {
      '<worker': ({ worker }) => worker,
      '<phase': ({ phase }) => phase,
      running: ({ running_ns }) => duration(running_ns),
      preempted: ({ preempted_ns }) => duration(preempted_ns),
      times: ({ preemptions }) => preemptions,
      blocked: ({ blocked_ns }) => duration(blocked_ns),
      migrations: ({ migrations }) => migrations,
      '<CPU taken by': ({ takers }) => takers.map(({ comm, share }) => `${comm} ${percent(share)}`).join(', '),
    }),
    source: `${stats('--json')} (scheduling.workers)`,
  })
}
