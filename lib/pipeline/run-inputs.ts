import type { Summary } from '../analyze/summary/figures.ts'
import { SummaryPass } from '../analyze/summary/summary.ts'
import { UsageError } from '../errors.ts'
import { Definitions } from '../model/definitions.ts'
import type { InputEvent, TraceEvent } from '../model/events.ts'
import { TIME_NS_MAX } from '../model/limits.ts'
import type { Names } from '../model/names.ts'
import type { Bundle } from './bundle/bundle.ts'
import { inputNamed, movesTimes, parseClock } from './clocks/given.ts'
import { type Numbering, type Placed, Placing } from './clocks/placing.ts'
import type { FindingsPass } from './findings-pass.ts'
import {
  begin,
  closeAll,
  type Input,
  type Log,
  type OpenInput,
  openInputs,
  type Reading,
  type ReadingOptions,
} from './inputs.ts'
import { interleaved, type PlacedLog } from './interleaved.ts'

/** Events of a companion that are drawn with the log. */
interface Part {
  readonly name: string
  readonly input: InputEvent
  readonly events: readonly TraceEvent[]
}

/**
 * Inputs that complete a log (its buffers, its model's tensors, its graph). The log's reader uses their definitions; its timeline
 * draws their allocations and issues. Memory grows with the number of distinct tensors and buffers.
 */
class Companions {
  readonly definitions: Definitions
  /** The inputs that are no companions; all inputs if each is a companion. */
  readonly logs: readonly OpenInput[]
  readonly summaries = new Map<OpenInput, Summary>()
  private readonly parts: Part[] = []
  private allocating: string | undefined

  private constructor(
    inputs: readonly OpenInput[],
    private readonly names: Names,
  ) {
    const logs = inputs.filter(({ isCompanion }) => !isCompanion)
    this.logs = logs.length > 0 ? logs : inputs
    this.definitions = new Definitions(names)
  }

  /** Reads all companions completely. Throws UsageError if two of them contain buffers. */
  static async read(inputs: readonly OpenInput[], names: Names): Promise<Companions> {
    const companions = new Companions(inputs, names)
    for (const input of inputs) if (!companions.logs.includes(input)) await companions.add(input)
    return companions
  }

  private async add(companion: OpenInput): Promise<void> {
    const { name } = companion
    const events: TraceEvent[] = []
    const summary = new SummaryPass(this.names)
    let input: InputEvent | undefined
    for await (const batch of companion.read()) {
      if (batch[0]?.kind === 'input') input = batch[0]
      summary.take(batch)
      this.definitions.add(batch)
      for (const event of batch) if (event.kind === 'allocation' || event.kind === 'issue') events.push(event)
    }
    this.summaries.set(companion, summary.finish())
    if (!input) return
    if (events.some(({ kind }) => kind === 'allocation')) {
      if (this.allocating !== undefined) {
        throw new UsageError(`${name}: contains buffers, and so does ${this.allocating}\nhint: give one of them`)
      }
      this.allocating = name
    }
    this.parts.push({ name, input, events })
  }

  /** The events that are not drawn yet, in times of the log. Throws UsageError if a companion runs on another clock. */
  take(log: InputEvent): TraceEvent[] {
    return this.parts.splice(0).flatMap(({ name, input, events }) => {
      if (input.clock !== 'none' && input.clock !== log.clock) {
        throw new UsageError(`${name}: runs on CLOCK_${input.clock}, the log on CLOCK_${log.clock}: no known relation`)
      }
      const shiftNs = input.clock === 'none' ? 0 : Number(input.originNs - log.originNs)
      if (Math.abs(shiftNs) > TIME_NS_MAX) {
        const days = Math.round(Math.abs(shiftNs) / 86_400e9)
        throw new UsageError(
          `${name}: begins ${days} days away from the log, expected at most 100: is it of another run?`,
        )
      }
      return events.map((event) => moved(event, shiftNs, name))
    })
  }
}

