import { join } from 'node:path'
import {
  type Advice,
  type Analysis,
  adviceFor,
  type Bench,
  type BenchWork,
  chooseModel,
  type FoundModel,
  findBench,
  findModels,
  isOwnError,
  judgedRun,
  keptKernels,
  keptPeaks,
  measurePeaks,
  modelAt,
  type Peaks,
  peaksOfMachine,
  plural,
  recordQuietly,
  type ScalingFigures,
  type SweepFigures,
  type SweptRun,
  scaling,
  speedOf,
  sweep,
  temporaryFolder,
  threadCounts,
  UsageError,
  usableMemory,
  WHAT_IF_SERIES,
} from '../../lib/cli.ts'
import { io } from '../io.ts'
import { interruptible } from '../signals.ts'
import { analysisOf } from '../stats/inputs.ts'
import { note } from '../terminal.ts'
import { duration, size } from '../units.ts'

/** What is to be examined. */
export interface Wanted {
  readonly program: string | undefined
  readonly model: string | undefined
  /** Runs of each number of threads, as far as the time permits. */
  readonly rounds: number
  readonly limitMs: number
}

/** What was found and measured. */
export interface Examined {
  readonly bench: Bench
  readonly model: FoundModel
  /** Models that were found; 1: it was given. */
  readonly models: number
  readonly memory: ReturnType<typeof usableMemory>
  readonly peaks: Peaks
  readonly work: Pick<BenchWork, 'prompt' | 'decode'>
  /** What llama.cpp takes by default. */
  readonly usualThreads: number
  /** By number of threads, ascending. */
  readonly runs: readonly SweptRun[]
  /** Numbers of threads for which the time was too short. */
  readonly notRun: readonly number[]
  readonly swept: SweepFigures
  readonly scaled: ScalingFigures
  /** Of the run that the answer and the advice are about. */
  readonly judged: Analysis
  readonly advice: readonly Advice[]
}

/** A model is chosen of which a token takes so long, at the bandwidth that was measured. */
const TOKEN_S_MAX = 0.35
/** Of the memory that is available, at most: the KV cache and the program need some, too. */
const MEMORY_SHARE = 0.6
/** Time of decode, at the bandwidth, and bounds of its tokens: what-if needs 16 calls. */
const DECODE_S = 0.5
const DECODE = { min: 24, max: 256 }

/**
 * Finds llama.cpp and a model, measures the peaks of the machine, and records runs with several numbers of threads, in a temporary folder. Throws
 * UsageError if something is not found, or a run fails.
 */
export function examine(wanted: Wanted): Promise<Examined> {
  return interruptible('interrupted', () => examined(wanted))
}

async function examined({ program, model: given, rounds, limitMs }: Wanted): Promise<Examined> {
  const endMs = performance.now() + limitMs
  const { env } = io()
  const bench = await findBench(program, env)
  const files = given === undefined ? await findModels(env) : []
  const givenModel = given === undefined ? undefined : await modelAt(given)
  await note(`program: ${bench.path}`)
  const peaks = await measuredPeaks()
  const memory = usableMemory()
  const bytesMax = Math.min(MEMORY_SHARE * memory.available_bytes, TOKEN_S_MAX * peaks.read_bytes.all)
  const model = givenModel ?? (await chooseModel(files, bytesMax))
  await note(`model: ${model.path} (${size(model.bytes)})${files.length > 1 ? `, of ${files.length} found` : ''}`)
  if (model.bytes > memory.available_bytes)
    await note(
      `the model is larger than the available memory, ${size(memory.available_bytes)}: it is read again and again`,
    )
  const work = workOf(model, peaks)
  const counts = await threadCounts()
  const recorded = await recordAll({ bench, model, work, counts, rounds, endMs, peaks })
  const runs = recorded.runs.toSorted((a, b) => Number(a.value) - Number(b.value))
  const swept = sweep(runs)
  const judged = judgedRun(runs, swept).analysis
  const { build } = judged.run
  const kernels = build === null ? undefined : await keptKernels(env, build)
  const evidence = { kernels, peaks: peaksOfMachine(peaks) }
  return {
    ...{ bench, model, models: Math.max(files.length, 1), memory, peaks, work, usualThreads: counts.usual },
    ...{ runs, notRun: recorded.notRun, swept, scaled: scaling(runs.map(({ analysis }) => analysis)), judged },
    advice: adviceFor(judged, swept, counts.usual, evidence),
  }
}

async function measuredPeaks(): Promise<Peaks> {
  const { env } = io()
  if (!(await keptPeaks(env))) await note('measuring the peaks of this machine')
  const onBuild = (compiler: string) => void note(`building the measuring program with ${compiler}, once`)
  const peaks = await measurePeaks({ env, onBuild })
  if (peaks.disturbed !== null) await note(`the peaks were disturbed: ${peaks.disturbed}`)
  return peaks
}

/** As much as shows something, no more than a large model can do in some seconds, and than its context takes: a word may be several tokens. */
function workOf({ bytes, figures }: FoundModel, { read_bytes }: Peaks): Examined['work'] {
  const tokenS = (figures.decode.weight_bytes ?? bytes) / read_bytes.all
  const decode = Math.min(DECODE.max, Math.max(DECODE.min, Math.round(DECODE_S / tokenS)))
  const prompt = decode >= 128 ? 128 : decode >= 64 ? 64 : 32
  const within = (part: number) => Math.max(Math.floor((figures.context_length ?? Infinity) / part), 1)
  return { decode: Math.min(decode, within(4)), prompt: Math.min(prompt, within(16)) }
}

