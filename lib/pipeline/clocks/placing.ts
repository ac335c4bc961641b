import type { Summary } from '../../analyze/summary.ts'
import type { InputEvent, TraceEvent } from '../../model/events.ts'
import type { Bundle } from '../bundle/bundle.ts'
import type { BegunInput } from '../inputs.ts'
import { CpuOwners } from '../order.ts'
import { Clocks, type Joined } from './clocks.ts'
import { type Relation, related, SAME, timeOf } from './relation.ts'
import { InputSpans } from './spans.ts'

/**
 * Makes the inputs of a trace one, input by input: each on the trace's clock, each CPU drawn from one of them. The trace's clock is
 * the first input's; with a bundled file, the one that trace_processor takes the file to be on.
 */
export class Placing {
  private readonly clocks: Clocks
  private readonly spans = new InputSpans()
  private readonly owners = new CpuOwners()
  private count = 0

  /** `given`: what the user says of inputs' clocks. Throws UsageError as {@link Clocks} does. */
  constructor(
    given: Readonly<Record<string, string>>,
    private readonly inputs: readonly BegunInput[],
    private readonly bundle?: Bundle,
  ) {
    this.clocks = new Clocks(
      given,
      [...inputs, ...(bundle ? [bundle] : [])].map(({ name }) => name),
    )
  }

  /** The next input. Throws UsageError where no relation to the trace's clock is known. */
  async place(log: BegunInput): Promise<Placed> {
    const { clocks, bundle, spans, owners } = this
    owners.begin()
    const isFirst = this.count++ === 0
    const joined = await clocks.join(log)
    if (isFirst) await bundle?.meet(clocks, joined)
    const relation = bundle?.relation(joined.relation) ?? joined.relation
    const reference = bundle?.reference(clocks.reference) ?? clocks.reference
    const isNoted = this.inputs.length > 1
    const take = (batch: TraceEvent[]): TraceEvent[] => {
      const onFirst = related(batch, joined.relation, clocks.reference)
      if (isNoted) clocks.note(batch, onFirst)
      return owners.take(bundle ? bundle.withOwnReadings(related(batch, relation, reference), log.first) : onFirst)
    }
    return new Placed(log, joined, { relation, reference, isFirst, spans, owners, take })
  }
}

/** How an input becomes part of the trace. */
interface Place {
  readonly relation: Relation
  /** Clock and origin of the trace. */
  readonly reference: InputEvent
  readonly isFirst: boolean
  readonly spans: InputSpans
  readonly owners: CpuOwners
  take(batch: TraceEvent[]): TraceEvent[]
}

/** An input on the trace's clock. */
export class Placed {
  /** The input's batches, on its own clock; to be read once. */
  readonly batches: AsyncIterable<TraceEvent[]>

  constructor(
    private readonly log: BegunInput,
    private readonly joined: Joined,
    private readonly place: Place,
  ) {
    this.batches = joined.batches
  }

  /** A batch as the trace contains it. */
  take(batch: TraceEvent[]): TraceEvent[] {
    return this.place.take(batch)
  }

  /** A time since the input's origin, as one of the trace. */
  timeOf(ns: number): number {
    return timeOf(this.place.relation, ns)
  }

  /** Issues about the whole input, which has events from `firstNs` to `lastNs`: what {@link take} left out, and its time. */
  issues({ firstNs, lastNs }: { readonly firstNs: number; readonly lastNs: number }): TraceEvent[] {
    return [...this.place.owners.leftOut(), ...this.apart(firstNs, lastNs)]
  }

  /** The input has no time in common with those before it, though it should. */
  private apart(firstNs: number, lastNs: number): TraceEvent[] {
    const { log, joined, place } = this
    if (lastNs <= firstNs) return []
    const [fromNs, toNs] = [timeOf(joined.relation, firstNs), timeOf(joined.relation, lastNs)]
    const issue = place.spans.add({ name: log.name, fromNs, toNs })
    // Runs of one boot may follow one another; a recording of the scheduler belongs to one of them.
    const isMeant = joined.trust === 'given' || (joined.trust === 'checked' && !log.isOfScheduler)
    return issue && !isMeant ? [issue] : []
  }

  /** The input's summary, with the relation of its clock where that does not make the trace's. */
  described(summary: Summary): Summary {
    const { isFirst, relation, reference } = this.place
    const { how, boundNs } = relation
    if (isFirst && how === SAME.how) return summary
    const offsetNs = reference.originNs + BigInt(this.timeOf(0)) - this.log.first.originNs
    return { ...summary, relation: { to: reference.clock, how, offsetNs, boundNs } }
  }
}
