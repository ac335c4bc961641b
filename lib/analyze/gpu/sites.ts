import { getOrMake } from '../../model/default-map.ts'
import { type HostRanges, RANGE_KINDS, type RangeCursor } from './host-ranges.ts'
import type { Launches } from './launches.ts'

/** Numbers of pairs of numbers. */
class Pairs {
  readonly a: number[] = []
  readonly b: number[] = []
  private readonly ids = new Map<number, number>()

  of(a: number, b: number): number {
    const key = a * 2 ** 26 + b
    const known = this.ids.get(key)
    if (known !== undefined) return known
    this.ids.set(key, this.a.length)
    this.a.push(a)
    return this.b.push(b) - 1
  }
}

/** Sites of launches: the names of the ranges of each kind around them, innermost and outermost; numbers from 0. */
export class Sites {
  /** Innermost and outermost name, by kind. */
  private readonly byKind = RANGE_KINDS.map(() => new Pairs())
  private readonly halves = [new Pairs(), new Pairs()] as const
  private readonly sites = new Pairs()

  get length(): number {
    return this.sites.a.length
  }

  /** Replaces the values of a process' launches by their sites. */
  attribute(launches: Launches, ranges: HostRanges, pid: number): void {
    const threads = new Map<number, { cursors: (RangeCursor | undefined)[]; atNs: number }>()
    for (const [i, { from, tid }] of launches.runs.entries()) {
      const end = launches.runs[i + 1]?.from ?? launches.length
      const thread = getOrMake(threads, tid, () => ({
        cursors: RANGE_KINDS.map((_, kind) => ranges.cursor(kind, { pid, tid })),
        atNs: -Infinity,
      }))
      for (let at = from; at < end; at++) {
        thread.atNs = Math.max(thread.atNs, launches.start(at))
        launches.values.set(at, this.at(thread.cursors, thread.atNs))
      }
    }
  }

  /** Name of the range around a site; 0: none. */
  nameOf(site: number, kind: number, level: 'innermost' | 'outermost'): number {
    const half = kind < 2 ? this.sites.a[site]! : this.sites.b[site]!
    const { a, b } = this.halves[kind >> 1]!
    const pair = kind % 2 === 0 ? a[half]! : b[half]!
    const pairs = this.byKind[kind]!
    return level === 'innermost' ? pairs.a[pair]! : pairs.b[pair]!
  }

  private at(cursors: readonly (RangeCursor | undefined)[], atNs: number): number {
    const pairOf = (kind: number) => {
      const cursor = cursors[kind]
      cursor?.moveTo(atNs)
      return this.byKind[kind]!.of(cursor?.innermost ?? 0, cursor?.outermost ?? 0)
    }
    const [first, second] = this.halves
    return this.sites.of(first.of(pairOf(0), pairOf(1)), second.of(pairOf(2), pairOf(3)))
  }
}
