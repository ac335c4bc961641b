import { type ModelCall, type RunModel, sumOf } from './calls.ts'
import { type AttentionTime, attentionNs, type KernelTimes } from './kernels.ts'
import { hasAttention, type Sought, UBATCH } from './weights.ts'

/** Tokens after others, in a cache of so many places. */
export type Piece = Pick<AttentionTime, 'tokens' | 'sequences' | 'context' | 'cache'>

/** Attention to be measured, and with what. */
export interface AttentionJob extends Omit<AttentionTime, keyof Piece | 'threads' | 'ns' | 'best_ns'> {
  readonly runs: readonly (Piece & { readonly threads: number })[]
}

/** The places of the cache that a call with a context reads after the change: llama.cpp rounds them up. */
export function cacheOf(calls: readonly ModelCall[]): (call: ModelCall, tokens: number) => number {
  const granularity = [256, 32, 1].find((size) => calls.every(({ cacheTokens }) => cacheTokens % size === 0))!
  const rounded = (tokens: number) => Math.ceil((tokens + 1) / granularity) * granularity
  return ({ cacheTokens, contextTokens }, tokens) => (cacheTokens / rounded(contextTokens)) * rounded(tokens)
}

/** The call whose context is in the middle of the run's. */
const middleOf = (calls: readonly ModelCall[]) => calls[calls.length >> 1]

/** A decode call in the middle, of so many sequences, with the context moved by so many tokens; undefined: its cache is not known. */
function decodePiece({ decode }: RunModel, moved: number, sequences = decode[0]?.sequences): Piece | undefined {
  const call = middleOf(decode)
  if (!call || !sequences || call.cacheTokens === 0) return undefined
  const context = Math.round(call.contextTokens + moved)
  if (context < 0) return undefined
  const places = sequences * (context + 1)
  const isAlone = sequences === 1 && call.sequences === 1
  const cache = Math.max(isAlone ? cacheOf(decode)(call, context) : padded(places), places)
  return { tokens: sequences, ...(sequences > 1 ? { sequences } : {}), context, cache }
}

/** Places of a cache of several sequences, as llama.cpp rounds them up. */
const padded = (places: number) => Math.ceil(places / CACHE_ROUNDED) * CACHE_ROUNDED

/** A long prompt is computed in pieces: the first one, and a whole one at its end; the others are between. */
function promptPieces({ decode }: RunModel, tokens: number): Piece[] {
  const padded = (places: number) => {
    const call = middleOf(decode)
    return Math.max(call && call.cacheTokens > 0 ? cacheOf(decode)(call, places - 1) : places, places)
  }
  const first = Math.min(tokens, UBATCH)
  const pieces = [{ tokens: first, context: 0, cache: padded(first) }]
  return tokens <= UBATCH ? pieces : [...pieces, { tokens: UBATCH, context: tokens - UBATCH, cache: padded(tokens) }]
}

const promptOf = ({ prefill }: RunModel) => sumOf(prefill.map(({ tokens }) => tokens)) / (prefill[0]?.sequences ?? 1)

/** Places of a cache that are read are multiples of it. */
const CACHE_ROUNDED = 256

/** Does the prompt of the run begin its context, of one sequence? */
const isAlone = ({ prefill }: RunModel) => prefill[0]?.sequences === 1 && prefill[0].contextTokens === 0

/** The flash attention of a run, with its contexts and numbers of threads and sequences, and others. */
export function attentionJobs(model: RunModel, { threads, contexts, batches }: Sought): AttentionJob[] {
  const [first] = model.decode
  const prompts = isAlone(model) ? [promptOf(model), ...contexts] : []
  const pieces = [
    ...[0, ...contexts.map((tokens) => tokens - (first?.contextTokens ?? 0))].flatMap(
      (moved) => decodePiece(model, moved) ?? [],
    ),
    ...batches.flatMap((sequences) => decodePiece(model, 0, sequences) ?? []),
    ...prompts.flatMap((tokens) => promptPieces(model, tokens)),
  ]
  const counts = [...new Set([...[first, model.prefill[0]].flatMap((call) => call?.workers ?? []), ...threads])]
  const unique = [...new Map(pieces.map((piece) => [Object.values(piece).join(), piece])).values()]
  const runs = unique.flatMap((piece) => counts.map((count) => ({ ...piece, threads: count })))
  const call = first ?? model.prefill[0]
  const jobs = model.groups.flatMap((group, i) =>
    hasAttention(group) && call && call.steps[i]! > 0 ? [{ ...group.attention, copies: call.steps[i]!, runs }] : [],
  )
  return runs.length > 0 ? jobs : []
}

/** The time of the attention of a group in a decode call, with the context moved by so many tokens, of other sequences; undefined where it was not measured. */
export function decodeAttentionNs(
  i: number,
  model: RunModel,
  kernels: KernelTimes,
  { threads, moved, sequences }: { readonly threads: number; readonly moved: number; readonly sequences?: number },
): number | undefined {
  const group = model.groups[i]!
  const piece = decodePiece(model, moved, sequences)
  return hasAttention(group) && piece ? attentionNs(kernels, group.attention, { ...piece, threads }) : undefined
}

/** The same in a prompt of so many tokens, by default that of the run. */
export function promptAttentionNs(
  i: number,
  model: RunModel,
  kernels: KernelTimes,
  { threads, tokens = promptOf(model) }: { readonly threads: number; readonly tokens?: number | undefined },
): number | undefined {
  const group = model.groups[i]!
  if (!hasAttention(group) || !isAlone(model)) return undefined
  const measured = promptPieces(model, tokens).map((piece) =>
    attentionNs(kernels, group.attention, { ...piece, threads }),
  )
  const times = measured.filter((ns) => ns !== undefined)
  if (times.length < measured.length) return undefined
  return (sumOf(times) / times.length) * Math.max(tokens / UBATCH, 1)
}
