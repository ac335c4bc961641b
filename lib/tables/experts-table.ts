import { sameIds } from '../model/by-id.ts'
import type { ExpertsEvent, OperatorEvent } from '../model/events.ts'
import type { Nodes } from './nodes.ts'
import type { Tables } from './tables.ts'

/** A choice that operators recorded. */
interface Choice {
  readonly call: number
  readonly startNs: number
  readonly ids: readonly number[]
}

/** Collects rows of `expert`: choices of routers, or those that operators recorded, each once. */
export class ExpertsTable {
  /** By layer. */
  private readonly latest = new Map<number, Choice>()
  /** Tokens so far of the choice at a time: a long one comes in several events. */
  private readonly tokens = { tensor: -1, atNs: NaN, count: 0 }

  constructor(
    private readonly tables: Tables,
    private readonly nodes: Nodes,
  ) {}

  /** A router chose. */
  choose({ tensor, call, atNs, ids, k }: ExpertsEvent): void {
    const { tokens } = this
    if (tokens.tensor !== tensor || tokens.atNs !== atNs) Object.assign(tokens, { tensor, atNs, count: 0 })
    this.add(this.layerOf(tensor), { call, startNs: atNs, ids: ids as unknown as readonly number[] }, k, tokens.count)
    if (k > 0) tokens.count += ids.length / k
  }

  /** An operator recorded its experts: workers and operators of one layer share a choice. */
  operator({ tensor, call, startNs }: OperatorEvent, ids: readonly number[]): void {
    const layer = this.layerOf(tensor)
    const latest = this.latest.get(layer)
    const isSame = latest?.call === call && startNs >= latest.startNs && sameIds(latest.ids, ids)
    if (isSame) return
    const choice = { call, startNs, ids }
    this.latest.set(layer, choice)
    this.add(layer, choice, ids.length, 0)
  }

  private layerOf(tensor: number): number {
    return this.nodes.tensors[tensor]!.layer
  }

  private add(layer: number, { call, startNs, ids }: Choice, k: number, firstToken: number): void {
    const common = { call: call < 0 ? null : call, layer: layer < 0 ? null : layer, ts_ns: startNs }
    for (let i = 0; i < ids.length; i++) {
      const token = firstToken + (k > 0 ? Math.floor(i / k) : 0)
      this.tables.add('expert', { ...common, token, rank: k > 0 ? i % k : i, expert: ids[i]! })
    }
  }
}
