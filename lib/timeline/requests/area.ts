import type { Arg } from '../../model/args.ts'
import { ChangesBetweenCalls } from '../../model/changes-between-calls.ts'
import { DefaultMap } from '../../model/default-map.ts'
import type {
  FunctionEvent,
  FunctionPurpose,
  RequestEvent,
  RequestPart,
  SequenceEvent,
  TaskEvent,
  TokenEvent,
} from '../../model/events.ts'
import { SEQUENCES_MAX } from '../../model/requests/cache.ts'
import { activeFromNs, durationsOf, isInQueue } from '../../model/requests/durations.ts'
import { TextBeginnings } from '../../model/text-beginnings.ts'
import { isPlaced } from '../../model/times.ts'
import { nounFor } from '../../model/units.ts'
import type { Label } from '../../sink/label.ts'
import type { TrackContext } from '../context.ts'
import { PALE } from '../labels.ts'
import type { NestedRows } from '../nested.ts'
import type { Lanes } from '../tracks.ts'
import { CacheCounters } from './cache-counters.ts'
import { Functions } from './functions.ts'
import { Levels } from './levels.ts'

/** Draws requests: a row for each slot with their parts, the queue, counters; and the functions around calls, by thread. */
export class RequestArea {
  /** Does the input record what happens around calls? Then arrows from calls lead somewhere. */
  isRecorded = false
  private readonly slots = new DefaultMap<number, NestedRows>((slot) => this.context.tracks.nested('slot', { slot }))
  /** What loaded the model. */
  readonly loading = new LoadStages()
  private readonly functions: Functions
  private readonly caches: CacheCounters
  private readonly levels: Levels
  private waits: Lanes | undefined
  /** Requests of which no slot is known, as clients measure them; and of slots after the most that a server can have. */
  private flights: Lanes | undefined
  /** Tasks by slot, as they are launched. */
  private readonly tasks = new Map<number, number>()
  private readonly changes = new ChangesBetweenCalls()
  private readonly beginnings = new TextBeginnings()

  constructor(private readonly context: TrackContext) {
    this.functions = new Functions(context)
    this.caches = new CacheCounters(context)
    this.levels = new Levels(context)
  }

  take(event: FunctionEvent | SequenceEvent | TaskEvent | RequestEvent): void {
    this.isRecorded = true
    if (event.kind === 'function' || event.kind === 'sequence') this.changes.add(event)
    if (event.kind === 'function') this.function(event)
    else if (event.kind === 'sequence') this.caches.change(event)
    else if (event.kind === 'request') this.request(event)
    else if (event.what === 'launch' && event.slot >= 0 && event.task >= 0) this.tasks.set(event.slot, event.task)
  }

  private function(event: FunctionEvent): void {
    this.functions.add(event)
    this.loading.add(event)
  }

  /** Do the texts of a call begin with it? Gets all calls in order, also those that are not drawn, but no warm-ups. */
  beginsText(event: TokenEvent, isDraft: boolean): boolean {
    const { startNs, batch } = event
    return this.beginnings.begin(event, this.changes.until(batch?.context ?? 0, startNs), isDraft)
  }

  /** Calls are missing here. */
  interrupt(): void {
    this.beginnings.interrupt()
  }

  /** Takes a call, after it was drawn. */
  call(event: TokenEvent): void {
    this.caches.call(event)
  }

  /** What a call is for: arrows to the parts of its requests, and the tasks whose tokens it has. */
  ofCall({ call, batch }: TokenEvent): {
    readonly arrows: readonly number[] | undefined
    readonly args: readonly Arg[]
  } {
    if (!this.isRecorded || !batch) return { arrows: undefined, args: [] }
    const { make, input } = this.context
    const sequences = new DefaultMap<number, { tokens: number }>(() => ({ tokens: 0 }))
    for (const { sequence, tokens } of batch.spans) sequences.of(sequence).tokens += tokens
    const arrows = [...sequences.keys()].flatMap((sequence) => requestArrow(input, call, sequence) ?? [])
    const shares = [...sequences].flatMap(([sequence, { tokens }]) => {
      const task = this.tasks.get(sequence)
      return task === undefined ? [] : [`${task} (${tokens} token${tokens === 1 ? '' : 's'})`]
    })
    return { arrows, args: shares.length > 0 ? [make.text('tasks', shares.join(', '))] : [] }
  }

