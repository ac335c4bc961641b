import {
  type Analysis,
  type CoreKindOperator,
  type CoreKindTimes,
  coreKindsIn,
  cpusOfWorker,
  kindsOfWorker,
  machineWords,
  type TimeOnKind,
} from '../../lib/cli.ts'
import { count, duration, percent } from '../units.ts'
import { number, type Section, type StatsTable, tableOf, text } from './section.ts'

/** The machine's CPUs, whose threads the workers are, and where they ran. */
export function threadsSection(analysis: Analysis): Section | undefined {
  const facts = machineWords(analysis)
  if (facts.length === 0) return undefined
  const places = analysis.threads?.places
  const table =
    places &&
    tableOf(places.workers, {}, [
      text('worker', ({ worker }) => String(worker)),
      text('may use', ({ allowed }) =>
        allowed.map(({ cpus, share }) => listed(cpus, share, allowed.length)).join('; '),
      ),
      text('began graphs on', cpusOfWorker),
      text('kinds of cores', kindsOfWorker),
      number('moves', ({ moves }) => count(moves)),
    ])
  const kinds = analysis.threads?.by_core_kind
  const tables = [...(table ? [table] : []), ...(kinds ? [kindsTable(kinds)] : [])]
  return { title: 'machine and threads', facts, ...(tables.length > 0 && { tables }) }
}

/** Rows of operators. */
const OPERATORS_MAX = 16

/** Operators by kind of core: their time, and the mean of an execution by one worker. */
function kindsTable({ operators, assumed_share }: CoreKindTimes): StatsTable {
  const kinds = coreKindsIn(operators)
  const assumed = assumed_share > 0 ? ` (${percent(assumed_share)} by where the workers began)` : ''
  const table = tableOf(operators, { max: OPERATORS_MAX }, [
    text('operator', ({ role, op }) => `${role} ${op}`.trim() || 'others'),
    ...kinds.flatMap((kind) => [
      number(`time on ${kind || 'unknown'}`, (row: CoreKindOperator) => onKind(row, kind, ({ time_ns }) => time_ns)),
      number(`mean on ${kind || 'unknown'}`, (row: CoreKindOperator) =>
        onKind(row, kind, ({ time_ns, executions: n }) => time_ns / n),
      ),
    ]),
  ])
  return { title: `operators by kind of core${assumed}`, ...table }
}

const onKind = ({ kinds }: CoreKindOperator, kind: string, figure: (row: TimeOnKind) => number) => {
  const found = kinds.find((row) => row.kind === kind)
  return found ? duration(figure(found)) : ''
}

/** The share is shown where there are several. */
const listed = (cpus: string, share: number, lists: number) => (lists > 1 ? `${cpus} ${percent(share)}` : cpus)
