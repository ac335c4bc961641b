import { spawnSync } from 'node:child_process'
import { cpSync, lstatSync, readdirSync, rmSync } from 'node:fs'
import { join, relative } from 'node:path'
import { test } from '@jest/globals'
import { at, HANGS_MS, run, wordsOf } from '../cli/helpers.ts'
import { takePort } from '../cli/open-helpers.ts'
import { canRun } from '../cli/record-helpers.ts'
import { hasLlama } from '../llama/testbed.ts'
import { inLong } from '../long.ts'
import { canBpftrace } from '../machine.ts'
import { bin, file } from './files.ts'

/** Executes the printed command lines, each in a folder of its own with the same files (files.ts). */

/** The answer of the first call. */
function once(ask: () => boolean): () => boolean {
  let answer: boolean | undefined
  return () => (answer ??= ask())
}

/** Exit codes other than 0 that are right. */
const OTHER_CODES: readonly (readonly [line: RegExp, codes: readonly number[]])[] = [
  [/--fail-above/, [0, 2, 3]], // not slower, slower, not certain
  [/^timeout -s INT /, [0, 124]], // what runs until Ctrl-C
]

const codesOf = (line: string) => OTHER_CODES.find(([pattern]) => pattern.test(line))?.[1] ?? [0]

/** What is in a folder, and what changes with each change of it. */
function statesIn(folder: string): Map<string, string> {
  const states = new Map<string, string>()
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    const { ino, ctimeNs } = lstatSync(path, { bigint: true })
    states.set(path, entry.isDirectory() ? 'folder' : `${ino} ${ctimeNs}`)
  }
  return states
}

const asIs = { recursive: true, verbatimSymlinks: true }
let states: Map<string, string> | undefined

/** Runs `use` in a folder of the files, as if each time in a new one: what a line changed is made again, what it added is removed. */
function inPlace<R>(use: (place: string) => R): R {
  const place = at('place')
  if (!states) {
    cpSync(file(), place, asIs)
    states = statesIn(place)
  }
  try {
    return use(place)
  } finally {
    const found = statesIn(place)
    for (const path of found.keys()) if (!states.has(path)) rmSync(path, { recursive: true, force: true })
    for (const [path, state] of states) {
      if (found.get(path) === state) continue
      rmSync(path, { recursive: true, force: true })
      cpSync(file(relative(place, path)), path, asIs)
    }
    states = statesIn(place)
  }
}

/** The first line that the program prints, on stdout if there is any, or after what a recorded program printed. */
export function firstLineOf(line: string): string {
  const isOfProgram = / -- llama-server /.test(line)
  const lines = outputOf(line, isOfProgram).split('\n')
  return lines.find((text) => !isOfProgram || text.includes('tok/s'))!
}

const outcomes = new Map<string, ReturnType<typeof execute>>()

/** What a line prints, on stdout if there is anything. It is executed once. */
export function outputOf(line: string, isOnStderr = false): string {
  const { code, stdout, stderr } = outcomes.get(line) ?? inPlace((place) => execute(line, place))
  outcomes.set(line, { code, stdout, stderr })
  if (!codesOf(line).includes(code ?? -1)) throw new Error(`${line}\nexit code ${code}: ${stderr.trim().slice(-800)}`)
  return isOnStderr || stdout === '' ? stderr : stdout
}

/** What measures this machine has a cache of its own: kept peaks would be in the answers of others. The recorder is built once for all. */
const cacheFor = (line: string): Record<string, string> =>
  /record/.test(line) && !/peaks/.test(line) ? {} : { XDG_CACHE_HOME: at('cache') }

/** Does it serve a trace? */
const isServing = (line: string) => / (?:open|--open) /.test(`${line} `)

/** Runs a line: of this program alone in a thread, unless it serves a trace; others in a shell. */
function execute(line: string, cwd: string) {
  const [program, ...words] = wordsOf(line) ?? []
  const env = { ...cacheFor(line), PATH: `${bin()}:${process.env['PATH']}`, DISPLAY: ':0', BROWSER: '' }
  if (program === 'ggml2perfetto' && !isServing(line)) return run(words, { cwd, env })
  const script = `GITHUB_STEP_SUMMARY=summary.md; run() { echo "$1/llama-cli -m new/models/small.gguf"; }; set -o pipefail\n${line}`
  const options = { cwd, encoding: 'utf8', timeout: HANGS_MS, maxBuffer: 1 << 28 } as const
  const { status, stdout, stderr } = spawnSync('bash', ['--norc', '-c', script], {
    ...options,
    env: { ...process.env, ...env },
  })
  return { code: status, stdout, stderr }
}