function moved(event: TraceEvent, shiftNs: number, name: string): TraceEvent {
  if (event.kind === 'allocation') return { ...event, atNs: event.atNs + shiftNs }
  if (event.kind === 'issue') return { ...event, atNs: event.atNs + shiftNs, detail: `${name}: ${event.detail}` }
  return event
}

/** How the inputs of a run are read, and put on one clock. */
export interface RunOptions extends ReadingOptions {
  /** Clocks of inputs, as {@link ConvertOptions} has them. */
  readonly clocks?: Readonly<Record<string, string>> | undefined
}

/** What is made of one log. */
export interface LogPass extends PlacedLog {
  /** Takes the next events of the log, on its own clock. */
  take(batch: TraceEvent[]): void
  /** Takes events of companions, on the log's clock. */
  complete(batch: TraceEvent[]): void
  finish(): void
  /** Must something be loaded before the next events? */
  readonly isWaiting?: boolean
  load?(): Promise<void>
}

/**
 * The inputs of one run: opened once, in an order that depends on their names and contents, not on how they were given. Its first log is the
 * one whose clock the others are put on.
 */
export class RunInputs {
  private constructor(
    private readonly opened: readonly OpenInput[],
    readonly companions: Companions,
    /** In the order in which they are placed. */
    readonly logs: readonly Log[],
    /** The log that companions complete. */
    readonly main: Log,
    private readonly numbers: Numbering | undefined,
  ) {}

  /** Opens all inputs, reads companions and begins logs. Throws as {@link convert} does. */
  static async open(inputs: readonly Input[], names: Names, options: RunOptions & Reading): Promise<RunInputs> {
    const opened = await openInputs(byName(inputs), names, options)
    try {
      const companions = await Companions.read(opened, names)
      const logs: Log[] = []
      for (const input of companions.logs)
        logs.push({ input, ...(await begin(input.name, input.read(companions.definitions))) })
      const moved = movedOf(options.clocks ?? {}, logs)
      const clocks = logs.map(({ first }) => first.clock)
      const byClock = ({ first: a }: Log, { first: b }: Log) => clocks.indexOf(a.clock) - clocks.indexOf(b.clock)
      const byOrigin = ({ isOfScheduler, first: a }: Log, { first: b }: Log) =>
        isOfScheduler || a.clock === 'unknown' ? 0 : compare(a.originNs, b.originNs)
      // Clients before their servers, to whose clocks their messages relate theirs; by name, and of those on one clock, the earliest one first.
      const bySide = (a: Log, b: Log) => Number(a.isServer) - Number(b.isServer)
      logs.sort((a, b) => rankOf(a) - rankOf(b) || bySide(a, b) || byClock(a, b) || byOrigin(a, b))
      const main = logs[0]!
      logs.sort((a, b) => placeOf(a) - placeOf(b) || Number(moved.has(a.name)) - Number(moved.has(b.name)))
      const numbers = await threadNumbers(logs, names, options)
      return new RunInputs(opened, companions, logs, main, numbers)
    } catch (error) {
      await closeAll(opened)
      throw error
    }
  }

  /** Do all inputs only complete logs? They are in place of logs then. */
  get isWithoutLogs(): boolean {
    return this.opened.every(({ isCompanion }) => isCompanion)
  }

  /** Does any log contain switches of CPUs? */
  get hasSwitches(): boolean {
    return this.logs.some((log) => log.hasSwitches)
  }

  /** Has Perfetto's UI other groups next to that of the only log, or of the log that others accompany? */
  get hasGroups(): boolean {
    const { logs } = this
    const runs = logs.filter((log) => rankOf(log) < ACCOMPANIES)
    const drawn = logs.filter(({ isOfScheduler }) => !isOfScheduler)
    return runs.length <= 1 && (drawn.length > 1 || this.hasSwitches || logs.some((log) => log.hasGroups))
  }

  /** Puts the logs on one clock. */
  placing({ clocks = {} }: RunOptions, bundle?: Bundle): Placing {
    return new Placing(clocks, this.logs, bundle, this.numbers)
  }

