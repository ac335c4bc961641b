/**
 * Kills exports of several logs (SIGKILL, with all their processes) at random moments: each file that is there must be whole, and the
 * same command again must complete the dataset with the files of an undisturbed export, byte for byte.
 *   node scripts/kill-exports.mjs [kills, default 50] [seed, default 1]
 * With 15 kills and seed 2, on two busy CPUs: 7 logs, 32 files in 4.9 s undisturbed; 12 kills were during the export, and left 2 datasets
 * with a part of their files, 120 files under their names and 4 unfinished ones; no fault.
 */
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as after } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { gunzipSync } from 'node:zlib'
import { parquetReadObjects } from 'hyparquet'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const kills = Number(process.argv[2] ?? 50)
let seed = Number(process.argv[3] ?? 1)
/** The same numbers in each run with one seed. */
const random = () => {
  seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0
  return seed / 2 ** 32
}

const folder = mkdtempSync(join(tmpdir(), 'ggml2perfetto-kills-'))
const moe = readFileSync(join(ROOT, 'examples/moe.csv'), 'utf8')
// Another number of empty lines makes another run of the same rows.
const copies = [0, 1, 2, 3].map((lines) => {
  const path = join(folder, `copy-${lines}.csv`)
  writeFileSync(path, moe + '\n'.repeat(lines))
  return path
})
const logs = [...copies, ...['moe', 'llama', 'qwen2'].map((name) => join(ROOT, `examples/${name}.ggtrace.gz`))]
const argsFor = (dataset) => [
  join(ROOT, 'dist/ggml2perfetto.js'),
  'export',
  ...logs,
  '-o',
  dataset,
  '--jobs',
  '2',
  '-q',
]

/** Exports all logs, undisturbed; returns the time that it took, in ms. */
function exported(dataset) {
  const start = performance.now()
  const { status, stderr } = spawnSync(process.execPath, argsFor(dataset), { encoding: 'utf8' })
  if (status !== 0) throw new Error(`an export failed: ${stderr}`)
  return performance.now() - start
}

/** The files of a dataset by name. */
const filesOf = (dataset) =>
  new Map(
    (existsSync(dataset) ? readdirSync(dataset, { recursive: true, encoding: 'utf8' }) : [])
      .filter((name) => statSync(join(dataset, name)).isFile())
      .map((name) => [name, readFileSync(join(dataset, name))]),
  )

/** Reads all rows of a file; throws where it is not whole. */
async function rowsOf(bytes) {
  const file = new Uint8Array(bytes).buffer
  return (await parquetReadObjects({ file, compressors: { GZIP: (page) => gunzipSync(page) } })).length
}

/** Begins an export in a group of its own and kills all of the group after so many ms; returns whether it was still running. */
async function killed(dataset, ms) {
  const child = spawn(process.execPath, argsFor(dataset), { stdio: 'ignore', detached: true })
  const ended = new Promise((resolve) => child.once('exit', (_, signal) => resolve(signal === 'SIGKILL')))
  await after(ms)
  try {
    process.kill(-child.pid, 'SIGKILL')
  } catch (error) {
    if (error.code !== 'ESRCH') throw error // all have ended
  }
  return ended
}

const faults = []
const counts = { killed: 0, partial: 0, whole: 0, unfinished: 0 }
try {
  const plain = join(folder, 'plain')
  const ms = exported(plain)
  const expected = filesOf(plain)
  for (let kill = 0; kill < kills; kill++) {
    const dataset = join(folder, `killed-${kill}`)
    mkdirSync(dataset)
    const at = random() * ms
    const fault = (what) => faults.push(`kill ${kill} after ${Math.round(at)} ms: ${what}`)
    if (await killed(dataset, at)) counts.killed++
    const left = [...filesOf(dataset)]
    const placed = left.filter(([name]) => !name.startsWith('.unfinished'))
    counts.unfinished += left.length - placed.length
    if (placed.length > 0 && placed.length < expected.size) counts.partial++
    for (const [name, bytes] of placed) {
      const rows = await rowsOf(bytes).catch((error) => fault(`${name} is not whole: ${error.message}`))
      if (rows === 0) fault(`${name} has no rows`)
      if (rows > 0) counts.whole++
    }
    exported(dataset)
    const completed = filesOf(dataset)
    for (const [name, bytes] of expected)
      if (!completed.get(name)?.equals(bytes)) fault(`${name} is ${completed.has(name) ? 'another one' : 'missing'}`)
    for (const name of completed.keys()) if (!expected.has(name)) fault(`${name} is left over`)
    rmSync(dataset, { recursive: true })
  }
  console.log(`${logs.length} logs, ${expected.size} files in ${Math.round(ms)} ms undisturbed`)
  console.log(
    `${kills} kills, ${counts.killed} of them during the export, ${counts.partial} with a part of the files there: ` +
      `${counts.whole} files under their names, ${counts.unfinished} unfinished ones; ${faults.length} faults`,
  )
} finally {
  rmSync(folder, { recursive: true })
}
for (const fault of faults) console.error(fault)
process.exitCode = faults.length > 0 ? 1 : 0
