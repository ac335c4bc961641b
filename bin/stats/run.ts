import { type Analysis, describeProgramClock } from '../../lib/cli.ts'
import { count, duration, labelOf, percent, plural, size, threeDigits } from '../units.ts'
import type { Section } from './section.ts'

/** What ran, and what of it was recorded. */
export function runSection({ run, inputs }: Analysis, isPublic: boolean): Section {
  const { parameters, weights, layers, workers, cpus, limits, losses } = run
  const [nameOf, bytes] = [(path: string) => (isPublic ? path.replace(/^.*[\\/]/, '') : path), weightBytes(run)]
  const mix = (weights ?? []).map((weight) => `${weight.type || 'unknown'} ${percent(weight.bytes / bytes)}`).join(', ')
  const facts: readonly (readonly [string, string | number | null | readonly string[]])[] = [
    ['command', run.command],
    ['log', inputs.map(({ name, format }) => `${nameOf(name)} (${format})`)],
    ['model', run.model],
    ['architecture', run.architecture],
    ['model files', run.model_files.map(nameOf)],
    ['parameters', parameters === null ? null : inBillions(parameters)],
    ['weights', bytes > 0 ? `${size(bytes)}: ${mix}` : null],
    ['layers', layers || null],
    ['host', isPublic ? null : run.host],
    ['CPU', [run.cpu, cpus === null ? null : plural(cpus, 'CPU')].filter((part) => part !== null)],
    ['cpus used', run.cpus_used],
    ['kernel', run.kernel],
    ['build', run.build],
    ['version', run.version],
    ['backends', run.backends],
    ['level', run.level],
    ['counters', run.counters],
    ['limited to', Object.entries(run.limited_to).map(([what, limit]) => `${labelOf(what)} ${limit}`)],
    ['program clock', run.program_clock && describeProgramClock(run.program_clock)],
    ['losses', Object.entries(losses).map(([code, times]) => `${code} ${count(times)}`)],
    ['limits', limits && limitsIn(limits)],
    ['variables', Object.entries(run.variables).map(([name, value]) => `${name}=${value}`)],
    ['workers', workers === 0 ? null : `${workers}, on ${plural(run.threads, 'thread')}`],
    ['duration', run.duration_ns === null ? null : duration(run.duration_ns)],
    ['recorded', run.recorded],
  ]
  const texts = facts.map(([label, value]) => [label, textOf(value)] as const)
  return { title: 'run', facts: texts.filter(([, text]) => text !== '') }
}

const textOf = (value: string | number | null | readonly string[]) =>
  typeof value === 'number' ? count(value) : [value ?? []].flat().join(', ')

/** `2 CPUs, the time of 0.400 CPUs (reached in 94.4 % of its periods), 1 GiB of memory` */
export function limitsIn({
  cpus,
  cpu_time,
  throttled_share,
  memory_bytes,
}: NonNullable<Analysis['run']['limits']>): string[] {
  const reached = throttled_share === null ? '' : ` (reached in ${percent(throttled_share)} of its periods)`
  return [
    ...(cpus === null ? [] : [plural(cpus, 'CPU')]),
    ...(cpu_time === null ? [] : [`the time of ${threeDigits(cpu_time)} CPUs${reached}`]),
    ...(memory_bytes === null ? [] : [`${size(memory_bytes)} of memory`]),
  ]
}

const weightBytes = ({ weights }: Analysis['run']) => (weights ?? []).reduce((sum, { bytes }) => sum + bytes, 0)

/** `1.1 B`, `33.4 M`. */
const inBillions = (parameters: number) =>
  parameters >= 1e9 ? `${threeDigits(parameters / 1e9)} B` : `${threeDigits(parameters / 1e6)} M`

/** Where the time of calls goes: the parts of each phase. */
export function callTimeSection({ call_time }: Analysis): Section | undefined {
  if (call_time.length === 0) return undefined
  const whats = [...new Set(call_time.flatMap(({ parts }) => parts.map(({ what }) => what)))]
  const part = (i: number, what: string) => call_time[i]!.parts.find((part) => part.what === what)
  const most = (what: string) => Math.max(...call_time.map((_, i) => part(i, what)?.time_ns ?? 0))
  const mostShare = (what: string) => Math.max(...call_time.map((_, i) => part(i, what)?.share ?? 0))
  const sorted = whats.sort((a, b) => most(b) - most(a))
  const shown = sorted.filter((what) => mostShare(what) >= SHARE_MIN)
  const small = sorted.filter((what) => !shown.includes(what))
  const cells = (texts: readonly string[]) =>
    call_time.flatMap((_, i) => {
      const parts = texts.flatMap((what) => part(i, what) ?? [])
      const sum = (key: 'time_ns' | 'share') => parts.reduce((sum, part) => sum + part[key], 0)
      return parts.length === 0 ? ['', ''] : [duration(sum('time_ns')), percent(sum('share'))]
    })
  const rows = shown.map((what) => [what, ...cells([what])])
  if (small.length > 0) rows.push([`${plural(small.length, 'smaller part')}`, ...cells(small)])
  rows.push(['all', ...call_time.flatMap(({ time_ns, calls }) => [duration(time_ns), plural(calls, 'call')])])
  const columns = call_time.flatMap(({ phase }) => [{ title: phase }, { title: 'share' }])
  const title = 'time of calls, on the thread that makes them'
  return { title, tables: [{ columns: [{ title: '', isText: true }, ...columns], rows }] }
}

/** Smaller parts of all phases are in one row. */
const SHARE_MIN = 0.0005
