import { plural } from '../../model/units.ts'
import type { Analysis, CallTime } from '../analysis.ts'
import { type Confidence, confidenceOf, found, type Limit, type Looked, phasesOf, type Rule } from './rule.ts'
import { number, percent } from './words.ts'

const AGAIN: Limit = {
  value: 16,
  why: 'a call, on average: a page that is mapped stays mapped; the kernel takes a few back to move them',
}
const MAJOR: Limit = { value: 16, why: 'as in page-faults: the model does not stay in memory' }

/** Weights were in memory, or could have been, and are not when a call needs them. */
export const weightFaults: Rule = {
  id: 'weight-faults',
  title: 'Weights are not in memory when calls need them',
  limits: { again: AGAIN, major: MAJOR },
  advice: (program) => {
    const [keep, read] = [program.option('keepInMemory'), program.option('readAtStart')]
    return (
      `Memory is short, or something takes pages back: ${keep ? `${keep} keeps the weights in memory; ` : ''}` +
      `${read ? `${read} loads them into memory of the process, which needs it all; ` : ''}a smaller quantisation, or more memory. ` +
      'Without major faults, the pages are still in memory: look at NUMA balancing (kernel.numa_balancing) and at memory limits of the container (memory.high)'
    )
  },
  look: (analysis) => phasesOf(analysis).flatMap((time) => lookAt(analysis, time)),
}

function lookAt(analysis: Analysis, { phase, calls }: CallTime): Looked[] {
  const { page_faults } = analysis
  if (!page_faults || page_faults.in_tensors === 0) return []
  const faults = page_faults.weights_in_calls?.find((faults) => faults.phase === phase)
  const { events = 0, again = 0, major = null, by_tensor = [] } = faults ?? {}
  const before = again === 0 ? '' : `, ${number(again / calls)} of them in pages that had faulted before`
  const figure = `${phase}: ${number(events / calls)} page faults in weights a call${before}`
  const isMajor = major !== null && major >= MAJOR.value * calls
  if (!isMajor && again < AGAIN.value * calls) return [{ figure }]
  const most = by_tensor[0]!
  const share = percent(most.events / events)
  const what = isMajor
    ? `waits for weights that are read from a disk: ${number(major / calls)} major page faults a call`
    : `has page faults in weights that were in memory before: ${number(again / calls)} a call`
  return found(`${phase} ${what}, most in ${most.tensor} (${share})`, {
    time_ns: 0,
    ...(page_faults.not_held > 0
      ? {
          confidence: 'low',
          confidence_reason: `${plural(page_faults.not_held, 'sample')} did not fit into the memory for them`,
        }
      : countedBy(analysis, calls)),
    evidence: { phase, weight_faults: events, again, ...(major !== null && { major }), calls, tensor: most.tensor },
    check: { command: 'ggml2perfetto stats <logs>', evidence: 'weight_faults' },
  })
}

function countedBy(analysis: Analysis, calls: number): Confidence {
  const confidence = confidenceOf(analysis, calls)
  return {
    ...confidence,
    confidence_reason: `${confidence.confidence_reason}; how long they took is not in the samples`,
  }
}
