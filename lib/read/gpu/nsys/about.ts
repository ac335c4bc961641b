import type { IssueCode } from '../../../model/issues.ts'
import type { Report } from './report.ts'

/** When a session began: `undefined` where the report does not tell. */
export type SessionStart = bigint | undefined

const OS_TABLE = 'OSRT_API'
/** Tables of events that are drawn, or told of. */
const DRAWN = new Set([
  ...['KERNEL', 'MEMCPY', 'MEMSET', 'GRAPH_TRACE', 'SYNCHRONIZATION', 'CUDA_EVENT', 'RUNTIME', 'DRIVER'].map(
    (kind) => `CUPTI_ACTIVITY_KIND_${kind}`,
  ),
  ...['CUDNN_EVENTS', 'CUBLAS_EVENTS', 'NVTX_EVENTS', 'SCHED_EVENTS', 'GPU_METRICS', 'CUDA_GPU_MEMORY_USAGE_EVENTS'],
  'DIAGNOSTIC_EVENT',
])

/** Wall-clock time of the instant that all times of the report count from, in nanoseconds since 1970. */
export async function readSessionStart(report: Report): Promise<SessionStart> {
  let start: SessionStart
  await report.each('TARGET_INFO_SESSION_START_TIME', ['utcEpochNs'], (row) => {
    if (!row.isNull(0)) start = (BigInt(row.high(0)) << 32n) | BigInt(row.low(0))
  })
  if (start !== undefined) report.startsAt(start)
  return start
}

/** Facts on the report, none of which tells of the machine or of who used it but the names of its GPUs. */
export async function readAbout(report: Report): Promise<Record<string, string | number>> {
  const about: Record<string, string | number> = {}
  const wanted: ReadonlyMap<string, string> = new Map(
    Object.entries({
      EXPORT_PRODUCT_VERSION: 'nsys_version',
      EXPORT_SCHEMA_VERSION: 'schema_version',
    }),
  )
  for (const table of ['META_DATA_EXPORT', 'EXPORT_META_DATA']) {
    await report.each(table, ['name', 'value'], (row) => {
      const key = wanted.get(row.text(0))
      if (key !== undefined) about[key] = row.text(1)
    })
  }
  const gpus: string[] = []
  await report.each('TARGET_INFO_GPU', ['id', 'name'], (row) => {
    gpus.push(`${row.number(0)} ${row.text(1)}`)
  })
  if (gpus.length > 0) about['gpus'] = gpus.sort().join(', ')
  return about
}

/** Counts rows with times of tables that are not drawn, whatever versions to come may call them. */
export async function leaveTables(report: Report, osRuntime: boolean): Promise<void> {
  for (const { name, columns } of report.file.tables.values()) {
    if (DRAWN.has(name) || (osRuntime && name === OS_TABLE)) continue
    if (!columns.some((column) => column.name === 'start' || column.name === 'timestamp')) continue
    const hint = name === OS_TABLE ? '--osrt draws the calls of the OS runtime (OSRT_API)' : 'Nsight Systems shows them'
    report.leftOut.add(name, await report.sizeOf(name), hint)
  }
}

/** Names of processes by pid: programs without their folders; kernel threads have names such as `kworker/u8:1`. */
export async function readProcessNames(report: Report): Promise<Map<number, string>> {
  const names = new Map<number, string>()
  await report.each('PROCESSES', ['pid', 'name'], (row) => {
    const program = row.text(1).replace(/^(?:[A-Za-z]:)?[/\\](?:.*[/\\])?/, '')
    if (program !== '') names.set(row.number(0), program)
  })
  return names
}

/** What the profiler warned of, as issues. Paths in the texts are left out. */
export async function readDiagnostics(report: Report): Promise<void> {
  await report.each('DIAGNOSTIC_EVENT', ['timestamp', 'severity', 'text'], (row) => {
    const code = SEVERITIES[row.number(1)]
    if (code !== undefined) report.issue(code, withoutPaths(row.text(2)), report.time(row, 0) || 0)
  })
}

const SEVERITIES: Readonly<Record<number, IssueCode>> = { 2: 'profiler-warning', 3: 'profiler-error' }

/** Whole texts in quotes where they hold a path, as only there a path may have spaces. */
function withoutPaths(text: string): string {
  return text
    .replace(/(['"])[^'"]*[/\\][^'"]*\1/g, '$1<path>$1')
    .replace(/(?<![\w.])(?:[A-Za-z]:|~|\.{1,2})?(?:[/\\][^\s/\\'"<>,;:()]+)+[/\\]?/g, '<path>')
    .replace(/\s+/g, ' ')
    .trim()
}
