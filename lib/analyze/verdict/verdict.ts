import { duration, plural, threeDigits } from '../../model/units.ts'
import type { Analysis, Finding, GpuDevice } from '../analysis.ts'
import { ofContexts } from '../calls/main-context.ts'
import { devicesOf, confidenceIn as gpuConfidence, nameOf as gpuNameOf, PIECES_MIN } from '../findings/gpu-device.ts'
import { confidenceOfRequests } from '../findings/requests.ts'
import { confidenceOf, phasesOf } from '../findings/rule.ts'
import { percent } from '../findings/words.ts'
import { type Cause, causeOfCalls, causeOfDevice, causeOfRequests } from './cause.ts'
import { type Ceiling, ceilingOf, ceilingText, gpuOf, isNear } from './ceiling.ts'
import type { RunVerdict } from './figures.ts'
import { causeOfSlowest, requestsIn } from './requests.ts'

/** The answer in one line. It is made of the other figures of the Analysis, and says less where they are not certain. */
export function verdictOf(analysis: Analysis): RunVerdict {
  const judges = [ofFastCalls, ofRequests, ofDecode, ofPrompt, ofCalls, ofGpu, ofBenchmarks, ofModel, ofLittleWork]
  for (const judge of judges) {
    const verdict = judge(analysis)
    if (verdict) return verdict
  }
  return { ...NOTHING, sentence: `cannot say: ${whyNothing(analysis)}`, hint: recording(analysis) }
}

const NOTHING = {
  subject: 'none',
  rate: null,
  unit: null,
  ceiling: null,
  ceiling_share: null,
  ceiling_running_share: null,
  ceiling_by: null,
  cause: null,
  confidence: 'low',
  confidence_reason: 'no figure was recorded',
  hint: null,
} as const

const RECORD = 'ggml2perfetto record -- <program> [arguments]'
/** Of a process that was not started to be recorded. */
const ATTACH = 'sudo ggml2perfetto record --attach <process id> --level op'
const WITH_PEAKS = 'the ceiling is not known; on the machine that recorded: ggml2perfetto stats <logs> --peaks measure'

/** A log of slow calls that has none. */
function ofFastCalls({ run, calls }: Analysis): RunVerdict | undefined {
  if (!run.left_out || calls.count > 0) return undefined
  const { calls: count, time_ns, limit } = run.left_out
  return {
    ...NOTHING,
    sentence: `no call lasted ${limit}: ${plural(count, 'call')}, ${duration(time_ns)} in all, left out`,
  }
}

/** In place of the verdict of a document that has none. */
export const NO_VERDICT: RunVerdict = { ...NOTHING, sentence: '' }

/** `decode 684 tok/s` with what follows: a cause; that there is none, where that is known; or nothing. */
function sentenceOf(
  analysis: Analysis,
  cause: Cause | undefined,
  speed: string,
  ceiling: Ceiling | undefined,
  doubt: string,
): string {
  const reached = `${speed}${ceilingText(ceiling)}${doubt}`
  if (cause) return `${reached}; ${inPhase(analysis, cause.finding)}`
  if (isNear(ceiling)) return `${reached}: ${adviceAt(analysis, ceiling!)}`
  if (ceiling) return isQuiet(analysis) ? `${reached}; no cause was found` : reached
  return hasCauses(analysis) && isQuiet(analysis) && doubt === '' ? `nothing unusual: ${reached}` : reached
}

/** What slows down a prompt, or loading, is a matter of the first token. */
function inPhase({ calls, first_token }: Analysis, { rule, sentence, evidence }: Finding): string {
  const isOfPrompt = evidence['phase'] === 'prefill' && calls.ttft_ns !== null
  const ns = rule === 'slow-load' ? toFirstToken(first_token) : isOfPrompt ? calls.ttft_ns : null
  return ns === null ? sentence : `first token after ${duration(ns)}: ${sentence}`
}

