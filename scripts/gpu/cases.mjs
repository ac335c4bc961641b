import { presets } from '../../test/llama/gguf.mjs'
import { demand } from './logs.mjs'

export const CALLS = 7
export const ARGS = ['--prompt', '8', '--decode', '6']
export const DENSE = presets.tinyDense
/** Compared with the observer, node by node and replayed. */
export const cases = [
  ['tiny', DENSE, ARGS],
  ['MoE', presets.tinyMoe, ARGS],
  ['f16', { ...DENSE, weights: 'F16' }, ARGS],
  ['f32', presets.exact, ARGS],
  ['Qwen2, three sequences', presets.tinyQwen2, [...ARGS, '--parallel', '3']],
  ['prompt of 400', DENSE, ['--prompt', '400', '--decode', '6']],
  ['MoE, prompt of 400', presets.tinyMoe, ['--prompt', '400', '--decode', '6']],
  ['f16, prompt of 400', { ...DENSE, weights: 'F16' }, ['--prompt', '400', '--decode', '6']],
  ['without flash attention', DENSE, [...ARGS, '--flash-attention', '0']],
  ['1.1 B', presets.big, ARGS],
  ['1.1 B, f16', { ...presets.big, weights: 'F16' }, ARGS],
]

const BASE = { layers: 4, width: 256, feedForward: 256, heads: 4, kvHeads: 2, vocabulary: 1400, context: 512 }
const ALL = ['--gpu-layers', '99']
const FLASH = [...ALL, '--flash-attention', '1']
const HEADS_48 = { ...BASE, width: 192 }
/** What leaves operators or layers on the CPU: the first words of the finding that says so, or, where it may be too short for one, its operators. */
export const placements = [
  ['heads of 48', HEADS_48, FLASH, /^FLASH_ATTN_EXT of 4 layers runs on the CPU/],
  ['a KV cache of iq4_nl', BASE, [...FLASH, '--type-k', 'iq4_nl', '--type-v', 'iq4_nl'], /^FLASH_ATTN_EXT of 4 layers/],
  ['flash attention by auto', HEADS_48, ALL, /^flash attention was switched off/],
  [
    'weights of tq2_0',
    { ...BASE, types: { ffn_down: 'TQ2_0' } },
    ALL,
    /^MUL_MAT of layers 0,1,2,3: weights, CUDA0 refused .*tq2_0/,
  ],
  ['two weights on the CPU', BASE, [...ALL, '--on-cpu', 'blk\\.[01]\\.ffn_down'], /^MUL_MAT of layers 0,1: weights$/],
  [
    'experts on the CPU',
    presets.tinyMoe,
    [...ALL, '--on-cpu', 'ffn_.*_exps'],
    /^MUL_MAT_ID.* of layers 0,1,2,3,4,5: weights$/,
  ],
  [
    'layers on the CPU',
    presets.big,
    ['--gpu-layers', '11'],
    /^1[12] layers of 22 \(0–1[01]\) are on the CPU although CUDA0 was/,
  ],
  [
    'no layer on the GPU',
    presets.big,
    ['--gpu-layers', '0'],
    /^the model is wholly on the CPU although CUDA0 was there/,
  ],
  ['nothing', BASE, ALL],
  ['nothing, of experts', presets.tinyMoe, ALL],
  ['nothing, 1.1 B', presets.big, ALL],
  ['nothing, without flash attention', BASE, [...ALL, '--flash-attention', '0']],
  ['nothing, a KV cache of q8_0', BASE, [...FLASH, '--type-k', 'q8_0', '--type-v', 'q8_0']],
]

/** Its findings of placement, or the operators that were moved, as words; an error if they are others than the plant's. */
export function checkPlacement([, , , expected], { placement, findings }) {
  const found = findings.filter(({ rule }) => /^(moved-operators|layers-on-cpu|flash-attention-off)$/.test(rule))
  const named = found.map(({ sentence }) => sentence)
  const moved = placement.moved.map(
    ({ ops, layers, reason, refused, layer_backend: device }) =>
      `${ops.join(', ')} of layers ${layers.join()}: ${reason}${refused === null ? '' : `, ${device} refused ${refused}`}`,
  )
  const all = [...named, ...moved]
  demand(
    expected ? all.some((words) => expected.test(words)) : all.length === 0,
    `found: ${all.join(' | ') || 'nothing'}`,
  )
  return [...named, ...(named.length === 0 ? moved : [])].join(' | ') || 'nothing'
}
