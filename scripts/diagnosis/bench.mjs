/**
 * Plants known causes of slow runs, one at a time, and counts how often `record`, `convert` and `why` name the right one first; and
 * records runs that nothing disturbs, in which no finding may be false. README.md describes it.
 *   npm run bench:diagnosis [-- --only CAUSE,… --runs N --quiet N --causes FOLDER --json FILE --logs FOLDER]
 * Exits 1 if a cause is not named first, or a finding of a quiet run is false.
 */
import { createHash } from 'node:crypto'
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { makeFolder, onEnd } from './bench-folder.mjs'
import { buildsIn } from './builds.mjs'
import { CAUSES } from './causes/causes.mjs'
import { look } from './look.mjs'
import { brief, FIRST, quietRun } from './quiet.mjs'
import { scoreOf, scoreTable } from './score.mjs'

const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    runs: { type: 'string', default: '2' },
    quiet: { type: 'string' },
    causes: { type: 'string' },
    json: { type: 'string' },
    logs: { type: 'string' },
  },
})

/** What the modules of a folder export and what has the fields of a cause. */
async function causesIn(folder) {
  const modules = await Promise.all(
    readdirSync(folder)
      .filter((name) => name.endsWith('.mjs'))
      .sort()
      .map((name) => import(pathToFileURL(join(folder, name)).href)),
  )
  const found = modules
    .flatMap((module) => Object.values(module))
    .filter((value) => typeof value?.create === 'function')
  if (found.length === 0) throw new Error(`--causes ${folder}: no module exports a cause (scripts/diagnosis/README.md)`)
  return found
}

const causes = values.causes === undefined ? CAUSES : await causesIn(resolve(values.causes))
const only = values.only?.split(',')
const unknown = only?.find((id) => !causes.some((cause) => cause.id === id))
if (unknown !== undefined) throw new Error(`no cause '${unknown}': ${causes.map(({ id }) => id).join(', ')}`)
const numberOf = (name, fallback) => {
  const number = Number(values[name] ?? fallback)
  if (!Number.isInteger(number) || number < 0) throw new Error(`--${name} ${values[name]}: not a number of runs`)
  return number
}
const runs = numberOf('runs', 2)
const quiet = numberOf('quiet', only === undefined ? 40 : 0)

const COMMANDS = ['record', 'convert', 'why']

/** Keeps a log of which something is wrong, and removes others. */
function keep(log) {
  if (values.logs === undefined) return rmSync(log)
  mkdirSync(values.logs, { recursive: true })
  copyFileSync(log, join(values.logs, basename(log)))
  rmSync(log)
}

/** Is the cause, or one of two, named first; is it found at all? Of causes that no log shows, nothing may be named with confidence. */
function resultOf(cause, findings) {
  const [first] = findings
  const isFound = (cause.causes ?? [cause]).every(({ isNamed }) => findings.some(isNamed))
  const isFirst = cause.isCostUnknown ? isFound : first !== undefined && cause.isNamed(first)
  const isRight = cause.isUnseen ? first?.confidence !== 'high' : isFirst
  return { first: first ? brief(first) : null, isRight, isFound }
}

async function plantedRun(folder, builds, cause, number) {
  const build = await builds(cause.builds[number % cause.builds.length])
  const planted = await cause.create({ folder, build, number })
  const undo = onEnd(() => planted.undo?.())
  try {
    const first = cause.isUndisturbed ? FIRST : []
    const { command, ...others } = planted
    const name = `${cause.id}-${number + 1}`
    const { log, findings } = await look(folder, name, { ...others, command: [...first, ...command] })
    const results = (cause.by ?? COMMANDS).map((by) => [by, resultOf(cause, findings[by])])
    const isRight = results.every(([, { isRight }]) => isRight)
    const sha256 = createHash('sha256').update(readFileSync(log)).digest('hex')
    keep(log)
    const kind = cause.isUnseen ? 'unseen' : cause.causes ? 'pair' : 'single'
    return { cause: cause.id, kind, build: build.name, number, isRight, sha256, commands: Object.fromEntries(results) }
  } finally {
    undo()
  }
}

