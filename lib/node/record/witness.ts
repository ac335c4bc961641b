import { setTimeout as sleep } from 'node:timers/promises'
import { startChild } from '../children.ts'
import type { Environment } from './program.ts'

/** Prints the name of each signal that it receives, and each line that it reads; ends with its input. */
const SCRIPT = `for s in HUP INT QUIT TERM USR1 USR2; do trap "got=1; echo SIG$s" $s; done
while :; do
  got=
  if read -r line; then echo "$line"; elif [ -z "$got" ]; then exit; fi
done`

/** A program that signals a process and its group (coreutils' timeout does) sends both within this time, in ms. */
const APART_MS = 50
/** A signal to the group that arrives twice within this time, in ms, counts once for the program. */
const SAME_MS = 1000

/** If the witness is stopped, it has seen nothing, in ms. */
const ANSWER_MS = 1000

/** A second process that receives signals sent to our process group or control group, but not those sent to this process alone. */
export interface SignalWitness {
  /** Was a signal that this process just received sent to the whole group? Then the program has received it too. */
  saw(signal: NodeJS.Signals): Promise<boolean>
  close(): void
}

/** Starts the witness: a shell in our process group. Without `sh`, or after that was killed, it sees no signals. */
export function signalWitness(env: Environment): SignalWitness {
  const { LD_PRELOAD: _, ...plain } = env
  const {
    child: shell,
    ended,
    send,
    kill,
  } = startChild('sh', ['-c', SCRIPT], { env: plain, stdio: ['pipe', 'pipe', 'ignore'] })
  const seen = new Map<string, number>()
  const waiting = new Map<string, () => void>()
  let questions = 0
  let rest = ''
  const answerAll = () => {
    for (const answer of waiting.values()) answer()
    waiting.clear()
  }
  void ended.then(({ signal }) => {
    if (signal) seen.set(signal, performance.now())
    answerAll()
  })
  shell.stdin!.on('error', answerAll)
  shell.stdout!.setEncoding('utf8').on('data', (text: string) => {
    const lines = (rest + text).split('\n')
    rest = lines.pop()!
    for (const line of lines) {
      if (line.startsWith('SIG')) seen.set(line, performance.now())
      waiting.get(line)?.()
      waiting.delete(line)
    }
  })
  /** Resolves when the witness has reported all signals received so far. */
  const asked = () =>
    new Promise<void>((resolve) => {
      const question = `${questions++}`
      waiting.set(question, resolve)
      if (send(0) && shell.stdin!.writable) shell.stdin!.write(`${question}\n`)
      else answerAll()
    })
  return {
    async saw(signal) {
      await sleep(APART_MS)
      await Promise.race([asked(), sleep(ANSWER_MS, undefined, { ref: false })])
      return performance.now() - (seen.get(signal) ?? Number.NEGATIVE_INFINITY) < SAME_MS
    },
    close: kill,
  }
}
