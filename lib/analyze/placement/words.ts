import { isCpuBackend } from '../../model/backends.ts'
import { LAYERS_MAX } from '../../model/model-shape.ts'
import { size } from '../../model/units.ts'
import type { BackendPart, LayerPlacement, MovedOperators, PlacementFigures } from './figures.ts'
import { MAPPED_FILE } from './graph-parts.ts'

/** `0–3, 7` */
export function rangesText(layers: readonly number[]): string {
  const ranges: [number, number][] = []
  for (const layer of layers) {
    const last = ranges.at(-1)
    if (last && last[1] === layer - 1) last[1] = layer
    else ranges.push([layer, layer])
  }
  return ranges.map(([first, last]) => (first === last ? `${first}` : `${first}–${last}`)).join(', ')
}

/** Numbers of the layers of a row: of a damaged Analysis, no more than a model has. */
export const layersOf = ({ first_layer, last_layer }: LayerPlacement) =>
  Array.from({ length: Math.min(last_layer - first_layer + 1, LAYERS_MAX) }, (_, i) => first_layer + i)

/** Roles of weights that are named. */
const ROLES_MAX = 3

/** `CUDA0 520 MiB, CPU 13 MiB (token_embd)` */
export const weightsText = ({ weights }: Pick<LayerPlacement, 'weights'>): string =>
  weights
    .map(({ buffer, bytes, roles }, i) => {
      const named = roles.length > ROLES_MAX ? [...roles.slice(0, ROLES_MAX), '…'] : roles
      return `${buffer || 'an unknown buffer'} ${size(bytes)}${i === 0 ? '' : ` (${named.join(' ')})`}`
    })
    .join(', ')

/** By backend, the layers that belong to it. */
export function layersByBackend({ layers }: Pick<PlacementFigures, 'layers'>): ReadonlyMap<string, readonly number[]> {
  const found = new Map<string, number[]>()
  for (const row of layers) {
    const backend = row.backend ?? 'not known'
    found.set(backend, [...(found.get(backend) ?? []), ...layersOf(row)])
  }
  return found
}

/** `0–3 CPU, 4–7 CUDA0` */
export const layersText = (placement: Pick<PlacementFigures, 'layers'>): string =>
  [...layersByBackend(placement)].map(([backend, layers]) => `${rangesText(layers)} ${backend}`).join(', ')

/** Is there another backend than that of the CPU: a device, or a library on the CPU, such as BLAS? */
export const hasOtherBackend = ({ backends }: Pick<PlacementFigures, 'backends'>): boolean =>
  backends.some((name) => !isCpuBackend(name))

/** Ops of a backend that are named. */
const OPS_MAX = 3

/** `MUL_MAT`, or `12 ops`. */
export const opsText = ({ ops }: Pick<BackendPart, 'ops'>): string =>
  ops.length > OPS_MAX ? `${ops.length} ops` : ops.join(' ')

/** `FLASH_ATTN_EXT` or `MUL_MAT_ID, SWIGLU` */
export const movedOps = ({ ops, further_ops }: MovedOperators): string =>
  ops.length === 0 ? further_ops.join(', ') : ops.join(', ')

/** `a mapped file`, or `the buffer CPU_REPACK`. */
function bufferText(buffer: string): string {
  if (buffer === '') return 'an unknown buffer'
  return buffer === MAPPED_FILE ? `a ${buffer}` : `the buffer ${buffer}`
}

/** Why a backend computes them, in words. */
export function reasonText({ reason, detail, refused, decided, layer_backend }: MovedOperators): string {
  switch (reason) {
    case 'refused':
      return decided === null
        ? `${layer_backend} refused it (${detail}): ${refused}`
        : `${layer_backend} has no kernel for ${decided}: ${refused}`
    case 'weights':
      if (refused === null) return `their weights are in ${bufferText(detail)}`
      return decided === null
        ? `their weights are in ${bufferText(detail)}: ${layer_backend} refused ${refused}`
        : `their weights are in ${bufferText(detail)}: ${layer_backend} has no kernel for ${decided}: ${refused}`
    case 'kv-cache':
      return `the KV cache is in ${bufferText(detail)}`
    case 'unknown':
      return 'reason unknown'
  }
}
