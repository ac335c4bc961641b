import { join } from 'node:path'
import {
  LIMITED_NS_MIN,
  newRunFolder,
  percent,
  plural,
  type RecordResult,
  recordQuietly,
  type SweepFigures,
  type SweepPhase,
  type SweptRun,
  sweep,
  threeDigits,
  UsageError,
  WITHIN,
} from '../../lib/cli.ts'
import { io } from '../io.ts'
import { interruptible } from '../signals.ts'
import { analysisOf } from '../stats/inputs.ts'
import { type Section, toText } from '../stats/section.ts'
import { note, print, quoted } from '../terminal.ts'
import { duration } from '../units.ts'
import { chosen, ROUNDS, type Sweep } from './options.ts'

/** Characters of the longest bar. */
const BAR = 30
/** Characters of a line where the output is no terminal. */
export const WIDTH = 120
/** What to do about disturbed runs. */
const RECORD_AGAIN = 'stop other programs, and record again; --sched shows who took the CPUs'

type Command = readonly [program: string, ...args: string[]]

/** `record --sweep t=1,2,4 -- llama-bench … -t {t}`: records each value once a round, and prints a chart and a recommendation. */
export async function recordSweep(swept: Sweep, command: Command, args: Parameters<typeof chosen>[0]): Promise<void> {
  const { name, values } = swept
  const { rounds = ROUNDS, quiet, output } = args
  const other = args.open ? 'open' : args.paused ? 'paused' : undefined
  if (other !== undefined) throw new UsageError(`--sweep: not possible with --${other}`)
  const place = `{${name}}`
  if (!command.some((word) => word.includes(place)))
    throw new UsageError(
      `--sweep ${name}=${values.join(',')}: ${place} is not in the command\n` +
        `hint: write it where the value belongs: ggml2perfetto record --sweep ${name}=${values.join(',')} -- llama-bench -m model.gguf -t ${place}`,
    )
  const folder = output ?? `sweep-${new Date().toISOString().replace(/[:.]/g, '-').slice(0, 19)}`
  const stem = (value: string) => `${name}${value}`
  const isLog = (file: string) =>
    values.some((value) => file.startsWith(`${stem(value)}-`) && /-\d+\.ggtrace/.test(file))
  await newRunFolder(folder, isLog)
  const { hints, noteOnce } = problemNotes()
  const runs: SweptRun[] = []
  const logs: string[] = []
  const kept = () => `${plural(runs.length, 'run')} of ${values.length * rounds} are complete in ${folder}`
  const recordAll = async () => {
    for (const [i, { value, round }] of orderOf(values, rounds).entries()) {
      if (!quiet) await note(`run ${i + 1} of ${values.length * rounds}: ${name}=${value}`)
      const result = await recordQuietly(
        {
          command: command.map((word) => word.replaceAll(place, value)) as [string, ...string[]],
          env: io().env,
          ...chosen(args),
          ...hints,
          output: join(folder, `${stem(value)}-${round}.ggtrace`),
          onBuild: (compiler) => noteOnce(`building the recorder with ${compiler}, once`),
        },
        `${name}=${value}`,
        join(folder, `${stem(value)}.messages`),
      )
      const inputs = inputsOf(result)
      logs.push(inputs[0]!)
      runs.push({ value, analysis: await analysisOf({ inputs }) })
    }
  }
  await interruptible(() => `interrupted: ${kept()}`, recordAll).catch(async (error) => {
    if (runs.length > 0) await note(kept())
    throw error
  })
  const figures = sweep(runs)
  await print([...answer(figures, name, rounds), ...(quiet ? [] : ['', ...toText(charts(figures, name), WIDTH)])])
  if (!quiet) await note(`the logs are in ${folder}; more: ggml2perfetto stats ${logs.map(quoted).join(' ')}`)
}

/** Each value once a round; every second round in the other direction: a machine that gets slower makes all slower. */
function orderOf(values: readonly string[], rounds: number): { readonly value: string; readonly round: number }[] {
  return Array.from({ length: rounds }, (_, i) => i + 1).flatMap((round) =>
    (round % 2 === 1 ? values : values.toReversed()).map((value) => ({ value, round })),
  )
}

/** What could not be recorded is the same in all runs: it is printed once. */
function problemNotes() {
  const said = new Set<string>()
  const noteOnce = (text: string) => {
    if (!said.has(text)) void note(text)
    said.add(text)
  }
  const about = (what: string) => (problem: string) => noteOnce(`no ${what}: ${problem}`)
  const hints = {
    onSchedProblem: about("scheduler's events"),
    onPowerProblem: about('power'),
    onMemProblem: about('page faults by address'),
  }
  return { hints, noteOnce }
}