interface Plan {
  readonly bench: Bench
  readonly model: FoundModel
  readonly work: Examined['work']
  readonly counts: Awaited<ReturnType<typeof threadCounts>>
  readonly rounds: number
  readonly endMs: number
  readonly peaks: Peaks
}

/** Records each number of threads once a round, in a folder that is removed. */
async function recordAll(plan: Plan): Promise<{ runs: SweptRun[]; notRun: number[] }> {
  const { counts, rounds, endMs } = plan
  const folder = await temporaryFolder()
  const recorder = new Recorder(plan, folder.path)
  try {
    // The usual number is the first one: where the time is short, it matters most.
    const order = [counts.usual, ...counts.all.toReversed().filter((threads) => threads !== counts.usual)]
    for (let round = 1; round <= rounds; round++) {
      const isShort = performance.now() + recorder.expectedMs(...order) > endMs
      if (round > 1 && isShort) break
      // Every second round in the other direction: a machine that gets slower makes all slower.
      for (const threads of round % 2 === 1 ? order : order.toReversed()) await recorder.run(threads, round)
    }
    const notRun = counts.all.filter((threads) => !recorder.runs.some(({ value }) => value === `${threads}`))
    return { runs: recorder.runs, notRun }
  } finally {
    folder.remove()
  }
}

/** Records runs, and knows how long they take. */
class Recorder {
  readonly runs: SweptRun[] = []
  private readonly ms = new Map<number, number>()
  /** Which of the lists of arguments the program accepts; undefined: not known yet. */
  private accepted: number | undefined

  constructor(
    private readonly plan: Plan,
    private readonly folder: string,
  ) {}

  /** How long runs with these numbers of threads take at most: as before, or as if the next larger number scaled perfectly. 0: nothing is known. */
  expectedMs(...counts: readonly number[]): number {
    const known = [...this.ms].sort(([a], [b]) => a - b)
    const longest = Math.max(0, ...this.ms.values())
    return counts.reduce((sum, threads) => {
      const [more, ms] = known.find(([count]) => count >= threads) ?? [threads, longest]
      return sum + (ms * more) / threads
    }, 0)
  }

  /** Records one, unless the time is too short. */
  async run(threads: number, round: number): Promise<void> {
    const { bench, counts, rounds, endMs, peaks } = this.plan
    const beginMs = performance.now()
    const what = plural(threads, 'thread')
    if (this.runs.length > 0 && beginMs + this.expectedMs(threads) > endMs)
      return note(`${what}: not run, the time is too short`)
    await note(`run ${this.runs.length + 1} of ${rounds * counts.all.length} at most: ${what}`)
    const log = await this.record(threads, join(this.folder, `t${threads}-${round}.ggtrace`))
    if (log === undefined) {
      if (this.runs.length > 0) return note(`${what}: ended, the time is over`)
      throw new UsageError(
        `doctor: the first run, of ${what}, did not end in ${duration((performance.now() - beginMs) * 1e6)}\n` +
          'hint: a smaller model (-m), or more time (--for 5min)',
      )
    }
    const analysis = await analysisOf({ inputs: [log] }, { series: WHAT_IF_SERIES, peaks: peaksOfMachine(peaks) })
    if (speedOf(analysis, 'decode') === 0)
      throw new UsageError(
        `${bench.path}: it decoded nothing: ${analysis.verdict.sentence}\nhint: another model (-m), or another program`,
      )
    this.runs.push({ value: `${threads}`, analysis })
    this.ms.set(threads, Math.max(performance.now() - beginMs, this.ms.get(threads) ?? 0))
  }

  /** The log; undefined if the time was over before the program ended. */
  private async record(threads: number, output: string): Promise<string | undefined> {
    const { bench, model, work } = this.plan
    const lists = bench.argumentsFor({ model: model.path, threads, ...work })
    for (const [i, args] of lists.entries()) {
      if (this.accepted !== undefined && this.accepted !== i) continue
      try {
        const log = await this.recordCommand([bench.path, ...args], output)
        this.accepted = i
        return log
      } catch (error) {
        // Of a list that this version does not accept, the next one is tried.
        if (!isOwnError(error) || this.accepted !== undefined || i === lists.length - 1) throw error
      }
    }
    return undefined
  }

  private async recordCommand(
    command: readonly [program: string, ...args: string[]],
    output: string,
  ): Promise<string | undefined> {
    let [isLate, end] = [false, () => {}]
    const late = () => {
      isLate = true
      end()
    }
    const timer = setTimeout(late, Math.max(0, this.plan.endMs - performance.now()))
    const onStart = (kill: (signal: NodeJS.Signals) => void) => {
      end = () => kill('SIGKILL')
      if (isLate) setImmediate(end) // the program starts right after this
    }
    const onBuild = (compiler: string) => void note(`building the recorder with ${compiler}, once`)
    try {
      const options = { command, env: io().env, output, onStart, onBuild }
      return (await recordQuietly(options, command[0], join(this.folder, 'messages'))).logs[0]
    } catch (error) {
      if (isLate) return undefined
      throw error
    } finally {
      clearTimeout(timer)
    }
  }
}