/** From the start of loading to the end of the prompt; null where one of them is not known. */
function toFirstToken(figures: Analysis['first_token']): number | null {
  const parts = figures?.parts ?? []
  const until = parts.slice(0, parts.findIndex(({ what }) => what === 'prefill') + 1)
  if (until.length === 0 || until[0]!.time_ns === null || until.at(-1)!.time_ns === null) return null
  return until.reduce((sum, { time_ns, before_ns }, i) => sum + (time_ns ?? 0) + (i > 0 ? (before_ns ?? 0) : 0), 0)
}

function adviceAt({ calls }: Analysis, { by, backend }: Ceiling): string {
  if (by === 'arithmetic')
    return backend === null ? 'more or faster cores, or a GPU, would help' : 'a faster GPU would help'
  const batch = (calls.sequences ?? 1) > 1.5 ? 'a larger batch' : 'a batch'
  return `smaller weights, ${batch} or speculation would help${backend === null ? '; more threads would not' : ''}`
}

/** Are there no findings, also of low confidence, but that the machine is the limit? */
const isQuiet = ({ findings }: Analysis) => findings.every(({ rule }) => rule === 'roofline')

/** Does the log contain what most causes are found in? */
const hasCauses = ({ run }: Analysis) => run.recorded.includes('operators')

const doubtOf = ({ confidence, confidence_reason }: Pick<Finding, 'confidence' | 'confidence_reason'>) =>
  confidence === 'high' ? '' : ` (${confidence_reason})`

/** How the same run is recorded with more. */
const recording = ({ inputs }: Pick<Analysis, 'inputs'>) =>
  inputs.some(({ format }) => format === 'bpftrace') ? ATTACH : RECORD

const withOperators = (analysis: Analysis) => `no causes can be seen without operators: ${recording(analysis)}`

/** What is missing for more. */
function hintOf(analysis: Analysis, ceiling: Ceiling | undefined): string | null {
  // A recording of ours without them says itself why.
  const { level, recorded } = analysis.run
  if (!hasCauses(analysis)) return level === null && !recorded.includes('gpu') ? withOperators(analysis) : null
  const isWithoutPeaks = analysis.rooflines.some(
    (roofline) =>
      roofline.scope === 'phase' &&
      roofline.bytes !== null &&
      roofline.mbu_share === null &&
      gpuOf(analysis.rooflines, roofline)?.mbu_share == null,
  )
  return !ceiling && isWithoutPeaks ? WITH_PEAKS : null
}

function ofDecode(analysis: Analysis): RunVerdict | undefined {
  const { decode_tokens_per_s: rate, sequences, by_phase, contexts } = analysis.calls
  if (rate === null) return undefined
  const certain = confidenceOf(analysis, by_phase.decode?.calls ?? by_phase.mixed?.calls ?? 0)
  const ceiling = certain.confidence === 'low' ? undefined : ceilingOf(analysis, 'decode', rate, sequences ?? 1)
  const speed = `decode ${threeDigits(rate)} tok/s${ofContexts(contexts)}`
  return ofTokens(analysis, 'decode', speed, rate, ceiling, certain)
}

function ofPrompt(analysis: Analysis): RunVerdict | undefined {
  const { prefill_tokens_per_s: rate, by_phase } = analysis.calls
  if (rate === null || !by_phase.prefill) return undefined
  const { calls, tokens } = by_phase.prefill
  const certain = confidenceOf(analysis, calls)
  const ceiling = certain.confidence === 'low' ? undefined : ceilingOf(analysis, 'prefill', rate, tokens / calls)
  return ofTokens(analysis, 'prompt', `prompt processing ${threeDigits(rate)} tok/s`, rate, ceiling, certain)
}

function ofTokens(
  analysis: Analysis,
  subject: 'decode' | 'prompt',
  speed: string,
  rate: number,
  ceiling: Ceiling | undefined,
  certain: Pick<Finding, 'confidence' | 'confidence_reason'>,
): RunVerdict {
  const cause = causeOfCalls(analysis)
  return {
    subject,
    sentence: sentenceOf(analysis, cause, speed, ceiling, doubtOf(certain)),
    rate,
    unit: 'tok/s',
    ceiling: ceiling?.tokensPerS ?? null,
    ceiling_share: ceiling?.share ?? null,
    ceiling_running_share: ceiling?.runningShare ?? null,
    ceiling_by: ceiling?.by ?? null,
    cause: cause?.typed ?? null,
    ...certain,
    hint: hintOf(analysis, ceiling),
  }
}

