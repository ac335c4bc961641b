import type { Arg } from '../../model/args.ts'
import { putAt, sameIds } from '../../model/by-id.ts'
import { DefaultMap } from '../../model/default-map.ts'
import type { ExpertsEvent, OperatorEvent } from '../../model/events.ts'
import type { Label } from '../../sink/label.ts'
import type { TrackContext } from '../context.ts'
import { intArg, labelOf } from '../labels.ts'
import type { Lanes } from '../tracks.ts'

/** Labels that are kept. */
const LABELS_MAX = 1 << 12

interface Choice {
  readonly call: number
  /** Tensor that contains the choice; -1 if operator events contain it. */
  readonly tensor: number
  /** Expert ids, token by token. */
  readonly ids: ArrayLike<number>
  /** Number of ids per token. */
  readonly k: number
  readonly startNs: number
  endNs: number
  operators: number
}

/** A choice for one token that occurred before. */
interface Known {
  readonly ids: readonly number[]
  /** Another one whose ids have the same hash. */
  readonly next: Known | undefined
  readonly label: Label
  readonly distinct: number
}

interface Layer {
  /** -1: not known. */
  readonly number: number
  readonly lanes: Lanes
  choice: Choice | undefined
}

/** The Experts group: one row per layer, one slice per choice of the router, which spans the operators that use it. */
export class Experts {
  private readonly layers = new DefaultMap<number, Layer>((layer) => ({
    number: layer,
    lanes: this.context.tracks.lanes('expertsOfLayer', { layer }, true),
    choice: undefined,
  }))
  /** By tensor: the choice in it that operators of worker 0 may still use; null after it was written. */
  private readonly open: (Choice | null | undefined)[] = []
  /** Number of tensors that contain choices. */
  private holders = 0
  /** By tensor without a choice in its sources: the value of `holders` when that was checked. */
  private readonly without: number[] = []

  /** By the hash of the ids of a token. */
  private readonly labels = new Map<number, Known>()
  private labelCount = 0
  private readonly keys: Record<'layer' | 'operators' | 'distinct' | 'call', number>

  constructor(private readonly context: TrackContext) {
    const id = (key: string) => context.names.id(key)
    this.keys = { layer: id('layer'), operators: id('operators'), distinct: id('distinct'), call: id('call') }
  }

  /** Adds the choice that an operator contains, or notes that one of worker 0 uses the choice in one of its sources. */
  place(operator: OperatorEvent): void {
    if (operator.experts) this.add(operator, operator.experts)
    else if (this.holders > 0) this.use(operator)
  }

  /** Adds a choice that was recorded as a separate event. */
  choose({ tensor, call, atNs, k, ids }: ExpertsEvent): void {
    const layer = this.layer(tensor)
    const before = layer.choice
    if (before?.tensor === tensor && before.startNs === atNs) {
      // A large batch needs several records.
      layer.choice = { ...before, ids: [...Array.from(before.ids), ...ids] }
    } else {
      if (before) this.write(layer, before)
      layer.choice = { call, tensor, ids, k, startNs: atNs, endNs: atNs, operators: 0 }
    }
    if (this.open[tensor] === undefined) this.holders++
    putAt(this.open, tensor, layer.choice, undefined)
  }

  finish(): void {
    for (const layer of this.layers.values()) if (layer.choice) this.write(layer, layer.choice)
    this.layers.clear()
  }

  private use({ tensor, call, startNs, endNs }: OperatorEvent): void {
    if (this.without[tensor] === this.holders) return
    let uses = false
    for (const source of this.context.tensors[tensor]!.sources) {
      const choice = this.open[source]
      if (choice === undefined) continue
      uses = true
      if (choice?.call !== call || startNs < choice.startNs) continue
      choice.endNs = Math.max(choice.endNs, endNs)
      choice.operators++
    }
    if (uses) return
    putAt(this.without, tensor, this.holders, -1)
  }

