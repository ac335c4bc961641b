import { stat } from 'node:fs/promises'
import { basename, dirname, resolve } from 'node:path'
import { type FailedRun, runFile } from '../children.ts'
import { INSIDE, OTHER_BUILD, OWN_BUILD, problemInside } from './diagnosis.ts'
import type { ReportedProgram } from './log-report.ts'
import {
  type Environment,
  isLoader,
  linkage,
  type Program,
  programName,
  programOf,
  STARTING_FUNCTIONS,
} from './program.ts'
import { rowOf } from './ways.ts'

/** How a program that called no ggml function ended. */
export interface Ending {
  readonly code: number | null
  readonly signal: string | null
  /** With more rights than this process has. */
  readonly secure: boolean
  readonly children: boolean
  /** What its processes reported; undefined: nothing could be reported. */
  readonly programs: readonly ReportedProgram[] | undefined
  /** The recorder, and the log that it should have written. */
  readonly library: string
  readonly output: string
}

/** Programs of a kind that a message names, and that are examined. */
const NAMED_MAX = 3
const EXAMINED_MAX = 16

/** Explains why there is no log: what its processes reported, else likely reasons. */
export async function explainNoLog(program: Program, ending: Ending, env: Environment): Promise<string> {
  const whose = ending.children ? `${program.name} and its children` : program.name
  const reasons = ending.secure ? [tooManyRights(program)] : await reasonsOf(program, ending, env)
  return [`no ggml call was seen in ${whose}: there is no log`, ...reasons.map((reason) => `  - ${reason}`)].join('\n')
}

async function reasonsOf(program: Program, ending: Ending, env: Environment): Promise<string[]> {
  const failure = failureOf(ending)
  const { programs = [] } = ending
  const ended = failure === undefined ? [] : [`it ended with ${failure}, perhaps before it computed anything`]
  const hidden = programs.filter(({ about }) => about === 'hidden').map(whyHidden)
  const missed = await whyMissed(ending, env)
  if (hidden.length + missed.length > 0) return [...ended, ...new Set([...hidden, ...missed])]
  return [...ended, ...(await likelyReasons(program, ending, env))]
}

/** `exit code 1`, `SIGKILL`; undefined if it succeeded. */
const failureOf = ({ code, signal }: Ending) => signal ?? (code ? `exit code ${code}` : undefined)

/** A name of a program's file, in a sentence. */
const named = (path: string) => path.replaceAll('\n', '\\n')

// ---- Programs that contain ggml

/** Why no call in them can be seen, by the recorder's word (native/recorder/program.c, code-change.c), and what to do. */
const HIDDEN: Readonly<Record<string, string>> = {
  mdwe: 'it gave up the right to change its code, which the recorder has to (PR_SET_MDWE; systemd: MemoryDenyWriteExecute): run it without that',
  seccomp:
    'a seccomp filter refuses changes of its code, which the recorder has to make: run it without the filter (docker run --security-opt seccomp=unconfined)',
  system:
    'the system allows no change of its code (SELinux: execmem, execmod), which the recorder has to make: allow it',
  copies:
    'its calls go to copies of functions that the compiler made: build it without them (-fno-ipa-cp -fno-ipa-sra -fno-partial-inlining)',
  inlined: 'the compiler made the functions with which a log begins a part of their callers: build it without -flto',
  refused: 'the functions with which a log begins were left alone',
}

function whyHidden({ path, reason, detail }: ReportedProgram): string {
  const why = HIDDEN[reason] ?? reason
  const row = rowOf('program that contains ggml')
  return `${INSIDE.replace('it', named(path))}: ${why}${detail && ` (${detail})`}, or ${OTHER_BUILD} (${row})`
}

// ---- Programs without the recorder

const ELSEWHERE_HINT = `record there: … ggml2perfetto record -- <program>; as another user of this machine: setpriv --reuid=… (${rowOf('program that others start')})`

