import { placingOptions } from '../placement/options.ts'
import type { RefusingMemory, WeightMemory, WeightMemoryFigures } from './figures.ts'
import type { AnswersOfOp, HostWeight, WeightMemoryOfInput } from './weight-memory.ts'

type Attributes = Readonly<Record<string, string | number>>
type Why = Pick<WeightMemory, 'op' | 'reason' | 'detail' | 'refused_by'>

const UNKNOWN: Why = { op: '', reason: 'unknown', detail: '', refused_by: [] }

/** Weights by the memory that they are in, and why; null where the log does not contain what devices were asked. */
export function weightMemoryOf(input: WeightMemoryOfInput | null, attributes: Attributes): WeightMemoryFigures | null {
  if (!input || input.weights.length === 0) return null
  const options = placingOptions(String(attributes['command'] ?? ''))
  const rows = new Map<string, { -readonly [K in keyof WeightMemory]: WeightMemory[K] }>()
  for (const weight of input.weights) {
    const why = whyOf(weight, input.repacking, options, attributes)
    const { buffer, type, bytes, role } = weight
    const key = JSON.stringify([buffer, type, why])
    const row = rows.get(key) ?? { ...{ buffer, type, ...why, tensors: 0, bytes: 0 }, roles: [] }
    rows.set(key, row)
    row.tensors++
    row.bytes += bytes
    row.roles = [...new Set([...row.roles, role])].sort()
  }
  return { repacking: input.repacking, rows: [...rows.values()].sort((a, b) => b.bytes - a.bytes) }
}

function whyOf(weight: HostWeight, repacking: readonly string[], options: readonly string[], facts: Attributes): Why {
  const { buffer, answers } = weight
  const isRepacking = (memory: string) => repacking.includes(memory)
  if (isRepacking(buffer)) {
    const [took] = answers.filter(({ taken }) => taken.has(buffer))
    return {
      ...UNKNOWN,
      op: took?.op ?? '',
      reason: 'repacked',
      refused_by: refusals(took, weight, isRepacking, facts),
    }
  }
  if (answers.length === 0) return overrideOf(weight, options)
  // Of a table of embeddings that is the output, too, a copy may be repacked; if there is none, the product has the reason.
  const own = answers.filter(({ taken }) => taken.size > 0 && ![...taken].some(isRepacking))
  const only = own.find(({ op }) => op.startsWith('MUL_MAT')) ?? own[0]
  if (!only) return UNKNOWN
  const refused_by = refusals(only, weight, isRepacking, facts)
  if (refused_by.length > 0) return { op: only.op, reason: 'refused', detail: '', refused_by }
  const before = [...only.taken].find((memory) => memory !== 'CPU')
  if (before !== undefined) return { op: only.op, reason: 'taken-before', detail: before, refused_by }
  if (repacking.length > 0) return UNKNOWN
  return { op: only.op, reason: 'not-asked', detail: options.find((name) => NO_REPACK.test(name)) ?? '', refused_by }
}

const NO_REPACK = /^(--no-repack|-nr)$/

function refusals(
  answers: AnswersOfOp | undefined,
  { description }: HostWeight,
  isRepacking: (memory: string) => boolean,
  facts: Attributes,
): RefusingMemory[] {
  if (!answers) return []
  const memories = [...answers.refused].filter(isRepacking)
  return memories.map((memory) => ({ memory, decided: decidedIn(facts, memory, answers.op, description) }))
}

/** Facts of `record`, which asked the CPU again: `asked.CPU_REPACK.MUL_MAT.1`. */
function decidedIn(facts: Attributes, memory: string, op: string, description: string): string | null {
  for (const [key, value] of Object.entries(facts)) {
    const text = `${value}`
    if (!key.startsWith(`asked.${memory}.${op}.`) || !text.startsWith(`${description}: `)) continue
    const answer = text.slice(description.length + 2)
    return answer.startsWith('unknown: ') ? null : answer
  }
  return null
}

const OVERRIDE = /^(?:-ot|--override-tensor)[ =](.+)$/

/** llama.cpp asks nothing about weights that `--override-tensor` places in memory of a device. */
function overrideOf({ name, buffer }: HostWeight, options: readonly string[]): Why {
  for (const option of options) {
    const rules = OVERRIDE.exec(option)?.[1]?.split(',') ?? []
    for (const rule of rules) {
      const at = rule.lastIndexOf('=')
      if (rule.slice(at + 1) !== buffer || !matches(rule.slice(0, at), name)) continue
      return { ...UNKNOWN, reason: 'override', detail: option }
    }
  }
  return UNKNOWN
}

/** A log of others may contain a pattern that takes forever: with two parts that vary, none of them repeated groups, the work is bounded. */
const PATTERN_MAX = 128
const VARYING_MAX = 2
const isBounded = (pattern: string) =>
  pattern.length <= PATTERN_MAX &&
  !/\)[*+?{]|\\[1-9k]/.test(pattern) &&
  (pattern.match(/[*+?{(]/g)?.length ?? 0) <= VARYING_MAX

/** Patterns of llama.cpp are those of ECMAScript; a recorded one may be damaged. One that is not bounded counts as another. */
function matches(pattern: string, name: string): boolean {
  try {
    return isBounded(pattern) && new RegExp(pattern).test(name)
  } catch {
    return false
  }
}
