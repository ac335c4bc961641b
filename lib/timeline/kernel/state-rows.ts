import type { Arg } from '../../model/args.ts'
import { DefaultMap, getOrMake } from '../../model/default-map.ts'
import type { TokenEvent } from '../../model/events.ts'
import { duration } from '../../model/units.ts'
import { type CpuShares, threadText } from '../../model/waits.ts'
import type { Label } from '../../sink/label.ts'
import type { StateSpan } from '../../threads/states.ts'
import type { TrackContext } from '../context.ts'
import { type ArgMaker, labelOf, PALE } from '../labels.ts'
import type { Lanes } from '../tracks.ts'
import { type Inferred, StateHoles } from './state-holes.ts'

/** Names of slices, by state. */
const TITLES: Readonly<Record<StateSpan['state'], string>> = {
  running: 'running on CPU ',
  runnable: 'runnable (preempted)',
  woken: 'runnable (woken)',
  blocked: 'blocked',
}

const STATES = Object.keys(TITLES)
/** Labels that are kept. */
const LABELS_MAX = 1 << 10

/** A lane below each worker's: on which CPU its thread runs, and when it waits. Threads of a log that records only states have separate rows. */
export class StateRows {
  /** By worker, or by row of a thread. */
  private readonly lanes = new Map<number | StateSpan['own'], Lanes>()
  private readonly holes: StateHoles
  /** By thread, then by CPU and state. */
  private readonly labels = new DefaultMap<number, Map<number, Label>>(() => new Map())
  private labelCount = 0

  constructor(private readonly context: TrackContext) {
    this.holes = new StateHoles(context.isSummed, (...hole) => this.infer(...hole))
  }

  /** A call was made: states of workers in it are known, or inferred. */
  call({ startNs, endNs }: TokenEvent): void {
    this.holes.call({ startNs, endNs })
  }

  finish(): void {
    this.holes.finish()
  }

  place(span: StateSpan): void {
    const isUsual = span.wait === 0 && span.by <= 0 && !span.shares && span.inferred === 0
    const label = (isUsual ? this.usual(span) : undefined) ?? this.label(span)
    this.lanesOf(span).place(span.fromNs, span.toNs, label)
    if (!span.own) this.holes.state(span)
  }

  /** The label of the states of a thread that differ in their times only: most do. Undefined if there are too many. */
  private usual(span: StateSpan): Label | undefined {
    const key = (span.cpu + 1) * STATES.length + STATES.indexOf(span.state)
    const known = this.labels.get(span.tid)?.get(key)
    if (known || this.labelCount >= LABELS_MAX) return known
    const { make } = this.context
    const { name, category, colour, extra = [] } = this.label(span)
    const label = make.label({ name, category, args: make.set(extra), colour })
    this.labels.of(span.tid).set(key, label)
    this.labelCount++
    return label
  }

  private label({ tid, state, cpu, wait, by, shares, inferred }: StateSpan): Label {
    const { make, detail } = this.context
    const extra = [...(cpu < 0 ? [] : [make.int('cpu', cpu)]), make.int('tid', tid), ...make.inferred(inferred)]
    if (shares) extra.push(...takenBy(make, shares))
    else if (by > 0) extra.push(make.text(state === 'woken' ? 'woken_by' : 'taken_first_by', make.names.text(by)))
    const which = state === 'running' ? cpu : wait > 0 ? ` (${make.names.text(wait)})` : ''
    const name = make.names.id(`${TITLES[state]}${which}`)
    return labelOf(name, 'state', detail === 'names' ? undefined : extra)
  }

  /** Draws what is inferred, until 1 ns before the next state, which may be written before. */
  private infer(worker: number, what: Inferred, startNs: number, endNs: number): void {
    const { make, names } = this.context
    const extra = [make.word('inferred', 'no state of its thread was recorded in this part of the call')]
    const label = labelOf(names.id(what), 'state', make.shown(extra), names.id(PALE))
    const untilNs = what === 'ended' ? endNs : endNs - 1
    if (untilNs > startNs) this.lanes.get(worker)?.place(startNs, untilNs, label)
  }

  private lanesOf({ worker, own, tid, isFromSwitches }: StateSpan): Lanes {
    const { tracks, names } = this.context
    const lanes = getOrMake(this.lanes, own ?? worker, () =>
      own
        ? tracks.lanes('threadState', { thread: names.text(own.name), tid, nth: own.nth })
        : tracks.lanes('workerState', { worker, isFromSwitches }, true),
    )
    return lanes
  }
}

/** Threads whose names are listed; the others are counted. */
const NAMED_MAX = 5

/** The thread that had the CPU longest while another one waited for it; if there were several, also all of them. */
function takenBy(make: ArgMaker, { known, unknownNs }: CpuShares): Arg[] {
  const [longest] = known
  if (!longest) return []
  const args = [
    make.text('taken_by', threadText(longest, make.names)),
    ...make.time('taken_by', longest.ns, 'taken_by_time'),
  ]
  if (known.length === 1 && unknownNs === 0) return args
  const all = known.slice(0, NAMED_MAX).map((thread) => `${threadText(thread, make.names)}: ${duration(thread.ns)}`)
  const others = known.slice(NAMED_MAX)
  if (others.length > 0) all.push(`${others.length} more: ${duration(others.reduce((sum, { ns }) => sum + ns, 0))}`)
  if (unknownNs > 0) all.push(`not known: ${duration(unknownNs)}`)
  return [...args, make.text('taken_by_all', all.join(', '))]
}
