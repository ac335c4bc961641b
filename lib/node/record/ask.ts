import { open, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { appendedFacts } from '../../log/ggtrace-appended.ts'
import { OP_PARAMETERS } from '../../log/ggtrace-layout.ts'
import type { RefusalEvent } from '../../model/events.ts'
import { Names } from '../../model/names.ts'
import {
  decidedBy,
  describeRefusal,
  type QuestionTensor,
  tensorsOf,
  type Variation,
  variationsOf,
} from '../../model/refusals.ts'
import { RefusedWeights, type WeightQuestion } from '../../model/refused-weights.ts'
import { eventsOf } from '../../pipeline/known-formats.ts'
import { runFile } from '../children.ts'
import { exists, readFileChunks } from '../files.ts'
import { temporaryFolder } from '../left-overs.ts'
import { trustedUsers } from '../own-files.ts'
import { RECORDER_ENVIRONMENT } from './environment.ts'
import type { Environment } from './program.ts'

/** Devices are asked while memory is reserved: before the first call. The CPU is asked about weights only, when they are loaded. */
const BEGINNING_BYTES = 16 << 20
/** Refused operators that are asked about; a device refuses a few kinds. */
const ASKED_MAX = 32
/** Time for all of it: the driver of a device takes up to a second to start. */
const ASKING_MS_MAX = 5000
/** Processes that ended at a question. */
const RESTARTS_MAX = 8
/** Devices of other machines: they answer yes, whatever is asked. */
const ELSEWHERE = /^RPC/

/** What is asked about one refused operator: itself first, then what differs in one property. */
interface Question {
  readonly key: string
  readonly description: string
  readonly variations: readonly Variation[]
  readonly lines: readonly string[]
}

/**
 * Asks the devices that refused operators in a log which property decided, and appends the answers to the log as facts (`asked.…`). They are
 * asked in a process of its own, in which `library`, the recorder, is preloaded. Appends nothing where that is not possible, or where another user's process
 * wrote the log: it chose the libraries that would be loaded.
 */
export async function askDevices(log: string, library: string, env: Environment): Promise<void> {
  if (!trustedUsers().includes((await stat(log)).uid)) return
  const { libraries, questions } = await readQuestions(log)
  const ends = Date.now() + ASKING_MS_MAX
  const facts: Record<string, string> = {}
  for (const [device, asked] of questions) {
    const paths = [libraries.get(''), libraries.get(device)]
    const areHere = await Promise.all(paths.map(async (path) => path !== undefined && (await exists(path))))
    if (!areHere.every(Boolean)) continue
    const answers = await answersOf([...(paths as string[]), device], asked, { library, env, ends })
    for (const [i, question] of asked.entries()) facts[question.key] = `${question.description}: ${answers[i]}`
  }
  if (Object.keys(facts).length > 0) await append(log, appendedFacts(facts))
}

const LIBRARY = /^library\.(?:ggml|device\.(.+))$/

async function readQuestions(log: string) {
  const names = new Names()
  const libraries = new Map<string, string>()
  const questions = new Map<string, Question[]>()
  const seen = new Set<string>()
  const weights = new RefusedWeights(names)
  const source = readFileChunks(log, undefined, 0, BEGINNING_BYTES)
  reading: for await (const batch of eventsOf({ name: log, source }, names))
    for (const event of batch) {
      if (event.kind === 'refusal') addQuestion(event, names, questions, seen)
      if (event.kind === 'weight-memory') weights.add(event)
      if (event.kind === 'token' && ![...libraries.keys()].some(isDevice)) break reading
      if (event.kind !== 'input' && event.kind !== 'facts') continue
      for (const [key, value] of Object.entries(event.attributes)) {
        const found = LIBRARY.exec(key)
        if (found) libraries.set(found[1] ?? '', String(value))
      }
    }
  if (weights.questions.length > 0) questions.set(CPU, weights.questions.slice(0, ASKED_MAX).map(questionOfWeight))
  return { libraries, questions }
}

/** The device with memory in which weights are repacked. */
const CPU = 'CPU'

/** Is it neither ggml nor the CPU? */
const isDevice = (library: string) => library !== '' && library !== CPU

const questionOfWeight = ({ memory, op, variations, ...question }: WeightQuestion, i: number): Question => ({
  key: `asked.${memory}.${op}.${i + 1}`,
  ...{ description: question.description, variations },
  lines: [question, ...variations].map(({ opNumber, tensors }) => lineOf(opNumber ?? question.opNumber, [], tensors)),
})

/** Of shapes of the same op and types, the first one is asked about. */
function addQuestion(event: RefusalEvent, names: Names, questions: Map<string, Question[]>, seen: Set<string>): void {
  const { question, opNumber, parameters } = event
  const [device, op] = [names.text(event.device), names.text(event.op)]
  if (question !== 'supports-op' || opNumber === undefined || ELSEWHERE.test(device)) return
  const tensors = tensorsOf(event, names)
  const kind = [device, op, ...tensors.map(({ type }) => type)].join(' ')
  if (seen.has(kind) || seen.size >= ASKED_MAX) return
  seen.add(kind)
  const variations = variationsOf(op, tensors)
  const all = [tensors, ...variations.map((variation) => variation.tensors)]
  const lines = all.map((of) => lineOf(opNumber, parameters ?? [], of))
  const asked = questions.get(device) ?? []
  const key = `asked.${device}.${op}.${asked.length + 1}`
  questions.set(device, [...asked, { key, description: describeRefusal(event, names), variations, lines }])
}

const lineOf = (opNumber: number, parameters: readonly number[], tensors: readonly QuestionTensor[]) =>
  [
    ...[opNumber, ...Array.from({ length: OP_PARAMETERS }, (_, i) => parameters[i] ?? 0), tensors.length],
    ...tensors.flatMap(({ type, memory, ne, nb }) => [memory ? `${type}@${memory}` : type || '-', ...ne, ...nb]),
  ].join(' ')

interface Asking {
  readonly library: string
  readonly env: Environment
  readonly ends: number
}

/** What decided about each question, in words. */
async function answersOf(head: readonly string[], questions: readonly Question[], asking: Asking): Promise<string[]> {
  const answers = await ask(
    head,
    questions.flatMap(({ lines }) => lines),
    asking,
  )
  let at = 0
  return questions.map(({ variations, lines }) => {
    const own = answers.slice(at, at + lines.length)
    at += lines.length
    if (own[0] === '1') return 'unknown: it takes them when it is asked by itself'
    if (own[0] !== '0') return 'unknown: it did not answer again'
    const decided = decidedBy(
      variations,
      [...own.slice(1)].map((answer) => answer === '1'),
    )
    return decided ?? 'unknown: it takes no other type, size or layout alone, either'
  })
}

/** A character for each line: see native/recorder/ask.c. After a question that ends the process, the next ones are asked in another one. */
async function ask(head: readonly string[], lines: readonly string[], { library, env, ends }: Asking): Promise<string> {
  const { path: folder, remove } = await temporaryFolder()
  const path = join(folder, 'questions')
  const own = { ...env, LD_PRELOAD: library, [RECORDER_ENVIRONMENT.ask]: path }
  let answers = ''
  try {
    for (let i = 0; i <= RESTARTS_MAX && answers.length < lines.length && Date.now() < ends; i++) {
      await writeFile(path, [...head, ...lines.slice(answers.length), ''].join('\n'))
      const timeout = Math.max(1, ends - Date.now())
      const options = { env: own, timeout, killSignal: 'SIGKILL' } as const
      const { stdout, code } = await runFile('true', [], options).then(
        ({ stdout }) => ({ stdout, code: 0 as unknown }),
        ({ stdout = '', code }: { stdout?: string; code?: unknown }) => ({ stdout, code }),
      )
      answers += stdout.slice(0, lines.length - answers.length)
      if (code === 0) break
      answers += '?'
    }
  } finally {
    remove()
  }
  return answers
}

/** A log of another user cannot be written: then it remains as it is. */
async function append(log: string, bytes: Uint8Array): Promise<void> {
  const { size } = await stat(log)
  const file = await open(log, 'r+').catch(() => undefined)
  if (!file) return
  try {
    await file.write(bytes, 0, bytes.length, Math.ceil(size / 8) * 8)
  } finally {
    await file.close()
  }
}
