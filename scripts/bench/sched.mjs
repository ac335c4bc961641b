/**
 * Measures how fast a long ftrace text becomes a trace (the whole command, from file to file) and its memory, and how fast
 * trace_processor imports the same text, in turn, so that other load on the machine affects both.
 *   node scripts/bench/sched.mjs [MB, default 200] [rounds, default 3; 0: without trace_processor] [text to repeat]
 */
import { spawn, spawnSync } from 'node:child_process'
import { createWriteStream, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { fileURLToPath } from 'node:url'
import { openTrace } from 'ggml2perfetto/node'
import { longText } from './long-sched.mjs'

const here = (path) => fileURLToPath(new URL(path, import.meta.url))
const CLI = here('../../dist/ggml2perfetto.js')
const [megabytes = '200', rounds = '3', capture = here('../../test/fixtures/ftrace/trace.txt')] = process.argv.slice(2)

if (megabytes === 'import') {
  // In a separate process: measures the time of the import without that of starting.
  const start = performance.now()
  const trace = await openTrace(rounds)
  const seconds = (performance.now() - start) / 1e3
  const [[slices, states]] = trace.query(
    'select (select count(*) from sched), (select count(*) from thread_state)',
  ).rows
  console.log(JSON.stringify({ seconds, slices, states }))
  process.exit(0)
}

const imported = (path) =>
  JSON.parse(spawnSync(process.execPath, [here('./sched.mjs'), 'import', path], { encoding: 'utf8' }).stdout)

/** Runs the command. Returns seconds, including start and end of the process, and its peak memory. */
async function converted(text, output) {
  const start = performance.now()
  const child = spawn(process.execPath, [CLI, text, '--quiet', '-o', output], { stdio: 'inherit' })
  let peak = 0
  const watch = setInterval(() => {
    try {
      const [, kib] = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8')) ?? []
      peak = Math.max(peak, Number(kib ?? 0) * 1024)
    } catch {
      // It has ended.
    }
  }, 20)
  const code = await new Promise((done) => child.on('exit', done))
  clearInterval(watch)
  if (code !== 0) throw new Error(`the conversion ended with ${code}`)
  return { seconds: (performance.now() - start) / 1e3, peak }
}

const folder = mkdtempSync(join(tmpdir(), 'bench-sched-'))
const best = (all) => all.reduce((a, b) => (a.seconds <= b.seconds ? a : b))
try {
  const text = join(folder, 'trace.txt')
  const output = join(folder, 'out.pftrace')
  await pipeline(longText(capture, Number(megabytes) * 1e6), createWriteStream(text))
  const ours = []
  const theirs = []
  for (let round = 0; round < Math.max(1, Number(rounds)); round++) {
    ours.push(await converted(text, output))
    if (rounds !== '0') theirs.push(imported(text))
  }
  const bytes = statSync(text).size
  const mb = (count) => `${(count / 1e6).toFixed(0)} MB`
  const { seconds } = best(ours)
  const peak = Math.max(...ours.map((run) => run.peak))
  console.log(`text     ${mb(bytes)}, trace ${mb(statSync(output).size)}`)
  console.log(`convert  ${seconds.toFixed(2)} s: ${mb(bytes / seconds)}/s, peak RSS ${mb(peak)}`)
  if (theirs.length > 0) {
    const { seconds: importing, slices, states } = best(theirs)
    const made = imported(output)
    console.log(
      `import   ${importing.toFixed(2)} s in trace_processor: ${(importing / seconds).toFixed(1)} × the conversion`,
    )
    console.log(
      `         ${slices} slices, ${states} states; of our trace ${made.slices}, ${made.states}, in ${made.seconds.toFixed(2)} s`,
    )
  }
} finally {
  rmSync(folder, { recursive: true })
}
