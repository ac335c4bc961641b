import { type Profiler, Session } from 'node:inspector'
import { afterAll } from '@jest/globals'

/** Scripts whose work counts: the modules of lib, and the file of those that a program runs (test/lib-bundle.mjs). */
const COUNTED = /\/lib(\/(?!generated)|\.\w+\.js$)/

// Functions are counted only if V8 compiles them after this: a test imports this file before all that imports lib (environment.cjs).
Object.assign(globalThis, { countsWork: true })
const session = new Session()
session.connect()
session.post('Profiler.enable')
session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true })
afterAll(() => session.disconnect()) // one that is collected later would end the counts of the next test

/**
 * How often the pieces of code of `lib` ran since the last call: a measure of work that is the same each time, whatever else
 * the machine does. A loop's body counts once for each pass.
 */
export function workDone(): number {
  let work = 0
  const add = ({ url, functions }: Profiler.ScriptCoverage) => {
    if (!COUNTED.test(url)) return
    for (const { ranges } of functions) for (const { count } of ranges) work += count
  }
  session.post('Profiler.takePreciseCoverage', (_, { result }) => result.forEach(add))
  return work
}

/** {@link workDone} of what `run` does. */
export async function workOf(run: () => Promise<unknown>): Promise<number> {
  workDone()
  await run()
  return workDone()
}
