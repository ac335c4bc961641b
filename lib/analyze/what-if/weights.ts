import { typeNamed } from '../../model/ggml-types.ts'
import type { StepGroup } from '../series/figures.ts'
import type { ModelCall, RunModel } from './calls.ts'
import { BYTES_MAX, bytesOf } from './kernels.ts'

/** The most tokens of a graph, by default: llama.cpp divides longer batches. */
export const UBATCH = 512

/** Do such steps multiply a matrix of weights? */
export const hasWeights = ({ weight_rows }: StepGroup): boolean => weight_rows > 0

/** Does `--type` change the weights of such steps? llama.cpp leaves small ones in f32. */
export const isQuantisable = (group: StepGroup): boolean => hasWeights(group) && group.type !== 'f32'

/** The type of a group's weights where those that can be are of this one. */
export const typeOf = (group: StepGroup, type: string | undefined): string =>
  type !== undefined && isQuantisable(group) ? typeNamed(type)!.name : group.type

/** Bytes of weights that a call reads. Of experts, one for each step. */
export function bytesOfCall({ groups }: RunModel, { steps }: ModelCall, type: string | undefined): number {
  let sum = 0
  for (const [i, group] of groups.entries()) {
    if (!hasWeights(group) || !typeNamed(group.type)) continue
    const { weight_columns: columns, weight_rows: rows } = group
    sum += steps[i]! * bytesOf({ type: typeOf(group, type), columns, rows })
  }
  return sum
}

/** Tokens whose products such a step computes at once: the last matrix has only the outputs. */
export function tokensOf({ block }: StepGroup, { tokens, sequences }: Pick<ModelCall, 'tokens' | 'sequences'>): number {
  return block === 'LM head' ? sequences : Math.min(tokens, UBATCH)
}

/** A matrix to be measured, and with what. */
export interface ProductJob {
  readonly type: string
  readonly columns: number
  readonly rows: number
  readonly copies: number
  readonly runs: readonly { readonly tokens: number; readonly threads: number }[]
}

/** What is to be measured for predictions from a run. */
export interface Sought {
  readonly types: readonly string[]
  /** In addition to those of the run. */
  readonly threads: readonly number[]
  readonly batches: readonly number[]
  /** Tokens of prompts. */
  readonly contexts: readonly number[]
}

/** The products of a run, at its types and others, its numbers of threads and of tokens and others. */
export function productJobs(model: RunModel, { types, threads, batches, contexts }: Sought): ProductJob[] {
  const calls = [model.decode.at(-1), model.prefill[0]].filter((call) => call !== undefined)
  const [shown] = calls
  if (!shown) return []
  const counts = [...new Set([...calls.map(({ workers }) => workers), ...threads])]
  const jobs = new Map<string, ProductJob>()
  for (const wanted of [undefined, ...types]) {
    const bytes = Math.min(bytesOfCall(model, shown, wanted), BYTES_MAX)
    for (const group of model.groups) {
      const type = typeOf(group, wanted)
      const { weight_columns: columns, weight_rows: rows } = group
      if (!isQuantisable(group) || columns % (typeNamed(type)?.elements ?? Infinity) !== 0) continue
      const tokens = new Set([
        ...calls.map((call) => tokensOf(group, call)),
        ...batches.map((sequences) => tokensOf(group, { tokens: sequences, sequences })),
        ...contexts.map((tokens) => tokensOf(group, { tokens, sequences: shown.sequences })),
      ])
      const copies = Math.max(Math.round(bytes / bytesOf({ type, columns, rows })), 1)
      const key = [type, columns, rows, copies].join()
      const runs = [...tokens].flatMap((tokens) => counts.map((threads) => ({ tokens, threads })))
      const known = jobs.get(key)?.runs ?? []
      const isNew = ({ tokens, threads }: (typeof runs)[number]) =>
        !known.some((run) => run.tokens === tokens && run.threads === threads)
      jobs.set(key, { type, columns, rows, copies, runs: [...known, ...runs.filter(isNew)] })
    }
  }
  return [...jobs.values()]
}
