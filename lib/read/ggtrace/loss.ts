import { type IssueCode, type IssueEvent, issueOf } from '../../model/issues.ts'

/** How reasons of LOSS records begin (docs/reference/ggtrace-format.md), and what they mean. */
const REASONS: readonly (readonly [begin: string, code: IssueCode])[] = [
  ['thread states', 'lost-states'],
  ['work of a GPU', 'lost-gpu-work'],
  ['counters of this thread', 'lost-counters'],
]

/** The issue of a LOSS record. `why`: its reason; empty where the log had no space. */
export function lossOf(records: number, why: string, byte: number, atNs: number): IssueEvent {
  const code = REASONS.find(([begin]) => why.startsWith(begin))?.[1] ?? (why ? 'lost-records' : 'dropped-records')
  return issueOf(
    code,
    `${records} ${records === 1 ? 'record was' : 'records were'} lost${why && `: ${why}`}`,
    { byte },
    atNs,
  )
}
