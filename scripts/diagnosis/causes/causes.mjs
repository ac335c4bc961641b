/** All causes, in the order of the table. */
import { slowReader } from './client.mjs'
import { hog } from './hog.mjs'
import { coldCache, memoryLimit } from './memory.mjs'
import { longContext, slowerType } from './model.mjs'
import { passiveWaiting } from './passive.mjs'
import { quota } from './quota.mjs'
import { debugLog, slowGrammar } from './sampling.mjs'
import { newThreads, teamsOfCallers, twoRuntimes } from './teams.mjs'
import { boundPool, moreThreads, oneCpu } from './threads.mjs'

export const CAUSES = [
  hog,
  moreThreads,
  oneCpu,
  boundPool,
  quota,
  memoryLimit,
  coldCache,
  slowGrammar,
  longContext,
  debugLog,
  slowerType,
  passiveWaiting,
  teamsOfCallers,
  twoRuntimes,
  newThreads,
  slowReader,
]
