import { resized } from '../../bytes/resized.ts'
import type { RequestEvent, RequestPart } from '../../model/events.ts'
import { REQUEST_PARTS, type RequestPartKind } from '../../model/request-events.ts'
import { activeFromNs } from '../../model/requests/durations.ts'

const TYPES = ['completion', 'embedding', 'unknown'] as const satisfies readonly RequestEvent['type'][]
const OUTCOMES = ['complete', 'cancelled', 'error', 'unfinished'] as const satisfies readonly RequestEvent['outcome'][]

/** Places of the numbers of a request. */
enum At {
  Id,
  Task,
  Slot,
  Context,
  Type,
  Outcome,
  StartNs,
  LaunchNs,
  FirstTokenNs,
  EndNs,
  ActiveNs,
  PromptTokens,
  ReusedTokens,
  GeneratedTokens,
  DraftedTokens,
  AcceptedTokens,
  /** NaN: none. */
  Error,
  Inferred,
  FirstPart,
  Parts,
  Width,
}

/** Places of the numbers of a part. */
enum AtPart {
  What,
  StartNs,
  EndNs,
  Call,
  Tokens,
  Accepted,
  OthersTokens,
  Others,
  Width,
}

/** Requests as numbers, by row: objects that live long take four times the memory, and as much again until they are collected. */
export class RequestColumns {
  count = 0
  /** Parts of all. */
  parts = 0
  private numbers = new Float64Array(64 * At.Width)
  private partNumbers = new Float64Array(128 * AtPart.Width)
  private readonly lost: RequestEvent['lost'][] = []
  private readonly stated: RequestEvent['stated'][] = []
  private readonly unknownParts: RequestEvent['unknownParts'][] = []
  /** Requests share few different lists. */
  private readonly lists = new Map<string, readonly RequestPartKind[]>()

  endNs(row: number): number {
    return this.numbers[row * At.Width + At.EndNs]!
  }

  /** When it can wait for others: {@link activeFromNs}. */
  activeNs(row: number): number {
    return this.numbers[row * At.Width + At.ActiveNs]!
  }

  add(event: RequestEvent): void {
    const from = this.count * At.Width
    if (from === this.numbers.length) this.numbers = resized(this.numbers, 2 * from)
    const { numbers } = this
    numbers[from + At.Id] = event.id
    numbers[from + At.Task] = event.task
    numbers[from + At.Slot] = event.slot
    numbers[from + At.Context] = event.context
    numbers[from + At.Type] = TYPES.indexOf(event.type)
    numbers[from + At.Outcome] = OUTCOMES.indexOf(event.outcome)
    numbers[from + At.StartNs] = event.startNs
    numbers[from + At.LaunchNs] = event.launchNs
    numbers[from + At.FirstTokenNs] = event.firstTokenNs
    numbers[from + At.EndNs] = event.endNs
    numbers[from + At.ActiveNs] = activeFromNs(event)
    numbers[from + At.PromptTokens] = event.promptTokens
    numbers[from + At.ReusedTokens] = event.reusedTokens
    numbers[from + At.GeneratedTokens] = event.generatedTokens
    numbers[from + At.DraftedTokens] = event.draftedTokens
    numbers[from + At.AcceptedTokens] = event.acceptedTokens
    numbers[from + At.Error] = event.error ?? NaN
    numbers[from + At.Inferred] = event.inferred
    numbers[from + At.FirstPart] = this.parts
    numbers[from + At.Parts] = event.parts.length
    for (const part of event.parts) this.addPart(part)
    this.lost.push(event.lost)
    this.stated.push(event.stated)
    this.unknownParts.push(event.unknownParts && this.listOf(event.unknownParts))
    this.count++
  }

