import type { Analysis } from '../../lib/cli.ts'
import { count, percent, plural, threeDigits } from '../units.ts'
import { firstRows, known, number, type Section, type StatsTable, tableOf, text } from './section.ts'

type Accesses = NonNullable<Analysis['page_faults'] | Analysis['data_accesses']>
type Faults = NonNullable<Analysis['page_faults']>
type Data = NonNullable<Analysis['data_accesses']>
type Fact = readonly [string, string]

/** Rows of a table, and places that are named. */
const ROWS_MAX = 10
const NAMED_MAX = 6

const cycles = ({ mean_latency_cycles }: { readonly mean_latency_cycles: number | null }) =>
  known(mean_latency_cycles, threeDigits)

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
  const rest = (rest: Accesses['by_tensor']) => {
    const events = rest.reduce((sum, accesses) => sum + accesses.events, further_events)
    return [`${count(rest.length + further_tensors)} more`, '', '', count(events)]
  }
  return tableOf(by_tensor, { max: ROWS_MAX, further: further_tensors, rest }, [
    text('tensor', ({ tensor }) => tensor || '(unnamed)'),
    text('in', ({ usage }) => usage),
    number('layer', ({ layer }) => (layer < 0 ? '' : String(layer))),
    number(unit, ({ events }) => count(events)),
    number('pages', ({ pages }) => count(pages)),
    number('cycles, mean', cycles),
  ])
}

function dataTables({ by_level, by_role }: Data): StatsTable[] {
  const tables = [
    tableOf(by_level, {}, [
      text('loads from', ({ level }) => level || '(not recorded)'),
      number('events', ({ events }) => count(events)),
      number('share', ({ share }) => percent(share)),
      number('cycles, mean', cycles),
    ]),
    tableOf(firstRows(by_role, ROWS_MAX).shown, {}, [
      text('loads of', ({ role }) => role),
      text('in', ({ usage }) => usage),
      number('events', ({ events }) => count(events)),
      number('from memory', ({ memory_share }) => percent(memory_share)),
      number('cycles, mean', cycles),
    ]),
  ]
  return tables.filter(({ rows }) => rows.length > 0)
}
