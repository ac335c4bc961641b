import * as Plot from '@observablehq/plot'
import type { LiveSeries, MemoryFigures, MemorySeries, OffsetMap } from '../../analyze/analysis.ts'
import { count, duration, percent, size, threeDigits } from '../../model/units.ts'
import { chart } from '../chart.ts'
import { colour } from '../colours.ts'
import { baseName, type Context, inGroups, known } from '../context.ts'
import { columns, figureHtml, type Section, sourceHtml, type Table, tableHtml } from '../figure.ts'
import type { Html } from '../html.ts'

/** Steps of the line of live bytes; of more, a step is the most of several. */
const STEPS_MAX = 500
/** Cells of a map of weights, by time and by offset; of more, a cell is several. Cells of one time and equal strength are one rectangle. */
const CELLS = { wide: { times: 90, offsets: 40 }, narrow: { times: 45, offsets: 30 } } as const
const STRENGTHS = 8
const MAPS_MAX = 2
/** Rows of the tables. */
const ROWS_MAX = 32
const MIB = 2 ** 20

/** What the memory contains, what of it is live during a call, and which weights are read when. */
export function memorySection(context: Context): Section | undefined {
  const { memory, series } = context.analysis
  const live = (series?.memory?.buffers ?? []).flatMap((buffer) => liveFigure(buffer, series!.memory!, context) ?? [])
  const maps = (series?.offsets?.maps ?? []).slice(0, MAPS_MAX).flatMap((map) => offsetsFigure(map, context) ?? [])
  const content = [...(memory ? tables(memory, context) : []), ...live, ...maps]
  return content.length === 0 ? undefined : { id: 'memory', title: 'Memory', content }
}

/** Tables of what there is, each with its caption; those without rows are left out. */
function tables({ buffers, kv_caches, page_faults, allocations }: MemoryFigures, { stats }: Context): Html[] {
  const peak = allocations ? `, at most ${size(allocations.peak_bytes)} at once` : ''
  const all: readonly (readonly [caption: string, table: Table])[] = [
    ['Buffers', buffersTable(buffers)],
    ['KV caches (inferred from the positions in batches)', cachesTable(kv_caches)],
    ['Page faults of operators by phase', faultsTable(page_faults ?? [])],
    [`Backend buffers that were allocated${peak}`, allocatedTable(allocations?.by_type ?? [])],
  ]
  const made = all.filter(([, { rows }]) => rows.length > 0).map(([caption, table]) => tableHtml(table, caption))
  return made.length === 0 ? [] : [...made, sourceHtml(`${stats('--json')} (memory)`)]
}

const buffersTable = (buffers: MemoryFigures['buffers']): Table => ({
  columns: columns('<buffer', '<use', 'size', 'tensors', 'bytes of tensors', 'most live', 'reuse'),
  rows: buffers
    .slice(0, ROWS_MAX)
    .map(({ name, label, usage, size_bytes, tensors, tensor_bytes, arena }) => [
      ...[name || baseName(label), usage, known(size_bytes, size), count(tensors), known(tensor_bytes, size)],
      known(arena?.peak_live_bytes, size),
      known(arena?.reuse, (value) => `${threeDigits(value)} ×`),
    ]),
})

const cachesTable = (caches: MemoryFigures['kv_caches']): Table => ({
  columns: columns('<KV cache', 'cells', 'bytes', 'per token', 'most used', 'share'),
  rows: caches.map((cach, i) => [
    ...[`context ${i}`, known(cach.capacity_cells, count), known(cach.capacity_bytes, size)],
    ...[known(cach.bytes_per_token, size), count(cach.peak_cells), known(cach.peak_share, percent)],
  ]),
})

const faultsTable = (faults: NonNullable<MemoryFigures['page_faults']>): Table => ({
  columns: columns('<page faults', 'minor', 'major', 'all', 'read from disks'),
  rows: faults.map((fault) => [
    ...[fault.phase, known(fault.minor_faults, count), known(fault.major_faults, count)],
    ...[known(fault.page_faults, count), known(fault.read_bytes, size)],
  ]),
})

const allocatedTable = (types: NonNullable<MemoryFigures['allocations']>['by_type']): Table => ({
  columns: columns('<allocated', 'most', 'at the end', 'allocations'),
  rows: types.map((type) => [type.name, size(type.peak_bytes), size(type.last_bytes), count(type.allocations)]),
})