/** Why the loader does not load the recorder, by the recorder's word (native/recorder/missed.c), and what to do. */
const MISSED: Readonly<Record<string, (by: string, ending: Ending) => string>> = {
  root: (by, { library }) =>
    `in the root directory that ${by} changed to there is no ${library}, so that ld.so cannot preload it: ${INSIDE_ROOT}`,
  absent: (_, { library }) => `where it runs, there is no ${library}, so that ld.so cannot preload it: ${INSIDE_ROOT}`,
  denied: (_, { library }) =>
    `its user may not read ${library}: set XDG_CACHE_HOME to a folder that this user can read`,
  dropped: (by) => `${by} did not pass it LD_PRELOAD: ${ELSEWHERE_HINT}`,
  static: () =>
    `it is linked statically, and the system loads no other library into it: build it with shared libraries, or ${OWN_BUILD} (${rowOf('program without shared libraries')})`,
  machine: () => `it is built for another processor (${rowOf('program of another processor')})`,
  libc: () => 'it is of another libc (musl) than the program that was recorded: record it itself, without that program',
  rights: () => moreRights('a copy without them'),
}
const INSIDE_ROOT = `record there, or mount the folders of the recorder and of the log there, under the same paths (${rowOf('program that others start')})`

function moreRights(what: string): string {
  return `the system gives it more rights, so that LD_PRELOAD is ignored: record ${what} (${rowOf('program with more rights')})`
}

/** Of one that has the recorder: where its log goes. */
const APART: Readonly<Record<string, (ending: Ending) => string>> = {
  log: ({ output }) =>
    `there is no folder ${dirname(resolve(output))} for the log: name a log in one that is there (-o), or ${INSIDE_ROOT}`,
  elsewhere: ({ output }) =>
    `${dirname(resolve(output))} is another folder: if ggml was called, the log is there; or ${INSIDE_ROOT}`,
}

/** Sentences about programs that were started without the recorder: of those that contain ggml, if there are any. */
async function whyMissed(ending: Ending, env: Environment): Promise<string[]> {
  const missed = (ending.programs ?? []).filter(({ about }) => about === 'missed').slice(0, EXAMINED_MAX)
  const contain = await Promise.all(missed.map(async ({ path }) => (await wayOf(path, env)) !== 'none'))
  const ofGgml = missed.filter((_, i) => contain[i])
  const sentences = (ofGgml.length > 0 ? ofGgml : missed).map(({ path, reason, detail: by }) => {
    const apart = APART[reason]?.(ending)
    if (apart !== undefined) return `${by} started ${named(path)} in another root directory, where ${apart}`
    return `${by} started ${named(path)} without the recorder: ${MISSED[reason]?.(by, ending) ?? reason}`
  })
  return [...new Set(sentences)].slice(0, NAMED_MAX)
}

/** How a program gets ggml; `none` where its file cannot be examined. */
async function wayOf(path: string, env: Environment): ReturnType<typeof linkage> {
  const program = await programOf(path)
  return program ? linkage(program, env) : 'none'
}

// ---- Likely reasons

async function likelyReasons(program: Program, ending: Ending, env: Environment): Promise<string[]> {
  const failure = failureOf(ending)
  const { children, programs } = ending
  const loaded = (programs ?? []).filter(({ about }) => about === 'loaded').map(({ path }) => path)
  if (programs !== undefined && loaded.length === 0) return [await whyNotLoaded(program, ending, env)]
  if (await isReplaced(program)) return [`${program.executable} was replaced or deleted while it ran: run it again`]
  const own = await linkage(program, env)
  if (own === 'inside') return [whyNotInside(program)]
  const others = own === 'linked' ? [] : await examined(loaded, program, env)
  const inside = others.filter(({ way }) => way === 'inside')
  if (inside.length > 0) return inside.map(({ program, path }) => `${named(path)}: ${whyNotInside(program)}`)
  const linked = [
    ...(own === 'linked' ? ['it is'] : []),
    ...others.filter(({ way }) => way === 'linked').map(({ path }) => `${named(path)} is`),
  ]
  const reasons =
    failure === undefined
      ? linked.slice(0, NAMED_MAX).map((who) => `${who} linked with ggml: perhaps it had nothing to compute`)
      : []
  if (program.isScript && !children) return [...reasons, 'it is a script: --no-children leaves out what a script runs']
  if (!children) reasons.push('did its children do the work, as with a wrapper? --no-children leaves them out')
  const elsewhere = ELSEWHERE.exec(programName(program))?.[0]
  if (elsewhere) reasons.push(`${elsewhere} starts programs without LD_PRELOAD: ${ELSEWHERE_HINT}`)
  else if (linked.length === 0) reasons.push(notLinked(others.map(({ path }) => path)))
  return reasons
}

