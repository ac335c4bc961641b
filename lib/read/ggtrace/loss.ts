import { LEVELS } from '../../log/ggtrace-layout.ts'
import { type IssueCode, type IssueEvent, issueOf, type LostKind } from '../../model/issues.ts'
import { duration } from '../../model/units.ts'
import { grouped } from '../common/holdings.ts'
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

/** What a fact says is missing; undefined: nothing. `lost`: where the catalogue does not contain it. */
type Missing = { readonly code: IssueCode; readonly detail: string; readonly lost?: readonly LostKind[] } | undefined

const ofWork = (value: string) => `${grouped(Number(value))} ${value === '1' ? 'piece' : 'pieces'} of work of a GPU`

/** A clock that is corrected by less is no worse than the times of others. */
const CORRECTED_NS = 100_000

/** Facts that a recorder writes where a part of the run is missing (docs/reference/ggtrace-format.md). A loss has no other definition. */
const FACTS: Readonly<Record<string, (value: string) => Missing>> = {
  'functions.left_out': (value) => ({ code: 'left-out-functions', detail: value }),
  'gpu.without_times': (value) => ({
    code: 'lost-gpu-work',
    detail: `${ofWork(value)} without times, left out`,
  }),
  'gpu.without_launch': (value) => ({ code: 'gpu-work-without-launch', detail: `${ofWork(value)} without a launch` }),
  'program.copies': (value) => ({
    code: 'unseen-calls',
    detail: `some calls of ${value.replaceAll('; ', ', ')}: the compiler made copies of these functions`,
    lost: [...new Set(value.split('; ').map(kindOf))],
  }),
  'calls.left_out': (value) => ({ code: 'unseen-calls', detail: value, lost: ['calls', 'graphs', 'operators'] }),
  'numa.missing': (value) => ({ code: 'unseen-pages', detail: value }),
  'states.end': (value) => ({ code: 'states-end', detail: value }),
  'clock.error_ns': (value) =>
    Number(value) < CORRECTED_NS
      ? undefined
      : { code: 'clock-corrected', detail: `times were corrected by up to ${duration(Number(value))} at once` },
}

/** What the calls of a function are, by the first that its name has. */
const KINDS: readonly (readonly [name: RegExp, kind: LostKind])[] = [
  [/ggml_barrier|compute_forward/, 'operators'],
  [/^llama_(?:decode|encode|process)/, 'calls'],
  [/graph_compute|sched_(?:set|reset|synchronize)/, 'graphs'],
  [/tensor_(?:get|set|copy|memset)/, 'copies'],
  [/supports_|offload_op|_dev_/, 'placement'],
  [/buffer|_alloc|_reserve|mmap|mapping/, 'memory'],
]
const kindOf = (name: string): LostKind => KINDS.find(([pattern]) => pattern.test(name))?.[1] ?? 'functions'

/** The issues of the facts of a log, at its end. */
export function missingByFacts(facts: Readonly<Record<string, string>>, byte: number, atNs: number): IssueEvent[] {
  return Object.entries(FACTS).flatMap(([key, missingIn]) => {
    const missing = facts[key] === undefined ? undefined : missingIn(facts[key])
    return missing ? [issueOf(missing.code, missing.detail, { byte }, atNs, missing.lost)] : []
  })
}

/** The text of a LEVEL record. */
export function lessBecause(view: DataView, at: number): string {
  const level = LEVELS[view.getUint32(at + 12, true)] ?? 'other things'
  const [withNs, withoutNs] = [readU64(view, at + 20), readU64(view, at + 28)]
  const more = Math.round((withNs / withoutNs - 1) * 100)
  const took = `decode took ${(withNs / 1e6).toFixed(3)} ms a call when recorded, ${(withoutNs / 1e6).toFixed(3)} ms when not`
  return `${took}: ${more} % more, above the guard's ${view.getUint32(at + 16, true)} %; from here on only ${level}`
}
