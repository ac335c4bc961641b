/**
 * Fuzzes readers, traces, analyses with what the commands print of them, reports, comparisons, and tables, with seeded mutations of the
 * fixtures, alone and in pairs (test/fuzz/).
 *   npm run fuzz -- [executions, default 100000] [seed, default 1] [--format name] [--way readers|trace|analysis|tables] [--first number]
 * The same seed, format and way give the same inputs. A finding is printed with the number of its execution, the command that repeats it,
 * and its inputs in base64.
 */
import { register } from 'node:module'
import { parseArgs } from 'node:util'

register('./typescript-hooks.mjs', import.meta.url)
const { Fuzzer, WAYS } = await import('../test/fuzz/execution.ts')
const { FORMATS } = await import('../lib/index.ts')

const REPORT_EVERY = 5000
/** How much the process may grow after the first report, in MiB. */
const GROWTH_MIB_MAX = 400

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { format: { type: 'string' }, way: { type: 'string' }, first: { type: 'string', default: '0' } },
})
const [executions = 100_000, seed = 1] = positionals.map(Number)
const { format, way } = values
const first = Number(values.first)
if (way !== undefined && !WAYS.includes(way)) throw new Error(`--way: expected one of ${WAYS.join(', ')}`)

const fuzzer = new Fuzzer(seed, { format, way })
const missing = FORMATS.map(({ name }) => name).filter((name) => !format && !fuzzer.formats.includes(name))
if (missing.length > 0) console.log(`no fixture of: ${missing.join(', ')}`)
const only = [format && ` --format ${format}`, way && ` --way ${way}`].filter(Boolean).join('')
console.log(`seed ${seed}, executions ${first} to ${first + executions - 1}${only}`)

const counts = {}
const sizes = []
let findings = 0
const started = performance.now()
for (let i = first; i < first + executions; i++) {
  const { format: of, way: how, inputs, fault } = await fuzzer.execute(i)
  counts[how] = (counts[how] ?? 0) + 1
  if (fault !== undefined) {
    findings++
    console.log(`execution ${i} (${of}, ${how}): ${fault}`)
    console.log(`  npm run fuzz -- 1 ${seed} --first ${i}${only}`)
    for (const bytes of inputs) console.log(`  ${Buffer.from(bytes).toString('base64')}`)
  }
  const done = i + 1 - first
  if (done % REPORT_EVERY !== 0 && done !== executions) continue
  globalThis.gc?.()
  sizes.push(Math.round(process.memoryUsage.rss() / 2 ** 20))
  const grown = sizes.at(-1) - sizes[0]
  if (grown > GROWTH_MIB_MAX) {
    findings++
    console.log(`the process grew by ${grown} MiB`)
  }
  const rate = Math.round((done / (performance.now() - started)) * 1e3)
  console.log(`${done} executions, ${rate} a second, RSS ${sizes.at(-1)} MiB, ${findings} findings`)
}
console.log(JSON.stringify(counts))
process.exitCode = findings > 0 ? 1 : 0
