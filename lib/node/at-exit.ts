import { rmdirSync, rmSync } from 'node:fs'
import self from 'node:process'

/** What is done when this process exits. */
const acts = new Set<() => void>()

/** Calls `act` when this process exits, synchronously, though not if it is killed. Returns a function that undoes this. */
export function atExit(act: () => void): () => void {
  if (acts.size === 0) self.once('exit', actAll)
  acts.add(act)
  return () => {
    acts.delete(act)
    if (acts.size === 0) self.removeListener('exit', actAll)
  }
}

/** The latest first: a process in a folder before the folder. */
function actAll(): void {
  for (const act of [...acts].reverse()) act()
}

/** Removes a file or folder, if that is possible. */
export function removeNow(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true, maxRetries: 3 }) // a thread of a query may still write there
  } catch {
    // The next process removes it.
  }
}

/** Removes a folder unless others have something there. */
export function removeEmpty(folder: string): void {
  try {
    rmdirSync(folder)
  } catch {
    // It is in use, or does not exist.
  }
}
