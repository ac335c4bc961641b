import { writeSync } from 'node:fs'

/** Signals that end this process, and the corresponding exit codes in shells. */
const SIGNALS = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const

type EndingSignal = keyof typeof SIGNALS

/** Is it one of the signals that end a process? */
export const isEnding = (signal: NodeJS.Signals): signal is EndingSignal => signal in SIGNALS

/** Calls `act` for each signal that ends this process. Returns a function that undoes this. */
export function whenSignalled(act: (signal: EndingSignal) => void): () => void {
  const signals = Object.keys(SIGNALS) as EndingSignal[]
  for (const signal of signals) process.on(signal, act)
  return () => {
    for (const signal of signals) process.removeListener(signal, act)
  }
}

/** Ends this process as a signal does, with the processes and temporary files that it owns, and prints why. */
export function endBy(signal: EndingSignal, message: string): never {
  try {
    writeSync(2, `${message}\n`)
  } finally {
    process.exit(SIGNALS[signal])
  }
}

/** On a signal that ends this process: calls `act`, prints `message`, and ends. Returns a function that undoes this. */
export function onSignals(message: string | (() => string), act: () => void = () => undefined): () => void {
  return whenSignalled((signal) => {
    act()
    endBy(signal, typeof message === 'string' ? message : message())
  })
}

/** The same, until `work` has ended. */
export function interruptible<T>(message: string | (() => string), work: () => Promise<T>): Promise<T> {
  const release = onSignals(message)
  return work().finally(release)
}
