/**
 * Compares outputs byte for byte with those of an earlier state: the oracle of every change that must not change output.
 *   node scripts/same-output.mjs hashes.json [dist/index.js] [folder of further logs ...]
 * Without hashes.json it is written; with it, each output is compared. Inputs are all fixtures, the example logs and the
 * folders' files: each alone with several sets of options, all of a folder together, and recordings of the scheduler together with
 * a log; as traces, summaries, Analyses (with their findings) and tables; and as texts: what the commands print (stats by each key, why, what-if, compare,
 * dag, reports), answers to agents, help, the library's types. Refused inputs are compared by their message.
 * HASH_DUMP=folder writes the compared outputs as files; ONLY='(analysis|tables)$' makes only outputs with such names, ONLY='text$' only texts.
 *
 * For a change of texts: TEXTS=scripts/texts compares all as JSON, after it has applied the folder's tables
 * (`{"old text": "new text"}`), without codes and hints of issues. Write hashes.json with the earlier dist, and TEXTS too.
 */
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { printedOutputs } from './printed-outputs.mjs'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const [given, dist = join(ROOT, 'dist/index.js'), ...folders] = process.argv.slice(2)
if (!given) throw new Error('usage: node scripts/same-output.mjs hashes.json [dist/index.js] [folder ...]')
const kept = resolve(given)
const { analyze, convert, summarize } = await import(pathToFileURL(dist))
const { tablesOf } = await import(pathToFileURL(join(dirname(dist), 'tables.js')))
const dump = process.env.HASH_DUMP
const only = new RegExp(process.env.ONLY ?? '')

/** Old and new texts, the longest first; null if outputs are compared byte for byte. */
const texts =
  process.env.TEXTS &&
  readdirSync(process.env.TEXTS)
    .flatMap((name) => Object.entries(JSON.parse(readFileSync(join(process.env.TEXTS, name), 'utf8'))))
    .map((pair) => pair.map((text) => JSON.stringify(text).slice(1, -1)))
    .sort(([a], [b]) => b.length - a.length)
const newTexts = texts && new Map(texts)
const anyOld =
  texts && new RegExp(texts.map(([old]) => old.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('|') || '(?!)', 'g')

const OPTIONS = {
  plain: {},
  full: { detail: 'full', memory: 'lifetimes', flows: { token: 1 } },
  names: { detail: 'names', opName: 'op', tokens: [0, 1], findings: true },
  tensor: { opName: 'tensor', allThreads: true },
  json: { to: 'json' },
  'json-full': { to: 'json', detail: 'full', memory: 'lifetimes', flows: { token: 1 }, allThreads: true },
}
const SKIPPED = /(README.*|SOURCES.*|\.md|\.mjs|\.json5)$/

const filesOf = (folder) =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => join(folder, name))
    .filter((path) => statSync(path).isFile() && !SKIPPED.test(path))
    .sort()

const places = [join(ROOT, 'test/fixtures'), join(ROOT, 'examples'), ...folders]
const files = places.flatMap((place) => filesOf(place).map((path) => ({ path, name: relative(dirname(place), path) })))
const input = ({ path, name }) => ({ name, source: readFileSync(path) })

async function outputOf(inputs, options) {
  const pieces = []
  try {
    const trace = convert(inputs, texts && !options.bundle ? { ...options, to: 'json' } : options)
    for (let piece = await trace.next(); ; piece = await trace.next()) {
      if (piece.done) return Buffer.concat([...pieces, textOf(piece.value)])
      pieces.push(piece.value)
    }
  } catch (error) {
    return refused(error)
  }
}

const refused = (error) => Buffer.from(`${error.name}: ${error.message}`)

const SERIES = ['calls', 'requests', 'offsets', 'memory', 'graph']
const analysisOf = (inputs, options = {}) => analyze(inputs, { series: SERIES, ...options }).then(textOf, refused)

/** The files of a run's tables, by name, and what the run returns. */
async function tablesIn(inputs, options = {}) {
  const files = new Map()
  try {
    const pieces = tablesOf(inputs, { traceId: '0'.repeat(32), ...options }, { name: 'same-output', version: '0' })
    for (let piece = await pieces.next(); ; piece = await pieces.next()) {
      if (piece.done) return Buffer.concat([...[...files].flat(2).map((of) => Buffer.from(of)), textOf(piece.value)])
      const { table, bytes } = piece.value
      files.set(table, [...(files.get(table) ?? []), bytes])
    }
  } catch (error) {
    return refused(error)
  }
}

/** Fields of summaries that were added since. */
const ADDED = new Set(['contents'])

const textOf = (value) =>
  Buffer.from(
    JSON.stringify(value, (key, each) => (ADDED.has(key) ? undefined : typeof each === 'bigint' ? `${each}` : each), 1),
  )

