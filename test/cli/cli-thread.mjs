/** A thread in which the CLI runs, as `main(args, io)`: the caller waits for each run, as for a process. */
import { Readable, Writable } from 'node:stream'
import { parentPort, workerData } from 'node:worker_threads'

const { done, port, main: path } = workerData
const { main, endByError } = await import(path)

/** A stream that keeps what is written. */
function kept() {
  const pieces = []
  const write = (piece, _, next) => {
    pieces.push(Buffer.from(piece))
    next()
  }
  return Object.assign(new Writable({ write }), { bytes: () => Buffer.concat(pieces) })
}

let io

async function run({ argv, env, input, columns }) {
  // Of the thread's own: what is not handed on gets it, such as programs that are started.
  for (const name of Object.keys(process.env)) if (!(name in env)) delete process.env[name]
  Object.assign(process.env, env)
  const stdin = Readable.from(input.length > 0 ? [Buffer.from(input)] : [], { objectMode: false })
  const stdout = columns === undefined ? kept() : Object.assign(kept(), { isTTY: true, columns })
  io = { argv, env, stdin, stdout, stderr: kept() }
  await main(argv.slice(2), io)
  answer()
}

function answer() {
  port.postMessage({ status: io.exitCode ?? 0, stdout: io.stdout.bytes(), stderr: io.stderr.bytes() })
  Atomics.store(done, 0, 1)
  Atomics.notify(done, 0)
}

process.on('uncaughtException', (error) => void endByError(error).then(answer))
parentPort.on('message', run)
