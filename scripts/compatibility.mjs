/**
 * Tests versions of llama.cpp, ggml and whisper.cpp from npm and Debian: runs each on a tiny model, without and with the recorder, and
 * prints what was recorded as docs/reference/compatibility.md's table.
 *   node scripts/compatibility.mjs [--json] [--only PATTERN] [--quick] [--keep FOLDER]
 *   node scripts/compatibility.mjs --write     puts the table into docs/reference/compatibility.md
 * --quick: what CI runs, in less than five minutes without a cache. The exit code is 1 if less was recorded
 * than docs/reference/compatibility.md shows; targets that are not available are listed, which is not a failure.
 */
import { execFileSync } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { eventsOf, Names } from '../dist/index.js'
import { inputOf } from '../dist/node.js'
import { NotAvailable, prepare } from './compatibility/runs.mjs'
import { targets } from './compatibility/targets.mjs'

const DOCS = fileURLToPath(new URL('../docs/reference/compatibility.md', import.meta.url))
const HEAD = ['program', 'version', 'from', 'calls', 'tokens', 'graphs', 'nodes', 'operators', 'kernels'].concat([
  'workers',
  'states',
  'buffers',
  'issues',
  'output',
])
/** Cells whose number must not be lower than in the docs. */
const COUNTS = ['tokens', 'graphs', 'nodes', 'operators', 'workers', 'buffers']
/** Cells that must be as in the docs. */
const SAME = ['calls', 'kernels', 'issues', 'output']
/** On a busy machine, the kernel may write records faster than they are read. */
const LOST_STATES = /^\d+ records were lost: thread states$/
/** llama.cpp's tools sometimes lose the end of their output, with and without the recorder. */
const TRIES = 3

/** With --quick, no further target begins after this time, in case of a slow registry. */
const QUICK_MS = 210_000

const { values } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    only: { type: 'string' },
    quick: { type: 'boolean', default: false },
    keep: { type: 'string' },
    write: { type: 'boolean', default: false },
  },
})

execFileSync('make', ['-s', '-C', fileURLToPath(new URL('../native', import.meta.url))], { stdio: ['ignore', 2, 2] })

const listed = (counts) => [...counts].map(([name, count]) => `${name} ${count}`).join(', ')
const count = (counts, name, by = 1) => counts.set(name, (counts.get(name) ?? 0) + by)

/** The content of a log, as the table's cells. */
const summarizeLog = async (log) => {
  const names = new Names()
  const facts = new Map()
  const [calls, issues, buffers, numbers] = [new Map(), new Map(), new Set(), new Map()]
  const [workers, threads, begun] = [new Set(), new Set(), []]
  const kernels = { all: 0, known: 0 }
  const addKernel = ({ what, node }) => {
    if (what !== 'kernel') return
    kernels.all++
    if (node) kernels.known++
  }
  for await (const batch of eventsOf(inputOf(log), names)) {
    for (const event of batch) {
      count(numbers, event.kind)
      if (event.kind === 'token') {
        begun.push(event) // threads that call in turn have blocks of their own
        count(numbers, 'tokens', Math.max(event.tokens, 0)) // -1: unknown
      } else if (event.kind === 'graph') count(numbers, 'nodes', event.nodes)
      else if (event.kind === 'operator') workers.add(event.worker)
      else if (event.kind === 'state') threads.add(event.tid)
      else if (event.kind === 'buffer') buffers.add(event.id)
      else if (event.kind === 'gpu') addKernel(event)
      else if (event.kind === 'api') event.untimed?.forEach(addKernel)
      else if (event.kind === 'issue' && !LOST_STATES.test(event.detail)) count(issues, event.title)
      else if ('attributes' in event)
        for (const [name, value] of Object.entries(event.attributes)) facts.set(name, value)
    }
  }
  for (const { phase } of begun.sort((a, b) => a.startNs - b.startNs)) count(calls, phase)
  const why = facts.get('states')
  const n = (name) => `${numbers.get(name) ?? 0}`
  return {
    calls: listed(calls) || 'none',
    tokens: n('tokens'),
    graphs: n('graph'),
    nodes: n('nodes'),
    operators: n('operator'),
    kernels: kernels.all === 0 ? 'none' : `${kernels.known} of ${kernels.all}`,
    workers: `${workers.size}`,
    states: threads.size > 0 ? 'yes' : `no: ${why ?? 'none'}`,
    buffers: `${buffers.size}`,
    issues: listed(issues) || 'none',
    missing: [...facts].filter(([name]) => name.endsWith('.missing')).map(([name, value]) => `${name}: ${value}`),
  }
}

