import { BUILD_ORDER, FIGURE, RUN } from './parts.ts'
import { QUESTIONS, type QuestionName } from './questions.ts'

/** What answers SQL: an open dataset. */
export interface AskedDataset {
  query(sql: string): Promise<{ readonly columns: readonly string[]; readonly rows: readonly (readonly unknown[])[] }>
}

/** One run in one phase. */
export interface FleetRun {
  readonly setup: string
  readonly phase: string
  /** Its build, and the place of that among the builds of the setup, from 1. */
  readonly build: string
  readonly number: number
  readonly host: string
  readonly trace_id: string
  readonly log: string
  /** Time of a token. */
  readonly ms: number
}

/** A build, as the question `by-build` answers. */
export interface FleetBuild {
  readonly setup: string
  readonly phase: string
  readonly number: number
  readonly build: string
  readonly runs: number
  readonly hosts: number
  readonly ms_per_token: number
  readonly p90_ms_per_token: number
  readonly change_percent: number | null
  readonly verdict: string
}

/** A host, as `by-host` answers. */
export interface FleetHost {
  readonly setup: string
  readonly host: string
  readonly phase: string
  readonly runs: number
  readonly ms_per_token: number
  readonly slower_percent: number
  readonly verdict: string
  readonly last_run: string
}

/** A regression, as `regressions` answers. */
export interface FleetRegression {
  readonly setup: string
  readonly phase: string
  readonly build: string
  readonly build_before: string
  readonly slower_percent: number
  readonly most_by: string | null
  readonly its_share_percent: number | null
  readonly run_before: string
  readonly run_after: string
  readonly log_after: string
}

/** An outlier, as `outliers` answers. */
export interface FleetOutlier {
  readonly trace_id: string
  readonly log: string
  readonly host: string
  readonly build: string
  readonly setup: string
  readonly phase: string
  readonly slower_percent: number
  readonly sentence: string | null
}

/** Percentiles of the runs of a setup and phase, in ms for a token. */
export interface FleetSpread {
  readonly setup: string
  readonly model: string
  readonly quant: string
  readonly phase: string
  readonly runs: number
  readonly p10: number
  readonly p50: number
  readonly p90: number
  readonly p99: number
}

/** What a report of a fleet shows. */
export interface FleetFigures {
  /** Name of the dataset. */
  readonly name: string
  /** Number of its runs. */
  readonly runs: number
  readonly points: readonly FleetRun[]
  readonly builds: readonly FleetBuild[]
  readonly hosts: readonly FleetHost[]
  readonly regressions: readonly FleetRegression[]
  readonly outliers: readonly FleetOutlier[]
  readonly spreads: readonly FleetSpread[]
}

const POINTS = `with ${RUN}, ${FIGURE}, ${BUILD_ORDER}
select f.setup as setup, f.phase as phase, f.build as build, n.number as number, host, trace_id, log, token_ns / 1e6 as ms
from figure as f join build_order as n on n.setup = f.setup and n.phase = f.phase and n.build = f.build
order by f.setup, f.phase, n.number, started_ns, trace_id`

const SPREADS = `with ${RUN}, ${FIGURE}
select f.setup as setup, any_value(coalesce(model, architecture, '')) as model, any_value(coalesce(quant, '')) as quant, phase,
  count(*) as runs, quantile_cont(token_ns / 1e6, 0.1) as p10, quantile_cont(token_ns / 1e6, 0.5) as p50,
  quantile_cont(token_ns / 1e6, 0.9) as p90, quantile_cont(token_ns / 1e6, 0.99) as p99
from figure as f join trace on trace.trace_id = f.trace_id
group by f.setup, phase order by model, quant, f.setup, phase`

/** Asks a dataset what its report shows. `name`: of the dataset. */
export async function fleetFigures(dataset: AskedDataset, name: string): Promise<FleetFigures> {
  const rows = async <T>(sql: string) => {
    const { columns, rows } = await dataset.query(sql)
    return rows.map((row) => Object.fromEntries(columns.map((column, i) => [column, row[i]])) as T)
  }
  const answer = <T>(question: QuestionName) => rows<T>(QUESTIONS[question].sql)
  return {
    name,
    runs: (await rows<{ runs: number }>('select count(*) as runs from trace'))[0]!.runs,
    points: await rows(POINTS),
    builds: await answer('by-build'),
    hosts: await answer('by-host'),
    regressions: await answer('regressions'),
    outliers: await answer('outliers'),
    spreads: await rows(SPREADS),
  }
}
