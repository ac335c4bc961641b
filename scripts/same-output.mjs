/**
 * Compares outputs byte for byte with those of an earlier state: the oracle of every change that must not change output.
 *   node scripts/same-output.mjs hashes.json [dist/index.js] [folder of further logs ...]
 * Without hashes.json it is written; with it, each output is compared. Inputs are all fixtures, the example logs and the
 * folders' files: each alone with several sets of options, all of a folder together, and recordings of the scheduler together with
 * a log. Refused inputs are compared by their message. HASH_DUMP=folder writes the compared outputs as files.
 *
 * For a change of texts: TEXTS=scripts/texts compares all as JSON, after it has applied the folder's tables
 * (`{"old text": "new text"}`), without codes and hints of issues. Write hashes.json with the earlier dist, and TEXTS too.
 */
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const [kept, dist = join(ROOT, 'dist/index.js'), ...folders] = process.argv.slice(2)
if (!kept) throw new Error('usage: node scripts/same-output.mjs hashes.json [dist/index.js] [folder ...]')
const { convert, summarize } = await import(pathToFileURL(dist))
const dump = process.env.HASH_DUMP

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
  names: { detail: 'names', opName: 'op', tokens: [0, 1] },
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
    return Buffer.from(`${error.name}: ${error.message}`)
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
const keep = (key, output) => {
  if (texts && / bundle /.test(key)) return
  const bytes = texts ? Buffer.from(renewed(output)) : output
  outputs.set(key, createHash('sha256').update(bytes).digest('hex').slice(0, 24))
  if (!dump) return
  mkdirSync(dump, { recursive: true })
  writeFileSync(join(dump, key.replace(/[^\w.-]+/g, '_')), bytes)
}

for (const file of files) {
  for (const [kind, options] of Object.entries(OPTIONS)) {
    keep(`${file.name} ${kind}`, await outputOf([input(file)], options))
  }
  keep(`${file.name} summary`, await summarize(input(file)).then(textOf, (error) => Buffer.from(error.message)))
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
    keep(key, await outputOf(together.map(input), { clocks }))
    keep(`${key} json`, await outputOf(together.toReversed().map(input), { clocks, to: 'json', detail: 'full' }))
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
    keep(`${log.name} + ${recording.name}`, await outputOf(pair, { clocks, allThreads: i % 2 === 0 }))
    const other = ofScheduler[(i + 1) % ofScheduler.length]
    const three = [...pair, input(other)]
    const shifts = { ...clocks, [other.name]: '+2ms' }
    keep(`${log.name} + ${recording.name} + ${other.name}`, await outputOf(three, { clocks: shifts, detail: 'full' }))
    if (/perf-data/.test(recording.name))
      keep(`${log.name} bundle ${recording.name}`, await outputOf([input(log)], { bundle: input(recording) }))
  }
}

if (!existsSync(kept)) {
  writeFileSync(kept, JSON.stringify(Object.fromEntries(outputs), null, 1))
  console.log(`${outputs.size} outputs, written to ${kept}`)
} else {
  const before = JSON.parse(readFileSync(kept, 'utf8'))
  const keys = new Set([...Object.keys(before), ...outputs.keys()])
  const other = [...keys].filter((key) => before[key] !== outputs.get(key))
  for (const key of other) console.log(`differs: ${key}`)
  console.log(`${outputs.size} outputs, ${other.length} differ`)
  process.exitCode = other.length > 0 ? 1 : 0
}