/** Runs without and with the recorder; repeats if the outputs differ. */
const tryIt = async (prepared, log) => {
  for (let tries = 1; ; tries++) {
    await rm(log, { force: true })
    const [plain, recorded] = [await prepared.run(), await prepared.run(log)]
    if (plain === recorded || tries === TRIES) return plain === recorded && plain !== ''
  }
}

const rowOf = async (target, log, until) => {
  const { name, kind, from } = target
  if (Date.now() > until) return { program: name, from, missed: 'not tried: the time of --quick is over' }
  let prepared
  try {
    prepared = await prepare[kind](target)
    const isSame = await tryIt(prepared, log)
    const found = await summarizeLog(log)
    return { program: name, version: prepared.version, from, ...found, output: isSame ? 'the same' : 'differs' }
  } catch (error) {
    if (error instanceof NotAvailable) return { program: name, from, missed: `not available: ${error.message}` }
    return { program: name, from, failed: `failed: ${`${error.stderr || error.message}`.trim().split('\n').at(-1)}` }
  } finally {
    await prepared?.clean?.()
  }
}

const cellsOf = (row) => {
  const instead = row.missed ?? row.failed
  return HEAD.map((name) => row[name] ?? (name === 'calls' ? (instead ?? '') : '')).map((cell) =>
    cell.replaceAll('|', '\\|'),
  )
}
const lineOf = (cells) => `| ${cells.join(' | ')} |`
const tableOf = (rows) => [HEAD, HEAD.map(() => '---'), ...rows.map(cellsOf)].map(lineOf).join('\n')

/** The rows of docs/reference/compatibility.md, by program. */
const documented = async () => {
  const lines = (await readFile(DOCS, 'utf8').catch(() => '')).split('\n').filter((line) => line.startsWith('| '))
  const rows = lines.map((line) => line.slice(2, -2).split(' | '))
  return new Map(rows.map((cells) => [cells[0], Object.fromEntries(HEAD.map((name, i) => [name, cells[i]]))]))
}

/** What a version recorded less than the docs show. */
const shortfalls = (row, docs) => {
  if (row.failed) return [row.failed]
  if (!docs) return ['the docs do not list it']
  if (row.missed || docs.version !== row.version) return [] // Debian's sid has a newer version
  const lower = COUNTS.filter((name) => Number(row[name]) < Number(docs[name]))
  const other = SAME.filter((name) => row[name] !== docs[name])
  return [...lower, ...other].map((name) => `${name}: ${row[name]}, the docs say ${docs[name]}`)
}

const writeDocs = async (rows) => {
  const text = await readFile(DOCS, 'utf8')
  const date = new Date().toISOString().slice(0, 10)
  const dated = text.replace(/Tried on \d{4}-\d\d-\d\d/, `Tried on ${date}`)
  const table = /(?:^\|.*\n)+/m
  await writeFile(
    DOCS,
    dated.replace(table, () => `${tableOf(rows)}\n`),
  )
}

const main = async () => {
  const chosen = targets.filter(({ name, from, quick }) => {
    if (values.quick && !quick) return false
    return values.only === undefined || new RegExp(values.only).test(`${name} ${from}`)
  })
  if (values.write && chosen.length < targets.length) throw new Error('--write takes all targets')
  const folder = values.keep ?? (await mkdtemp(join(tmpdir(), 'ggml2perfetto-compatibility-')))
  await mkdir(folder, { recursive: true })
  const docs = await documented()
  const until = values.quick ? Date.now() + QUICK_MS : Infinity
  const rows = []
  try {
    for (const target of chosen) {
      const log = join(folder, `${target.name.replaceAll(/[^\w.-]+/g, '-')}.ggtrace`)
      rows.push(await rowOf(target, log, until))
      const { missed, failed, output } = rows.at(-1)
      console.error(`${target.name}: ${missed ?? failed ?? `tried, output ${output}`}`)
    }
  } finally {
    if (values.keep === undefined) await rm(folder, { recursive: true, force: true })
  }
  if (values.write) return await writeDocs(rows)
  console.log(values.json ? JSON.stringify(rows, null, 2) : tableOf(rows))
  for (const row of rows) {
    for (const shortfall of shortfalls(row, docs.get(row.program))) {
      console.error(`compatibility: ${row.program}: ${shortfall}`)
      process.exitCode = 1
    }
  }
}

await main()
