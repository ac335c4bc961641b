import type { OperatorEvent, TensorEvent } from '../model/events.ts'
import type { ArgMaker, Detail } from './labels.ts'
import { Lanes, LazyGroup, rowName, type TrackTree } from './tracks.ts'

interface Choice {
  readonly call: number
  readonly experts: readonly number[]
  readonly startNs: number
  endNs: number
  operators: number
}

/** The Experts group: one row per layer, one slice per choice of the router, over the operators that used it. */
export class Experts {
  private readonly group: LazyGroup
  private readonly layers = new Map<number, { readonly lanes: Lanes; choice: Choice | undefined }>()

  constructor(
    private readonly tree: TrackTree,
    root: number,
    private readonly tensors: readonly TensorEvent[],
    private readonly make: ArgMaker,
    private readonly detail: Detail,
  ) {
    const description =
      'Which experts the router of each layer chose (as far as logged: the first token of the batch). A slice spans the ' +
      'operators that used the choice.'
    this.group = new LazyGroup(tree, root, { name: 'Experts', description, rank: 5 * 16 })
  }

  place({ tensor, call, startNs, endNs, experts }: OperatorEvent): void {
    if (!experts) return
    const number = this.tensors[tensor]!.layer
    let layer = this.layers.get(number)
    if (!layer) {
      layer = { lanes: this.addLayer(number), choice: undefined }
      this.layers.set(number, layer)
    }
    const { choice } = layer
    if (choice && choice.call === call && startNs >= choice.startNs && sameIds(choice.experts, experts)) {
      choice.endNs = Math.max(choice.endNs, endNs)
      choice.operators++
      return
    }
    if (choice) this.write(layer.lanes, choice)
    layer.choice = { call, experts, startNs, endNs, operators: 1 }
  }

  finish(): void {
    for (const { lanes, choice } of this.layers.values()) if (choice) this.write(lanes, choice)
    this.layers.clear()
  }

  private write(lanes: Lanes, { call, experts, startNs, endNs, operators }: Choice): void {
    const { make } = this
    const extra = [make.text('experts', experts.join(',')), make.int('operators', operators)]
    if (call >= 0) extra.push(make.int('token', call))
    const shown = this.detail === 'names' ? undefined : extra
    lanes.place(startNs, endNs, { name: `experts ${experts.join(' ')}`, category: 'expert', extra: shown })
  }

  private addLayer(layer: number): Lanes {
    const name = layer < 0 ? 'no layer' : `layer ${layer}`
    const description = `Experts chosen in ${name === 'no layer' ? 'an unknown layer' : name}.`
    return new Lanes(this.tree.writer, (row) =>
      this.group.add({ name: rowName(name, row), description, rank: (layer + 1) * 16 + Math.min(row, 15) }),
    )
  }
}

function sameIds(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((id, i) => id === b[i])
}
