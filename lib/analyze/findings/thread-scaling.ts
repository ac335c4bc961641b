import { plural } from '../../model/units.ts'
import type { PhaseScaling, ScalingFigures, ScalingFit, WorkerCount } from '../scaling/figures.ts'
import { found, type Limit, type Looked, type Rule } from './rule.ts'
import { number, percent } from './words.ts'

const R_SQUARED: Limit = {
  value: 0.9,
  why: 'speeds that one law does not describe were disturbed, or are not of the same work: then only what is clearly slower is named',
}
const NUMBERS: Limit = {
  value: 4,
  why: 'two numbers of threads have one gain: it does not show where the gain ends. The law has three parameters: it describes any three speeds',
}

const SLOWER: Limit = {
  value: 0.8,
  why: 'runs with one number of threads differ by less than a fifth: slower by more is so, whatever numbers between them would show',
}

/** Does a law describe the speeds, so that they depend on the number of threads? */
export const isLaw = (fit: ScalingFit | null): fit is ScalingFit => fit !== null && fit.r2 >= R_SQUARED.value

/** More threads do not make it faster: of several runs of one program. */
export const threadScaling: Rule<ScalingFigures> = {
  id: 'thread-scaling',
  title: 'More threads do not pay',
  limits: { r_squared: R_SQUARED, numbers: NUMBERS, slower: SLOWER },
  advice:
    'Run with -t (--threads) of this number; prompts may be faster with more (-tb, --threads-batch). What is bound by memory gains from more ' +
    'bandwidth (faster memory, NUMA), not from more threads: why --peaks measure shows it',
  look: (figures) =>
    (['decode', 'prefill'] as const).flatMap((phase) => {
      const scaling = figures[phase]
      return scaling ? lookAt(phase, scaling, figures) : []
    }),
}

/** Without a law: the index of the fastest number of threads, if the most threads are clearly slower; else -1. */
function fastestOf(counts: readonly WorkerCount[]): number {
  const speeds = counts.map(({ tokens_per_s }) => tokens_per_s)
  const fastest = Math.max(...speeds)
  return speeds.at(-1)! < SLOWER.value * fastest ? speeds.indexOf(fastest) : -1
}

/** What the speeds of a phase show, in all commands. */
export function scalingSentence(phase: 'decode' | 'prefill', { counts, knee, fit }: PhaseScaling): string {
  const most = counts.at(-1)!
  const speedsFrom = ({ workers, tokens_per_s }: WorkerCount) =>
    `${number(tokens_per_s)} tok/s with ${workers}, ${number(most.tokens_per_s)} with ${most.workers}`
  const fastest = counts[fastestOf(counts)]
  if (!fit) {
    const from = fastest ?? counts[0]!
    const times = (most.tokens_per_s / from.tokens_per_s).toFixed(2)
    return `${phase}: ${speedsFrom(from)} (${times}×): ${counts.length === 2 ? 'two' : 'three'} numbers of threads do not show from which one on more do not pay`
  }
  const law = `R² ${fit.r2.toFixed(2)} of ${counts.length} numbers of threads`
  if (!isLaw(fit)) {
    const unknown = `no law of the number of threads describes the speeds of ${phase}: ${law}`
    return fastest
      ? `${phase} is slower with more than ${plural(fastest.workers, 'thread')}: ${speedsFrom(fastest)}; ${unknown}`
      : unknown
  }
  if (knee === null) return `each further thread of ${phase} pays, up to ${most.workers}: ${law}`
  const more = `more than ${plural(knee, 'thread')} ${knee === 1 ? 'does' : 'do'} not pay in ${phase}`
  return `${more}: ${speedsFrom(counts.find(({ workers }) => workers === knee)!)} (${law})`
}

function lookAt(phase: 'decode' | 'prefill', scaling: PhaseScaling, { runs }: ScalingFigures): Looked[] {
  const { counts, knee, fit } = scaling
  const most = counts.at(-1)!
  const sentence = scalingSentence(phase, scaling)
  const at = isLaw(fit) ? counts.findIndex(({ workers }) => workers === knee) : fastestOf(counts)
  if (at < 0) return [{ figure: sentence }]
  const [best, next] = [counts[at]!, counts[at + 1]!]
  return found(sentence, {
    time_ns: 0,
    ...confidenceOf(counts.length, fit, runs),
    evidence: {
      phase,
      threads: best.workers,
      tokens_per_s: best.tokens_per_s,
      next_threads: next.workers,
      gain_of_next_share: next.gain_share!,
      most_threads: most.workers,
      tokens_per_s_of_most: most.tokens_per_s,
      ...(fit && { r_squared: fit.r2 }),
      ...(isLaw(fit) && { contention_share: fit.contention, coherency_share: fit.coherency }),
    },
    check: { command: `ggml2perfetto stats ${runs.map(({ name }) => quoted(name)).join(' ')}`, evidence: 'threads' },
  })
}

function confidenceOf(numbers: number, fitted: ScalingFit | null, runs: ScalingFigures['runs']) {
  const law = isLaw(fitted) ? fitted : null
  const fit = law
    ? `the Universal Scalability Law explains ${percent(law.r2)} of the differences of ${numbers} numbers of threads`
    : 'measured'
  const low = (why: string) => ({ confidence: 'low' as const, confidence_reason: `${fit}, but ${why}` })
  const disturbed = runs.filter(({ disturbed_by }) => disturbed_by.length > 0)
  if (disturbed.length > 0) {
    const rules = [...new Set(disturbed.flatMap(({ disturbed_by }) => disturbed_by))].join(', ')
    return low(`${disturbed.length} of ${runs.length} runs were disturbed (${rules}): record them again`)
  }
  if (fitted && !law) return low('no law of the number of threads describes the speeds')
  if (!law) return low(`with ${numbers === 2 ? 'two' : 'three'} numbers of threads only`)
  return { confidence: law.r2 >= GOOD ? ('high' as const) : ('medium' as const), confidence_reason: fit }
}

/** R² from which the confidence is high. */
const GOOD = 0.97

/** A path as a shell reads it. */
const quoted = (path: string) => (/^[\w./:-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`)
