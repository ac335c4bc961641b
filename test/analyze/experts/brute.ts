import type { Phase } from '../../../lib/core.ts'

/** The figures of choices of experts, computed again in the simplest way: quadratic, with all choices in memory. */

/** The experts of one token in one layer; tokens of one batch have one number. */
export interface Token {
  readonly layer: number
  readonly phase: Phase
  readonly batch: number
  readonly ids: readonly number[]
}

interface Use {
  readonly layer: number
  readonly phase: Phase
  /** Number of the token in its layer, and of the use in its phase's tokens of the layer. */
  readonly token: number
  readonly tokenInPhase: number
  readonly expert: number
}

/** All uses in order. */
export function usesOf(tokens: readonly Token[]): Use[] {
  const inLayer = new Map<string, number>()
  const next = (key: string) => {
    const number = inLayer.get(key) ?? 0
    inLayer.set(key, number + 1)
    return number
  }
  return tokens.flatMap(({ layer, phase, ids }) => {
    const token = next(`${layer}`)
    const tokenInPhase = next(`${layer} ${phase}`)
    return ids.map((expert) => ({ layer, phase, token, tokenInPhase, expert }))
  })
}

const isSame = (a: Use, b: Use) => a.layer === b.layer && a.expert === b.expert

/** Distance of each use to the last one of the same expert: in tokens, and in other experts; undefined: its first use. */
export function distancesOf(uses: readonly Use[]): ({ tokens: number; experts: number } | undefined)[] {
  return uses.map((use, at) => {
    const before = uses.slice(0, at).findLastIndex((other) => isSame(use, other))
    if (before < 0) return undefined
    const between = uses.slice(before + 1, at)
    const experts = new Set(between.map(({ layer, expert }) => `${layer} ${expert}`)).size
    return { tokens: use.token - uses[before]!.token, experts }
  })
}

/** Which uses hit a cache that begins empty; `toReplace` returns the index of the one of its contents to replace. */
export function hitsOf<T>(
  items: readonly T[],
  capacity: number,
  toReplace: (contents: readonly T[], before: readonly T[]) => T,
): boolean[] {
  const contents = new Set<T>()
  return items.map((item, at) => {
    if (contents.has(item)) return true
    if (capacity === 0) return false
    if (contents.size === capacity) contents.delete(toReplace([...contents], items.slice(0, at)))
    contents.add(item)
    return false
  })
}

/** The one whose last use is longest ago. */
export function leastRecent<T>(contents: readonly T[], before: readonly T[]): T {
  return contents.reduce((a, b) => (before.lastIndexOf(b) < before.lastIndexOf(a) ? b : a))
}

/** The one with the fewest uses; of several, the one whose last use is longest ago. */
export function leastUsed<T>(contents: readonly T[], before: readonly T[]): T {
  const count = (item: T) => before.filter((other) => other === item).length
  const fewest = Math.min(...contents.map(count))
  return leastRecent(
    contents.filter((item) => count(item) === fewest),
    before,
  )
}

/** Uses of the items that were used most while it learned. */
export function pinnedHits(learned: readonly number[], used: readonly number[], capacity: number): number {
  const count = (items: readonly number[], item: number) => items.filter((other) => other === item).length
  const best = [...new Set(learned)].sort((a, b) => count(learned, b) - count(learned, a) || a - b).slice(0, capacity)
  return used.filter((item) => best.includes(item)).length
}

/** Tokens in the first half, in whole blocks: blocks of one token, which grow to twice the size when there are 32. */
export function firstHalf(tokens: number): number {
  let size = 1
  while (Math.ceil(tokens / size) > 32) size *= 2
  return Math.floor(tokens / 2 / size) * size
}

export const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length

/** Pearson's r from its definition with sums of products. */
export function pearson(xs: readonly number[], ys: readonly number[]): number {
  const n = xs.length
  const sum = (of: (i: number) => number) => xs.reduce((total, _, i) => total + of(i), 0)
  const [x, y] = [sum((i) => xs[i]!), sum((i) => ys[i]!)]
  const covariance = n * sum((i) => xs[i]! * ys[i]!) - x * y
  return covariance / Math.sqrt((n * sum((i) => xs[i]! ** 2) - x * x) * (n * sum((i) => ys[i]! ** 2) - y * y))
}

/** Mean ranks: one more than the number of smaller values and half of the other equal ones. */
export const ranks = (values: readonly number[]) =>
  values.map(
    (value) =>
      1 + values.filter((other) => other < value).length + (values.filter((other) => other === value).length - 1) / 2,
  )