  private addPart(part: RequestPart): void {
    const from = this.parts++ * AtPart.Width
    if (from === this.partNumbers.length) this.partNumbers = resized(this.partNumbers, 2 * from)
    const { partNumbers } = this
    partNumbers[from + AtPart.What] = REQUEST_PARTS.indexOf(part.what)
    partNumbers[from + AtPart.StartNs] = part.startNs
    partNumbers[from + AtPart.EndNs] = part.endNs
    partNumbers[from + AtPart.Call] = part.call
    partNumbers[from + AtPart.Tokens] = part.tokens
    partNumbers[from + AtPart.Accepted] = part.accepted
    partNumbers[from + AtPart.OthersTokens] = part.othersTokens
    partNumbers[from + AtPart.Others] = part.others
  }

  private listOf(kinds: readonly RequestPartKind[]): readonly RequestPartKind[] {
    const key = kinds.join()
    const known = this.lists.get(key)
    if (!known) this.lists.set(key, kinds)
    return known ?? kinds
  }

  /** The request of a row. */
  at(row: number): RequestEvent {
    const { numbers } = this
    const from = row * At.Width
    const error = numbers[from + At.Error]!
    return {
      kind: 'request',
      id: numbers[from + At.Id]!,
      task: numbers[from + At.Task]!,
      slot: numbers[from + At.Slot]!,
      context: numbers[from + At.Context]!,
      type: TYPES[numbers[from + At.Type]!]!,
      outcome: OUTCOMES[numbers[from + At.Outcome]!]!,
      startNs: numbers[from + At.StartNs]!,
      launchNs: numbers[from + At.LaunchNs]!,
      firstTokenNs: numbers[from + At.FirstTokenNs]!,
      endNs: numbers[from + At.EndNs]!,
      promptTokens: numbers[from + At.PromptTokens]!,
      reusedTokens: numbers[from + At.ReusedTokens]!,
      generatedTokens: numbers[from + At.GeneratedTokens]!,
      draftedTokens: numbers[from + At.DraftedTokens]!,
      acceptedTokens: numbers[from + At.AcceptedTokens]!,
      lost: this.lost[row],
      parts: this.partsOf(numbers[from + At.FirstPart]!, numbers[from + At.Parts]!),
      unknownParts: this.unknownParts[row],
      stated: this.stated[row],
      error: Number.isNaN(error) ? undefined : error,
      inferred: numbers[from + At.Inferred]!,
    }
  }

  private partsOf(first: number, count: number): RequestPart[] {
    const { partNumbers } = this
    const parts = new Array<RequestPart>(count)
    for (let i = 0; i < count; i++) {
      const from = (first + i) * AtPart.Width
      parts[i] = {
        what: REQUEST_PARTS[partNumbers[from + AtPart.What]!]!,
        startNs: partNumbers[from + AtPart.StartNs]!,
        endNs: partNumbers[from + AtPart.EndNs]!,
        call: partNumbers[from + AtPart.Call]!,
        tokens: partNumbers[from + AtPart.Tokens]!,
        accepted: partNumbers[from + AtPart.Accepted]!,
        othersTokens: partNumbers[from + AtPart.OthersTokens]!,
        others: partNumbers[from + AtPart.Others]!,
      }
    }
    return parts
  }

  /** Drops all rows but these, which are in ascending order. */
  keep(rows: Iterable<number>): void {
    const { numbers, partNumbers } = this
    let [row, part] = [0, 0]
    for (const kept of rows) {
      const from = kept * At.Width
      const [first, count] = [numbers[from + At.FirstPart]!, numbers[from + At.Parts]!]
      numbers.copyWithin(row * At.Width, from, from + At.Width)
      numbers[row * At.Width + At.FirstPart] = part
      partNumbers.copyWithin(part * AtPart.Width, first * AtPart.Width, (first + count) * AtPart.Width)
      for (const list of [this.lost, this.stated, this.unknownParts]) list[row] = list[kept]
      row++
      part += count
    }
    for (const list of [this.lost, this.stated, this.unknownParts]) list.length = row
    this.count = row
    this.parts = part
  }
}
