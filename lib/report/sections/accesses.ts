import * as Plot from '@observablehq/plot'
import type { Analysis } from '../../analyze/analysis.ts'
import { count, percent, threeDigits } from '../../model/units.ts'
import { chart } from '../chart.ts'
import { colour } from '../colours.ts'
import { type Context, known } from '../context.ts'
import { columns, figureHtml, type Section, sourceHtml, type Table, tableHtml } from '../figure.ts'
import type { Html } from '../html.ts'

type Faults = NonNullable<Analysis['page_faults']>
type Data = NonNullable<Analysis['data_accesses']>

/** Rows of the heat map, and of tables. */
const [ROLES_MAX, ROWS_MAX] = [16, 32]

/** Page faults, loads and stores that perf sampled: where in the model, and when. */
export function accessesSection(context: Context): Section | undefined {
  const { page_faults: faults, data_accesses: data } = context.analysis
  const content = [
    ...(faults
      ? [...tables('page_faults', faultTables(faults), context), roleFigure('page_faults', faults, context)]
      : []),
    ...(data
      ? [...tables('data_accesses', dataTables(data), context), roleFigure('data_accesses', data, context)]
      : []),
  ].filter((html) => html !== undefined)
  return content.length === 0 ? undefined : { id: 'accesses', title: 'Samples of memory', content }
}

type Key = 'page_faults' | 'data_accesses'
const WHAT = { page_faults: 'Page faults', data_accesses: 'Loads and stores' } as const
type Captioned = readonly [caption: string, table: Table]

function tables(key: Key, all: readonly Captioned[], { stats }: Context): Html[] {
  const made = all.filter(([, { rows }]) => rows.length > 0).map(([caption, table]) => tableHtml(table, caption))
  return made.length === 0 ? [] : [...made, sourceHtml(`${stats('--json')} (${key})`)]
}

const whenTable = (title: string, { by_time, events }: Faults | Data): Table => ({
  columns: columns('<when', title, 'share'),
  rows: by_time.map((row) => [row.time, count(row.events), percent(row.events / events)]),
})

const faultTables = (faults: Faults): Captioned[] => [
  ['Page faults by time', whenTable('faults', faults)],
  [
    'Page faults in weights during calls: again = in pages that had faulted before',
    {
      columns: columns('<phase', 'faults', 'again', 'major', '<most in'),
      rows: faults.weights_in_calls.map(({ phase, events, again, major, by_tensor }) => [
        ...[phase, count(events), count(again), known(major, count)],
        by_tensor
          .slice(0, 3)
          .map((row) => `${row.tensor} ${count(row.events)}`)
          .join(', '),
      ]),
    },
  ],
]

const dataTables = (data: Data): Captioned[] => [
  ['Loads and stores by time', whenTable('events', data)],
  [
    'Loads by where their data was',
    {
      columns: columns('<level', 'events', 'share', 'cycles, mean'),
      rows: data.by_level.map((accesses) => [
        ...[accesses.level || '(not recorded)', count(accesses.events), percent(accesses.share)],
        known(accesses.mean_latency_cycles, threeDigits),
      ]),
    },
  ],
  [
    'Loads by role of tensors',
    {
      columns: columns('<role', '<in', 'events', 'from memory', 'cycles, mean'),
      rows: data.by_role
        .slice(0, ROWS_MAX)
        .map((accesses) => [
          ...[accesses.role, accesses.usage, count(accesses.events), percent(accesses.memory_share)],
          known(accesses.mean_latency_cycles, threeDigits),
        ]),
    },
  ],
]

/** Where in the model: a row for each role of tensors, a column for each layer. */
function roleFigure(
  key: Key,
  { by_role_layer, events, in_tensors }: Faults | Data,
  { stats }: Context,
): Html | undefined {
  const named = by_role_layer.map((accesses) => ({
    ...accesses,
    row: accesses.usage === 'compute' ? `${accesses.role} (result)` : accesses.role,
  }))
  const rows = [...new Set(named.filter(({ layer }) => layer >= 0).map(({ row }) => row))].slice(0, ROLES_MAX)
  const cells = named.filter(({ layer, row }) => layer >= 0 && rows.includes(row))
  if (cells.length === 0) return undefined
  const most = Math.max(...cells.map(({ events }) => events))
  const layers = Math.max(...cells.map(({ layer }) => layer)) + 1
  const place = new Map(rows.map((row, i) => [row, i]))
  return figureHtml({
    title: `${WHAT[key]} by role of tensors and layer`,
    about: `A stronger colour has more of them, at most ${count(most)}. ${percent(in_tensors / events)} of all ${count(events)} are in tensors.`,
    chart: chart(`${WHAT[key]} by role of tensors and layer`, () => ({
      height: 60 + 22 * rows.length,
      marginLeft: 130,
      x: { label: 'layer', domain: [-0.5, layers - 0.5], ticks: Math.min(layers, 10), tickFormat: wholeOnly },
      y: {
        ...{ label: null, domain: [rows.length - 0.5, -0.5], ticks: rows.map((_, i) => i) },
        tickFormat: (i: number) => rows[i] ?? '',
      },
      marks: [
        Plot.rect(cells, {
          x1: ({ layer }) => layer - 0.5,
          x2: ({ layer }) => layer + 0.5,
          y1: ({ row }) => place.get(row)! - 0.5,
          y2: ({ row }) => place.get(row)! + 0.5,
          fill: colour(0),
          fillOpacity: ({ events }) => 0.12 + 0.88 * (events / most),
          title: ({ row, layer, events }) => `${row}, layer ${layer}\n${count(events)}`,
        }),
      ],
    })),
    table: {
      columns: columns('<role', '<in', 'layer', key === 'page_faults' ? 'faults' : 'events'),
      rows: by_role_layer.map((accesses) => [
        accesses.role,
        accesses.usage,
        accesses.layer < 0 ? '' : String(accesses.layer),
        count(accesses.events),
      ]),
    },
    source: `${stats('--json')} (${key}.by_role_layer)`,
  })
}

const wholeOnly = (value: number) => (Number.isInteger(value) ? String(value) : '')
