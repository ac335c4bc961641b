import { type Analysis, type GroupKey, groupOperators, type OperatorGroup } from '../../lib/cli.ts'
import { labelOf } from '../units.ts'
import { counterTexts, FIGURES, figureText, shareText, sumText } from './columns.ts'
import { type Column, firstRows, more, type Section, type StatsTable } from './section.ts'

type PhaseName = Exclude<OperatorGroup['phase'], null>

/** How operators are grouped and sorted. */
export interface Grouping {
  readonly by: readonly GroupKey[]
  /** Rows of a table. */
  readonly top: number
  /** Key of a figure. */
  readonly sort: string
}

/** Operators, a table per phase if they are grouped by phase. */
export function operatorsSections(analysis: Analysis, grouping: Grouping): Section[] {
  if (analysis.operators.rows.length === 0) return []
  const groups = sortedGroups(analysis, grouping)
  const phases = phasesOf(analysis)
  if (!grouping.by.includes('phase')) {
    const all = groupOperators(analysis, [])
    return [{ title: 'operators', tables: tablesOf(groups, all, phases, grouping) }]
  }
  return phases.map((phase) => {
    const isOf = (group: OperatorGroup) => group.phase === phase
    const all = groupOperators(analysis, ['phase']).filter(isOf)
    return {
      title: `operators ${inWords(phase)}`,
      tables: tablesOf(groups.filter(isOf), all, [phase], grouping),
    }
  })
}

/** Groups that one sentence names. */
const LEADERS = 3

/** What takes most of the time, in one sentence: the first groups, in the phase whose operators take most. */
export function leadersOf(analysis: Analysis, by: readonly GroupKey[]): string | undefined {
  const wall = ({ wall_ns }: OperatorGroup) => wall_ns ?? 0
  const [longest] = groupOperators(analysis, ['phase']).sort((a, b) => wall(b) - wall(a))
  if (!longest?.phase) return undefined
  const groups = sortedGroups(analysis, { by: [...new Set([...by, 'phase' as const])], sort: 'wall' })
  const labels = labelsOf(by.filter((key) => key !== 'phase'))
  const share = ({ shares }: OperatorGroup) =>
    shares[longest.phase!]?.wall_share ?? shares[longest.phase!]?.operator_time_share ?? 0
  const leaders = groups
    .filter(({ phase }) => phase === longest.phase)
    .sort((a, b) => share(b) - share(a))
    .slice(0, LEADERS)
    .map((group) => {
      const named = labels.map(({ title, text }) =>
        /^[\d.]+$/.test(text(group)) ? `${title} ${text(group)}` : text(group),
      )
      return `${named.join(' ').trim() || '(unnamed)'} ${shareText([group], longest.phase!)}`
    })
  return labels.length === 0 ? undefined : `most time ${inWords(longest.phase)}: ${leaders.join(', ')}`
}

const inWords = (phase: PhaseName) => (phase === 'none' ? 'outside calls' : `of ${phase}`)

/** Groups, most of the figure that sorts them first; unknown ones last. Workers are in their order. */
export function sortedGroups(analysis: Analysis, { by, sort }: Pick<Grouping, 'by' | 'sort'>): OperatorGroup[] {
  const groups = groupOperators(analysis, by)
  const { value } = FIGURES.find(({ key }) => key === sort)!
  if (by.includes('worker') && sort === 'wall') return groups
  return groups.sort((a, b) => (value(b) ?? -1) - (value(a) ?? -1))
}

/** Phases of operators, in the order in which the calls are; those in no call last. */
export function phasesOf({ operators, call_time }: Analysis): PhaseName[] {
  const found = new Set<PhaseName>(operators.rows.map(({ phase }) => phase))
  const inOrder = new Set<PhaseName>([...call_time.map(({ phase }) => phase), ...found])
  return [...inOrder].filter((phase) => found.has(phase) && phase !== 'none').concat(found.has('none') ? ['none'] : [])
}

/** The first groups, the others in one row, and all; their counters. */
function tablesOf(
  groups: readonly OperatorGroup[],
  all: readonly OperatorGroup[],
  phases: readonly PhaseName[],
  { by, top }: Grouping,
): StatsTable[] {
  const { shown, rest } = firstRows(groups, top)
  const labels = labelsOf(by)
  const shares: Column[] = phases.map((phase) => ({ title: by.includes('phase') ? 'share' : inWords(phase) }))
  // What all operators of a group have in common.
  const common = (['shape', 'type'] as const).filter((key) => !by.includes(key))
  const columns: Column[] = [
    ...labels.map(({ title }) => ({ title, isText: true })),
    ...shares,
    ...FIGURES.map(({ title, rank }) => ({ title, rank })),
    ...common.map((key): Column => ({ title: key, isText: true, rank: 10 })),
  ]
  const row = (
    names: readonly string[],
    groups: readonly OperatorGroup[],
    figures: readonly string[],
    hints: string[],
  ) => [
    ...labels.map((_, i) => names[i] ?? ''),
    ...phases.map((phase) => shareText(groups, phase)),
    ...figures,
    ...hints,
  ]
  const none = common.map(() => '')
  const figures = (group: OperatorGroup) => FIGURES.map((figure) => figureText(figure, group))
  const rows = shown.map((group) => {
    const names = labels.map(({ text }) => text(group))
    return row(
      names,
      [group],
      figures(group),
      common.map((key) => group[key] ?? ''),
    )
  })
  if (rest.length > 0)
    rows.push(
      row(
        [more(rest)],
        rest,
        FIGURES.map((figure) => sumText(figure, rest)),
        none,
      ),
    )
  if (groups.length > 1) rows.push(row(['all'], all, all.flatMap(figures), none))
  const counters = countersTable(shown, labels)
  return [{ columns, rows }, ...(counters ? [counters] : [])]
}

interface Label {
  readonly title: string
  text(group: OperatorGroup): string
}

/** Role and op are one name, as slices have it. */
function labelsOf(by: readonly GroupKey[]): Label[] {
  const isPair = by.includes('role') && by.includes('op')
  return by.flatMap((key): Label[] => {
    if (key === 'phase' || (isPair && key === 'op')) return []
    if (isPair && key === 'role')
      return [{ title: 'operator', text: ({ role, op }) => `${role} ${op}`.trim() || '(unnamed)' }]
    return [{ title: key, text: (group) => labelText(key, group[key]) }]
  })
}

function labelText(key: GroupKey, value: string | number | null): string {
  if (key === 'layer' && value === -1) return 'none'
  if (value === '') return key === 'role' ? '(unnamed)' : '(unknown)'
  return String(value)
}

/** Counters per operator and per byte; undefined where nothing was counted. */
function countersTable(groups: readonly OperatorGroup[], labels: readonly Label[]): StatsTable | undefined {
  const keys = [...new Set(groups.flatMap(({ counters }) => Object.keys(counters)))]
  const counted = groups.filter(({ counters }) => Object.values(counters).some(({ total }) => total > 0))
  if (counted.length === 0) return undefined
  const columns: Column[] = [
    ...labels.map(({ title }) => ({ title, isText: true })),
    ...keys.flatMap((key, i) => [{ title: labelOf(key) }, { title: 'per byte', rank: i + 1 }]),
  ]
  const rows = counted.map((group) => [
    ...labels.map(({ text }) => text(group)),
    ...keys.flatMap((key) => counterTexts(group, key)),
  ])
  return { title: 'counters, per operator', columns, rows }
}
