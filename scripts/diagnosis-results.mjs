/**
 * Writes the tables of docs/diagnosis.md from scripts/diagnosis/results: a file for each whole run of the benchmark. `--add FILE` first keeps
 * what `npm run bench:diagnosis -- --json FILE` wrote, without the sentences of right findings. With --check, writes nothing and exits 1
 * if the document is stale.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { CAUSES } from './diagnosis/causes/causes.mjs'
import { COMMANDS, scoreOf, scoreTable } from './diagnosis/score.mjs'
import { put } from './generated.mjs'

const at = (path) => fileURLToPath(new URL(path, import.meta.url))
const RESULTS = at('diagnosis/results')
const PAGE = at('../docs/diagnosis.md')
const [BEGIN, END] = [
  '<!-- Made by scripts/diagnosis-results.mjs from scripts/diagnosis/results. -->\n',
  '<!-- The end of what it makes. -->\n',
]
const mapValues = (object, change) =>
  Object.fromEntries(Object.entries(object).map(([key, value]) => [key, change(value)]))
const withoutSentence = ({ sentence, ...finding }, isKept) => (isKept ? { ...finding, sentence } : finding)

/** The date and the machine, then a run on a line. */
function keep(file) {
  const { date, machine, planted, notPlanted, quiet } = JSON.parse(readFileSync(file, 'utf8'))
  const runs = planted.map(({ commands, ...run }) => ({
    ...run,
    commands: mapValues(commands, ({ first, ...result }) => ({
      first: first && withoutSentence(first, !result.isRight),
      ...result,
    })),
  }))
  const quietRuns = quiet.map(({ truth, findings, ...run }) => ({
    ...run,
    findings: mapValues(findings, (list) =>
      list.map(({ claim, range, ...finding }) => withoutSentence(finding, !finding.isTrue)),
    ),
  }))
  const lines = [{ date, machine, notPlanted }, ...runs, ...quietRuns].map((line) => JSON.stringify(line))
  writeFileSync(`${RESULTS}/${date.replace(/[ :]/g, '-')}.jsonl`, `${lines.join('\n')}\n`)
}

function resultIn(name) {
  const lines = readFileSync(`${RESULTS}/${name}`, 'utf8').trimEnd().split('\n')
  const [head, ...runs] = lines.map((line) => JSON.parse(line))
  return { ...head, planted: runs.filter(({ cause }) => cause), quiet: runs.filter(({ cause }) => !cause) }
}

/** How often each command names a cause first: one figure if it is the same of all. */
function timesOf(runs) {
  const counts = COMMANDS.flatMap((by) => {
    const asked = runs.filter(({ commands }) => commands[by])
    return asked.length === 0
      ? []
      : [`${asked.filter(({ commands }) => commands[by].isRight).length} of ${asked.length}`]
  })
  return [...new Set(counts)].length === 1 ? counts[0] : counts.join(', ')
}

function causeTable(results) {
  const former = new Set(results.flatMap(({ planted }) => planted.map(({ cause }) => cause)))
  for (const { id } of CAUSES) former.delete(id)
  const row = ({ id, title }) => {
    const times = results.map(({ planted }) => timesOf(planted.filter(({ cause }) => cause === id)))
    return times.every((text) => text === '') ? [] : [`| ${id} | ${title} | ${times.join(' | ')} |`]
  }
  return [
    `| cause | | ${results.map(({ date }) => date).join(' | ')} |`,
    `|---|---|${results.map(() => '---|').join('')}`,
    ...[...CAUSES, ...[...former].map((id) => ({ id, title: 'no longer planted' }))].flatMap(row),
  ]
}

function wrongOf({ planted, quiet }) {
  const named = planted.flatMap(({ cause, number, build, sha256, commands }) =>
    Object.entries(commands).flatMap(([by, { first, isRight }]) =>
      isRight ? [] : [[`${cause} ${number + 1} (${build}): ${first?.sentence ?? 'no finding'}`, by, sha256]],
    ),
  )
  const falsely = quiet.flatMap(({ name, model, threads, build, findings }) =>
    Object.entries(findings).flatMap(([by, list]) =>
      list.flatMap(({ isTrue, sentence }) =>
        isTrue ? [] : [[`${name} (${model}, ${threads} threads, ${build}): ${sentence}`, by, undefined]],
      ),
    ),
  )
  const wrong = [...named, ...falsely]
  return [...new Set(wrong.map(([text]) => text))].map((wanted) => {
    const same = wrong.filter(([text]) => text === wanted)
    const log = same[0][2] ? ` (log ${same[0][2].slice(0, 12)})` : ''
    return `- ${same.map(([, by]) => `\`${by}\``).join(', ')}: ${wanted}${log}`
  })
}

const sectionOf = (result) => {
  const { date, machine, planted, notPlanted, quiet } = result
  const failed = notPlanted.map(({ cause, number }) => `${cause} ${number + 1}`)
  const wrong = wrongOf(result)
  return [
    `### ${date}\n`,
    `${planted.length} planted runs, ${quiet.length} quiet ones; ${machine.cpus} CPUs (${machine.cpu}), Linux ${machine.kernel}.${failed.length === 0 ? '' : ` Not planted: ${failed.join(', ')}.`}\n`,
    `${scoreTable(scoreOf(planted, quiet))}\n`,
    ...(wrong.length === 0 ? ['No answer was wrong.\n'] : ['Wrong answers:\n', `${wrong.join('\n')}\n`]),
  ]
}

const added = process.argv.indexOf('--add')
if (added > 0) keep(process.argv[added + 1])
const results = readdirSync(RESULTS)
  .filter((name) => name.endsWith('.jsonl'))
  .sort()
  .map(resultIn)
const made = [...results.flatMap(sectionOf), '### Causes\n', 'How often each is named first.\n', ...causeTable(results)]
const text = readFileSync(PAGE, 'utf8')
const [from, to] = [text.indexOf(BEGIN) + BEGIN.length, text.indexOf(END)]
put(PAGE, `${text.slice(0, from)}\n${made.join('\n')}\n\n${text.slice(to)}`, 'diagnosis-results')
