import { typeNamed } from '../../model/ggml-types.ts'
import type { AttentionShape, StepGroup } from '../series/figures.ts'
import type { ModelCall, RunModel } from './calls.ts'
import { bytesOf, copiesOf, type Matrix } from './kernels.ts'

/** The most tokens of a graph, by default: llama.cpp divides longer batches. */
export const UBATCH = 512

/** Do such steps multiply a matrix of weights? */
export const hasWeights = ({ weight_rows }: StepGroup): boolean => weight_rows > 0

/** Does `--type` change the weights of such steps? llama.cpp leaves small ones in f32. */
export const isQuantisable = (group: StepGroup): boolean => hasWeights(group) && group.type !== 'f32'

/** The type of a group's weights where those that can be are of this one. */
export const typeOf = (group: StepGroup, type: string | undefined): string =>
  type !== undefined && isQuantisable(group) ? typeNamed(type)!.name : group.type

/** Do such steps compute flash attention, whose shape is known? */
export const hasAttention = (group: StepGroup): group is StepGroup & { readonly attention: AttentionShape } =>
  group.attention !== null

/** Are there several matrices, of which each token uses some? */
export const hasExperts = ({ experts_used }: StepGroup): boolean => experts_used !== null && experts_used > 0

/** Do such steps compute what a token gets of its experts? Their number is in these too. */
export const isOfExperts = (group: StepGroup): boolean => hasExperts(group) || OF_EXPERTS.test(group.role)
/** Names of llama.cpp, without those of the router, which computes for all experts. */
const OF_EXPERTS = /^ffn_moe_(?!logits|probs|argsort|topk)/

/** How many matrices there are, and how many of them a token uses, by default as in the run; nothing without experts. */
export function expertsOf(group: StepGroup, used = group.experts_used): Pick<Matrix, 'experts' | 'used'> {
  const { weight_elements: elements, weight_columns: columns, weight_rows: rows } = group
  return hasExperts(group) ? { experts: Math.round(elements / (columns * rows)), used: used! } : {}
}

/** Bytes of weights that a decode call reads. Of experts those that its tokens use, if each uses others. */
export function bytesOfCall(
  { groups }: RunModel,
  { steps, sequences }: Pick<ModelCall, 'steps' | 'sequences'>,
  { type, experts: chosen }: { readonly type: string | undefined; readonly experts: number | undefined },
): number {
  let sum = 0
  for (const [i, group] of groups.entries()) {
    if (!hasWeights(group) || !typeNamed(group.type)) continue
    const { weight_columns: columns, weight_rows: rows } = group
    const { experts = 1, used = 1 } = expertsOf(group, chosen)
    sum += steps[i]! * bytesOf({ type: typeOf(group, type), columns, rows }) * Math.min(experts, used * sequences)
  }
  return sum
}

/** Tokens whose products such a step computes at once: the last matrix has only the outputs. */
export function tokensOf({ block }: StepGroup, { tokens, sequences }: Pick<ModelCall, 'tokens' | 'sequences'>): number {
  return block === 'LM head' ? sequences : Math.min(tokens, UBATCH)
}

/** A matrix, or a set of experts, to be measured, and with what. */
export interface ProductJob extends Matrix {
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
  /** Experts that a token uses. */
  readonly experts: readonly number[]
}

/** The products of a run, at its types and others, its numbers of threads, of tokens and of experts and others. */
export function productJobs(model: RunModel, sought: Sought): ProductJob[] {
  const { types, threads, batches, contexts } = sought
  const calls = [model.decode.at(-1), model.prefill[0]].filter((call) => call !== undefined)
  const [shown] = calls
  if (!shown) return []
  const counts = [...new Set([...calls.map(({ workers }) => workers), ...threads])]
  const jobs = new Map<string, ProductJob>()
  const add = (group: StepGroup, type: string, experts: number | undefined, bytes: number) => {
    const tokens = new Set([
      ...calls.map((call) => tokensOf(group, call)),
      ...batches.map((sequences) => tokensOf(group, { tokens: sequences, sequences })),
      ...contexts.map((tokens) => tokensOf(group, { tokens, sequences: shown.sequences })),
    ])
    const { weight_columns: columns, weight_rows: rows } = group
    const matrix: Matrix = { type, columns, rows, ...expertsOf(group, experts) }
    const copies = copiesOf(matrix, bytes)
    const key = [...Object.values(matrix), copies].join()
    const runs = [...tokens].flatMap((tokens) => counts.map((threads) => ({ tokens, threads })))
    const known = jobs.get(key)?.runs ?? []
    const isNew = ({ tokens, threads }: (typeof runs)[number]) =>
      !known.some((run) => run.tokens === tokens && run.threads === threads)
    jobs.set(key, { ...matrix, copies, runs: [...known, ...runs.filter(isNew)] })
  }
  for (const wanted of [undefined, ...types]) {
    for (const experts of [undefined, ...sought.experts]) {
      const bytes = bytesOfCall(model, shown, { type: wanted, experts })
      for (const group of model.groups) {
        const type = typeOf(group, wanted)
        const isWhole = group.weight_columns % (typeNamed(type)?.elements ?? Infinity) === 0
        if (isQuantisable(group) && isWhole && (experts === undefined || hasExperts(group)))
          add(group, type, experts, bytes)
      }
    }
  }
  return [...jobs.values()]
}
