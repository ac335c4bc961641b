#!/usr/bin/env node
import { setFlagsFromString } from 'node:v8'
import { version } from './version.ts'

/** Ends the process by an error that no command caught. */
async function fail(error: unknown): Promise<void> {
  const { report } = await import('./main.ts')
  await report(error)
  process.exit()
}

async function start(): Promise<void> {
  // trace_processor is 13 MB of WASM. V8's optimizing compiler takes longer for it than a small trace takes to load (1.3 s
  // of 1.7 s), and a large trace hardly loads faster with it (6.0 s instead of 6.4 s for 40 MB).
  setFlagsFromString('--liftoff-only')
  // The optimizing compiler for JavaScript takes a third of the CPU time of a conversion of a second. So it compiles functions that are twice
  // as hot as V8's default requires (67584 bytes of bytecode), and less of what they call (default: 920 bytes).
  setFlagsFromString('--interrupt-budget=135168')
  setFlagsFromString('--max-inlined-bytecode-size-cumulative=600')
  // Collections of a millisecond are divided among threads at a loss: 2 % of the CPU time, and no time is won.
  setFlagsFromString('--no-parallel-scavenge')
  const { main } = await import('./main.ts')
  // Listeners are not awaited, so that `main` does not catch their errors. No error should get here.
  process.on('uncaughtException', fail)
  await main(process.argv.slice(2), process)
  // An input that was not read to its end (a pipe that stays open) must not keep the process alive.
  process.exit()
}

// Failed writes reject their promise; without a listener, the same error would also end the process.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined)

// Scripts ask for the version: nothing else is loaded for it.
if (process.argv.slice(2).join() === '--version')
  process.stdout.write(`${version}\n`, (error) => error && void fail(error))
else await start()