  private add({ tensor, call, startNs, endNs }: OperatorEvent, experts: readonly number[]): void {
    const layer = this.layer(tensor)
    const { choice } = layer
    if (choice?.tensor === -1 && choice.call === call && startNs >= choice.startNs && sameIds(choice.ids, experts)) {
      choice.endNs = Math.max(choice.endNs, endNs)
      choice.operators++
      return
    }
    if (choice) this.write(layer, choice)
    layer.choice = { call, tensor: -1, ids: experts, k: experts.length, startNs, endNs, operators: 1 }
  }

  private layer(tensor: number): Layer {
    return this.layers.of(this.context.tensors[tensor]!.layer)
  }

  private write({ lanes, number: layer }: Layer, { call, tensor, ids, k, startNs, endNs, operators }: Choice): void {
    const { make, detail } = this.context
    if (tensor >= 0) this.open[tensor] = null
    const tokens = k > 0 ? ids.length / k : 1
    const known = tokens === 1 ? this.known(ids, k) : undefined
    const label = known?.label ?? newLabel(ids, k, tokens)
    if (detail === 'names') return lanes.place(startNs, endNs, label)
    const { keys } = this
    const extra = known ? [] : this.choiceArgs(ids, k, label.colour)
    if (layer >= 0) extra.push(intArg(keys.layer, layer))
    extra.push(intArg(keys.operators, operators))
    if (tensor >= 0) {
      const distinct = known?.distinct ?? countDistinct(ids)
      extra.push(make.int('n_tokens', tokens), intArg(keys.distinct, distinct))
    }
    if (call >= 0) extra.push(intArg(keys.call, call))
    lanes.place(startNs, endNs, label, extra)
  }

  /** The label of a choice for one token, with its arguments: most choices occur again. Undefined if there are too many. */
  private known(ids: ArrayLike<number>, k: number): Known | undefined {
    let hash = 0
    for (let i = 0; i < ids.length; i++) hash = (Math.imul(hash, 31) + ids[i]!) | 0
    const next = this.labels.get(hash)
    for (let known = next; known; known = known.next) if (sameIds(ids, known.ids)) return known
    if (this.labelCount >= LABELS_MAX) return undefined
    const { make, names, detail } = this.context
    const { name, category, colour } = newLabel(ids, k, 1)
    const args = detail === 'names' ? undefined : make.set(this.choiceArgs(ids, k, colour))
    const label = make.label({ name: names.id(name as string), category, args, colour: names.id(colour as string) })
    const added = { ids: Array.from(ids), next, label, distinct: countDistinct(ids) }
    this.labels.set(hash, added)
    this.labelCount++
    return added
  }

  private choiceArgs(ids: ArrayLike<number>, k: number, colour: Label['colour']): Arg[] {
    const { make } = this.context
    const args = [make.text('experts', joined(ids, ',', k))]
    if (typeof colour === 'string') args.push(make.text('expert_set', colour))
    return args
  }
}

function newLabel(ids: ArrayLike<number>, k: number, tokens: number) {
  const name = tokens === 1 ? `experts ${joined(ids, ' ', k)}` : `experts of ${tokens} tokens`
  return labelOf(name, 'expert', undefined, tokens === 1 ? setOf(ids) : undefined)
}

/** The ids as text, a semicolon between tokens. */
function joined(ids: ArrayLike<number>, separator: string, k: number): string {
  let text = ''
  for (let i = 0; i < ids.length; i++) {
    if (i > 0) text += i % k === 0 ? ';' : separator
    text += ids[i]
  }
  return text
}

/** The experts of one token as text, in order of their ids: the same for each order of choice. */
function setOf(ids: ArrayLike<number>): string {
  return Array.from(ids)
    .sort((a, b) => a - b)
    .join(',')
}

/** Number of different ids. */
function countDistinct(ids: ArrayLike<number>): number {
  const seen = new Set<number>()
  for (let i = 0; i < ids.length; i++) seen.add(ids[i]!)
  return seen.size
}
