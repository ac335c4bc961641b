import { getOrMake } from '../../model/default-map.ts'
import type { TensorEvent } from '../../model/events.ts'
import type { ModelShape } from '../../model/model-shape.ts'
import type { LayerShape } from './layer.ts'

/** What the weights of matrix products with experts say of their layers, by number. `isProduct`: is a node such a product? */
export function layerShapes(
  tensors: readonly (TensorEvent | undefined)[],
  isProduct: (tensor: number) => boolean,
): Map<number, LayerShape> {
  const weights = new Map<number, Map<number, TensorEvent>>()
  for (const tensor of tensors) {
    const source = tensor?.sources[0]
    if (!tensor || source === undefined || !isProduct(tensor.id)) continue
    const ofLayer = getOrMake(weights, tensor.layer, () => new Map<number, TensorEvent>())
    const weight = tensors[source]!
    ofLayer.set(weight.name, weight)
  }
  return new Map([...weights].map(([layer, events]) => [layer, shapeOf([...events.values()])]))
}

function shapeOf(weights: readonly TensorEvent[]): LayerShape {
  const experts = weights.find(({ ne }) => ne !== undefined)?.ne?.[2]
  const areKnown = experts !== undefined && weights.every(({ sizeBytes }) => sizeBytes >= 0)
  const bytes = weights.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)
  return { experts, expertBytes: areKnown ? bytes / experts : null }
}

/** What a model's own file says of a layer's experts: of the weights that have them in their name, as llama.cpp calls these. */
export function shapeInModel({ experts, weights }: ModelShape, layer: number): LayerShape {
  const ofExperts = weights.filter(({ name }) => name.startsWith(`blk.${layer}.`) && name.endsWith('_exps.weight'))
  const areKnown = experts !== null && experts > 0 && ofExperts.length > 0 && ofExperts.every(({ bytes }) => bytes >= 0)
  const bytes = ofExperts.reduce((sum, { bytes }) => sum + bytes, 0)
  return { experts: experts || undefined, expertBytes: areKnown ? bytes / experts : null }
}
