import { IN_RUN, UNUSUAL } from './alone.ts'
import { sumOf, totalNs } from './calls.ts'
import { type Applied, appliedKernels } from './measured.ts'
import { between, type Factor, type PlanContext, SAME } from './plan.ts'
import { settingOf } from './setting.ts'

/**
 * Programs that take a CPU also slow down threads that keep theirs: by caches, the clock rate and the bandwidth of the memory, and most where two CPUs are
 * one core. No state of a thread shows it. It may be up to this share of the time where threads lost so much of it, and in proportion less where they lost less.
 */
const COMPANY_MAX = 0.4
const COMPANY_FULL = 0.5
/** Where threads lost this share of the time at least, products that are slower than measured ones are so for the same reason. */
const LOST_MIN = 0.05
/** What was measured of products alone may be too much by this share. */
const ALONE_ERROR = 0.05

/** What remains of the time of calls where no other program computes, and why. */
export function withoutCompany(context: PlanContext): { readonly factor: Factor; readonly basis: string } {
  const { phase, changes, others } = context
  const lost = lostShare(context)
  const own = settingOf(context)
  const { ratio, basis: why } = appliedKernels(own, own, context)
  const percent = (share: number) => `${Math.round(100 * share)} %`
  const lostTo = `${phase}: ${percent(lost)} of the time was lost to others`
  if (ratio === undefined) {
    const most = COMPANY_MAX * Math.min(lost / COMPANY_FULL, 1)
    return {
      factor: { low: 1 - most, expected: 1, high: 1 },
      basis: `${lostTo}; what they cost besides, by caches or a shared core, is between 0 and ${percent(most)}: ${why[0] ?? 'no products were measured alone (peaks <log> --types …)'}`,
    }
  }
  const alone = Math.min(IN_RUN / ratio, 1)
  const products = `products take ${ratio.toFixed(2)} times what was measured of them alone, ${IN_RUN} are usual`
  if (lost >= LOST_MIN)
    return {
      factor: { low: Math.min((1 - ALONE_ERROR) / ratio, alone), expected: alone, high: 1 },
      basis: `${lostTo}; ${products}: what is above is lost to them, too`,
    }
  // These changes put measured products in place of those of the run: it is in their bounds then.
  const { type, batch, experts } = changes
  const threads = others.length > 0 ? undefined : changes.threads // by runs with other numbers, these are of whole calls
  const isReplaced = [threads, type, batch, experts].some((value) => value !== undefined)
  const isUnusual = !isReplaced && ratio > UNUSUAL
  return {
    factor: { low: isUnusual ? alone : 1, expected: 1, high: 1 },
    basis: `${lostTo}; ${products}${isUnusual ? ': what is above may be lost to them, too' : ''}`,
  }
}

/** Is what products take in addition to what was measured of them alone taken out as what other programs took? */
const isOut = (context: PlanContext) =>
  context.changes.without?.includes('preempted') === true && lostShare(context) >= LOST_MIN

/** By how many times as much as measured alone products take in the run, where it counts for what they take after a change. */
export const ratioThatCounts = ({ ratio }: Pick<Applied, 'ratio'>, context: PlanContext): number | undefined =>
  isOut(context) ? undefined : ratio

/**
 * What remains of the time of products of a prompt of another length: a run whose products took unusually long, or short, shared the machine with other programs, or
 * the measurement did. Between all of it and nothing, as no log contains which; half of what is above a usual ratio, or below 1, is expected.
 */
export function ofOtherLength(applied: Pick<Applied, 'ratio'>, context: PlanContext): Factor {
  const ratio = ratioThatCounts(applied, context)
  if (ratio === undefined) return SAME
  const usual = Math.min(Math.max(ratio, 1), UNUSUAL)
  return between([1, Math.min(Math.max(ratio, 1), IN_RUN) / ratio], Math.sqrt(usual / ratio))
}

/** What of the time of the calls was lost to other programs. */
const lostShare = ({ calls }: PlanContext) =>
  sumOf(calls.map(({ lostNs }) => lostNs)) / sumOf(calls.map(({ measured }) => totalNs(measured)))
