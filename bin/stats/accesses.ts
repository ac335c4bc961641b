import type { Analysis } from '../../lib/cli.ts'
import { count, percent, plural, threeDigits } from '../units.ts'
import { type Column, firstRows, type Section, type StatsTable } from './section.ts'

type Accesses = NonNullable<Analysis['page_faults'] | Analysis['data_accesses']>
type Faults = NonNullable<Analysis['page_faults']>
type Data = NonNullable<Analysis['data_accesses']>
type Fact = readonly [string, string]

/** Rows of a table, and places that are named. */
const ROWS_MAX = 10
const NAMED_MAX = 6

const text = (title: string): Column => ({ title, isText: true })
const numbers = (...titles: readonly string[]): Column[] => titles.map((title) => ({ title }))
const cycles = (value: number | null) => (value === null ? '' : threeDigits(value))

/** Page faults, loads and stores that perf sampled, by tensor. */
export function accessSections({ page_faults, data_accesses }: Analysis): Section[] {
  return [
    ...(page_faults ? [sectionOf('page faults by tensor', page_faults, 'faults', [], inCalls(page_faults))] : []),
    ...(data_accesses
      ? [sectionOf('loads and stores by tensor', data_accesses, 'events', dataTables(data_accesses))]
      : []),
  ]
}

/** Faults in weights during calls, by phase. */
const inCalls = ({ weights_in_calls }: Faults) =>
  weights_in_calls
    .map(({ phase, events, again, major }) => {
      const kinds = [`${count(again)} again`, ...(major === null ? [] : [`${count(major)} major`])]
      return `${phase} ${count(events)} (${kinds.join(', ')})`
    })
    .join(', ')

function sectionOf(
  title: string,
  accesses: Accesses,
  unit: string,
  tables: readonly StatsTable[],
  calls = '',
): Section {
  const list = <T extends { readonly events: number }>(all: readonly T[], name: (figureOf: T) => string | number) =>
    firstRows(all, NAMED_MAX)
      .shown.map((one) => `${name(one)} ${count(one.events)}`)
      .join(', ')
  const left = [
    ...(accesses.other_processes > 0 ? [`${count(accesses.other_processes)} of other processes`] : []),
    ...(accesses.not_held > 0 ? [`${count(accesses.not_held)} too many to be held`] : []),
  ]
  const facts: Fact[] = [
    [
      unit,
      `${count(accesses.events)} in ${plural(accesses.samples, 'sample')} of ${accesses.sampled_events.join(', ')}`,
    ],
    [
      'in tensors',
      `${count(accesses.in_tensors)} (${percent(accesses.events > 0 ? accesses.in_tensors / accesses.events : 0)})`,
    ],
    ['when', list(accesses.by_time, ({ time }) => time)],
    ['by contents', list(accesses.by_usage, ({ usage }) => (usage === 'none' ? 'no tensor' : usage))],
    ['weights in calls', calls],
    ['elsewhere', list(accesses.elsewhere, ({ place }) => place.replace(/^\/(?!\/).*\//, ''))],
    ['left out', left.join(', ')],
  ]
  return { title, facts: facts.filter(([, value]) => value !== ''), tables: [...tables, tensorTable(accesses, unit)] }
}

function tensorTable({ by_tensor, further_tensors, further_events }: Accesses, unit: string): StatsTable {
  const { shown, rest } = firstRows(by_tensor, ROWS_MAX)
  const rows = shown.map((accesses) => [
    accesses.tensor || '(unnamed)',
    accesses.usage,
    accesses.layer < 0 ? '' : String(accesses.layer),
    count(accesses.events),
    count(accesses.pages),
    cycles(accesses.mean_latency_cycles),
  ])
  const left = rest.length + further_tensors
  const events = rest.reduce((sum, accesses) => sum + accesses.events, further_events)
  if (left > 0) rows.push([`${count(left)} more`, '', '', count(events), '', ''])
  const columns = [text('tensor'), text('in'), ...numbers('layer', unit, 'pages'), { title: 'cycles, mean' }]
  return { columns, rows }
}

function dataTables({ by_level, by_role }: Data): StatsTable[] {
  const levels = by_level.map(({ level, events, share, mean_latency_cycles }) => {
    return [level || '(not recorded)', count(events), percent(share), cycles(mean_latency_cycles)]
  })
  const roles = firstRows(by_role, ROWS_MAX).shown.map(({ role, usage, events, memory_share, mean_latency_cycles }) => {
    return [role, usage, count(events), percent(memory_share), cycles(mean_latency_cycles)]
  })
  const tables = [
    { columns: [text('loads from'), ...numbers('events', 'share', 'cycles, mean')], rows: levels },
    { columns: [text('loads of'), text('in'), ...numbers('events', 'from memory', 'cycles, mean')], rows: roles },
  ]
  return tables.filter(({ rows }) => rows.length > 0)
}