/** Lines that start programs, which takes seconds: `npm test` has one of each kind, `npm run test:long` all. */
const STARTING = /(?:^| )(record|open|--open|--|perf|bpftrace) /
/** Lines that measure this machine or compare programs, as test/cli/{peaks,doctor,compare}.test.ts do: longer if it is busy. */
const MEASURING = /ggml2perfetto (?:peaks|doctor)|--peaks measure|compare .*-- /
const started = new Set<string>()

function isLeft(line: string): boolean {
  const kind = STARTING.exec(`${line} `)?.[1]
  return MEASURING.test(line) || (kind !== undefined && (started.has(kind) || !started.add(kind)))
}

interface LineOptions {
  /** Why it cannot be executed here. */
  readonly reason?: string | undefined
  /** Is it in `npm run test:long`, whatever it starts? */
  readonly isLong?: boolean
}

/** Recorded programs, whose arguments but `-t` are ignored here (files.ts). */
const RECORDED = /(?<= -- )(?:\.\/)?((?:llama-\w+|rpc-server|ollama|python)\b)[^|>;&]*/

/** What is the same for lines that do the same here: `sudo` has no effect, a log and what a line prints may have any name. */
const workOf = (line: string) =>
  line
    .replace(/^(?:sudo|npx) (?=ggml2perfetto)/, '')
    .replace(RECORDED, (rest, program) => `${program}${/ -t \S+/.exec(rest)?.[0] ?? ''}`)
    .replace(/(?<=record .*-o )\S+\.ggtrace/, 'run.ggtrace')
    // Peaks of this machine take ten seconds: each command measures them once, for whatever log, and prints them in whatever form.
    .replace(/^(ggml2perfetto \w+) .*--peaks measure\b.*/, '$1 --peaks measure')
    .replace(/^ggml2perfetto peaks(?: --json(?: \| jq .*)?)?$/, 'ggml2perfetto peaks')
    .replace(/ > \S+$/, '')

const declared = new Set<string>()

/** A test of one line; skipped, with the reason in its name, where it cannot be executed here. None of a line that does what an earlier one does. */
export function lineTest(line: string, filled: string, options: LineOptions = {}): void {
  const work = workOf(filled)
  if (declared.has(work)) return
  declared.add(work)
  const reason = options.reason ?? missing(filled)
  const declare = reason === undefined ? test : test.skip
  const name = `${line.slice(0, 120)}${reason === undefined ? '' : ` (${reason})`}`
  const isLong = options.isLong || (reason === undefined && isLeft(filled))
  ;(isLong ? inLong(declare) : declare)(name, async () => {
    const turn = isServing(filled) ? await takePort() : undefined
    try {
      outputOf(filled)
    } finally {
      turn?.close()
    }
  })
}

const canPerf = once(() => canRun('perf', 'record', '-a', '-o', '/dev/null', 'true'))

/** What a line needs that is not here. */
const NEEDS: readonly (readonly [line: RegExp, isHere: () => boolean, reason: string])[] = [
  ...['dot', 'jq'].map(
    (name) => [new RegExp(`\\| ${name} `), once(() => canRun('which', name)), `needs ${name}`] as const,
  ),
  [/(?:^|\s|-- )perf /, canPerf, 'needs perf, as root'],
  [/perf\.data/, canPerf, 'needs perf, as root'],
  [/bpftrace /, once(canBpftrace), 'needs bpftrace, as root'],
  [
    /^trace-cmd /,
    once(() => canRun('trace-cmd', 'record', '-e', 'sched:sched_switch', '-o', '/dev/null', 'true')),
    'needs ftrace, as root',
  ],
  [/--mem /, canPerf, 'needs perf'],
  [
    /(?: |^)(?:record|compare --|perf record|\S*llama-\w+) |\bcompared?\b|(?:old|now|t1)[/.]|-bench -m/,
    hasLlama,
    'needs llama.cpp',
  ],
]

/** What a line needs that is not here, in words; undefined where it needs nothing else. */
export const missing = (line: string) => NEEDS.find(([pattern, isHere]) => pattern.test(line) && !isHere())?.[2]
