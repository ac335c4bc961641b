import { LEVELS } from '../../log/ggtrace-layout.ts'
import { type IssueCode, type IssueEvent, issueOf } from '../../model/issues.ts'
import { readU64 } from './fields.ts'

/** How reasons of LOSS records begin (docs/reference/ggtrace-format.md), and what they mean. */
const REASONS: readonly (readonly [begin: string, code: IssueCode])[] = [
  ['thread states', 'lost-states'],
  ['work of a GPU', 'lost-gpu-work'],
  ['counters of this thread', 'lost-counters'],
]

/** The issue of a LOSS record. `why`: its reason; empty where the log had no space. */
export function lossOf(view: DataView, at: number, why: string, byte: number, atNs: number): IssueEvent {
  const records = view.getUint32(at + 12, true)
  const code = REASONS.find(([begin]) => why.startsWith(begin))?.[1] ?? (why ? 'lost-records' : 'dropped-records')
  return issueOf(
    code,
    `${records} ${records === 1 ? 'record was' : 'records were'} lost${why && `: ${why}`}`,
    { byte },
    atNs,
  )
}

/** The text of a LEVEL record. */
export function lessBecause(view: DataView, at: number): string {
  const level = LEVELS[view.getUint32(at + 12, true)] ?? 'other things'
  const [withNs, withoutNs] = [readU64(view, at + 20), readU64(view, at + 28)]
  const more = Math.round((withNs / withoutNs - 1) * 100)
  const took = `decode took ${(withNs / 1e6).toFixed(3)} ms a call when recorded, ${(withoutNs / 1e6).toFixed(3)} ms when not`
  return `${took}: ${more} % more, above the guard's ${view.getUint32(at + 16, true)} %; from here on only ${level}`
}