/** Calls without a rate: encoders, graphs of unknown kind. */
function ofCalls(analysis: Analysis): RunVerdict | undefined {
  const [longest] = phasesOf(analysis)
  if (!longest) return undefined
  const { phase, calls, time_ns } = longest
  const certain = confidenceOf(analysis, calls)
  const speed = `${plural(calls, phase === 'compute' ? 'graph' : `${phase} call`)} in ${duration(time_ns)}`
  const cause = causeOfCalls(analysis)
  return {
    ...NOTHING,
    subject: 'calls',
    sentence: sentenceOf(analysis, cause, speed, undefined, doubtOf(certain)),
    cause: cause?.typed ?? null,
    ...certain,
    hint: hintOf(analysis, undefined),
  }
}

function ofRequests(analysis: Analysis): RunVerdict | undefined {
  const found = requestsIn(analysis)
  if (!found) return undefined
  const { noun, requests, latency, slowest } = found
  const certain = confidenceOfRequests(analysis, '')
  const cause = causeOfRequests(analysis)
  const p50 = duration(latency.p50_ns)
  const { count } = analysis.requests!
  // Latencies of requests of several types say nothing together; findings count all.
  const judged = plural(requests, noun === 'request' ? 'completion' : noun)
  const isPart = requests < count
  const times = requests === 1 ? `in ${p50}` : `p50 ${p50}, p99 ${duration(latency.p99_ns)}`
  const speed =
    requests === 1
      ? `${isPart ? `${plural(count, 'request')}; ${judged}` : `1 ${noun}`} ${times}`
      : `${isPart ? `${plural(count, 'request')}; of ${judged}` : plural(requests, noun)}, ${times}`
  const why =
    cause && !WAITS.includes(cause.finding.rule) ? cause.finding.sentence : slowest && causeOfSlowest(slowest, requests)
  return {
    ...NOTHING,
    subject: 'requests',
    sentence: `${speed}${certain.confidence === 'low' ? doubtOf(certain) : ''}${why ? `: ${why}` : ''}`,
    rate: latency.p50_ns,
    unit: 'ns',
    cause: cause?.typed ?? null,
    ...certain,
  }
}

/** Findings that say what the slowest request says by itself. */
const WAITS = ['request-stalled', 'queue-time']

const BUSY = 0.9

function ofGpu(analysis: Analysis): RunVerdict | undefined {
  const [device] = devicesOf(analysis).toSorted((a, b) => b.time.total_ns - a.time.total_ns)
  if (!device) return undefined
  const { busy_ns, total_ns } = device.time
  const busy = busy_ns / total_ns
  const certain = gpuConfidence(analysis, device)
  const cause = causeOfDevice(analysis, busy_ns, total_ns)
  const speed = `${gpuNameOf(analysis, device)} busy ${percent(busy)} of ${duration(total_ns)}${doubtOf(certain)}`
  const end = busy >= BUSY && isQuiet(analysis) ? `nothing unusual: ${speed}` : speed
  return {
    ...NOTHING,
    subject: 'gpu',
    sentence: cause ? `${speed}${ofDevice(cause.finding.sentence, gpuNameOf(analysis, device))}` : end,
    rate: busy,
    unit: 'busy',
    ceiling: 1,
    ceiling_share: busy,
    cause: cause?.typed ?? null,
    ...certain,
  }
}

