import { UsageError } from '../../errors.ts'

/** The counters with names, as in perf(1): first those that need hardware counters, then those of the kernel. */
export const COUNTERS = [
  'cycles',
  'instructions',
  'cache-references',
  'cache-misses',
  'branches',
  'branch-misses',
  'bus-cycles',
  'stalled-cycles-frontend',
  'stalled-cycles-backend',
  'ref-cycles',
  'task-clock',
  'page-faults',
  'minor-faults',
  'major-faults',
  'bytes-read',
  'context-switches',
  'cpu-migrations',
] as const

/** Page faults and reads from disks. */
export const FAULT_COUNTERS = ['minor-faults', 'major-faults', 'bytes-read'] as const

const COUNTERS_MAX = 16
const RAW = /^r[0-9a-f]{1,16}$/i
const OF_UNIT = /^[\w-]{1,32}\/config=(0x[0-9a-f]{1,16}|\d{1,19})\/$/i

/** Throws UsageError if a requested counter does not exist, or its result could not be recorded. */
export function checkCounters({
  counters,
  level,
}: {
  counters?: readonly string[] | undefined
  level?: string | undefined
}) {
  if (!counters) return
  if (level !== undefined && level !== 'op') throw new UsageError(`counters: expected level op, found ${level}`)
  const unknown = counters.find((name) => !isKnown(name))
  if (unknown !== undefined) {
    throw new UsageError(
      `counters: no counter is called ${JSON.stringify(unknown)}; expected ${COUNTERS.join(', ')}, a code of the ` +
        "processor's such as r01c2, or <unit>/config=<number>/ with a unit of /sys/bus/event_source/devices",
    )
  }
  if (counters.length === 0 || counters.length > COUNTERS_MAX) {
    throw new UsageError(`counters: expected 1 to ${COUNTERS_MAX}, found ${counters.length}`)
  }
}

const isKnown = (name: string) => (COUNTERS as readonly string[]).includes(name) || RAW.test(name) || OF_UNIT.test(name)
