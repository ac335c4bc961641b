import { modelNameOf, modelsOfCommand } from '../../model/command.ts'
import { dictionary } from '../../model/dictionary.ts'
import { programClockIn } from '../../model/program-clock.ts'
import { WITHOUT_TIMES } from '../../model/times.ts'
import type { Undetermined } from '../common/figures.ts'
import type { Summary } from '../summary/figures.ts'
import { allRecorded, type Contents } from './contents.ts'
import type { LeftOutCalls, RunFacts, RunLimits } from './figures.ts'
import { countsOfLosses, lossesIn } from './losses.ts'
import { type SeenWorkers, usableCpusOf } from './usable-cpus.ts'

/** Facts of variables of the environment begin so. */
const VARIABLE = 'env.'
/** Options of `record` that leave out a part. */
const LIMIT = /^recorded\.(.+)$/
/** The recorder's own word for calls only. */
const LEVELS: Readonly<Record<string, string>> = dictionary({ token: 'calls', graph: 'graphs' })

/** A log, and what it contains. */
interface LogContents {
  readonly summary: Summary
  readonly contents: Contents
  readonly figures: SeenWorkers & { readonly cpus_used: number | null }
}

/** The facts of a run, from the log `main` that has its calls; of the machine, from any. What is not known is added to `undetermined`. */
export function runOf(main: LogContents, logs: readonly LogContents[], undetermined: Undetermined[]): RunFacts {
  const { summary, contents } = main
  const { attributes } = summary
  const text = (...keys: readonly string[]) => {
    const key = keys.find((key) => attributes[key] !== undefined)
    return key === undefined ? null : String(attributes[key])
  }
  const ofMachine: Summary['attributes'] = Object.assign(
    {},
    ...logs.map(({ summary }) => summary.attributes),
    attributes,
  )
  const machine = (key: string, other = key) => {
    const value = ofMachine[key] ?? ofMachine[other]
    return value === undefined ? null : String(value)
  }
  const { modelFiles, parameters, weights } = contents
  const command = text('command')
  const files = modelFiles.length > 0 ? modelFiles.slice(0, 1) : modelsOfCommand(command ?? '')
  const level = text('level')
  const cpus = Number(machine('cpus') ?? NaN)
  const usable = usableCpusOf(attributes, main.figures)
  const facts: RunFacts = {
    command,
    model: text('model.name', 'general.name', 'model') ?? (files.map(modelNameOf).join(', ') || null),
    architecture: text('general.architecture', 'architecture'),
    model_files: modelFiles,
    parameters,
    weights,
    layers: Math.max(summary.layers, contents.layers) || null,
    host: machine('host', 'hostname'),
    cpu: machine('cpu'),
    cpus: Number.isFinite(cpus) ? cpus : null,
    cpus_used: main.figures.cpus_used,
    kernel: machine('kernel', 'kernel_release'),
    build: text('ggml.version', 'build'),
    ggml_library: text('library.ggml'),
    version: text('llama.version'),
    limits: limitsOf(attributes, usable?.cpus.length),
    variables: Object.fromEntries(
      Object.entries(attributes).flatMap(([key, value]) =>
        key.startsWith(VARIABLE) ? [[key.slice(VARIABLE.length), String(value)]] : [],
      ),
    ),
    backends: summary.backends,
    workers: summary.workers,
    threads: summary.threads,
    duration_ns: summary.duration_ns,
    level: level === null ? null : (LEVELS[level] ?? level),
    recorded: allRecorded(logs.map(({ contents }) => contents)),
    counters: summary.counters.map(({ name }) => name),
    limited_to: Object.fromEntries(
      Object.entries(attributes).flatMap(([key, value]) => {
        const limit = LIMIT.exec(key)?.[1]
        return limit === undefined ? [] : [[limit, String(value)]]
      }),
    ),
    left_out: leftOutOf(attributes),
    program_clock: programClockIn(attributes),
    losses: countsOfLosses(
      logs.map(({ summary, contents }) => ({ losses: lossesIn(summary.issues, contents.recorded) })),
    ),
  }
  if (facts.duration_ns === null && summary.drawn > 0)
    undetermined.push({ what: 'run.duration_ns', why: `not in ${summary.format}: ${WITHOUT_TIMES[summary.times]}` })
  if (usable?.inferred !== undefined) undetermined.push({ what: 'run.limits.cpus', why: usable.inferred })
  undetermined.push(...missingOf(facts))
  return facts
}

/** Calls that a log of slow ones lacks. */
function leftOutOf(attributes: Summary['attributes']): LeftOutCalls | null {
  const [calls, time_ns] = [Number(attributes['left_out.calls'] ?? NaN), Number(attributes['left_out.ns'] ?? NaN)]
  return calls >= 0 ? { calls, time_ns, limit: String(attributes['recorded.slow']) } : null
}

/** The limits among the facts of a log. */
function limitsOf(attributes: Summary['attributes'], cpus: number | undefined): RunLimits | null {
  const number = (key: string) => {
    const value = Number(attributes[key] ?? NaN)
    return Number.isFinite(value) ? value : null
  }
  const [quota, period, periods] = [number('cpu.quota_us'), number('cpu.period_us'), number('cpu.periods')]
  const limits = {
    cpus: cpus ?? number('cpus.allowed'),
    cpu_time: quota === null || !period ? null : quota / period,
    throttled_share: periods === null ? null : (number('cpu.throttled_periods') ?? 0) / Math.max(periods, 1),
    throttled_ns: number('cpu.throttled_ns'),
    memory_bytes: number('memory.limit_bytes'),
  }
  return Object.values(limits).every((value) => value === null) ? null : limits
}

/** The facts that the log does not contain, and why. */
function missingOf(run: RunFacts): Undetermined[] {
  const missing: Undetermined[] = []
  const why = (what: keyof RunFacts, why: string, hint?: string) => {
    if (run[what] === null) missing.push({ what: `run.${what}`, why, hint })
  }
  const record = 'record the run with ggml2perfetto record'
  const gguf = 'analyse the GGUF file too'
  const isPart = 'ops' in run.limited_to
  why('command', 'the log does not contain it', record)
  why('model', 'the log names no GGUF file', gguf)
  why('architecture', 'logs do not contain the metadata of the model', gguf)
  why('parameters', 'the log has no shapes of weights', gguf)
  why('weights', 'the log has no types of weights', gguf)
  if (run.parameters !== null && isPart)
    missing.push({ what: 'run.parameters', why: 'only weights of the recorded ops are in the log', hint: gguf })
  why('layers', 'no operator of a layer was recorded', record)
  why('host', 'the log does not contain it')
  why('cpu', 'the log does not contain it', record)
  why('cpus', 'the log does not contain it', record)
  why('kernel', 'the log does not contain it', record)
  why('build', 'the log does not contain the version of ggml', record)
  why('version', 'the log does not contain the version of llama.cpp', record)
  why('limits', 'the log does not contain them', record)
  why('level', 'only the logs of ggml2perfetto record have a level', record)
  return missing
}