/** Codes and hints of issues are new texts too. */
const withoutHints = (text) =>
  text
    .replace(
      /("args":\{"detail":"(?:[^"\\]|\\.)*"(?:,"(?:byte|line)":\d+)*),"code":"[^"]*","hint":"(?:[^"\\]|\\.)*"/g,
      '$1',
    )
    .replace(/,\n *"(?:hint|code)": "(?:[^"\\]|\\.)*"/g, '')

const renewed = (bytes) => withoutHints(bytes.toString('utf8')).replace(anyOld, (old) => newTexts.get(old))

const outputs = new Map()
const keep = async (key, make) => {
  if (!only.test(key) || (texts && / (bundle|tables)( |$)/.test(key))) return
  const output = await make()
  const bytes = texts ? Buffer.from(renewed(output)) : output
  outputs.set(key, createHash('sha256').update(bytes).digest('hex').slice(0, 24))
  if (!dump) return
  mkdirSync(dump, { recursive: true })
  writeFileSync(join(dump, key.replace(/[^\w.-]+/g, '_')), bytes)
}

for (const file of files) {
  for (const [kind, options] of Object.entries(OPTIONS)) {
    await keep(`${file.name} ${kind}`, () => outputOf([input(file)], options))
  }
  await keep(`${file.name} summary`, () => summarize(input(file)).then(textOf, (error) => Buffer.from(error.message)))
  await keep(`${file.name} analysis`, () => analysisOf([input(file)]))
  await keep(`${file.name} tables`, () => tablesIn([input(file)]))
}

const byFolder = new Map()
for (const file of files) {
  const folder = dirname(file.path)
  byFolder.set(folder, [...(byFolder.get(folder) ?? []), file])
}
for (const [folder, together] of byFolder) {
  if (together.length < 2) continue
  const shifts = Object.fromEntries(together.slice(1).map(({ name }, i) => [name, `+${i + 1}ms`]))
  for (const [kind, clocks] of Object.entries({ together: {}, shifted: shifts })) {
    const key = `${relative(ROOT, folder)} ${kind}`
    await keep(key, () => outputOf(together.map(input), { clocks }))
    await keep(`${key} json`, () => outputOf(together.toReversed().map(input), { clocks, to: 'json', detail: 'full' }))
    await keep(`${key} analysis`, () => analysisOf(together.map(input), { clocks }))
    await keep(`${key} tables`, () => tablesIn(together.map(input), { clocks }))
  }
}

/** Recordings of the scheduler together with logs, and two of them, of which one is left out if they contain the same events. */
const ofScheduler = files.filter(({ name }) =>
  /fixtures\/(ftrace|perf-data|perf-script|trace-dat|bpftrace)\//.test(name),
)
const logs = files.filter(({ name }) => /fixtures\/ggtrace\/|examples\/|profinfer-text/.test(name)).slice(0, 8)
for (const log of logs) {
  for (const [i, recording] of ofScheduler.entries()) {
    const clocks = { [recording.name]: '+1ms' }
    const pair = [input(log), input(recording)]
    const key = `${log.name} + ${recording.name}`
    await keep(key, () => outputOf(pair, { clocks, allThreads: i % 2 === 0 }))
    await keep(`${key} analysis`, () => analysisOf(pair, { clocks }))
    await keep(`${key} tables`, () => tablesIn(pair, { clocks }))
    const other = ofScheduler[(i + 1) % ofScheduler.length]
    const three = [...pair, input(other)]
    const shifts = { ...clocks, [other.name]: '+2ms' }
    await keep(`${key} + ${other.name}`, () => outputOf(three, { clocks: shifts, detail: 'full' }))
    if (/perf-data/.test(recording.name))
      await keep(`${log.name} bundle ${recording.name}`, () => outputOf([input(log)], { bundle: input(recording) }))
  }
}

if (!texts) {
  process.chdir(ROOT)
  const paths = files.map(({ path }) => relative(ROOT, path))
  for await (const [key, make] of printedOutputs(dirname(resolve(dist)), paths))
    await keep(key, async () => Buffer.from(await make()))
}

if (!existsSync(kept)) {
  writeFileSync(kept, JSON.stringify(Object.fromEntries(outputs), null, 1))
  console.log(`${outputs.size} outputs, written to ${kept}`)
} else {
  const before = JSON.parse(readFileSync(kept, 'utf8'))
  const keys = new Set([...Object.keys(before).filter((key) => only.test(key)), ...outputs.keys()])
  const other = [...keys].filter((key) => before[key] !== outputs.get(key))
  for (const key of other) console.log(`differs: ${key}`)
  console.log(`${outputs.size} outputs, ${other.length} differ`)
  process.exitCode = other.length > 0 ? 1 : 0
}
