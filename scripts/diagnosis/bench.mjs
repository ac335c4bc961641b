/**
 * Plants known causes of slow runs, one at a time, and counts how often `record`, `convert` and `why` name the right one first; and
 * records runs that nothing disturbs, in which no finding may be false. README.md describes it.
 *   npm run bench:diagnosis [-- --only CAUSE,… --runs N --quiet N --json FILE --logs FOLDER]
 * Exits 1 if a cause is not named first, or a finding of a quiet run is false.
 */
import { copyFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { makeFolder, onEnd } from './bench-folder.mjs'
import { makeBuilds } from './builds.mjs'
import { CAUSES } from './causes/causes.mjs'
import { look } from './look.mjs'
import { brief, FIRST, quietRun } from './quiet.mjs'

const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    runs: { type: 'string', default: '2' },
    quiet: { type: 'string' },
    json: { type: 'string' },
    logs: { type: 'string' },
  },
})
const only = values.only?.split(',')
const unknown = only?.find((id) => !CAUSES.some((cause) => cause.id === id))
if (unknown !== undefined) throw new Error(`no cause '${unknown}': ${CAUSES.map(({ id }) => id).join(', ')}`)
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

async function plantedRun(folder, builds, cause, number) {
  const build = builds[cause.builds[number % cause.builds.length]]
  const planted = await cause.create({ folder, build, number })
  const undo = onEnd(() => planted.undo?.())
  try {
    const first = cause.isUndisturbed ? FIRST : []
    const { command, env, meanwhile } = planted
    const { log, findings } = await look(folder, `${cause.id}-${number + 1}`, {
      command: [...first, ...command],
      env,
      meanwhile,
    })
    const results = COMMANDS.map((by) => {
      const [first] = findings[by]
      return [by, { first: first ? brief(first) : null, isRight: first !== undefined && cause.isNamed(first) }]
    })
    const isRight = results.every(([, { isRight }]) => isRight)
    keep(log)
    return { cause: cause.id, build: build.name, number, isRight, commands: Object.fromEntries(results) }
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
    const counts = COMMANDS.map((by) => of.filter(({ commands }) => commands[by].isRight).length)
    return `| ${id} | ${CAUSES.find((cause) => cause.id === id).title} | ${counts.map((n) => `${n} of ${of.length}`).join(' | ')} |`
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
  const builds = await makeBuilds(folder)
  if (FIRST.length === 0) console.log('without SCHED_FIFO: what else runs on this machine may disturb the runs')
  const planted = []
  for (const cause of CAUSES.filter(({ id }) => only === undefined || only.includes(id)))
    for (let number = 0; number < runs; number++) {
      const result = await plantedRun(folder, builds, cause, number)
      printPlanted(result)
      planted.push(result)
    }
  const quietRuns = []
  for (let number = 0; number < quiet; number++) {
    const { log, ...result } = await quietRun(folder, [builds.pool, builds.openmp], number)
    keep(log)
    printQuiet(result)
    quietRuns.push(result)
  }
  console.log(`\n${tableOf(planted, quietRuns)}`)
  if (values.json !== undefined)
    writeFileSync(resolve(values.json), `${JSON.stringify({ planted, quiet: quietRuns }, null, 2)}\n`)
  const isRight = planted.every(({ isRight }) => isRight) && quietRuns.every(({ isTrue }) => isTrue)
  process.exitCode = isRight ? 0 : 1
}

await main()
