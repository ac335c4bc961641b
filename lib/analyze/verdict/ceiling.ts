import { threeDigits } from '../../model/units.ts'
import type { Analysis, Roofline } from '../analysis.ts'
import { ROOF } from '../findings/roofline.ts'
import type { Limit } from '../findings/rule.ts'
import { percent } from '../findings/words.ts'

/** What a phase could reach on its machine. */
export interface Ceiling {
  readonly tokensPerS: number
  /** Of it, what was reached. */
  readonly share: number
  readonly by: 'memory' | 'arithmetic'
  /** Of what was reached while the worker that lost its CPU most had it; null: not known, or hardly more. */
  readonly runningShare: number | null
  /** Threads of the peaks. */
  readonly threads: number | null
  /** The backend of a GPU that computes all; null: the machine. */
  readonly backend: string | null
}

const BYTES: Limit = { value: 64e6, why: 'bytes of a call: fewer may be in caches of the CPU since the call before' }

/** The ceiling of a phase with this speed, of calls with so many tokens on average; undefined: not known, or not certain. */
export function ceilingOf(
  { rooflines, calls, scheduling }: Analysis,
  phase: 'decode' | 'prefill',
  rate: number,
  tokensOfCall: number,
): Ceiling | undefined {
  // Drafts: a call makes more tokens than one. Other contexts, and calls of both kinds, take a part of the time.
  if (calls.drafts !== null || calls.contexts.length > 1 || calls.by_phase.mixed) return undefined
  const whole = rooflines.find((roofline) => roofline.scope === 'phase' && roofline.phase === phase)
  const line = whole?.attainable_flop_per_s === null ? gpuOf(rooflines, whole) : whole
  const idealNs = line && idealNsOf(line, whole!.count)
  if (!line || idealNs === undefined) return undefined
  const tokensPerS = (tokensOfCall * 1e9) / idealNs
  const share = rate / tokensPerS
  if (share > 1) return undefined
  const runningShare = runningOf(scheduling, phase, share)
  const by = isOfMemory(line) ? 'memory' : 'arithmetic'
  return { tokensPerS, share, runningShare, by, threads: line.peak_threads, backend: line.backend }
}

const OTHERS: Limit = { value: 0.01, why: 'inputs are looked up on the CPU; more bytes take time of their own' }

/** The backend that moves all but a little of a phase's bytes. */
export function gpuOf(rooflines: readonly Roofline[], { phase, bytes }: Roofline): Roofline | undefined {
  const ofPhase = rooflines.filter((roofline) => roofline.scope === 'backend' && roofline.phase === phase)
  return ofPhase.find(
    (roofline) => roofline.bytes !== null && roofline.bytes >= (1 - OTHERS.value) * (bytes ?? Infinity),
  )
}

/** As in the rule `preempted`: below it, the CPUs were not taken. */
const PREEMPTED = 0.05

/** The share of the ceiling without the time in which a worker was preempted: the others wait for it. */
function runningOf(scheduling: Analysis['scheduling'], phase: string, share: number): number | null {
  const workers = scheduling?.workers.filter((worker) => worker.phase === phase && worker.call_time_ns > 0) ?? []
  const lost = Math.max(0, ...workers.map(({ preempted_ns, call_time_ns }) => preempted_ns / call_time_ns))
  return lost >= PREEMPTED && share / (1 - lost) <= 1 ? share / (1 - lost) : null
}

/** The least time of one of so many calls. */
function idealNsOf(
  { bytes, bytes_are_max, flop, flop_per_s, attainable_flop_per_s, note }: Roofline,
  count: number,
): number | undefined {
  if (attainable_flop_per_s === null || note !== null || bytes_are_max || flop_per_s > attainable_flop_per_s)
    return undefined
  if (bytes === null || bytes < BYTES.value * count) return undefined
  return ((flop / attainable_flop_per_s) * 1e9) / count
}

const isOfMemory = ({ intensity, ridge }: Roofline) => intensity! < ridge!

/** `, 31 % of the 26.4 tok/s that this machine's memory allows` */
export function ceilingText(ceiling: Ceiling | undefined): string {
  if (!ceiling) return ''
  const { share, runningShare, tokensPerS, by, threads, backend } = ceiling
  const running = runningShare === null ? '' : ` (${percent(runningShare)} while it had its CPUs)`
  const what = threads === null ? '' : threads === 1 ? ' to one thread' : ` to ${threads} threads`
  return `, ${percent(share)} of the ${threeDigits(tokensPerS)} tok/s that ${backend ?? 'this machine'}'s ${by} allows${what}${running}`
}

/** Is there not much more to get from this machine? */
export const isNear = (ceiling: Ceiling | undefined) => ceiling !== undefined && ceiling.share >= ROOF.value
