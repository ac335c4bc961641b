import * as Plot from '@observablehq/plot'
import type { GpuDevice } from '../../analyze/analysis.ts'
import { duration, percent, plural, size, threeDigits } from '../../model/units.ts'
import { chart, fitting, stackedBars } from '../chart.ts'
import { colour } from '../colours.ts'
import { type Context, known } from '../context.ts'
import { columns, figureHtml, type Section, sourceHtml, tableHtml, tableOf } from '../figure.ts'
import { type Html, html } from '../html.ts'

/** Kernels and devices that are drawn. */
const KERNELS_MAX = 15
const DEVICES_MAX = 16

/** Where the time of GPUs goes. */
export function gpuSection(context: Context): Section | undefined {
  const { gpu } = context.analysis
  if (!gpu || gpu.devices.length === 0) return undefined
  const devices = gpu.devices.slice(0, DEVICES_MAX)
  const content = [
    timesFigure(devices, context),
    ...devices.slice(0, 2).flatMap((device) => [kernelsFigure(device, context), transfersTable(device, context)]),
  ]
  return { id: 'gpu', title: 'GPU', content: content.filter((html) => html !== undefined) }
}

const nameOf = ({ device, pid, name }: GpuDevice) =>
  [known(device, (value) => `GPU ${value}`) || 'GPU', known(pid, (value) => `process ${value}`), name ?? '']
    .filter((text) => text !== '')
    .join(', ')

function timesFigure(devices: readonly GpuDevice[], { stats }: Context): Html | undefined {
  const rows = devices.flatMap((device, i) => {
    const { time } = device
    return time && time.total_ns > 0
      ? [{ row: `${i}: ${known(device.device, (value) => `GPU ${value}`) || 'GPU'}`, name: nameOf(device), time }]
      : []
  })
  if (rows.length === 0) return undefined
  const hasMigrations = rows.some(({ time }) => time.exposed_migration_ns > 0)
  const kinds = (time: (typeof rows)[number]['time']) =>
    [
      ['computation', time.computation_ns],
      ['exposed communication', time.exposed_communication_ns],
      ['exposed copies', time.exposed_copy_ns - time.exposed_migration_ns],
      ...(hasMigrations ? ([['exposed migrations', time.exposed_migration_ns]] as const) : []),
      ['idle', time.idle_ns],
    ] as const
  const parts = rows.flatMap(({ row, name, time }) =>
    kinds(time).map(([kind, ns]) => {
      const value = ns / time.total_ns
      return { row, name: kind as string, value, text: `${name}: ${kind}\n${percent(value)}, ${duration(ns)}` }
    }),
  )
  const names = kinds(rows[0]!.time).map(([kind]) => kind as string)
  return figureHtml({
    title: 'Time of GPUs',
    about: 'From the first to the last work. Exposed: while nothing is computed. Work at the same time counts once.',
    ...stackedBars('Time of GPUs by what they do, in percent', parts, names, {
      ...{ rows: rows.map(({ row }) => row), height: 60 + 30 * rows.length, marginLeft: 76 },
      x: { percent: true, label: 'share, %', domain: [0, 100] },
    }),
    table: {
      columns: columns('<device', 'total', ...names),
      rows: rows.map(({ name, time }) => [name, duration(time.total_ns), ...kinds(time).map(([, ns]) => duration(ns))]),
    },
    source: `${stats('--json')} (gpu.devices.time)`,
  })
}

function kernelsFigure(device: GpuDevice, { stats }: Context): Html | undefined {
  const kernels = device.kernels.slice(0, KERNELS_MAX).map((kernel, i) => ({ ...kernel, row: String(i) }))
  if (kernels.length === 0) return undefined
  return figureHtml({
    title: `Kernels with most time, ${nameOf(device)}`,
    about: `Sums of durations; ${plural(device.work, 'piece')} of work take ${duration(device.work_ns)} in all.`,
    chart: chart('Kernels of the GPU with most time, in percent of all work', (width, isNarrow) => {
      const left = isNarrow ? 150 : 330
      return {
        height: 56 + 22 * kernels.length,
        marginLeft: left,
        x: { percent: true, label: 'share of the work, %', grid: true },
        y: {
          domain: kernels.map(({ row }) => row),
          label: null,
          tickSize: 0,
          tickFormat: (row: string) => fitting(kernels[Number(row)]!.name, left - 8),
        },
        width,
        marks: [
          Plot.barX(kernels, {
            x: 'share',
            y: 'row',
            fill: colour(0),
            inset: 0.5,
            title: ({ name, share, time_ns, count }) =>
              `${name}\n${percent(share)}, ${duration(time_ns)} in ${plural(count, 'kernel')}`,
          }),
          Plot.ruleX([0]),
        ],
      }
    }),
    table: tableOf(device.kernels, {
      '<kernel': ({ name }) => name,
      times: ({ count }) => count,
      time: ({ time_ns }) => duration(time_ns),
      share: ({ share }) => percent(share),
      median: ({ duration: distribution }) => known(distribution?.p50_ns, duration),
    }),
    source: `${stats('--json')} (gpu.devices.kernels)`,
  })
}

function transfersTable(device: GpuDevice, { stats }: Context): Html | undefined {
  if (device.transfers.length === 0) return undefined
  const rows = device.transfers.map(({ direction, from, to, count, bytes, time_ns, exposed_ns, gb_per_s }) => [
    ...[direction, from, to, count, size(bytes), duration(time_ns), known(exposed_ns, duration)],
    known(gb_per_s, threeDigits),
  ])
  const table = { columns: columns('<direction', '<from', '<to', 'times', 'bytes', 'time', 'exposed', 'GB/s'), rows }
  return html`<details><summary>Copies and fills, ${nameOf(device)}</summary>${tableHtml(table, `Copies and fills, ${nameOf(device)}`)}${sourceHtml(`${stats('--json')} (gpu.devices.transfers)`)}</details>`
}
