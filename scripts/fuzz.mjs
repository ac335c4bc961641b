/**
 * Fuzzes readers, traces, analyses with what the commands print of them, reports, comparisons, and tables, with seeded mutations of the
 * fixtures, alone and in pairs (test/fuzz/).
 *   npm run fuzz -- [executions, default 100000] [seed, default 1] [--format name] [--way readers|trace|analysis|tables] [--first number]
 * The same seed, format and way give the same inputs. A finding is printed with the number of its execution, the command that repeats it,
 * and its inputs in base64. Executions run in a thread with little memory: one that needs more, or that does not end, is a finding, too.
 */
import { register } from 'node:module'
import { parseArgs } from 'node:util'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'

const REPORT_EVERY = 5000
/** How much the process may grow after the first report, in MiB. */
const GROWTH_MIB_MAX = 400
/** Memory of JavaScript objects. */
const HEAP_MIB_MAX = 1024
/** An execution takes some milliseconds. */
const ENDLESS_S = 300

/** Runs the executions of a thread, and posts each with a fault. `at`: the number of the current one. */
async function execute({ seed, only, first, end, at }) {
  register('./typescript-hooks.mjs', import.meta.url)
  const { Fuzzer } = await import('../test/fuzz/execution.ts')
  const fuzzer = new Fuzzer(seed, only)
  for (let i = first; i < end; i++) {
    at[0] = i
    const { format, way, inputs, fault } = await fuzzer.execute(i)
    parentPort.postMessage({ number: i, format, way, ...(fault !== undefined && { fault, inputs }) })
    if ((i + 1) % REPORT_EVERY === 0) globalThis.gc?.()
  }
}

/** Prints what a thread posts; resolves with the number of the execution that ended it, and why; undefined: all were executed. */
function watched(worker, at, take) {
  return new Promise((resolve, reject) => {
    let [before, why] = [-1, undefined]
    const timer = setInterval(() => {
      if (at[0] === before) {
        why = `no end within ${ENDLESS_S} s`
        worker.terminate()
      }
      before = at[0]
    }, ENDLESS_S * 1000)
    worker.on('message', take)
    worker.on('error', (error) => {
      if (error.code === 'ERR_WORKER_OUT_OF_MEMORY') why = `needs more than ${HEAP_MIB_MAX} MiB`
      else reject(error)
    })
    worker.on('exit', () => {
      clearInterval(timer)
      resolve(why)
    })
  })
}

async function main() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { format: { type: 'string' }, way: { type: 'string' }, first: { type: 'string', default: '0' } },
  })
  const [executions = 100_000, seed = 1] = positionals.map(Number)
  const { format, way } = values
  const first = Number(values.first)
  const end = first + executions
  register('./typescript-hooks.mjs', import.meta.url)
  const { Fuzzer, WAYS } = await import('../test/fuzz/execution.ts')
  const { FORMATS } = await import('../lib/index.ts')
  if (way !== undefined && !WAYS.includes(way)) throw new Error(`--way: expected one of ${WAYS.join(', ')}`)
  const { formats } = new Fuzzer(seed, { format, way })
  const missing = FORMATS.map(({ name }) => name).filter((name) => !format && !formats.includes(name))
  if (missing.length > 0) console.log(`no fixture of: ${missing.join(', ')}`)
  const only = [format && ` --format ${format}`, way && ` --way ${way}`].filter(Boolean).join('')
  console.log(`seed ${seed}, executions ${first} to ${end - 1}${only}`)

  const counts = {}
  const sizes = []
  let findings = 0
  const started = performance.now()
  const found = (number, fault, inputs = []) => {
    findings++
    console.log(`execution ${number} ${fault}`)
    console.log(`  npm run fuzz -- 1 ${seed} --first ${number}${only}`)
    for (const bytes of inputs) console.log(`  ${Buffer.from(bytes).toString('base64')}`)
  }
  const take = ({ number, format: of, way: how, fault, inputs }) => {
    counts[how] = (counts[how] ?? 0) + 1
    if (fault !== undefined) found(number, `(${of}, ${how}): ${fault}`, inputs)
    const done = number + 1 - first
    if (done % REPORT_EVERY !== 0 && number + 1 !== end) return
    sizes.push(Math.round(process.memoryUsage.rss() / 2 ** 20))
    const grown = sizes.at(-1) - sizes[0]
    if (grown > GROWTH_MIB_MAX) {
      findings++
      console.log(`the process grew by ${grown} MiB`)
    }
    const rate = Math.round((done / (performance.now() - started)) * 1e3)
    console.log(`${done} executions, ${rate} a second, RSS ${sizes.at(-1)} MiB, ${findings} findings`)
  }
  const at = new Int32Array(new SharedArrayBuffer(4))
  for (let next = first; next < end; next = at[0] + 1) {
    at[0] = next
    const data = { seed, only: { format, way }, first: next, end, at }
    const limits = { maxOldGenerationSizeMb: HEAP_MIB_MAX }
    const worker = new Worker(new URL(import.meta.url), { workerData: data, resourceLimits: limits })
    const why = await watched(worker, at, take)
    if (why !== undefined) found(at[0], why)
  }
  console.log(JSON.stringify(counts))
  process.exitCode = findings > 0 ? 1 : 0
}

await (isMainThread ? main() : execute(workerData))
