/**
 * How a trial is measured on a machine that other guests of its host disturb. All rules are of times as recorded: none of them looks at a prediction.
 *
 * 1. Something counts if the reference (reference.c), before it and after it, takes at most so much more than its least as `LIMITS` permits; else it is made again, at
 *    most `ATTEMPTS` times, and what counts is the attempt whose reference took least. After that the machine is a slower one: the least is that of these attempts.
 * 2. Both sides are recorded by turns, until the two least figures of each differ by `ALIKE` at most, or `most` times.
 * 3. A figure of a side is the least of its recordings: what others take only adds to it.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

/** Parts of the reference may take more than their least by these shares: the bandwidth of a host's memory differs most. */
export const LIMITS = { compute_ns: 0.1, memory_ns: 0.3 }
/** By how much the reference takes more is in these limits: what has more than this is disturbed. */
export const EXCESS_MAX = 1
/** Times of something until it counts as it is. */
export const ATTEMPTS = 4
/** Two least figures that differ by this share at most are no chance. */
export const ALIKE = 0.04
/** Before an attempt the reference is waited for, once a second, so many times. */
const LOOKS = 5
const PAUSE_MS = 1000
/** Of the first least of the reference. */
const FIRST_LOOKS = 10

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

/** The CPUs that this process may use. */
export function allowedCpus(status = readFileSync('/proc/self/status', 'utf8')) {
  const [, list] = /^Cpus_allowed_list:\s*(\S+)/m.exec(status)
  return list.split(',').flatMap((range) => {
    const [first, last = first] = range.split('-').map(Number)
    return Array.from({ length: last - first + 1 }, (_, i) => first + i)
  })
}

/** Makes things while the machine is steady. `look`: what the reference takes, in parts. */
export class Steady {
  #look
  #pauseMs
  #least
  /** The least since the latest beginning of {@link make}. */
  #recent

  constructor(look, pauseMs = PAUSE_MS) {
    this.#look = look
    this.#pauseMs = pauseMs
  }

  /** By how much the reference takes more than its least, in limits. */
  #excess() {
    const now = this.#look()
    const parts = Object.keys(now)
    const lesser = (least = now) => Object.fromEntries(parts.map((part) => [part, Math.min(least[part], now[part])]))
    this.#least = lesser(this.#least)
    this.#recent = lesser(this.#recent)
    return Math.max(...parts.map((part) => (now[part] / this.#least[part] - 1) / LIMITS[part]))
  }

  /** Finds what the reference takes. */
  begin() {
    for (let i = 0; i < FIRST_LOOKS; i++) this.#excess()
  }

  /** The result of an attempt, its number, and by how much the reference took more with it. */
  async make(attempt) {
    let best
    this.#recent = undefined
    for (let number = 0; number < ATTEMPTS; number++) {
      let before = this.#excess()
      for (let i = 0; i < LOOKS && before > EXCESS_MAX; i++) {
        await pause(this.#pauseMs)
        before = this.#excess()
      }
      const made = await attempt(number)
      const excess = Math.max(before, this.#excess())
      if (best === undefined || excess < best.excess) best = { made, number, excess }
      if (excess <= EXCESS_MAX) return best
    }
    // It does not become as fast as it was.
    this.#least = this.#recent
    return best
  }
}

/** The reference as a program that was built from reference.c. */
export const lookBy = (program) => () =>
  JSON.parse(execFileSync(program, allowedCpus().map(String), { encoding: 'utf8' }))

/** Do the two least of these differ little? */
export function areAlike(values) {
  const [least, second = Infinity] = values.toSorted((a, b) => a - b)
  return second <= least * (1 + ALIKE)
}

/** Where the least of these is. */
export const leastAt = (values) => values.indexOf(Math.min(...values))
