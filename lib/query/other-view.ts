import { escaped, PROCESS_GROUP } from './gpu-view.ts'
import type { QueryResult } from './trace-processor.ts'

/** What is shown first of a trace without a run of ggml: of a profile of GPUs, of states of threads, of power, of the scheduler alone. */
export interface OtherView {
  /** Regular expressions for names of groups. */
  readonly expanded: readonly string[]
  /** Regular expressions for paths of rows, and of groups with all their rows. */
  readonly rows: readonly string[]
}

/** Processes of the scheduler that are shown: those that ran longest, as many as fill a page if each has one thread. */
const PROCESSES_MAX = 14

/** Groups of ours: their descriptions begin with the format. */
const ROOTS = `select name from track where parent_id is null and extract_arg(source_arg_set_id, 'description') glob 'input: *'`
/** Rows of ours that are at the top, as the viewer has groups of its own. */
const AT_TOP = `select distinct track.name from track join track below on below.parent_id = track.id
  where track.parent_id is null and below.name = 'at the top'`
/** Rows that have the work of queues, which the viewer itself draws, too. */
const WORKS = `select distinct track.name from slice join track on track.id = track_id where category = 'gpu_busy'`

const IS_OF_SCHEDULER = `select count(*) from metadata where name = 'trace_attribute.generator' and str_value = 'ggml2perfetto'
  and exists (select 1 from sched)`
const RUNNING = `select ${PROCESS_GROUP} from process join thread using (upid) join sched using (utid)
  where pid != 0 group by upid order by sum(sched.dur) desc limit ${PROCESSES_MAX}`

/** What to show of a trace without a run of ggml; nothing of traces of other tools. `cpus`: a regular expression for CPUs of the scheduler. */
export function otherViewOf(query: (sql: string) => QueryResult, cpus: string): OtherView {
  const namesOf = (sql: string) => query(sql).rows.map(([name]) => escaped(`${name}`))
  const [roots, atTop] = [namesOf(ROOTS), namesOf(AT_TOP)]
  if (roots.length + atTop.length === 0) {
    if (query(IS_OF_SCHEDULER).rows[0]![0] === 0) return { expanded: [], rows: [] }
    return { expanded: ['.*'], rows: [cpus, ...namesOf(RUNNING)] }
  }
  const works = namesOf(WORKS)
  const others = works.length > 0 ? `(?!(${works.join('|')})$)` : ''
  const inRoots = roots.length > 0 ? [`(${roots.join('|')}) > ${others}[^>]*`] : []
  return {
    expanded: [...roots, 'Counters'],
    rows: [...inRoots, ...atTop.filter((name) => !works.includes(name)), cpus],
  }
}
