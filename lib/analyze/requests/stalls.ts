import { firstIndex } from '../../bytes/search.ts'
import type { RequestEvent, RequestPart, RequestPartKind } from '../../model/events.ts'

/** Parts in which a request keeps the thread of the server busy. */
const BUSY: readonly RequestPartKind[] = ['prefill', 'draft', 'decode', 'verify', 'sample', 'text']

/** Time of a request that others take: a part in which it waits, or what its call takes longer with their prompts in it. */
export interface Stall {
  readonly startNs: number
  readonly endNs: number
  /** Time in this interval that is lost. */
  readonly lostNs: number
  /** Only prompts of others cause it. */
  readonly isWithPrompt: boolean
}

/** What another request took of it. */
export interface Cause {
  readonly by: RequestEvent
  timeNs: number
  prefillNs: number
  prefillTokens: number
  /** Time of its calls for the prompt in these stalls. */
  overlapNs: number
}

/** A part of another request in a stall. */
interface Met {
  readonly cause: Cause
  readonly part: RequestPart
  readonly fromNs: number
  readonly toNs: number
}

/**
 * Divides stalls, in order of time, among the requests that were worked on meanwhile: at each time by their tokens. Time in which none
 * of them was is of nobody.
 */
export function causesOf(stalls: readonly Stall[], others: readonly RequestEvent[]): Cause[] {
  const met = stalls.map((): Met[] => [])
  const causes = others.map((by): Cause => ({ by, timeNs: 0, prefillNs: 0, prefillTokens: 0, overlapNs: 0 }))
  for (const cause of causes)
    eachMet(stalls, cause.by, (at, part, fromNs, toNs) => met[at]!.push({ cause, part, fromNs, toNs }))
  const counted = new Set<RequestPart>()
  for (const [at, { startNs, endNs, lostNs }] of stalls.entries()) divide(met[at]!, lostNs / (endNs - startNs), counted)
  return causes.filter(({ timeNs }) => timeNs > 0)
}

/** Divides the time of a stall. `scale`: of each ns, what is lost; `counted`: parts whose tokens count already. */
function divide(met: readonly Met[], scale: number, counted: Set<RequestPart>): void {
  const starts = met.toSorted((a, b) => a.fromNs - b.fromNs)
  const borders = [...new Set(met.flatMap(({ fromNs, toNs }) => [fromNs, toNs]))].sort((a, b) => a - b)
  let active: Met[] = []
  let next = 0
  for (const [i, fromNs] of borders.slice(0, -1).entries()) {
    active = active.filter(({ toNs }) => toNs > fromNs)
    while (next < starts.length && starts[next]!.fromNs <= fromNs) active.push(starts[next++]!)
    const all = active.reduce((sum, { part }) => sum + weightOf(part), 0)
    for (const { cause, part } of active) {
      const ns = ((borders[i + 1]! - fromNs) * scale * weightOf(part)) / all
      cause.timeNs += ns
      if (part.what !== 'prefill') continue
      cause.prefillNs += ns
      cause.overlapNs += borders[i + 1]! - fromNs
      if (!counted.has(part)) cause.prefillTokens += Math.max(part.tokens, 0)
      counted.add(part)
    }
  }
}

const weightOf = ({ tokens }: RequestPart) => Math.max(tokens, 1)

/** When prompts of some requests were processed: in order of time, without overlaps. */
export function promptsOf(others: readonly RequestEvent[]): Pick<RequestPart, 'startNs' | 'endNs'>[] {
  const prompts = others.flatMap(({ parts }) => parts.filter(({ what }) => what === 'prefill'))
  prompts.sort((a, b) => a.startNs - b.startNs)
  const joined: { startNs: number; endNs: number }[] = []
  for (const { startNs, endNs } of prompts) {
    const last = joined.at(-1)
    if (last && startNs <= last.endNs) last.endNs = Math.max(last.endNs, endNs)
    else joined.push({ startNs, endNs })
  }
  return joined
}

/** Is a prompt processed during this part? */
export function isWithPrompt({ startNs, endNs }: RequestPart, prompts: ReturnType<typeof promptsOf>): boolean {
  const first = prompts[firstAfter(prompts, startNs)]
  return first !== undefined && first.startNs < endNs
}

/** Calls back for each part that keeps the thread busy in a stall, with their common time. */
function eachMet(
  stalls: readonly Stall[],
  { parts }: RequestEvent,
  onMet: (stall: number, part: RequestPart, fromNs: number, toNs: number) => void,
): void {
  if (stalls.length === 0 || parts.length === 0) return
  const first = firstAfter(stalls, parts[0]!.startNs)
  let from = firstAfter(parts, stalls[0]!.startNs)
  for (let at = first; at < stalls.length && stalls[at]!.startNs < parts.at(-1)!.endNs; at++) {
    const { startNs, endNs, isWithPrompt } = stalls[at]!
    while (from < parts.length && parts[from]!.endNs <= startNs) from++
    for (let i = from; i < parts.length && parts[i]!.startNs < endNs; i++) {
      const part = parts[i]!
      if (isWithPrompt ? part.what !== 'prefill' : !BUSY.includes(part.what)) continue
      const [fromNs, toNs] = [Math.max(part.startNs, startNs), Math.min(part.endNs, endNs)]
      if (toNs > fromNs) onMet(at, part, fromNs, toNs)
    }
  }
}

/** Index of the first that ends after this time. */
const firstAfter = (parts: readonly Pick<RequestPart, 'endNs'>[], ns: number): number =>
  firstIndex(0, parts.length, (i) => parts[i]!.endNs > ns)
