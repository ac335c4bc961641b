/** Two causes at once: each is found, and one of them first. */
import { hog, hogOnOne } from './hog.mjs'
import { cutLog } from './logs.mjs'
import { longContext, slowerType } from './model.mjs'
import { passiveWaiting } from './passive.mjs'
import { quota } from './quota.mjs'
import { slotsTaken } from './requests.mjs'
import { debugLog, noReuse, slowGrammar, slowSamplers } from './sampling.mjs'

/** The program of the first one, in the place of the second one: what it plants around a program, and what it does to the log. */
const both = (program, place, changes = {}) => ({
  id: `${program.id}+${place.id}`,
  title: `${program.title}; ${place.title}`,
  builds: program.builds.filter((build) => place.builds.includes(build)),
  by: place.by ?? program.by,
  isUndisturbed: program.isUndisturbed && place.isUndisturbed,
  causes: [program, place],
  async create(of) {
    const around = await place.create(of)
    try {
      const planted = await program.create(of)
      return {
        ...around,
        ...planted,
        command: [...(around.enter ?? []), ...planted.command],
        env: { ...around.env, ...planted.env },
        undo() {
          planted.undo?.()
          around.undo?.()
        },
      }
    } catch (error) {
      around.undo?.()
      throw error
    }
  },
  ...changes,
})

export const PAIRS = [
  both(slowerType, hog),
  both(passiveWaiting, hogOnOne),
  both(debugLog, quota),
  both(longContext, cutLog),
  both(slowGrammar, cutLog),
  both(slowSamplers, passiveWaiting),
  both(debugLog, passiveWaiting),
  both(slotsTaken, hog),
  both(noReuse, cutLog),
  both(slowGrammar, passiveWaiting),
]