/** Work that is too little for a finding, or of an unknown time. */
function ofLittleWork(analysis: Analysis): RunVerdict | undefined {
  const devices = analysis.gpu?.devices ?? []
  const [most] = devices.toSorted((a, b) => b.work_ns - a.work_ns)
  if (!most) return undefined
  if (most.times === 'durations') return { ...NOTHING, subject: 'gpu', sentence: durationsOf(analysis, most) }
  const ns = most.time?.total_ns ?? 0
  const within = ns > 0 ? ` within ${duration(ns)}` : ''
  const work = `${plural(most.work, 'piece')} of work, ${duration(most.work_ns)} in all${within}`
  const why = most.work < PIECES_MIN ? 'too few for a judgement' : 'when is not known'
  return { ...NOTHING, subject: 'gpu', sentence: `${gpuNameOf(analysis, most)}: ${work}: ${why}` }
}

/** A log of sums, or of durations. */
function durationsOf(analysis: Analysis, device: GpuDevice): string {
  const work = `${duration(device.work_ns)} of work in ${plural(device.work, 'piece')}`
  return `${gpuNameOf(analysis, device)}: ${work}; the log contains durations only, so the busy share is not known`
}

/** `GPU 0 waits for launches 34 % of the time` after the name of the device: `: waits for launches 34 % of the time`. */
const ofDevice = (sentence: string, name: string) =>
  sentence.startsWith(`${name} `) ? `: ${sentence.slice(name.length + 1)}` : `; ${sentence}`

/** Tests that are named. */
const TESTS = 3

function ofBenchmarks(analysis: Analysis): RunVerdict | undefined {
  const { benchmarks } = analysis
  const [first] = benchmarks
  if (!first) return undefined
  const tests = benchmarks.slice(0, TESTS).map(({ test, tokens_per_s }) => `${test} ${threeDigits(tokens_per_s)} tok/s`)
  const more = benchmarks.length > TESTS ? `, and ${plural(benchmarks.length - TESTS, 'more test')}` : ''
  return {
    ...NOTHING,
    subject: 'benchmarks',
    sentence: `${tests.join(', ')}${more}`,
    rate: first.tokens_per_s,
    unit: 'tok/s',
    confidence: 'medium',
    confidence_reason: 'the program measured it itself',
    hint: withOperators(analysis),
  }
}

function ofModel({ model, inputs, run }: Analysis): RunVerdict | undefined {
  const bytes = model?.decode.weight_bytes ?? null
  const isRun = run.command !== null || inputs.some(({ issues }) => issues['run-without-end'] !== undefined)
  const lacking = isRun ? 'the log ends before a call was complete' : 'no run was recorded'
  if (bytes === null || inputs.some(({ operators }) => operators > 0)) return undefined
  return {
    ...NOTHING,
    subject: 'model',
    sentence: `a token of decode reads ${threeDigits(bytes / 1e6)} MB of weights; ${lacking}`,
    confidence: 'high',
    confidence_reason: 'the model contains it',
    hint: RECORD,
  }
}

function whyNothing(analysis: Analysis): string {
  const { failed, by_phase } = analysis.calls
  const warmUps = by_phase['warm-up']?.calls ?? 0
  const recorded = (n: number) => `${plural(n, 'call')} recorded, and ${n === 1 ? 'it' : 'all'}`
  if (failed > 0) return `${recorded(failed)} failed`
  if (warmUps === 1) return `${recorded(1)} is a warm-up`
  if (warmUps > 1) return `${recorded(warmUps)} are warm-ups`
  return ['no calls of llama.cpp were recorded', ...otherWork(analysis)].join('; ')
}

/** What took time without a call of llama.cpp. */
function otherWork({ operators, gpu }: Analysis): string[] {
  const { executions, operator_time_ns } = operators
  if (executions > 0) return [`${plural(executions, 'operator')} took ${duration(operator_time_ns)}`]
  const kinds = (gpu?.processes ?? []).flatMap(({ kinds }) => kinds)
  const sum = (key: 'count' | 'time_ns') => kinds.reduce((all, kind) => all + kind[key], 0)
  return sum('count') === 0
    ? []
    : [`${plural(sum('count'), 'call')} of the GPU's library took ${duration(sum('time_ns'))}`]
}
