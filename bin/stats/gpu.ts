import type { Analysis, Distribution, GpuDevice, GpuFigures, GpuRest, QueryResult } from '../../lib/cli.ts'
import { count, duration, percent, plural, size, threeDigits } from '../units.ts'
import { type Column, firstRows, more, type Section, type StatsTable } from './section.ts'

/** Rows of the smaller tables. */
const ROWS_MAX = 10
/** Characters of a kernel's name. */
const NAME_MAX = 64

const text = (title: string): Column => ({ title, isText: true })
const numbers = (...titles: readonly string[]): Column[] => titles.map((title) => ({ title }))
/** Zeros are not shown. */
const ns = (value: number | null | undefined) => (!value ? '' : duration(value))

/** A section for each device, and one for the calls of each process. */
export function gpuSections({ gpu }: Analysis, top: number): Section[] {
  if (!gpu) return []
  return [...gpu.devices.map((device) => deviceSection(device, gpu, top)), ...callSections(gpu), ...rangeSection(gpu)]
}

function deviceSection(device: GpuDevice, { devices }: GpuFigures, top: number): Section {
  const { name, pid, launch_latency: latency, queue } = device
  const names = [`GPU ${device.device ?? ''}`.trim(), ...(name === null ? [] : [`(${name})`])]
  const title = `${names.join(' ')}${devices.length > 1 && pid !== null ? `, process ${pid}` : ''}`
  const facts: [string, string][] = [['work', `${plural(device.work, 'piece')}, ${duration(device.work_ns)}`]]
  if (latency) facts.push(['launch to start', distributionText(latency)])
  if (queue) facts.push(['launched, not begun', `mean ${threeDigits(queue.mean)}, at most ${count(queue.max)}`])
  const tables = [
    timeTable(device),
    hostTable(device),
    ...(device.kinds.length > 1 ? [kindsTable(device)] : []),
    ...(device.kernels.length > 0 ? [kernelsTable(device, top)] : []),
    ...(device.streams.length > 1 ? [streamsTable(device)] : []),
    ...(device.transfers.length > 0 ? [transfersTable(device)] : []),
    ...launcherTables(device),
    ...(device.steps.length > 0 ? [stepsTable(device)] : []),
  ]
  return { title, facts, tables: tables.filter(({ rows }) => rows.length > 0) }
}

const distributionText = ({ mean_ns, p50_ns, p99_ns, max_ns }: Distribution) =>
  `mean ${duration(mean_ns)}, p50 ${duration(p50_ns)}, p99 ${duration(p99_ns)}, at most ${duration(max_ns)}`

/** The parts of the time; they sum up to all. */
function timeTable({ time, idle }: GpuDevice): StatsTable {
  const columns = [text('time'), ...numbers('', 'share', 'gaps')]
  if (!time) return { columns, rows: [] }
  const row = (title: string, value: number, gaps = '') => [
    title,
    duration(value),
    time.total_ns > 0 ? percent(value / time.total_ns) : '',
    gaps,
  ]
  const causes = idle && [
    row('idle, waits for launches', idle.host_wait.time_ns, count(idle.host_wait.count)),
    row('idle, between kernels', idle.kernel_wait.time_ns, count(idle.kernel_wait.count)),
    row('idle, other', idle.other.time_ns, count(idle.other.count)),
  ]
  const rows = [
    row('computation', time.computation_ns),
    row('exposed communication', time.exposed_communication_ns),
    row('exposed copies', time.exposed_copy_ns),
    ...(causes ?? [row('idle', time.idle_ns)]),
  ]
  return { columns, rows: [...rows.filter(([, value]) => value !== duration(0)), row('all', time.total_ns)] }
}

/** Why the GPU waited for launches. */
function hostTable({ host_wait, idle }: GpuDevice): StatsTable {
  const all = idle?.host_wait.time_ns ?? 0
  const rows = (host_wait ?? []).map((gpuHostTime) => [
    gpuHostTime.what,
    duration(gpuHostTime.time_ns),
    percent(gpuHostTime.time_ns / all),
  ])
  return { columns: [text('the program, while the GPU waited for it'), ...numbers('time', 'share')], rows }
}

function kindsTable({ kinds }: GpuDevice): StatsTable {
  const rows = kinds.map((kind) => [kind.kind, count(kind.count), duration(kind.time_ns), percent(kind.share)])
  return { columns: [text('kind'), ...numbers('count', 'time', 'share')], rows }
}