function printPlanted({ cause, build, number, isRight, commands }) {
  console.log(`${isRight ? 'right' : 'WRONG'}  ${cause} ${number + 1} (${build})`)
  const sentences = Object.entries(commands).map(([by, { first, isRight }]) => [
    `${isRight ? '' : 'WRONG: '}${first?.sentence ?? 'no finding'}`,
    by,
  ])
  for (const text of new Set(sentences.map(([text]) => text)))
    console.log(`         ${sentences.flatMap(([of, by]) => (of === text ? by : [])).join(', ')}: ${text}`)
}

const percent = (share) => `${(100 * share).toFixed(1)} %`

function printQuiet({ name, model, threads, build, findings, isTrue }) {
  console.log(`${isTrue ? 'right' : 'WRONG'}  ${name}: ${model}, ${threads} threads, ${build}`)
  for (const [by, list] of Object.entries(findings))
    for (const { sentence, claim, range, isTrue } of list) {
      const truth = range ? ` (the witness: ${range.map(percent).join(' to ')}, claimed: ${percent(claim)})` : ''
      console.log(`         ${by}: ${isTrue ? '' : 'FALSE: '}${sentence}${truth}`)
    }
}

/** A row for each cause: how often each command names it first. */
function tableOf(planted, quietRuns) {
  const rows = [...new Set(planted.map(({ cause }) => cause))].map((id) => {
    const of = planted.filter(({ cause }) => cause === id)
    const counts = COMMANDS.map((by) => {
      const asked = of.flatMap(({ commands }) => commands[by] ?? [])
      return asked.length === 0 ? '' : `${asked.filter(({ isRight }) => isRight).length} of ${asked.length}`
    })
    return `| ${id} | ${causes.find((cause) => cause.id === id).title} | ${counts.join(' | ')} |`
  })
  const right = (by) => quietRuns.filter(({ findings }) => findings[by].every(({ isTrue }) => isTrue)).length
  const quietRow = `| quiet | no finding that is false | ${COMMANDS.map((by) => `${right(by)} of ${quietRuns.length}`).join(' | ')} |`
  return [
    `| cause | | ${COMMANDS.join(' | ')} |`,
    `|---|---|${COMMANDS.map(() => '---|').join('')}`,
    ...rows,
    ...(quietRuns.length > 0 ? [quietRow] : []),
  ].join('\n')
}

async function main() {
  const folder = makeFolder()
  const builds = buildsIn(folder)
  if (FIRST.length === 0) console.log('without SCHED_FIFO: what else runs on this machine may disturb the runs')
  const planted = []
  for (const cause of causes.filter(({ id }) => only === undefined || only.includes(id)))
    for (let number = 0; number < runs; number++) {
      const result = await plantedRun(folder, builds, cause, number).catch(({ message }) => {
        console.log(`NOT PLANTED  ${cause.id} ${number + 1}: ${message}`)
        process.exitCode = 1
      })
      if (!result) continue
      printPlanted(result)
      planted.push(result)
    }
  const quietRuns = []
  for (let number = 0; number < quiet; number++) {
    const { log, ...result } = await quietRun(folder, [await builds('pool'), await builds('openmp')], number)
    keep(log)
    printQuiet(result)
    quietRuns.push(result)
  }
  const score = scoreOf(planted, quietRuns, COMMANDS)
  console.log(`\n${tableOf(planted, quietRuns)}\n\n${scoreTable(score)}`)
  if (values.json !== undefined)
    writeFileSync(resolve(values.json), `${JSON.stringify({ score, planted, quiet: quietRuns }, null, 2)}\n`)
  const isRight = planted.every(({ isRight }) => isRight) && quietRuns.every(({ isTrue }) => isTrue)
  if (!isRight) process.exitCode = 1
}

await main()
