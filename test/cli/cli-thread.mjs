/** A thread in which the CLI runs, as `main(args, io)`: the caller waits for each run, as for a process. */
import { randomUUID } from 'node:crypto'
import { closeSync, fstatSync, openSync, readSync, unlinkSync, writeFileSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable, Writable } from 'node:stream'
import { parentPort, workerData } from 'node:worker_threads'

const { done, port, main: path } = workerData
const { main, endByError } = await import(path)

/** A stream that passes what is written to `put`. */
const writable = (put) =>
  new Writable({
    write(piece, _, next) {
      put(piece)
      next()
    },
  })

/** A stream that keeps what is written. */
function kept() {
  const pieces = []
  return Object.assign(
    writable((piece) => pieces.push(Buffer.from(piece))),
    { bytes: () => Buffer.concat(pieces) },
  )
}

/** The descriptor of a file without a name. */
function file(content, flags) {
  const path = join(tmpdir(), `ggml2perfetto-cli-${randomUUID()}`)
  writeFileSync(path, content)
  const descriptor = openSync(path, flags)
  unlinkSync(path)
  return descriptor
}

/** A stream of ours and of a program: what both write, in its order. */
function shared() {
  const fd = file('', 'a+')
  const bytes = () => {
    const all = Buffer.alloc(fstatSync(fd).size)
    readSync(fd, all, 0, all.length, 0)
    return all
  }
  return Object.assign(
    writable((piece) => writeSync(fd, piece)),
    { fd, bytes },
  )
}

/** The program that `record` runs has the streams of the command. */
function streamsOf(argv, input) {
  if (argv[2] !== 'record') return { stdout: kept(), stderr: kept() }
  const [stdout, stderr] = [shared(), shared()]
  return { stdout, stderr, stdio: [file(input, 'r'), stdout.fd, stderr.fd] }
}

let io

async function run({ argv, cwd, env, input, columns }) {
  process.cwd = () => cwd // a thread keeps it: of changes by Jest's `process` it is not informed
  // Of the thread's own: what is not handed on gets it, such as programs that are started.
  for (const name of Object.keys(process.env)) if (!(name in env)) delete process.env[name]
  Object.assign(process.env, env)
  const stdin = Readable.from(input.length > 0 ? [Buffer.from(input)] : [], { objectMode: false })
  const { stdout, stderr, stdio } = streamsOf(argv, input)
  if (columns !== undefined) Object.assign(stdout, { isTTY: true, columns })
  io = { argv, env, stdin, stdout, stderr, stdio }
  await main(argv.slice(2), io)
  answer()
}

function answer() {
  const { exitCode, stdout, stderr, stdio = [] } = io
  port.postMessage({ status: exitCode ?? 0, stdout: stdout.bytes(), stderr: stderr.bytes() })
  for (const fd of stdio) closeSync(fd)
  Atomics.store(done, 0, 1)
  Atomics.notify(done, 0)
}

process.on('uncaughtException', (error) => void endByError(error).then(answer))
parentPort.on('message', run)
