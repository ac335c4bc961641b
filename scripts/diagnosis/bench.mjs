/**
 * Plants known causes of slow runs, one at a time, and counts how often `record`, `convert` and `why` name the right one first; and
 * records runs that nothing disturbs, in which no finding may be false. README.md describes it.
 *   npm run bench:diagnosis [-- --only CAUSE,… --runs N --quiet N --causes FOLDER --json FILE --logs FOLDER --agent]
 * Exits 1 if a cause is not named first, or a finding of a quiet run is false.
 */
import { createHash } from 'node:crypto'
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { cpus, release } from 'node:os'
import { basename, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { startAgent, wrongAnswers } from './agent.mjs'
import { makeFolder, onEnd } from './bench-folder.mjs'
import { buildsIn } from './builds.mjs'
import { CAUSES } from './causes/causes.mjs'
import { look } from './look.mjs'
import { FIRST, quietRun } from './quiet.mjs'
import { COMMANDS, causesTable, resultOf, scoreOf, scoreTable } from './score.mjs'

const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    runs: { type: 'string', default: '2' },
    quiet: { type: 'string' },
    causes: { type: 'string' },
    json: { type: 'string' },
    logs: { type: 'string' },
    agent: { type: 'boolean', default: false },
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
  const without = found.find(({ rules, isNamed, isUnseen, causes }) => !rules && !isNamed && !isUnseen && !causes)
  if (without) throw new Error(`--causes ${folder}: '${without.id}' has neither rules nor isNamed`)
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

/** When the benchmark began, and on which machine. */
const SETTING = {
  date: new Date().toISOString().slice(0, 16).replace('T', ' '),
  machine: { cpu: cpus()[0]?.model ?? 'unknown', cpus: cpus().length, kernel: release() },
}

/** Keeps a log of which something is wrong, and removes others. */
function keep(log) {
  if (values.logs === undefined) return rmSync(log)
  mkdirSync(values.logs, { recursive: true })
  copyFileSync(log, join(values.logs, basename(log)))
  rmSync(log)
}

/** Kinds of causes of which few runs are enough: they are counted together. */
const kindOf = ({ isUnseen, isHarmless, causes }) =>
  isUnseen ? 'unseen' : isHarmless ? 'harmless' : causes ? 'pair' : 'single'
const RUNS_OF_ONE = 5
const runsOf = (cause) =>
  ['single', 'harmless'].includes(kindOf(cause)) ? runs : Math.min(runs, Math.max(1, Math.floor(runs / RUNS_OF_ONE)))

/** Builds in turn, so that even and odd numbers have all of them. */
const buildOf = ({ builds }, number) => builds[(number + Math.floor(number / builds.length)) % builds.length]

async function plantedRun(folder, builds, agent, cause, number) {
  const startMs = Date.now()
  const build = await builds(buildOf(cause, number))
  const planted = await cause.create({ folder, build, number })
  const undo = onEnd(() => planted.undo?.())
  try {
    const first = cause.isUndisturbed ? FIRST : []
    const { command, ...others } = planted
    const name = `${cause.id}-${number + 1}`
    const { log, findings } = await look(folder, name, { ...others, command: [...first, ...command] })
    const results = (cause.by ?? COMMANDS).map((by) => [by, resultOf(cause, findings[by])])
    const wrong = agent && (await wrongAnswers(agent, log))
    const isRight = results.every(([, { isRight }]) => isRight) && wrong === undefined
    const sha256 = createHash('sha256').update(readFileSync(log)).digest('hex')
    keep(log)
    return {
      cause: cause.id,
      kind: kindOf(cause),
      build: build.name,
      number,
      seconds: (Date.now() - startMs) / 1000,
      isRight,
      ...(wrong !== undefined && { agent: wrong }),
      sha256,
      commands: Object.fromEntries(results),
    }
  } finally {
    undo()
  }
}

function printPlanted({ cause, build, number, seconds, isRight, commands, agent }) {
  console.log(`${isRight ? 'right' : 'WRONG'}  ${cause} ${number + 1} (${build}, ${seconds.toFixed(0)} s)`)
  const sentences = Object.entries(commands).map(([by, { first, isRight }]) => [
    `${isRight ? '' : 'WRONG: '}${first?.sentence ?? 'no finding'}`,
    by,
  ])
  for (const text of new Set(sentences.map(([text]) => text)))
    console.log(`         ${sentences.flatMap(([of, by]) => (of === text ? by : [])).join(', ')}: ${text}`)
  if (agent !== undefined) console.log(`         WRONG: the MCP server: ${agent}`)
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

async function main() {
  const folder = makeFolder()
  const builds = buildsIn(folder)
  if (FIRST.length === 0) console.log('without SCHED_FIFO: what else runs on this machine may disturb the runs')
  const agent = values.agent ? await startAgent(folder) : undefined
  const [planted, notPlanted] = [[], []]
  for (const cause of causes.filter(({ id }) => only === undefined || only.includes(id)))
    for (let number = 0; number < runsOf(cause); number++) {
      const result = await plantedRun(folder, builds, agent, cause, number).catch(({ message }) => {
        console.log(`NOT PLANTED  ${cause.id} ${number + 1}: ${message}`)
        notPlanted.push({ cause: cause.id, number })
      })
      if (!result) continue
      printPlanted(result)
      planted.push(result)
    }
  await agent?.end()
  const quietRuns = []
  for (let number = 0; number < quiet; number++) {
    const { log, ...result } = await quietRun(folder, [await builds('pool'), await builds('openmp')], number)
    keep(log)
    printQuiet(result)
    quietRuns.push(result)
  }
  const score = scoreOf(planted, quietRuns)
  const titleOf = (id) => causes.find((cause) => cause.id === id).title
  console.log(`\n${causesTable(planted, quietRuns, titleOf)}\n\n${scoreTable(score)}`)
  if (values.json !== undefined)
    writeFileSync(
      resolve(values.json),
      `${JSON.stringify({ ...SETTING, score, planted, notPlanted, quiet: quietRuns }, null, 2)}\n`,
    )
  const isRight = planted.every(({ isRight }) => isRight) && quietRuns.every(({ isTrue }) => isTrue)
  if (!isRight || notPlanted.length > 0) process.exitCode = 1
}

await main()