/** Programs that were loaded with the recorder, apart from the one that was started. */
async function examined(loaded: readonly string[], { executable }: Program, env: Environment) {
  const programs = await Promise.all(
    loaded.slice(0, EXAMINED_MAX).map(async (path) => {
      const program = await programOf(path)
      return program && !(await isSameFile(path, executable))
        ? { path, program, way: await linkage(program, env) }
        : undefined
    }),
  )
  return programs.flatMap((program) => program ?? [])
}

async function isSameFile(a: string, b: string): Promise<boolean> {
  const [one, other] = await Promise.all([a, b].map((path) => stat(path).catch(() => undefined)))
  return one !== undefined && one.ino === other?.ino && one.dev === other.dev
}

async function isReplaced({ executable, stats }: Program): Promise<boolean> {
  const now = await stat(executable).catch(() => undefined)
  return now?.ino !== stats.ino || now.mtimeMs !== stats.mtimeMs
}

/** The recorder is in no process of the run. */
async function whyNotLoaded({ elf, executable }: Program, { library }: Ending, env: Environment): Promise<string> {
  if (elf.loader === undefined && !isLoader(executable))
    return `it is linked statically, and started no program into which the system loads the recorder (${rowOf('program without shared libraries')})`
  const says = await runFile('true', [], { env: { PATH: env['PATH'], LD_PRELOAD: library } }).then(
    ({ stderr }) => stderr,
    ({ stderr = '' }: FailedRun) => stderr,
  )
  return says
    ? `the system's loader does not load the recorder: ${says.trim()}`
    : 'nothing of the recorder ran in it: the loader ended it, or ignored LD_PRELOAD; its message, if there is one, says why'
}

function tooManyRights({ executable }: Program): string {
  return `the system gave it more rights (getcap ${executable}), so that LD_PRELOAD was ignored: record a copy without them (${rowOf('program with more rights')})`
}

/** Programs that start others without the environment, or outside of the own process tree. */
const ELSEWHERE = /^(sudo|doas|su|docker|podman|ssh|systemd-run|flatpak|snap)$/

function whyNotInside(program: Program): string {
  const why = 'perhaps it had nothing to compute'
  return problemInside(program) ?? `${INSIDE}: ${why}: ${OTHER_BUILD} (${rowOf('program that contains ggml')})`
}

/** `others`: what the program started. */
function notLinked(others: readonly string[]): string {
  const names = [...new Set(others.map((path) => named(basename(path))))]
  const more = names.length > NAMED_MAX ? ', …' : ''
  const started =
    names.length === 0
      ? 'It is not'
      : `Neither it nor what it started (${names.slice(0, NAMED_MAX).join(', ')}${more}) is`
  return (
    `does it use llama.cpp? ${started} linked with ggml. If it loads a library that contains ggml, the calls may be inside ` +
    `that library: record --libraries. They cannot be seen if it was stripped, or on other processors than x64: then objdump -R <library> | grep ${STARTING_FUNCTIONS[0]} prints nothing (${rowOf('library with a hidden ggml')})`
  )
}
