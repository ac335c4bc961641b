import type { Analysis, Finding } from '../analysis.ts'
import { barrierWait } from './barrier-wait.ts'
import { betweenCalls } from './between-calls.ts'
import { cancelledWork } from './cancelled-work.ts'
import { contextGrowth } from './context-growth.ts'
import { clockLimit, crowdedAffinity, slowCores, smtSiblings } from './cores.ts'
import { cpuLimit } from './cpu-limit.ts'
import { dividedModel } from './divided-model.ts'
import { expertImbalance } from './expert-imbalance.ts'
import { firstCall } from './first-call.ts'
import { gpuCommunication } from './gpu-communication.ts'
import { gpuCopies } from './gpu-copies.ts'
import { gpuLaunches } from './gpu-launches.ts'
import { gpuMigrations } from './gpu-migrations.ts'
import { gpuTurns } from './gpu-turns.ts'
import { logOutput } from './log-output.ts'
import { losses } from './losses.ts'
import { lowL2Hits } from './low-l2-hits.ts'
import { moreThreadsThanCpus } from './more-threads-than-cpus.ts'
import { outsideGraphs } from './outside-graphs.ts'
import { blockedWorkers, pageFaults } from './page-faults.ts'
import { passiveWaiting } from './passive-waiting.ts'
import { flashAttentionOff, layersOnCpu, movedOperators } from './placement.ts'
import { powerCap } from './power-cap.ts'
import { preempted } from './preempted.ts'
import { adviceOf } from './program.ts'
import { promptProcessedAgain } from './prompt-processed-again.ts'
import { queueTime } from './queue-time.ts'
import { remoteMemory } from './remote-memory.ts'
import { remoteWait } from './remote-wait.ts'
import { requestStalled } from './request-stalled.ts'
import { roofline } from './roofline.ts'
import type { Looked, Rule } from './rule.ts'
import { slowClient } from './slow-client.ts'
import { slowLoad } from './slow-load.ts'
import { slowGrammar, slowSamplers } from './slow-sampling.ts'
import { slowerType } from './slower-type.ts'
import { speculationSlower } from './speculation-slower.ts'
import { stateSaves } from './state-saves.ts'
import { thermalThrottling } from './thermal-throttling.ts'
import { newThreads, teamsOfCallers, twoOpenmpRuntimes } from './thread-teams.ts'
import { unbalancedOp } from './unbalanced-op.ts'
import { unusedTensorCores } from './unused-tensor-cores.ts'
import { weightFaults } from './weight-faults.ts'

/** All rules of the diagnosis; docs/reference/findings.md describes each. */
export const RULES: readonly Rule[] = [
  cpuLimit,
  preempted,
  moreThreadsThanCpus,
  teamsOfCallers,
  newThreads,
  twoOpenmpRuntimes,
  crowdedAffinity,
  smtSiblings,
  slowCores,
  clockLimit,
  remoteMemory,
  passiveWaiting,
  pageFaults,
  blockedWorkers,
  weightFaults,
  firstCall,
  barrierWait,
  unbalancedOp,
  contextGrowth,
  slowerType,
  roofline,
  logOutput,
  outsideGraphs,
  betweenCalls,
  movedOperators,
  layersOnCpu,
  flashAttentionOff,
  dividedModel,
  remoteWait,
  gpuLaunches,
  gpuTurns,
  gpuCommunication,
  gpuCopies,
  gpuMigrations,
  unusedTensorCores,
  lowL2Hits,
  losses,
  expertImbalance,
  requestStalled,
  promptProcessedAgain,
  slowGrammar,
  slowSamplers,
  queueTime,
  slowClient,
  speculationSlower,
  stateSaves,
  slowLoad,
  cancelledWork,
  powerCap,
  thermalThrottling,
]

/**
 * What makes a run slow: the findings in its Analysis, most time first, without consequences of other findings; what the machine permits
 * comes after what takes a fifth of its time. Empty where all figures are within what a quiet run shows.
 */
export function findings(analysis: Analysis): Finding[] {
  const all = RULES.flatMap((rule) =>
    rule.look(analysis).flatMap(({ finding }) => (finding ? [{ rule, finding }] : [])),
  )
  const allNs = analysis.call_time.reduce((sum, { time_ns }) => sum + time_ns, 0)
  return all
    .filter(({ finding }) => finding.time_ns === 0 || finding.time_ns >= LEAST_SHARE * allNs)
    .filter(
      ({ rule: { id }, finding }) =>
        !RULES.some((cause) => cause.covers?.includes(id) && isExplained(cause, all, finding)),
    )
    .sort((a, b) => weightOf(b) - weightOf(a))
    .map(({ rule, finding }) => ({
      rule: rule.id,
      ...finding,
      advice: finding.advice ?? adviceOf(rule.advice, analysis),
    }))
}

type OfRule = { readonly rule: Rule; readonly finding: NonNullable<Looked['finding']> }

/** Does a rule explain a consequence: by one of its findings, or by all of the same phase, such as several operators that are not split? */
function isExplained(cause: Rule, all: readonly OfRule[], { time_ns, evidence }: OfRule['finding']): boolean {
  const own = all.flatMap(({ rule, finding }) => (rule === cause ? [finding] : []))
  const ofPhase = own.filter((finding) => finding.evidence['phase'] === evidence['phase'])
  const together = ofPhase.reduce((sum, { time_ns }) => sum + time_ns, 0)
  return own.length > 0 && Math.max(together, ...own.map(({ time_ns }) => time_ns)) >= COVERED * time_ns
}

/** A loss of this part of a phase can be saved: it comes ahead of what the machine permits. */
const SAVED_FIRST = 0.2
const weightOf = ({ rule: { isLimit }, finding: { time_ns } }: OfRule) => (isLimit ? SAVED_FIRST * time_ns : time_ns)

/** Of the time of all calls: what explains less is not worth a sentence. */
const LEAST_SHARE = 0.02
/** A cause leaves out a consequence that explains at most twice its time: what waits for one worker is not equally long for all. */
const COVERED = 0.5

/** The figures that the rules looked at, by id of the rule: with a finding or without. */
export function lookedAt(analysis: Analysis): { readonly rule: string; readonly figures: readonly Looked[] }[] {
  return RULES.map((rule) => ({ rule: rule.id, figures: rule.look(analysis) }))
}