  finish(): void {
    this.functions.finish()
    this.levels.finish()
    for (const rows of this.slots.values()) rows.finish()
  }

  private request(event: RequestEvent): void {
    const { make, tracks } = this.context
    const { slot, startNs, endNs, parts } = event
    this.context.spans.request(event.id, startNs, endNs)
    const label: Label = {
      name: nameOf(event),
      category: 'request',
      colour: make.names.id(event.outcome === 'complete' ? 'request' : event.outcome),
      extra: make.shown(this.argsOf(event)),
    }
    const fromNs = parts.length === 0 ? startNs : activeFromNs(event)
    const isQueued = fromNs > startNs
    const isWorkedOn = (slot >= 0 || event.launchNs >= 0) && (fromNs < endNs || !isQueued)
    const hasRow = this.slots.has(slot) || (slot >= 0 && this.slots.size < SEQUENCES_MAX)
    this.levels.add(event, isWorkedOn && hasRow)
    if (isQueued) {
      this.waits ??= tracks.lanes('queue', {}, true)
      const queue = parts.filter((part) => part.startNs < fromNs)
      const waits = queue.map((part) => ({
        startNs: part.startNs,
        endNs: part.endNs,
        label: this.partLabel(event, part),
      }))
      if (!isWorkedOn) this.waits.place(startNs, fromNs, label)
      else for (const { startNs, endNs, label } of waits) this.waits.place(startNs, endNs, label)
    }
    if (!isWorkedOn) return
    if (!hasRow) return this.flight(event, fromNs, label)
    const row = this.slots.of(slot)
    row.place(fromNs, endNs, label)
    for (const part of parts)
      if (part.startNs >= fromNs) row.place(part.startNs, part.endNs, this.partLabel(event, part))
  }

  /** A request without a row for its slot: requests that overlap go to further rows. */
  private flight(event: RequestEvent, fromNs: number, label: Label): void {
    this.flights ??= this.context.tracks.lanes('inFlight', {}, true)
    const inner = event.parts
      .filter(({ startNs }) => startNs >= fromNs)
      .map((part) => ({ startNs: part.startNs, endNs: part.endNs, label: this.partLabel(event, part) }))
    this.flights.placeAround(fromNs, event.endNs, label, inner)
  }

  private argsOf(event: RequestEvent): Arg[] {
    const { make } = this.context
    const { id, task, slot, startNs, launchNs, draftedTokens, lost, stated } = event
    const { latencyNs, ttftNs } = durationsOf(event)
    const isTimed = isPlaced(event.inferred)
    const args = [make.int('request', id), make.word('type', event.type), make.word('outcome', event.outcome)]
    const add = (key: string, value: number | null | undefined, isKnown = (value ?? -1) >= 0) => {
      if (isKnown) args.push(make.int(key, value!))
    }
    const addTime = (key: string, ns: number | null | undefined) => {
      if ((ns ?? -1) >= 0) args.push(...make.time(key, ns!))
    }
    add('task', task)
    add('slot', slot)
    addTime('latency', latencyNs)
    addTime('queue', isTimed ? launchNs - startNs : -1)
    addTime('ttft', ttftNs)
    add('unplaced', 1, !isTimed)
    add('prompt_tokens', event.promptTokens)
    add('reused_tokens', event.reusedTokens)
    add('generated_tokens', event.generatedTokens)
    add('drafted_tokens', draftedTokens, draftedTokens > 0)
    add('accepted_tokens', event.acceptedTokens, draftedTokens > 0)
    add('lost_tokens', lost?.tokens)
    add('lost_from', lost?.position)
    if (lost?.reason) args.push(make.name('lost_why', lost.reason))
    addTime('stated_prompt', stated?.promptNs)
    addTime('stated_generation', stated?.generationNs)
    if (event.error) args.push(make.name('error', event.error))
    args.push(...make.inferred(event.inferred))
    return args
  }

