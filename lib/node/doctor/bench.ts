import { stat } from 'node:fs/promises'
import { arch, homedir, platform } from 'node:os'
import { basename, delimiter, join, resolve } from 'node:path'
import { isOwnError, UsageError } from '../../errors.ts'
import { isOwn } from '../own-files.ts'
import { checkRecordable, checkSystem, problemInside } from '../record/diagnosis.ts'
import { type Environment, findProgram, linkage } from '../record/program.ts'

/** A program of llama.cpp that computes a prompt and decodes by itself. */
export interface Bench {
  readonly path: string
  /** Its arguments for some work. Where they differ between versions there are several lists: the first one that it accepts counts. */
  argumentsFor(work: BenchWork): readonly (readonly string[])[]
}

/** What such a program is to compute. */
export interface BenchWork {
  /** Path of the GGUF file. */
  readonly model: string
  readonly threads: number
  /** Tokens of the prompt, about as many where the program takes a text. */
  readonly prompt: number
  /** Tokens that are decoded one by one. */
  readonly decode: number
}

/** Both in one context, as a program that answers does. */
const inBench = ({ model, threads, prompt, decode }: BenchWork): string[] => [
  ...['-m', model, '-t', `${threads}`, '-p', '0', '-n', '0', '-pg', `${prompt},${decode}`, '-r', '1'],
]

/** Most tokenizers have a token for this word, with the blank before it. */
const WORD = ' the'

const inText = ({ model, threads, prompt, decode }: BenchWork, ...more: readonly string[]): string[] => [
  ...['-m', model, '-t', `${threads}`, '-p', WORD.repeat(prompt).trim(), '-n', `${decode}`, '--temp', '0'],
  ...['--ignore-eos', ...more],
]

/** Programs by name, the best one first: a benchmark computes exactly what is asked for. */
const BENCHES: readonly (readonly [name: string, argumentsFor: Bench['argumentsFor']])[] = [
  ['llama-bench', (work) => [inBench(work)]],
  ['llama-completion', (work) => [inText(work, '-no-cnv')]],
  // Newer ones answer in turns only.
  ['llama-cli', (work) => [inText(work, '-no-cnv'), inText(work, '-st')]],
]

const NAMES = 'llama-bench, llama-completion or llama-cli'
const HOW = 'give the program and a model: ggml2perfetto doctor build/bin/llama-bench -m model.gguf'

/** Where builds of llama.cpp usually are. */
function placesOf(env: Environment): string[] {
  const home = env['HOME'] || homedir()
  return [
    ...['.', 'build/bin', 'llama.cpp/build/bin'].map((folder) => resolve(folder)),
    ...['llama.cpp/build/bin', 'llama.cpp', '.local/bin', 'bin'].map((folder) => join(home, folder)),
  ]
}

/**
 * The program at a path, or in a folder; without `given`, the first one in PATH and the places where builds of llama.cpp usually are that can be
 * recorded, and that no other user can have put there. Throws UsageError if there is none, or if it cannot be recorded; as `record` does where this system cannot record at all.
 */
export async function findBench(given: string | undefined, env: Environment): Promise<Bench> {
  checkSystem(platform(), arch())
  const isFolder = given !== undefined && (await stat(given).catch(() => undefined))?.isDirectory()
  if (given !== undefined && !isFolder) return recordable(given, env)
  // As a shell does, it trusts PATH.
  const trusted = given === undefined ? (env['PATH'] ?? '').split(delimiter).filter(Boolean) : [resolve(given)]
  const folders = given === undefined ? [...trusted, ...placesOf(env)] : trusted
  let refused: Error | undefined
  for (const folder of folders) {
    for (const [name] of BENCHES) {
      const path = join(folder, name)
      if (!(await stat(path).catch(() => undefined))?.isFile()) continue
      try {
        if (!trusted.includes(folder)) await isOwn(path, { hint: `doctor ${path} if you trust this program` })
        return await recordable(path, env)
      } catch (error) {
        if (!isOwnError(error)) throw error
        refused ??= error
      }
    }
  }
  if (refused) throw refused
  const where = given ?? 'PATH, ./build/bin and ~/llama.cpp/build/bin'
  throw new UsageError(`doctor: no ${NAMES} in ${where}\nhint: ${HOW}`)
}

async function recordable(path: string, env: Environment): Promise<Bench> {
  const program = await findProgram(path, env, resolve('.')).catch((error: unknown) => {
    throw isOwnError(error) ? new UsageError(error.message) : error // without the exit code that a shell would have
  })
  const [, argumentsFor] = BENCHES.find(([name]) => basename(path).startsWith(name)) ?? []
  if (!argumentsFor)
    throw new UsageError(
      `${path}: expected ${NAMES}\nhint: of another program: ggml2perfetto record --sweep t=1,2 -- <program> -t {t}`,
    )
  await checkRecordable(program, arch(), true, env)
  const problem = (await linkage(program, env)) === 'inside' ? problemInside(program) : undefined
  if (problem !== undefined) throw new UsageError(`${path}: cannot be recorded: ${problem}\nhint: ${HOW}`)
  return { path: program.path, argumentsFor }
}
