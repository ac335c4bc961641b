/** All causes, in the order of the table. */
import { boundPlaces, HARMLESS } from './bound.mjs'
import {
  attentionOff,
  cacheType,
  expertsOnCpu,
  fewLayers,
  gpusByTurns,
  halfOffload,
  oddHeads,
  outputOnCpu,
  weightType,
} from './devices.mjs'
import { besideDraft } from './drafts.mjs'
import { sameExperts, sortedExperts } from './experts.mjs'
import { copiedWeights, newPipelines, starvedGpu } from './gpu.mjs'
import { hog, hogOnOne, hogWithSwitches } from './hog.mjs'
import { pausingProgram, stoppedProgram } from './host.mjs'
import { cutLog, damagedLog, fullLog, killedProgram } from './logs.mjs'
import { coldCache, expertsRead, memoryLimit, slowDisk, swap, weightsTaken } from './memory.mjs'
import { longContext, memoryBound, noFlashAttention, quantisedCache, slowerType } from './model.mjs'
import { PAIRS } from './pairs.mjs'
import { noSpinning, passiveWaiting } from './passive.mjs'
import { hotGpu, powerCap } from './power.mjs'
import { quota } from './quota.mjs'
import { remoteBackend } from './remote.mjs'
import * as requests from './requests.mjs'
import { debugLog, noReuse, samplingInGraph, slowGrammar, slowSamplers } from './sampling.mjs'
import { tooManyThreads } from './scaling.mjs'
import { newThreads, teamsOfCallers, twoRuntimes } from './teams.mjs'
import { boundPool, moreThreads, oneCpu } from './threads.mjs'
import { UNSEEN } from './unseen.mjs'

export const CAUSES = [
  hog,
  hogOnOne,
  hogWithSwitches,
  moreThreads,
  oneCpu,
  boundPool,
  boundPlaces,
  quota,
  memoryLimit,
  expertsRead,
  coldCache,
  slowDisk,
  swap,
  weightsTaken,
  slowGrammar,
  slowSamplers,
  noReuse,
  longContext,
  noFlashAttention,
  quantisedCache,
  memoryBound,
  samplingInGraph,
  sortedExperts,
  sameExperts,
  debugLog,
  slowerType,
  passiveWaiting,
  noSpinning,
  teamsOfCallers,
  twoRuntimes,
  newThreads,
  tooManyThreads,
  pausingProgram,
  stoppedProgram,
  requests.slowReader,
  requests.promptAgain,
  requests.longPrompt,
  requests.slotsTaken,
  requests.cancelled,
  requests.serverGrammar,
  requests.serverSamplers,
  requests.uselessDrafts,
  requests.statesKept,
  cutLog,
  damagedLog,
  fullLog,
  killedProgram,
  oddHeads,
  cacheType,
  weightType,
  expertsOnCpu,
  fewLayers,
  halfOffload,
  gpusByTurns,
  outputOnCpu,
  attentionOff,
  remoteBackend,
  starvedGpu,
  copiedWeights,
  newPipelines,
  powerCap,
  hotGpu,
  ...PAIRS,
  ...UNSEEN,
  ...HARMLESS,
  besideDraft,
]
