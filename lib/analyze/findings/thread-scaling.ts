import { plural } from '../../model/units.ts'
import type { PhaseScaling, ScalingFigures } from '../scaling-figures.ts'
import type { Limit, Looked, Rule } from './rule.ts'
import { number, percent } from './words.ts'

const R_SQUARED: Limit = {
  value: 0.9,
  why: 'speeds that one law does not describe were disturbed, or are not of the same work: then no number of threads is the right one',
}
const NUMBERS: Limit = {
  value: 3,
  why: 'two numbers of threads have one gain: it does not show where the gain ends. The law has three parameters: R² of three numbers is a low confidence',
}

/** More threads do not make it faster: of several runs of one program. */
export const threadScaling: Rule<ScalingFigures> = {
  id: 'thread-scaling',
  title: 'More threads do not pay',
  limits: { r_squared: R_SQUARED, numbers: NUMBERS },
  advice:
    'Run with -t (--threads) of this number; prompts may be faster with more (-tb, --threads-batch). What is bound by memory gains from more ' +
    'bandwidth (faster memory, NUMA), not from more threads: why --peaks measure shows it',
  look: (figures) =>
    (['decode', 'prefill'] as const).flatMap((phase) => {
      const of = figures[phase]
      return of ? lookAt(phase, of, figures) : []
    }),
}

function lookAt(phase: 'decode' | 'prefill', { counts, knee, fit }: PhaseScaling, { runs }: ScalingFigures): Looked[] {
  if (!fit) return []
  const most = counts.at(-1)!
  if (knee === null)
    return [{ figure: `each further thread of ${phase} pays, up to ${most.workers}: R² ${fit.r2.toFixed(2)}` }]
  const at = counts.findIndex(({ workers }) => workers === knee)
  const [best, next] = [counts[at]!, counts[at + 1]!]
  const sentence =
    `more than ${plural(knee, 'thread')} ${knee === 1 ? 'does' : 'do'} not pay in ${phase}: ${number(best.tokens_per_s)} tok/s with ${knee}, ` +
    `${number(most.tokens_per_s)} with ${most.workers} (R² ${fit.r2.toFixed(2)} of ${counts.length} numbers of threads)`
  if (fit.r2 < R_SQUARED.value || counts.length < NUMBERS.value) return [{ figure: sentence }]
  const finding = {
    sentence,
    time_ns: 0,
    ...confidenceOf(counts.length, fit.r2, runs),
    evidence: {
      phase,
      threads: knee,
      tokens_per_s: best.tokens_per_s,
      next_threads: next.workers,
      gain_of_next_share: next.gain_share!,
      most_threads: most.workers,
      tokens_per_s_of_most: most.tokens_per_s,
      r_squared: fit.r2,
      contention_share: fit.contention,
      coherency_share: fit.coherency,
    },
    check: { command: `ggml2perfetto stats ${runs.map(({ name }) => quoted(name)).join(' ')}`, evidence: 'threads' },
  }
  return [{ figure: sentence, finding }]
}

function confidenceOf(numbers: number, r2: number, runs: ScalingFigures['runs']) {
  const fit = `the Universal Scalability Law explains ${percent(r2)} of the differences of ${numbers} numbers of threads`
  const low = (why: string) => ({ confidence: 'low' as const, confidence_reason: `${fit}, but ${why}` })
  const disturbed = runs.filter(({ disturbed_by }) => disturbed_by.length > 0)
  if (disturbed.length > 0) {
    const rules = [...new Set(disturbed.flatMap(({ disturbed_by }) => disturbed_by))].join(', ')
    return low(`${disturbed.length} of ${runs.length} runs were disturbed (${rules}): record them again`)
  }
  if (numbers === NUMBERS.value) return low('it has 3 parameters')
  return { confidence: r2 >= GOOD ? ('high' as const) : ('medium' as const), confidence_reason: fit }
}

/** R² from which the confidence is high. */
const GOOD = 0.97

/** A path as a shell reads it. */
const quoted = (path: string) => (/^[\w./:-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`)