  private partLabel(event: RequestEvent, part: RequestPart): Label {
    const { make, input } = this.context
    const { what, call, tokens, accepted, others, othersTokens } = part
    const args = [make.int('request', event.id)]
    const add = (key: string, value: number, isKnown = value >= 0) => isKnown && args.push(make.int(key, value))
    add('task', event.task)
    add('call', call)
    add('tokens', tokens)
    add('accepted', accepted)
    add('others', others, others > 0)
    add('other_tokens', othersTokens, othersTokens > 0)
    const arrow = what === 'stalled' ? undefined : requestArrow(input, call, event.slot)
    const isIdle = isInQueue(part) || what === 'other' || what === 'stalled'
    return {
      name: partName(event, part),
      category: 'request_part',
      colour: make.names.id(isIdle ? PALE : what),
      extra: make.shown(args),
      arrowsIn: arrow === undefined ? undefined : [arrow],
    }
  }
}

function nameOf({ id, task, promptTokens, generatedTokens, outcome }: RequestEvent): string {
  const which = task >= 0 ? `task ${task}` : `request ${id}`
  const count =
    promptTokens >= 0 ? ` · ${promptTokens} + ${Math.max(generatedTokens, 0)} ${nounFor(generatedTokens, 'token')}` : ''
  return `${which}${count}${outcome === 'complete' ? '' : ` (${outcome})`}`
}

/** `prefill (300 tokens beside 2)`, `verify (3 of 5)`: what it is, with its size. */
function partName(
  { lost, task, id }: RequestEvent,
  { what, tokens, accepted, others, othersTokens }: RequestPart,
): string {
  const beside = others > 0 ? `beside ${others}` : ''
  switch (what) {
    case 'call-wait':
    case 'deferred':
    case 'queued':
      return `${what}: ${task >= 0 ? `task ${task}` : `request ${id}`}`
    case 'prepare':
      return lost ? `prepare (reuse lost at token ${lost.position})` : what
    case 'prefill':
      return tokens < 0 ? what : `prefill (${tokens} token${tokens === 1 ? '' : 's'}${beside && ` ${beside}`})`
    case 'decode':
      return beside ? `decode (${beside})` : what
    case 'verify':
      return accepted < 0 ? what : `verify (${accepted} of ${tokens - 1})`
    case 'stalled':
      return othersTokens > 0 ? `stalled (${othersTokens} token${othersTokens === 1 ? '' : 's'} of ${others})` : what
    default:
      return what
  }
}

/** Ids of arrows from calls to parts of requests: a separate range, and one range for each input. */
const IDS_START = 2 ** 47
const IDS_PER_INPUT = 2 ** 40
const SEQUENCES = 256

/** The id of the arrow from a call to the part of the request that uses a sequence; undefined where there are too many. */
function requestArrow(input: number, call: number, sequence: number): number | undefined {
  if (call < 0 || sequence < 0 || sequence >= SEQUENCES) return undefined
  return IDS_START + (input % 128) * IDS_PER_INPUT + call * SEQUENCES + sequence
}

/** Stages of loading that are drawn before the first call. */
const STAGES: ReadonlySet<FunctionPurpose> = new Set([
  'load-model',
  'read-header',
  'map',
  'copy-weights',
  'create-context',
  'reserve',
  'load-lora',
])
/** A program that loads models again and again without a call. */
const STAGES_MAX = 1024

/** The functions that load a model before the first call, of the thread that loads first. */
class LoadStages {
  private stages: FunctionEvent[] = []

  add(event: FunctionEvent): void {
    const { stages } = this
    if (!STAGES.has(event.what) || stages.length >= STAGES_MAX) return
    if (stages.length === 0 || stages[0]!.tid === event.tid) stages.push(event)
  }

  /** Those that end before a time, in order of their starts, outer ones first. */
  until(ns: number): readonly FunctionEvent[] {
    return this.stages.filter(({ endNs }) => endNs <= ns).sort((a, b) => a.startNs - b.startNs || b.endNs - a.endNs)
  }
}