  /** Reads one log after the other; yields after each batch, and returns what was made of the logs. */
  async *inTurn<T extends LogPass>(
    placing: Placing,
    passOf: (log: Log, placed: Placed) => T,
  ): AsyncGenerator<void, T[]> {
    const passes: T[] = []
    for (const log of this.logs) {
      const pass = passOf(log, await placing.place(log))
      passes.push(pass)
      for await (const batch of pass.placed.batches) {
        await this.feed(pass, batch)
        yield
      }
      pass.finish()
    }
    return passes
  }

  /** Reads all logs by their times; yields after each batch. */
  async *together<T extends LogPass>(passes: readonly T[]): AsyncGenerator<T, void> {
    for await (const { of: log, batch } of interleaved(passes)) {
      await this.feed(log, batch)
      yield log
    }
  }

  /** The results of the inputs, in the order in which they were given. */
  inOrder<R>(inputs: readonly Input[], results: ReadonlyMap<OpenInput, R>): R[] {
    const left = [...this.opened]
    return inputs.map((input) => {
      const [opened] = left.splice(
        left.findIndex(({ given }) => given === input),
        1,
      )
      return results.get(opened!)!
    })
  }

  /** Closes the inputs that were not read. */
  close(): Promise<void> {
    return closeAll(this.opened)
  }

  private async feed(pass: LogPass, batch: TraceEvent[]): Promise<void> {
    pass.take(batch)
    const [first] = batch
    if (pass.log === this.main && first!.kind === 'input') pass.complete(this.companions.take(first))
    if (pass.isWaiting) await pass.load!()
  }
}

/** What matches threads of a PID namespace, which few logs have, with those of the machine. */
async function threadNumbers(logs: readonly Log[], names: Names, options: RunOptions & Reading) {
  if (logs.every(({ first }) => (first.attributes['pid_namespace'] ?? '') === '')) return undefined
  const { ThreadNumbers } = await import('./thread-numbers.ts')
  return ThreadNumbers.read(logs, names, options)
}

const compare = <T extends string | number | bigint>(a: T, b: T) => (a < b ? -1 : a > b ? 1 : 0)

/** `a-2` before `a-10`. A collator takes 7 ms to make, which one input does not need. */
function byName(inputs: readonly Input[]): readonly Input[] {
  if (inputs.length < 2) return inputs
  const naturally = new Intl.Collator('en', { numeric: true }).compare
  return [...inputs].sort((a, b) => naturally(a.name, b.name) || compare(a.name, b.name))
}

/** Names of the logs whose times the user moves. Throws UsageError for an invalid clock. */
function movedOf(clocks: Readonly<Record<string, string>>, logs: readonly Log[]): ReadonlySet<string | undefined> {
  const names = logs.map(({ name }) => name)
  const moving = Object.entries(clocks).filter(([key, text]) => movesTimes(parseClock(key, text)))
  return new Set(moving.map(([key]) => inputNamed(key, names)))
}

/**
 * Recordings of the scheduler come after logs, which name the traced process; those with wait states of threads first, because each CPU is
 * drawn from the first recording that contains it.
 */
const placeOf = ({ isOfScheduler, first }: Log) =>
  !isOfScheduler ? 0 : first.capabilities?.waitStates === false ? 2 : 1

/** Ranks of logs that are no run's. */
const ACCOMPANIES = 4

/**
 * Logs that may contain operators are the run's; others accompany them. Of those, the ones with a known clock come first, and of them the
 * ones with readings of several clocks, which relate others to theirs.
 */
const rankOf = ({ isOfScheduler, hasReadings, first: { capabilities, clock } }: Log) =>
  (isOfScheduler ? 8 : capabilities?.operators === false ? ACCOMPANIES : 0) +
  (clock === 'unknown' ? 2 : hasReadings ? 0 : 1)

/** The summary of a log that is read, and what made its run slow. */
export class LogReading {
  readonly summary: SummaryPass

  constructor(
    names: Names,
    private readonly findings?: FindingsPass,
  ) {
    this.summary = new SummaryPass(names, findings?.timed)
  }

  take(batch: TraceEvent[]): void {
    if (this.findings) this.findings.take(batch, this.summary)
    else this.summary.take(batch)
  }
}
