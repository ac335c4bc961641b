/** All causes, in the order of the table. */
import { attentionOff, cacheType, expertsOnCpu, fewLayers, oddHeads, weightType } from './devices.mjs'
import { hog, hogOnOne } from './hog.mjs'
import { cutLog, killedProgram } from './logs.mjs'
import { coldCache, expertsRead, memoryLimit, slowDisk } from './memory.mjs'
import { longContext, slowerType } from './model.mjs'
import { PAIRS } from './pairs.mjs'
import { noSpinning, passiveWaiting } from './passive.mjs'
import { hotGpu, powerCap } from './power.mjs'
import { quota } from './quota.mjs'
import * as requests from './requests.mjs'
import { debugLog, noReuse, slowGrammar, slowSamplers } from './sampling.mjs'
import { newThreads, teamsOfCallers, twoRuntimes } from './teams.mjs'
import { boundPool, moreThreads, oneCpu } from './threads.mjs'
import { UNSEEN } from './unseen.mjs'

export const CAUSES = [
  hog,
  hogOnOne,
  moreThreads,
  oneCpu,
  boundPool,
  quota,
  memoryLimit,
  expertsRead,
  coldCache,
  slowDisk,
  slowGrammar,
  slowSamplers,
  noReuse,
  longContext,
  debugLog,
  slowerType,
  passiveWaiting,
  noSpinning,
  teamsOfCallers,
  twoRuntimes,
  newThreads,
  requests.slowReader,
  requests.promptAgain,
  requests.longPrompt,
  requests.slotsTaken,
  requests.cancelled,
  requests.serverGrammar,
  requests.serverSamplers,
  requests.uselessDrafts,
  cutLog,
  killedProgram,
  oddHeads,
  cacheType,
  weightType,
  expertsOnCpu,
  fewLayers,
  attentionOff,
  powerCap,
  hotGpu,
  ...PAIRS,
  ...UNSEEN,
]