function kernelsTable({ kernels, other_kernels, work_ns }: GpuDevice, top: number): StatsTable {
  const { shown, rest } = firstRows(kernels, top)
  const rows = shown.map((kernel) => [
    shortName(kernel.name),
    count(kernel.count),
    duration(kernel.time_ns),
    percent(kernel.share),
    ns(kernel.time_ns / kernel.count),
    ...[ns(kernel.duration?.p50_ns), ns(kernel.duration?.p99_ns), ns(kernel.duration?.max_ns)],
  ])
  const columns = [
    text('kernel'),
    ...numbers('count', 'time', 'share', 'mean'),
    ...[
      { title: 'p50', rank: 2 },
      { title: 'p99', rank: 1 },
      { title: 'max', rank: 3 },
    ],
  ]
  return { columns, rows: [...rows, ...restRows(rest, other_kernels, work_ns, columns.length)] }
}

/** Rows that are not shown, and those that the document sums up, as one. */
function restRows(
  rest: readonly { readonly time_ns: number; readonly count: number }[],
  other: GpuRest | null,
  allNs: number,
  width: number,
): string[][] {
  const names = rest.length + (other?.names ?? 0)
  if (names === 0) return []
  const sum = (key: 'count' | 'time_ns') => rest.reduce((sum, row) => sum + row[key], other?.[key] ?? 0)
  const cells = [`${count(names)} more`, count(sum('count')), duration(sum('time_ns')), percent(sum('time_ns') / allNs)]
  return [Array.from({ length: width }, (_, i) => cells[i] ?? '')]
}

/** Without arguments, return type and common namespaces. */
function shortName(name: string): string {
  const short = name
    .replace(/^void /, '')
    .replaceAll('(anonymous namespace)::', '')
    .replaceAll('at::native::', '')
  const bare = short.endsWith(')') ? short.replace(/\([^()]*(?:\([^()]*\)[^()]*)*\)$/, '') : short
  return cut(bare)
}

const cut = (name: string) => (name.length > NAME_MAX ? `${name.slice(0, NAME_MAX - 1)}…` : name)

function streamsTable({ streams }: GpuDevice): StatsTable {
  const { shown, rest } = firstRows(streams, ROWS_MAX)
  const rows = shown.map(({ gaps, launch_latency: latency, queue, ...rest }) => [
    [rest.stream ?? 'all', rest.name].join(' ').trim(),
    ...[count(rest.work), duration(rest.time_ns)],
    ...[ns(gaps?.host_wait.time_ns), ns(gaps?.kernel_wait.time_ns), ns(gaps?.other.time_ns)],
    ...[ns(latency?.p50_ns), ns(latency?.p99_ns)],
    ...(queue ? [threeDigits(queue.mean), count(queue.max)] : ['', '']),
  ])
  if (rest.length > 0) rows.push([more(rest), ...Array<string>(9).fill('')])
  const columns = numbers('work', 'time', 'waits for launches', 'between kernels', 'other gaps', 'launch p50', 'p99')
  return { columns: [text('stream'), ...columns, { title: 'queue', rank: 1 }, { title: 'max', rank: 2 }], rows }
}

function transfersTable({ transfers }: GpuDevice): StatsTable {
  const { shown, rest } = firstRows(transfers, ROWS_MAX)
  const rows = shown.map((transfer) => [
    transfer.direction,
    [transfer.from, transfer.to].filter((memory) => memory !== '').join(' to '),
    ...[
      count(transfer.count),
      transfer.bytes > 0 ? size(transfer.bytes) : '',
      duration(transfer.time_ns),
      ns(transfer.exposed_ns),
    ],
    transfer.gb_per_s === null ? '' : threeDigits(transfer.gb_per_s),
  ])
  if (rest.length > 0) rows.push([more(rest), '', '', '', '', '', ''])
  return { columns: [text('copies'), text('memory'), ...numbers('count', 'bytes', 'time', 'exposed', 'GB/s')], rows }
}

const LAUNCHERS = { operator: 'operator', module: 'module', annotation: 'annotation', nvtx: 'NVTX range' } as const