function liveFigure(
  { name, label, size_bytes, samples, peak }: LiveSeries,
  { call, phase }: MemorySeries,
  { stats }: Context,
): Html | undefined {
  if (samples.length < 2) return undefined
  // Steps are in the order of the graph, which is not that of time where times are damaged.
  const startNs = samples.reduce((least, { at_ns }) => Math.min(least, at_ns), samples[0]!.at_ns)
  const most = samples.reduce((most, { live_bytes }) => Math.max(most, live_bytes), 0)
  const [unit, unitName] = most < MIB ? [1024, 'KiB'] : [MIB, 'MiB']
  const steps = inGroups(samples, STEPS_MAX).map((inGroup) => {
    const most = inGroup.reduce((most, sample) => (sample.live_bytes > most.live_bytes ? sample : most))
    return { ...most, ms: (inGroup[0]!.at_ns - startNs) / 1e6, amount: most.live_bytes / unit }
  })
  const buffer = name || label
  return figureHtml({
    title: `Live bytes of ${buffer} over call ${call} (${phase})`,
    about: `A tensor is live from its first write to its last read. The most is ${size(most)} at ${peak.tensor || 'the start'} ${peak.op}${known(size_bytes, (value) => `; the buffer has ${size(value)}`)}.`,
    chart: chart(`Live bytes of ${buffer} over call ${call}, in ${unitName}`, () => ({
      height: 260,
      marginLeft: 56,
      x: { label: 'ms since the start of the call', tickFormat: threeDigits },
      y: { label: unitName, grid: true, zero: true, tickFormat: threeDigits },
      marks: [
        Plot.areaY(steps, { x: 'ms', y: 'amount', curve: 'step-after', fill: colour(0), fillOpacity: 0.25 }),
        Plot.lineY(steps, { x: 'ms', y: 'amount', curve: 'step-after', stroke: colour(0), strokeWidth: 1.5 }),
        Plot.ruleY([0]),
        Plot.dot(steps, {
          ...{ x: 'ms', y: 'amount', r: 4, fill: 'transparent' },
          title: ({ live_bytes, tensor, ms }) =>
            `${size(live_bytes)} from ${tensor || 'the start'} on\n${duration(ms * 1e6)} after the start`,
        }),
      ],
    })),
    table: {
      columns: columns('<tensor', 'graph run', 'step', 'since the start', 'live'),
      rows: steps.map((step) => [step.tensor, step.run, step.step, duration(step.ms * 1e6), size(step.live_bytes)]),
    },
    source: `${stats('--series memory --json')} (series.memory)`,
  })
}

/** Neighbouring offsets that were read in one part of the time, about equally. */
interface Cell {
  readonly time: number
  readonly offset: number
  offsets: number
  readonly strength: number
  bytes: number
}

/** The cells of a map as at most so many, and the most bytes of one. */
function cellsOf({ cells }: OffsetMap, perTime: number, perOffset: number): { shown: Cell[]; most: number } {
  const sums = new Map<number, Map<number, number>>()
  for (const [time, offset, bytes] of cells) {
    const [column, row] = [Math.floor(time / perTime), Math.floor(offset / perOffset)]
    const sum = sums.get(column) ?? new Map<number, number>()
    sums.set(column, sum.set(row, (sum.get(row) ?? 0) + bytes))
  }
  const most = Math.max(...[...sums.values()].flatMap((sum) => [...sum.values()]))
  const shown: Cell[] = []
  for (const [time, values] of sums)
    for (const [offset, bytes] of [...values].sort((a, b) => a[0] - b[0])) {
      const strength = Math.max(1, Math.ceil((STRENGTHS * bytes) / most))
      const last = shown.at(-1)
      if (last?.time === time && last.offset + last.offsets === offset && last.strength === strength) {
        last.offsets++
        last.bytes += bytes
      } else shown.push({ time, offset, offsets: 1, strength, bytes })
    }
  return { shown, most }
}

function offsetsFigure(map: OffsetMap, { stats }: Context): Html | undefined {
  const { name, label, cells, first_offset, offset_bin_bytes, first_ns, time_bin_ns, bytes } = map
  if (cells.length === 0) return undefined
  const end = (i: 0 | 1) => cells.reduce((most, cell) => Math.max(most, cell[i]), 0) + 1
  const [times, offsets] = [end(0), end(1)]
  const mapOf = (kind: keyof typeof CELLS) => {
    const perTime = Math.ceil(times / CELLS[kind].times)
    const perOffset = Math.ceil(offsets / CELLS[kind].offsets)
    const msOf = (time: number) => (first_ns + time * perTime * time_bin_ns) / 1e6
    const mibOf = (offset: number) => (first_offset + offset * perOffset * offset_bin_bytes) / MIB
    const found = cellsOf(map, perTime, perOffset)
    const shown = found.shown.map(({ time, offset, offsets, ...rest }) => {
      const [from, to] = [mibOf(offset), mibOf(offset + offsets)]
      return {
        ...rest,
        from,
        to,
        begin: msOf(time),
        end: msOf(time + 1),
        where: `${threeDigits(from)} to ${threeDigits(to)} MiB`,
      }
    })
    return { shown, most: found.most, size: [perTime * time_bin_ns, perOffset * offset_bin_bytes] as const }
  }
  const wide = mapOf('wide')
  const file = name || baseName(label)
  const at = (ms: number) => duration(Math.max(0, ms) * 1e6)
  return figureHtml({
    title: `Weights read by offset and time, ${file}`,
    about: `A stronger colour has more bytes read, at most ${size(wide.most)} in a cell of ${duration(wide.size[0])} and ${size(wide.size[1])}; ${size(bytes)} in all.`,
    chart: chart(`Weights of ${file} that were read, by offset and time`, (_, isNarrow) => ({
      height: 360,
      marginLeft: 60,
      x: { label: 'ms since the first event', tickFormat: threeDigits },
      y: { label: 'offset, MiB', tickFormat: threeDigits },
      marks: [
        Plot.rect(isNarrow ? mapOf('narrow').shown : wide.shown, {
          ...{ x1: 'begin', x2: 'end', y1: 'from', y2: 'to', fill: colour(0) },
          fillOpacity: ({ strength }) => 0.12 + 0.88 * (strength / STRENGTHS),
          title: (cell) => `${size(cell.bytes)} read\n${cell.where} at ${at(cell.begin)}`,
        }),
      ],
    })),
    table: {
      columns: columns('time', '<offset', 'bytes read'),
      rows: [...wide.shown]
        .sort((a, b) => b.bytes - a.bytes)
        .map((cell) => [at(cell.begin), cell.where, size(cell.bytes)]),
    },
    source: `${stats('--series offsets --json')} (series.offsets)`,
  })
}
