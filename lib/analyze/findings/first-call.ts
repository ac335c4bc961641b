import { plural } from '../../model/units.ts'
import type { Analysis, FirstCall } from '../analysis.ts'
import { READ } from './page-faults.ts'
import { either } from './program.ts'
import { found, type Limit, type Looked, type Rule, stoppedIn } from './rule.ts'
import { callsOf } from './sql.ts'
import { number, percent, time } from './words.ts'

const TIMES: Limit = {
  value: 3,
  why: 'first calls of a warm run take up to twice as long: new threads, a new graph, caches of the CPU',
}
const SHARE: Limit = {
  value: 0.05,
  why: 'less of the time of all calls is not worth a sentence',
}
const FAULTS: Limit = {
  value: 16,
  why: 'a major fault is a wait for the disk; a program whose files are in memory has a few, of its own code',
}
const STOPPED: Limit = {
  value: 0.1,
  why: 'of the time of calls, at barriers while all workers are blocked: something stops the program, in the first call, too',
}

/** The first call takes much longer than those after it: pages of the model that are not in memory, shaders, allocation. */
export const firstCall: Rule = {
  id: 'first-call',
  title: 'The first call is much slower than those after it',
  limits: { times: TIMES, share: SHARE, faults: FAULTS, read: READ, stopped: STOPPED },
  advice: (program) => {
    const read = program.option('readAtStart')
    const ways = either(
      `keep it in memory (${either(program.option('keepInMemory'), 'read it once with cat')})`,
      read && `read it at the start (${read})`,
      program.isWarmedUp ? undefined : 'warm up',
    )
    return (
      `With page faults that read, the model is read from the disk while it computes: ${ways}. ` +
      'On a GPU, its shaders are compiled, and a cache of them stays between runs; CUDA loads each kernel when it is first launched ' +
      '(CUDA_MODULE_LOADING=EAGER: at the start), and captures a graph: the slices of the API show it'
    )
  },
  covers: ['page-faults', 'blocked-workers'],
  look: (analysis) => analysis.first_calls.flatMap((first) => lookAt(analysis, first)),
}

/** Time per token that calls of the same context usually take: of the phase itself, else of decode, as a batch does at most the work of its tokens one by one. */
function typicalOf({ first_calls }: Analysis, first: FirstCall) {
  if (first.phase !== 'warm-up' && first.typical_token_ns !== null && first.further_calls > 1)
    return { ns: first.typical_token_ns, calls: first.further_calls, phase: first.phase }
  const decode = first_calls.find(({ phase, context }) => phase === 'decode' && context === first.context)
  if (!decode || decode.typical_token_ns === null || decode.further_calls < 2) return undefined
  return { ns: decode.typical_token_ns, calls: decode.further_calls, phase: decode.phase }
}

function lookAt(analysis: Analysis, first: FirstCall): Looked[] {
  const typical = typicalOf(analysis, first)
  if (!typical || !(typical.ns > 0)) return []
  const { phase, tokens, time_ns, major_faults, disk_bytes, blocked_ns, slowest_layer } = first
  const times = time_ns / (typical.ns * tokens)
  const lostNs = time_ns - typical.ns * tokens
  const allNs = analysis.call_time.reduce((sum, { time_ns }) => sum + time_ns, 0)
  const as =
    typical.phase === phase ? `later ones` : `its ${tokens === 1 ? 'token' : plural(tokens, 'token')} in decode`
  const isRead = (disk_bytes ?? 0) >= READ.value
  const hasFaults = (major_faults ?? 0) >= FAULTS.value || isRead
  const isBlocked = blocked_ns !== null && blocked_ns >= lostNs / 4
  // A warm-up computes all experts, which no other call does.
  const isExpected = !hasFaults && ((phase === 'warm-up' && !isBlocked) || stoppedNs(analysis) >= STOPPED.value * allNs)
  const call = `the first ${phase} call${first.role === null ? '' : ` of the ${first.role}`}`
  const figure = `${call} takes ${number(times)} × as long as ${as}`
  if (times < TIMES.value || lostNs < SHARE.value * allNs || isExpected) return [{ figure }]
  const where = slowest_layer === null ? '' : `, most in blk.${slowest_layer}`
  const why = hasFaults
    ? `: ${plural(major_faults ?? 0, 'page fault')} that read ${isRead ? `${number(disk_bytes! / 1e6)} MB ` : ''}from the disk${where}`
    : isBlocked
      ? `: a worker is blocked ${time(blocked_ns)} in operators${where} (${major_faults === null ? 'barrier, lock or page' : `barrier or lock: ${plural(major_faults, 'page fault')} that read`})`
      : ''
  const sentence = `${call} takes ${number(times)} × as long as ${as} (${time(time_ns)})${why}`
  return found(sentence, {
    time_ns: lostNs,
    ...(hasFaults
      ? { confidence: 'high', confidence_reason: 'page faults were counted' }
      : isBlocked
        ? {
            confidence: 'medium',
            confidence_reason: `blocked ${percent(blocked_ns / time_ns)} of the call; the cause is not recorded`,
          }
        : {
            confidence: 'medium',
            confidence_reason: 'the times are recorded, their cause is not',
          }),
    evidence: {
      phase,
      call_ns: time_ns,
      tokens,
      typical_token_ns: typical.ns,
      compared_calls: typical.calls,
      ...(major_faults !== null && { major_faults }),
      ...(disk_bytes !== null && { disk_bytes }),
      ...(blocked_ns !== null && { blocked_ns }),
      ...(slowest_layer !== null && { slowest_layer, slowest_layer_ns: first.slowest_layer_ns! }),
    },
    check: { sql: `select dur from ${callsOf(phase)} order by ts limit 1`, evidence: 'call_ns' },
  })
}

/** Time in which the workers of a call were blocked at barriers, all at once, on average. */
const stoppedNs = ({ operators: { rows } }: Analysis): number =>
  stoppedIn(rows) / Math.max(1, ...rows.map((row) => row.workers.length))