/** The log of a run, and the recordings that say who disturbed it. */
const inputsOf = ({ logs, sched }: RecordResult): string[] => [logs[0]!, ...(sched?.path ? [sched.path] : [])]

/** The recommendation with its certainty, or why there is none; and what was left out. `again`: what to do about disturbed runs. */
export function answer(figures: SweepFigures, name: string, rounds: number, again = RECORD_AGAIN): string[] {
  const { disturbed, differences, lacking, is_disturbance_hidden, phases } = figures
  const rules = [...new Set(disturbed.flatMap(({ rules }) => rules))].join(', ')
  const values = [...new Set(disturbed.map(({ value }) => `${name}=${value}`))].join(', ')
  const left = `${plural(disturbed.length, 'run')} of ${values} ${disturbed.length === 1 ? 'was' : 'were'} disturbed (${rules})`
  if (differences.length > 0) {
    const found = differences.map(({ what, before, after }) => `${what} ${before} and ${after}`).join('; ')
    return [`nothing is recommended: the runs are not comparable: ${found}`]
  }
  if (lacking.length > 0) {
    return [`nothing is recommended: ${left}: too few are left of ${listed(lacking, name)}`, `hint: ${again}`]
  }
  if (phases.length === 0) return ['nothing is recommended: the runs have neither decode nor prefill calls']
  const hidden =
    'whether other programs disturbed the runs is not known: states of workers are not recorded, or each run had more workers than CPUs'
  return [
    ...phases.map((phase) => recommendation(phase, name, rounds)),
    ...(disturbed.length > 0 ? [`left out: ${left}`] : []),
    ...(is_disturbance_hidden ? [`note: ${hidden}`] : []),
  ]
}

const listed = (values: readonly string[], name: string) => values.map((value) => `${name}=${value}`).join(', ')

function recommendation({ phase, values, short, recommended }: SweepPhase, name: string, rounds: number): string {
  if (short.length > 0)
    return (
      `${phase}: nothing is recommended: under the limit of CPU time, runs with more workers than it permits need ` +
      `${duration(LIMITED_NS_MIN)} of ${phase} or more (${listed(short, name)} had less)`
    )
  if (!recommended) {
    const without = values.filter(({ speeds }) => speeds.length === 0).map(({ value }) => value)
    return `${phase}: nothing is recommended: no times of ${listed(without, name)}`
  }
  const { value, tokens_per_s, rival, is_certain } = recommended
  const chosen = `${phase}: ${name}=${value} is recommended, ${threeDigits(tokens_per_s)} tok/s`
  if (rival.factor_max === Infinity)
    return `${chosen} (one run each: how certain that is, more rounds would show: --rounds ${ROUNDS})`
  if (is_certain) return `${chosen} (certain: no other value measured is faster by more than ${percent(WITHIN)})`
  const own = values.find((swept) => swept.value === value)!.speeds
  const others = values.find((swept) => swept.value === rival.value)!.speeds
  if (Math.max(...others) < Math.min(...own))
    return `${chosen} (each of its ${plural(own.length, 'run')} was faster than each of ${name}=${rival.value}; --rounds ${rounds * 2} would show it with certainty)`
  // Of two runs, hardly anything is excluded.
  const most = rival.factor_max > 2 ? 'much' : `up to ${percent(rival.factor_max - 1)}`
  return `${chosen} (not certain: ${name}=${rival.value} could be ${most} faster; --rounds ${rounds * 2} would show it better)`
}

/** A chart of each phase. */
export function charts({ phases }: SweepFigures, name: string): Section[] {
  return phases.map(({ phase, values, recommended }) => {
    const most = Math.max(...values.map(({ tokens_per_s }) => tokens_per_s ?? 0))
    const titles = [name, 'tok/s', 'slowest … fastest run', 'runs']
    const columns = [...titles.map((title) => ({ title })), { title: '', isText: true }]
    const rows = values.map(({ value, speeds, tokens_per_s }) => {
      if (tokens_per_s === null) return [value, '', '', '0', '']
      const bar = '█'.repeat(Math.max(1, Math.round((BAR * tokens_per_s) / most)))
      const spread = `${threeDigits(Math.min(...speeds))} … ${threeDigits(Math.max(...speeds))}`
      const mark = value === recommended?.value ? ' ◀' : ''
      return [value, threeDigits(tokens_per_s), spread, `${speeds.length}`, `${bar}${mark}`]
    })
    return { title: phase, tables: [{ columns, rows }] }
  })
}
