import { totalmem } from 'node:os'
import self from 'node:process'

/** The memory of this machine, and what this process could still use: within its control group, where that is limited. */
export const usableMemory = (): { readonly total_bytes: number; readonly available_bytes: number } => ({
  total_bytes: totalmem(),
  available_bytes: Math.min(self.availableMemory(), totalmem()),
})