/** What launched the work; the outermost ones only where they are others. */
function launcherTables({ launchers, work_ns }: GpuDevice): StatsTable[] {
  const namesOf = ({ rows }: (typeof launchers)[number]) => rows.map(({ name }) => name).join('\n')
  return launchers.flatMap((launcher, i): StatsTable[] => {
    const before = launchers[i - 1]
    if (launcher.level === 'outermost' && before?.kind === launcher.kind && namesOf(before) === namesOf(launcher))
      return []
    const { shown, rest } = firstRows(launcher.rows, ROWS_MAX)
    const rows = shown.map((row) => [
      cut(row.name),
      ...[count(row.work), duration(row.time_ns), percent(row.share), count(row.launches)],
    ])
    rows.push(
      ...restRows(
        rest.map(({ work, time_ns }) => ({ count: work, time_ns })),
        launcher.other,
        work_ns,
        5,
      ),
    )
    if (launcher.none_ns > 0)
      rows.push(['none', '', duration(launcher.none_ns), percent(launcher.none_ns / work_ns), ''])
    const title = `launched in the ${launcher.level} ${LAUNCHERS[launcher.kind]}`
    return [{ columns: [text(title), ...numbers('work', 'time', 'share', 'launches')], rows }]
  })
}

function stepsTable({ steps, further_steps }: GpuDevice): StatsTable {
  const { shown, rest } = firstRows(steps, ROWS_MAX)
  const rows = shown.map(({ name, work, time }) => [
    ...[name, count(work), duration(time.total_ns), duration(time.computation_ns)],
    ...[ns(time.exposed_communication_ns), ns(time.exposed_copy_ns), ns(time.idle_ns)],
  ])
  if (rest.length + further_steps > 0)
    rows.push([`${count(rest.length + further_steps)} more`, ...Array<string>(6).fill('')])
  const columns = numbers('work', 'time', 'computation', 'exposed communication', 'exposed copies', 'idle')
  return { columns: [text('step'), ...columns], rows }
}

function callSections({ processes }: GpuFigures): Section[] {
  return processes.map(({ pid, kinds, calls, other_calls }) => {
    const { shown, rest } = firstRows(calls, ROWS_MAX)
    const rows = shown.map((call) => [
      call.name,
      ...[count(call.count), duration(call.time_ns), duration(call.mean_ns), duration(call.max_ns)],
      call.work > 0 ? count(call.work) : '',
    ])
    const names = rest.length + (other_calls?.names ?? 0)
    const sum = rest.reduce((sum, { time_ns }) => sum + time_ns, other_calls?.time_ns ?? 0)
    if (names > 0) rows.push([`${count(names)} more`, '', duration(sum), '', '', ''])
    const facts = kinds.map((kind): [string, string] => [
      kind.kind,
      `${plural(kind.count, 'call')}, ${duration(kind.time_ns)}`,
    ])
    const columns = [text('call'), ...numbers('count', 'time', 'mean', 'max', 'work')]
    const isOnly = processes.length === 1 || pid === null
    return {
      title: `calls of the GPU's library${isOnly ? '' : `, process ${pid}`}`,
      facts,
      tables: [{ columns, rows }],
    }
  })
}

function rangeSection({ ranges, other_ranges }: GpuFigures): Section[] {
  if (ranges.length === 0) return []
  const { shown, rest } = firstRows(ranges, ROWS_MAX)
  const rows = shown.map((range) => [
    cut(range.name),
    ...[count(range.count), duration(range.time_ns), ns(range.busy_ns), range.work === null ? '' : count(range.work)],
  ])
  const names = rest.length + (other_ranges?.names ?? 0)
  if (names > 0) rows.push([`${count(names)} more`, '', '', '', ''])
  const columns = [text('range'), ...numbers('count', 'first to last work', 'durations of work', 'work')]
  return [{ title: 'ranges on the GPU', tables: [{ columns, rows }] }]
}

/** Kernels of all devices with all their figures, for logs without operators. */
export function kernelsCsv({ devices }: GpuFigures, top: number): QueryResult {
  const quantiles = ['mean_ns', 'min_ns', 'p50_ns', 'p90_ns', 'p99_ns', 'max_ns'] as const
  const rows = devices.flatMap(({ device, pid, kernels }) =>
    kernels
      .slice(0, top)
      .map((kernel) => [
        ...[device, pid, kernel.name, Number(kernel.is_communication), kernel.count, kernel.time_ns, kernel.share],
        ...quantiles.map((key) => kernel.duration?.[key] ?? null),
      ]),
  )
  const columns = ['device', 'pid', 'kernel', 'is_communication', 'count', 'time_ns', 'share', ...quantiles]
  return { columns, rows }
}
