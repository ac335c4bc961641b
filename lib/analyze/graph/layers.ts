import type { TensorEvent } from '../../model/events.ts'
import type { Names } from '../../model/names.ts'

/** The layer of an operator: of FLASH_ATTN_EXT, which llama.cpp does not name, that of its sources; or -1. */
export function layerOf({ layer, op, sources }: TensorEvent, tensors: readonly TensorEvent[], names: Names): number {
  if (layer >= 0 || names.text(op) !== 'FLASH_ATTN_EXT') return layer
  const layers = new Set(sources.map((id) => tensors[id]!.layer).filter((known) => known >= 0)) // masks have none
  return layers.size === 1 ? [...layers][0]! : -1
}
