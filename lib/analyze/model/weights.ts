import { blockOf, type ModelBlock } from '../../model/blocks.ts'
import { elementsOf, type ModelShape, type Weight } from '../../model/model-shape.ts'
import { parseTensorName } from '../../model/tensors.ts'

/** A weight, and how a token of decode uses it. */
export interface UsedWeight {
  readonly weight: Weight
  readonly block: ModelBlock
  readonly parameters: number
  /** Part of the tensor that a token reads, from 0 to 1. */
  readonly share: number
  /** Is it a factor of a matrix product? */
  readonly isMatrix: boolean
}

/** Tables of which a token reads a row. */
const TABLE = /^(token_embd|position_embd|token_types|per_layer_token_embd|.*\.ffn_gate_tid2eid|.*attn_rel_b)\.weight$/
/** One tensor for all experts, or, in older files, one for each. */
const EXPERTS = /\.ffn_(gate|up|down|gate_up)_(ch)?exps\./
const EXPERT = /\.ffn_(gate|up|down)\.\d+\.weight$/
/** What decoding does not read: encoders, heads of classifiers, layers that predict further tokens, weights for images. */
const UNUSED = /^(enc\.|cls|masked_embd|d2t|fc\.)|\.nextn\.|^nextn\.|\.vis_/
/** Tensors of two dimensions that are added, multiplied by element or convolved. */
const NO_MATRIX = /norm|lerp|conv|ssm_(a|d)\.?|sinks|time_mix_(first|decay\.)|_ape|_scale|_coef|\.bias$/
/** Architectures without an LM head. */
const HEADLESS = /bert|embedding|encoder|clip|wavtokenizer/

/** Number of dimensions that are not 1. */
const dimensionsOf = (ne: readonly number[]) => ne.filter((n) => n !== 1).length

/** How a token of decode uses each weight. The last ones are matrices that are in the file once and are used again, such as a tied head. */
export function usedWeights(shape: ModelShape): UsedWeight[] {
  const { weights, experts, expertsUsed, layers, architecture } = shape
  const chosen = experts && expertsUsed ? Math.min(expertsUsed / experts, 1) : 1
  const names = new Set(weights.map(({ name }) => name))
  const used = weights.map((weight): UsedWeight => {
    const { name, ne } = weight
    const { role, layer } = parseTensorName(name)
    const parameters = elementsOf(ne)
    const isTable = TABLE.test(name)
    const isUnused = UNUSED.test(name) || (layers !== null && layer >= layers) || isSplit(name, names)
    const share = isUnused
      ? 0
      : isTable
        ? parameters > 0
          ? (ne[0] ?? 0) / parameters
          : 0
        : EXPERTS.test(name) || EXPERT.test(name)
          ? chosen
          : 1
    const isMatrix = !isTable && !isUnused && dimensionsOf(ne) > 1 && !NO_MATRIX.test(name)
    return { weight, block: blockOf(role, ''), parameters, share, isMatrix }
  })
  const table = used.find(({ weight }) => weight.name === 'token_embd.weight')
  if (table && isTied(shape, names) && !HEADLESS.test(architecture ?? '')) {
    used.push({ ...table, block: 'LM head', share: 1, isMatrix: true })
  }
  return used
}

/** A model without a matrix for its head uses the embedding table. */
export const isTied = ({ weights }: ModelShape, names = new Set(weights.map(({ name }) => name))): boolean =>
  !names.has('output.weight') && names.has('token_embd.weight')

/** The compressed keys and values of multi-head latent attention are in two tensors, and in older files also in one. */
const isSplit = (name: string, names: ReadonlySet<string>) =>
  name.endsWith('.attn_kv_b.weight') && names.has(name.replace('attn_kv_b', 'attn_k_b'))
