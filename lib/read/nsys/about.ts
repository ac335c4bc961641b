import type { Report } from './report.ts'

/** When a session began: `undefined` where the report does not tell. */
export type SessionStart = bigint | undefined

/** Tables of events that are not drawn (yet, or because there is nothing to draw in them). */
const LEFT_OUT = [
  ...[
    'OSRT_API',
    'COMPOSITE_EVENTS',
    'PROFILER_OVERHEAD',
    'CUPTI_ACTIVITY_KIND_OVERHEAD',
    'CUDA_UM_CPU_PAGE_FAULT_EVENTS',
  ],
  ...['CUDA_UM_GPU_PAGE_FAULT_EVENTS', 'CUDA_GRAPH_NODE_EVENTS', 'MPI_P2P_EVENTS', 'MPI_COLLECTIVES_EVENTS', 'SYSCALL'],
  ...['NET_NIC_METRIC', 'OPENMP_EVENT_KIND_PARALLEL', 'VULKAN_API', 'OPENGL_API', 'GPU_CONTEXT_SWITCH_EVENTS'],
]

/** Wall-clock time of the instant that all times of the report count from, in nanoseconds since 1970. */
export async function readSessionStart(report: Report): Promise<SessionStart> {
  let start: SessionStart
  await report.each('TARGET_INFO_SESSION_START_TIME', ['utcEpochNs'], (row) => {
    if (!row.isNull(0)) start = (BigInt(row.high(0)) << 32n) | BigInt(row.low(0))
  })
  return start
}

/** Facts on the report, none of which tells of the machine or of who used it but the names of its GPUs. */
export async function readAbout(report: Report, osRuntime: boolean): Promise<Record<string, string | number>> {
  const about: Record<string, string | number> = {}
  const wanted: Readonly<Record<string, string>> = {
    EXPORT_PRODUCT_VERSION: 'nsys_version',
    EXPORT_SCHEMA_VERSION: 'schema_version',
  }
  for (const table of ['META_DATA_EXPORT', 'EXPORT_META_DATA']) {
    await report.each(table, ['name', 'value'], (row) => {
      const key = wanted[row.text(0)]
      if (key !== undefined) about[key] = row.text(1)
    })
  }
  const gpus: string[] = []
  await report.each('TARGET_INFO_GPU', ['id', 'name'], (row) => {
    gpus.push(`${row.number(0)} ${row.text(1)}`)
  })
  if (gpus.length > 0) about['gpus'] = gpus.sort().join(', ')
  const leftOut = LEFT_OUT.filter((table) => report.has(table) && !(osRuntime && table === 'OSRT_API'))
  if (leftOut.length > 0) about['not_drawn'] = leftOut.join(', ')
  return about
}

/** Names of processes (programs without their folders) by pid. */
export async function readProcessNames(report: Report): Promise<Map<number, string>> {
  const names = new Map<number, string>()
  await report.each('PROCESSES', ['pid', 'name'], (row) => {
    const program = row.text(1).replace(/^.*[/\\]/, '')
    if (program !== '') names.set(row.number(0), program)
  })
  return names
}

/** What the profiler warned of, as issues. Paths in the texts are left out. */
export async function readDiagnostics(report: Report): Promise<void> {
  await report.each('DIAGNOSTIC_EVENT', ['timestamp', 'severity', 'text'], (row) => {
    const title = SEVERITIES[row.number(1)]
    if (title !== undefined) report.issue(title, withoutPaths(row.text(2)), row.number(0, 0))
  })
}

const SEVERITIES: Readonly<Record<number, string>> = { 2: 'the profiler warned', 3: 'the profiler had an error' }

function withoutPaths(text: string): string {
  return text
    .replace(/(?:[A-Za-z]:)?(?:[/\\][\w.+@~%=-]+){2,}[/\\]?/g, '<path>')
    .replace(/\s+/g, ' ')
    .trim()
}
