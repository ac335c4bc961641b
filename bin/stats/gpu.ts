import type { Analysis, Distribution, GpuDevice, GpuFigures, GpuRest, QueryResult } from '../../lib/cli.ts'
import { count, duration, percent, plural, size, threeDigits } from '../units.ts'
import { known, number, type Section, type StatsTable, shareOf, some, tableOf, text } from './section.ts'

/** Rows of the smaller tables. */
const ROWS_MAX = 10
/** Characters of a kernel's name. */
const NAME_MAX = 64

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
  if (device.times === 'durations') facts.push(['times', 'durations only: when the work ran is not known'])
  else if (device.times !== null) facts.push(['times', `${device.times}, not of kernels`])
  if (latency) facts.push(['launch to start', distributionText(latency)])
  if (queue) facts.push(['launched, not begun', `mean ${threeDigits(queue.mean)}, at most ${count(queue.max)}`])
  const tables = [
    timeTable(device, 'time'),
    ...(device.calls ? [timeTable(device.calls, 'time of work of calls')] : []),
    hostTable(device.calls ?? device),
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
function timeTable({ time, idle }: Pick<GpuDevice, 'time' | 'idle'>, title: string): StatsTable {
  const parts: readonly (readonly [title: string, ns: number, gaps?: number])[] = time
    ? [
        ['computation', time.computation_ns],
        ['exposed communication', time.exposed_communication_ns],
        ['exposed copies', time.exposed_copy_ns - time.exposed_migration_ns],
        ['exposed migrations of unified memory', time.exposed_migration_ns],
        ...(idle
          ? ([
              ['idle, waits for launches', idle.host_wait.time_ns, idle.host_wait.count],
              ['idle, between kernels', idle.kernel_wait.time_ns, idle.kernel_wait.count],
              ['idle, other', idle.other.time_ns, idle.other.count],
            ] as const)
          : ([['idle', time.idle_ns]] as const)),
      ]
    : []
  const shown = parts.filter(([, ns]) => duration(ns) !== duration(0))
  return tableOf(shown, { ...(time && { sum: ['all', time.total_ns] }) }, [
    text(title, ([part]) => part),
    number('', ([, ns]) => duration(ns)),
    number('share', ([, ns]) => shareOf(ns, time!.total_ns)),
    number('gaps', ([, , gaps]) => known(gaps, count)),
  ])
}

/** Why the GPU waited for launches. */
function hostTable({ host_wait, idle }: Pick<GpuDevice, 'host_wait' | 'idle'>): StatsTable {
  return tableOf(host_wait ?? [], {}, [
    text('the program, while the GPU waited for it', ({ what, device }) =>
      device === null ? what : `${what} (${device})`,
    ),
    number('time', ({ time_ns }) => duration(time_ns)),
    number('share', ({ time_ns }) => percent(time_ns / (idle?.host_wait.time_ns ?? 0))),
  ])
}

function kindsTable({ kinds }: GpuDevice): StatsTable {
  return tableOf(kinds, {}, [
    text('kind', ({ kind }) => kind),
    number('count', (kind) => count(kind.count)),
    number('time', ({ time_ns }) => duration(time_ns)),
    number('share', ({ share }) => percent(share)),
  ])
}

function kernelsTable({ kernels, other_kernels, work_ns }: GpuDevice, top: number): StatsTable {
  return tableOf(kernels, { max: top, ...restOf(other_kernels, work_ns, ({ count }) => count) }, [
    text('kernel', ({ name }) => shortName(name)),
    number('count', (kernel) => count(kernel.count)),
    number('time', ({ time_ns }) => duration(time_ns)),
    number('share', ({ share }) => percent(share)),
    number('mean', (kernel) => some(kernel.time_ns / kernel.count)),
    number('p50', ({ duration: one }) => some(one?.p50_ns), 2),
    number('p99', ({ duration: one }) => some(one?.p99_ns), 1),
    number('max', ({ duration: one }) => some(one?.max_ns), 3),
  ])
}

/** Rows that are not shown, and those that the document sums up, as one. */
function restOf<Row extends { readonly time_ns: number }>(
  other: GpuRest | null,
  allNs: number,
  countOf: (row: Row) => number,
) {
  const further = other?.names ?? 0
  const rest = (rest: readonly Row[]) => {
    const ns = rest.reduce((sum, { time_ns }) => sum + time_ns, other?.time_ns ?? 0)
    const times = rest.reduce((sum, row) => sum + countOf(row), other?.count ?? 0)
    return [`${count(rest.length + further)} more`, count(times), duration(ns), percent(ns / allNs)]
  }
  return { further, rest }
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
  return tableOf(streams, { max: ROWS_MAX }, [
    text('stream', ({ stream, name }) => [stream ?? 'all', name].join(' ').trim()),
    number('work', ({ work }) => count(work)),
    number('time', ({ time_ns }) => duration(time_ns)),
    number('waits for launches', ({ gaps }) => some(gaps?.host_wait.time_ns)),
    number('between kernels', ({ gaps }) => some(gaps?.kernel_wait.time_ns)),
    number('other gaps', ({ gaps }) => some(gaps?.other.time_ns)),
    number('launch p50', ({ launch_latency }) => some(launch_latency?.p50_ns)),
    number('p99', ({ launch_latency }) => some(launch_latency?.p99_ns)),
    number('queue', ({ queue }) => known(queue?.mean, threeDigits), 1),
    number('max', ({ queue }) => known(queue?.max, count), 2),
  ])
}

function transfersTable({ transfers }: GpuDevice): StatsTable {
  return tableOf(transfers, { max: ROWS_MAX }, [
    text('copies', ({ direction }) => direction),
    text('memory', ({ from, to }) => [from, to].filter((memory) => memory !== '').join(' to ')),
    number('count', (transfer) => count(transfer.count)),
    number('bytes', ({ bytes }) => some(bytes, size)),
    number('time', ({ time_ns }) => duration(time_ns)),
    number('exposed', ({ exposed_ns }) => some(exposed_ns)),
    number('GB/s', ({ gb_per_s }) => known(gb_per_s, threeDigits)),
  ])
}

const LAUNCHERS = { operator: 'operator', module: 'module', annotation: 'annotation', nvtx: 'NVTX range' } as const

/** What launched the work; the outermost ones only where they are others. */
function launcherTables({ launchers, work_ns }: GpuDevice): StatsTable[] {
  const namesOf = ({ rows }: (typeof launchers)[number]) => rows.map(({ name }) => name).join('\n')
  return launchers.flatMap((launcher, i): StatsTable[] => {
    const before = launchers[i - 1]
    if (launcher.level === 'outermost' && before?.kind === launcher.kind && namesOf(before) === namesOf(launcher))
      return []
    const { rows, other, none_ns } = launcher
    const none = { name: 'none', work: 0, time_ns: none_ns, share: none_ns / work_ns, launches: 0 }
    const rest = restOf<(typeof rows)[number]>(other, work_ns, ({ work }) => work)
    return [
      tableOf<Omit<(typeof rows)[number], 'duration'>>(
        rows,
        { max: ROWS_MAX, ...rest, ...(none_ns > 0 && { sum: none }) },
        [
          text(`launched in the ${launcher.level} ${LAUNCHERS[launcher.kind]}`, ({ name }) => cut(name)),
          number('work', ({ work }) => some(work, count)),
          number('time', ({ time_ns }) => duration(time_ns)),
          number('share', ({ share }) => percent(share)),
          number('launches', ({ launches }) => some(launches, count)),
        ],
      ),
    ]
  })
}

function stepsTable({ steps, further_steps }: GpuDevice): StatsTable {
  return tableOf(steps, { max: ROWS_MAX, further: further_steps }, [
    text('step', ({ name }) => name),
    number('work', ({ work }) => count(work)),
    number('time', ({ time }) => duration(time.total_ns)),
    number('computation', ({ time }) => duration(time.computation_ns)),
    number('exposed communication', ({ time }) => some(time.exposed_communication_ns)),
    number('exposed copies', ({ time }) => some(time.exposed_copy_ns)),
    number('idle', ({ time }) => some(time.idle_ns)),
  ])
}

function callSections({ processes }: GpuFigures): Section[] {
  return processes.map(({ pid, kinds, calls, other_calls }) => {
    const facts = kinds.map((kind): [string, string] => [
      kind.kind,
      `${plural(kind.count, 'call')}, ${duration(kind.time_ns)}`,
    ])
    const further = other_calls?.names ?? 0
    const rest = (rest: typeof calls) => {
      const ns = rest.reduce((sum, { time_ns }) => sum + time_ns, other_calls?.time_ns ?? 0)
      return [`${count(rest.length + further)} more`, '', duration(ns)]
    }
    const table = tableOf(calls, { max: ROWS_MAX, further, rest }, [
      text('call', ({ name }) => name),
      number('count', (call) => count(call.count)),
      number('time', ({ time_ns }) => duration(time_ns)),
      number('mean', ({ mean_ns }) => duration(mean_ns)),
      number('max', ({ max_ns }) => duration(max_ns)),
      number('work', ({ work }) => some(work, count)),
    ])
    const isOnly = processes.length === 1 || pid === null
    return { title: `calls of the GPU's library${isOnly ? '' : `, process ${pid}`}`, facts, tables: [table] }
  })
}

function rangeSection({ ranges, other_ranges }: GpuFigures): Section[] {
  if (ranges.length === 0) return []
  const table = tableOf(ranges, { max: ROWS_MAX, further: other_ranges?.names ?? 0 }, [
    text('range', ({ name }) => cut(name)),
    number('count', (range) => count(range.count)),
    number('first to last work', ({ time_ns }) => duration(time_ns)),
    number('durations of work', ({ busy_ns }) => some(busy_ns)),
    number('work', ({ work }) => known(work, count)),
  ])
  return [{ title: 'ranges on the GPU', tables: [table] }]
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
