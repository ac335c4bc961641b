import { DefaultMap } from '../../model/default-map.ts'
import type { TokenEvent } from '../../model/events.ts'
import type { CallParts, Statistic } from '../common/statistic.ts'
import type { Team, TeamFigures } from './figures.ts'
import type { ThreadHistory } from './thread-history.ts'

/** Teams that are listed, and that are distinguished. */
const LISTED_MAX = 8
const TEAMS_MAX = 1024
/** Threads that are remembered. */
const THREADS_MAX = 1 << 16

/** Calls that wait to be put in order of time: a log contains the calls of each thread in blocks. */
const WAITING_MAX = 1 << 13

/** The threads of a call. */
interface CallThreads {
  readonly startNs: number
  readonly context: number
  readonly caller: number
  readonly others: string
  readonly weight: number
}

/** Which threads compute each call: the one that makes it, and those of the other workers. */
export class Teams implements Statistic {
  private readonly teams = new Map<string, { -readonly [K in keyof Team]: Team[K] }>()
  private further = 0
  /** By context, its latest call; and the calls that are not in order of time yet. */
  private readonly latest = new Map<number, CallThreads>()
  private readonly waiting: CallThreads[] = []
  private readonly known = new Set<number>()
  private readonly sums = { calls: 0, moved: 0, changed: 0, started: 0, delayNs: 0, othersNs: 0 }
  /** Were states of any other thread known? */
  private hasOthers = false

  constructor(private readonly threads: ThreadHistory) {}

  call({ operators, steps, weight }: CallParts): void {
    const { event, isFurther, count, worker, tid, startNs } = operators
    if (!event || event.call < 0 || isFurther || count === 0) return
    const { sums } = this
    const tids: number[] = []
    const delays = new DefaultMap<number, { ns: number }>(() => ({ ns: 0 }))
    let started = 0
    for (let i = 0; i < count; i++) {
      const [by, thread] = [worker[i]!, tid[i]!]
      if (tids[by] === thread || thread < 0) continue
      tids[by] = thread
      if (this.known.has(thread) || this.known.size >= THREADS_MAX) continue
      this.known.add(thread)
      if (by === 0 || sums.calls === 0) continue
      started++
      // How much later than the first worker of the step it begins.
      const step = steps.of[i]!
      const delay = step < 0 ? undefined : delays.of(steps.startNs[step]!)
      if (delay) delay.ns = Math.max(delay.ns, startNs[i]! - steps.startNs[step]!)
    }
    for (const { ns } of delays.values()) sums.delayNs += ns * weight
    sums.started += started * weight
    this.add(event, tids, weight)
  }

  private add(event: TokenEvent, tids: readonly number[], weight: number): void {
    const { sums } = this
    const caller = event.tid >= 0 ? event.tid : (tids[0] ?? -1)
    const others = tids
      .filter((tid, by) => by > 0 && tid !== undefined)
      .sort((a, b) => a - b)
      .join(' ')
    const context = event.batch?.context ?? 0
    this.waiting.push({ startNs: event.startNs, context, caller, others, weight })
    if (this.waiting.length > WAITING_MAX) this.compare(WAITING_MAX / 2)
    const timeNs = (event.endNs - event.startNs) * weight
    sums.calls += weight
    this.addOthers(event, tids, weight)
    const key = `${caller}: ${others}`
    let team = this.teams.get(key)
    if (!team && this.teams.size < TEAMS_MAX) {
      team = { caller, workers: tids.filter((tid) => tid !== undefined).length, calls: 0, time_ns: 0 }
      this.teams.set(key, team)
    }
    if (!team) return void this.further++
    team.calls += weight
    team.time_ns += timeNs
  }

  /** Compares the first so many calls in order of time, each with the one before of its context. */
  private compare(count: number): void {
    const { sums, latest, waiting } = this
    waiting.sort((a, b) => a.startNs - b.startNs)
    for (const call of waiting.splice(0, count)) {
      const before = latest.get(call.context)
      latest.set(call.context, call)
      if (!before) continue
      if (before.caller !== call.caller) sums.moved += call.weight
      if (call.others !== '' && before.others !== '' && before.others !== call.others) sums.changed += call.weight
    }
  }

  /** Threads of the program that run during the call, and compute nothing of it. */
  private addOthers({ startNs, endNs, tid }: TokenEvent, tids: readonly number[], weight: number): void {
    const { threads, sums } = this
    for (const other of threads.ownThreads()) {
      if (other === tid || tids.includes(other)) continue
      this.hasOthers = true
      sums.othersNs += threads.runningNs(other, startNs, endNs) * weight
    }
  }

  finish(): { readonly teams: TeamFigures | null } {
    const { sums, teams } = this
    if (sums.calls === 0) return { teams: null }
    this.compare(this.waiting.length)
    const list = [...teams.values()].sort((a, b) => b.time_ns - a.time_ns)
    return {
      teams: {
        calls: sums.calls,
        teams: list.length + this.further,
        longest: list.slice(0, LISTED_MAX),
        moved_calls: sums.moved,
        changed_calls: sums.changed,
        new_threads: sums.started,
        start_delay_ns: sums.delayNs,
        others_running_ns: this.hasOthers ? sums.othersNs : null,
      },
    }
  }
}
