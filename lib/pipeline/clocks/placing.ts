import type { Summary } from '../../analyze/summary/figures.ts'
import type { InputEvent, IssueEvent, TraceEvent } from '../../model/events.ts'
import { issueOf } from '../../model/issues.ts'
import type { Bundle } from '../bundle/bundle.ts'
import type { BegunInput } from '../inputs.ts'
import { CpuOwners, type OwnedCpus } from '../order.ts'
import { Clocks, type Joined } from './clocks.ts'
import { boundWithin, type Relation, related, SAME, timeOf } from './relation.ts'

/**
 * Puts the inputs of a trace on its clock, one after the other, and chooses one input for each CPU. The trace's clock is the first
 * input's; with a bundled file, the one that trace_processor assumes for the file.
 */
export class Placing {
  private readonly clocks: Clocks
  private readonly spans = new InputSpans()
  private readonly owners = new CpuOwners()
  private first: Joined | undefined

  /** `given`: the user's clocks of inputs; `numbers`: of threads in a PID namespace. Throws UsageError as {@link Clocks} does. */
  constructor(
    given: Readonly<Record<string, string>>,
    private readonly inputs: readonly BegunInput[],
    private readonly bundle?: Bundle,
    private readonly numbers?: Numbering,
  ) {
    this.clocks = new Clocks(
      given,
      [...inputs, ...(bundle ? [bundle] : [])].map(({ name }) => name),
    )
  }

  /** Places the next input. Throws UsageError if no relation to the trace's clock is known. */
  async place(log: BegunInput): Promise<Placed> {
    return this.placed(log, await this.clocks.join(log))
  }

  /** The same before the inputs that were placed are read. Throws UsageError also where they must be read to find the relation. */
  async placeAhead(log: BegunInput): Promise<Placed> {
    const { clocks, first } = this
    return this.placed(log, await (first ? clocks.joinAhead(log, first) : clocks.join(log)))
  }

  private async placed(log: BegunInput, joined: Joined): Promise<Placed> {
    const { clocks, bundle, spans, numbers } = this
    const cpus = this.owners.begin()
    const isFirst = this.first === undefined
    this.first ??= joined
    if (isFirst) await bundle?.meet(clocks, joined)
    const relation = bundle?.relation(joined.relation) ?? joined.relation
    const reference = bundle?.reference(clocks.reference) ?? clocks.reference
    const areSeveral = this.inputs.length > 1
    const take = (recorded: TraceEvent[]): TraceEvent[] => {
      const batch = numbers?.translated(log, recorded) ?? recorded
      const onFirst = related(batch, joined.relation, clocks.reference)
      // Of another machine, threads and clocks may have the numbers and names of others: only its messages are kept.
      if (areSeveral && joined.isElsewhere)
        clocks.note(
          [],
          onFirst.filter(({ kind }) => kind === 'rpc'),
        )
      else if (areSeveral) clocks.note(batch, onFirst)
      const drawn = bundle ? bundle.withOwnReadings(related(batch, relation, reference), log.first) : onFirst
      return areSeveral ? cpus.take(drawn) : drawn // the CPUs of a single input are its own
    }
    return new Placed(log, joined, { relation, reference, isFirst, spans, cpus, take, numbers })
  }
}

/** Gives threads in events of an input the numbers that the trace has. */
export interface Numbering {
  translated(input: BegunInput, batch: TraceEvent[]): TraceEvent[]
  /** What was done to an input: `atNs` is its time. */
  issues(input: BegunInput, atNs: number): IssueEvent[]
}

/** The place of an input in the trace. */
interface Place {
  readonly relation: Relation
  /** Clock and origin of the trace. */
  readonly reference: InputEvent
  readonly isFirst: boolean
  readonly spans: InputSpans
  readonly cpus: OwnedCpus
  readonly numbers: Numbering | undefined
  take(batch: TraceEvent[]): TraceEvent[]
}

/** An input on the trace's clock. */
export class Placed {
  /** The input's batches, on its own clock; readable once. */
  readonly batches: AsyncIterable<TraceEvent[]>

  constructor(
    private readonly log: BegunInput,
    private readonly joined: Joined,
    private readonly place: Place,
  ) {
    this.batches = joined.batches
  }

  /** Returns the events of a batch that are drawn, in times of the trace. */
  take(batch: TraceEvent[]): TraceEvent[] {
    return this.place.take(batch)
  }

  /** Converts a time since the input's origin to the trace's. */
  timeOf(ns: number): number {
    return timeOf(this.place.relation, ns)
  }

  /** Issues about the whole input: events that {@link take} left out, and its time. It has events from `firstNs` to `lastNs`. */
  issues({ firstNs, lastNs }: { readonly firstNs: number; readonly lastNs: number }): TraceEvent[] {
    const { cpus, numbers } = this.place
    const ofNumbers = numbers?.issues(this.log, this.timeOf(firstNs)) ?? []
    return [...cpus.leftOut(), ...ofNumbers, ...this.apart(firstNs, lastNs)]
  }

  /** The issue of an input that should overlap with those before it in time, but does not. */
  private apart(firstNs: number, lastNs: number): TraceEvent[] {
    const { log, joined, place } = this
    if (lastNs <= firstNs) return []
    const [fromNs, toNs] = [timeOf(joined.relation, firstNs), timeOf(joined.relation, lastNs)]
    const issue = place.spans.add({ name: log.name, fromNs, toNs })
    // Several logs of one boot may be separate runs; a recording of the scheduler should belong to one of them.
    const isMeant = joined.trust === 'given' || (joined.trust === 'checked' && !log.isOfScheduler)
    return issue && !isMeant ? [issue] : []
  }

  /** The input's summary, with the relation of its clock to the trace's if they differ. */
  described(summary: Summary): Summary {
    const { isFirst, relation, reference } = this.place
    const { how } = relation
    if (isFirst && how === SAME.how) return summary
    const { originNs } = this.log.first
    const offsetNs = reference.originNs + BigInt(this.timeOf(0)) - originNs
    const firstNs = Number(BigInt(summary.start_ns) - originNs)
    const boundNs = boundWithin(relation, Math.min(0, firstNs), firstNs + (summary.duration_ns ?? 0))
    return {
      ...summary,
      relation: { to: reference.clock, how, offset_ns: String(offsetNs), bound_ns: boundNs ?? null },
    }
  }
}

interface Span {
  readonly name: string
  readonly fromNs: number
  readonly toNs: number
}

/** Time spans of inputs, in the trace's time. */
class InputSpans {
  private readonly spans: Span[] = []

  /** Adds an input. Returns an issue if it does not overlap with any before it. */
  add(span: Span): IssueEvent | undefined {
    const { spans } = this
    const isApart = spans.length > 0 && spans.every(({ fromNs, toNs }) => span.toNs < fromNs || toNs < span.fromNs)
    spans.push(span)
    if (!isApart) return undefined
    const { name, fromNs, toNs } = spans[0]!
    const found =
      span.toNs < fromNs
        ? `ends ${seconds(fromNs - span.toNs)} before it`
        : `begins ${seconds(span.fromNs - toNs)} after it`
    return issueOf('inputs-apart', `expected times of ${name}; this input ${found}`, { byte: 0 }, span.fromNs)
  }
}

const seconds = (ns: number) => `${(ns / 1e9).toPrecision(3)} s`
