import type { Analysis } from '../analysis.ts'

/** The name of an option from version 0.5.0 on, and before; and all words of a command line that set the same. */
interface Option {
  readonly now: string
  readonly before: string
  readonly set: readonly string[]
}

/** Options that have other names in earlier versions of llama.cpp, which the later ones reject. */
const OPTIONS = {
  keepInMemory: { now: '--load-mode mlock', before: '--mlock', set: ['--mlock', 'mlock', 'mmap+mlock'] },
  readAtStart: { now: '--load-mode none', before: '--no-mmap', set: ['--no-mmap', 'none', 'dio'] },
  draftTokens: { now: '--spec-draft-n-max', before: '--draft-max', set: [] },
  draftProbability: { now: '--spec-draft-p-min', before: '--draft-p-min', set: [] },
} as const satisfies Record<string, Option>

/** Options with the names of 0.5.0 and later. */
const OF_LATER = ['--load-mode', '-lm', '--spec-draft-n-max', '--spec-type']
/** Versions of ggml of 2025: llama.cpp had the earlier names. */
const EARLIER_GGML = /^0\.[0-9]\./

/** The program that ran, as far as advice depends on it. */
export class Program {
  private readonly words: readonly string[]

  /** Undefined: any program, of any version. */
  constructor(private readonly analysis: Analysis | undefined) {
    this.words = analysis?.run.command?.split(/\s+/) ?? []
  }

  /** Does its command line contain one of these options? */
  has(...options: readonly string[]): boolean {
    return this.words.some((word) => options.some((option) => word === option || word.startsWith(`${option}=`)))
  }

  /** The option as this version has it; of an unknown version, with both names. Undefined: it is set. */
  option(what: keyof typeof OPTIONS): string | undefined {
    const { now, before, set } = OPTIONS[what]
    if (this.has(...set)) return undefined
    const isLater = (this.analysis?.run.version ?? null) !== null || this.has(...OF_LATER)
    if (isLater) return now
    return EARLIER_GGML.test(this.analysis?.run.build ?? '') ? before : `${now} [before version 0.5.0 ${before}]`
  }

  /** A text about an option, unless one of these is set. */
  unless(options: readonly string[], text: string): string | undefined {
    return this.has(...options) ? undefined : text
  }

  /** Is it known to compute with ggml? */
  get isOfGgml(): boolean {
    return (this.analysis?.run.build ?? null) !== null
  }

  /** Has it fewer workers than CPUs? */
  get hasFreeCpus(): boolean {
    const { workers = 0, cpus = null, limits = null } = this.analysis?.run ?? {}
    const usable = limits?.cpus ?? cpus
    return usable !== null && workers > 0 && workers < usable
  }

  /** Does its graph contain this op? */
  computes(op: string): boolean {
    return this.analysis?.operators.rows.some((row) => row.op === op) === true
  }

  /** Has it called the model before the first prompt? */
  get isWarmedUp(): boolean {
    return this.analysis?.first_calls.some(({ phase }) => phase === 'warm-up') === true
  }

  /** The limit of CPU time in CPUs; undefined: not known, or none. */
  get cpuTime(): number | undefined {
    return this.analysis?.run.limits?.cpu_time ?? undefined
  }

  /** Is it known which threads took the CPUs of its workers? */
  get areTakersKnown(): boolean {
    return this.analysis?.scheduling?.workers.some(({ takers }) => takers.length > 0) === true
  }

  get hasMemoryLimit(): boolean {
    return this.analysis?.run.limits?.memory_bytes != null
  }

  /** Is it known whether it has limits? */
  get areLimitsKnown(): boolean {
    return this.analysis?.run.limits != null
  }
}

/** What to do, as a sentence; or made for the program that ran: options as its version accepts them, and none that it has. */
export type Advice = string | ((program: Program) => string)

/** The advice for a program; for any, without an Analysis. */
export const adviceOf = (advice: Advice, analysis?: Analysis): string =>
  typeof advice === 'string' ? advice : advice(new Program(analysis))

/** `a, b or c`: those that are there. */
export function either(...choices: readonly (string | undefined)[]): string {
  const known = choices.filter((choice) => choice !== undefined)
  return known.length < 2 ? (known[0] ?? '') : `${known.slice(0, -1).join(', ')} or ${known.at(-1)}`
}
