import { isOnHost } from '../../model/backends.ts'
import { DefaultMap } from '../../model/default-map.ts'
import { parseTensorName } from '../../model/tensors.ts'
import type { Defined } from '../graph/defined.ts'
import type { LayerPlacement, WeightsIn } from './figures.ts'
import { type GraphParts, type GraphPartsFinder, MAPPED_FILE } from './graph-parts.ts'

/** Memory of the host: of the CPU backend, its variants for weights, and what devices map of it. */
const OF_HOST = new RegExp(`^(CPU|AMX|BLAS|${MAPPED_FILE})|_Host$`)

/** All backends that compute on the CPU are one here. */
export const HOST = 'CPU'

/** The backend that a buffer belongs to; `CPU` for memory of the host; null: not known. `devices`: names of other backends. */
export function backendOfBuffer(buffer: string, devices: readonly string[]): string | null {
  const device = devices.find((name) => buffer === name || buffer.startsWith(`${name}_`))
  return device ?? (OF_HOST.test(buffer) ? HOST : null)
}

/** The backend that computes, or `CPU`. */
export const placeOf = (backend: string): string => (isOnHost(backend) ? HOST : backend)

interface Home {
  backend: string | null
  readonly weights: DefaultMap<string, { tensors: number; bytes: number; readonly roles: Set<string> }>
  readonly caches: Set<string>
}

/**
 * The layers of a model: where the weights are that its graphs read. A layer belongs to the backend with most of its weights, as llama.cpp
 * assigns whole layers, and single tensors differ (`--override-tensor`); without known buffers, to the one that computes most of its nodes.
 */
export function homesOf(
  defined: Defined,
  finder: GraphPartsFinder,
  parts: readonly GraphParts[],
  devices: readonly string[],
): ReadonlyMap<number, Home> {
  const { names, tensors, isWeight } = defined
  const homes = new DefaultMap<number, Home>(() => ({
    backend: null,
    weights: new DefaultMap(() => ({ tensors: 0, bytes: 0, roles: new Set<string>() })),
    caches: new Set<string>(),
  }))
  const seen = new Set<string>()
  for (const tensor of tensors) {
    if (tensor?.op !== 0 || !isWeight(tensor)) continue
    const name = names.text(tensor.name)
    const { layer, role } = parseTensorName(name)
    const buffer = finder.bufferOf(tensor)
    if (layer < 0 || seen.has(`${buffer} ${name}`)) continue
    seen.add(`${buffer} ${name}`)
    const sum = homes.of(layer).weights.of(buffer)
    sum.tensors++
    sum.bytes += Math.max(0, tensor.sizeBytes)
    sum.roles.add(role)
  }
  const computed = new DefaultMap<number, Map<string, number>>(() => new Map())
  for (const { backend, groups } of parts)
    for (const { layer, count, cache } of groups) {
      if (layer < 0) continue
      if (cache) homes.of(layer).caches.add(cache)
      const place = placeOf(names.text(backend))
      const counts = computed.of(layer)
      counts.set(place, (counts.get(place) ?? 0) + count)
    }
  for (const [layer, home] of homes) {
    const counts = new Map<string, number>()
    for (const [buffer, { tensors }] of home.weights) {
      const backend = backendOfBuffer(buffer, devices)
      if (backend !== null) counts.set(backend, (counts.get(backend) ?? 0) + tensors)
    }
    home.backend = mostOf(counts.size > 0 ? counts : (computed.get(layer) ?? counts))
  }
  return homes
}

/** The backend with most; of equal ones, a device. */
const mostOf = (counts: ReadonlyMap<string, number>): string | null =>
  [...counts].sort(([a, m], [b, n]) => n - m || Number(a === HOST) - Number(b === HOST))[0]?.[0] ?? null

/** Layers in order; successive ones with their weights in the same places as one row. */
export function layerRows(homes: ReadonlyMap<number, Home>): LayerPlacement[] {
  const rows: LayerPlacement[] = []
  for (const [layer, { backend, weights, caches }] of [...homes].sort(([a], [b]) => a - b)) {
    const buffers = [...weights]
      .map(([buffer, { roles, ...sums }]): WeightsIn => ({ buffer, ...sums, roles: [...roles].sort() }))
      .sort((a, b) => b.bytes - a.bytes)
    const row = { first_layer: layer, last_layer: layer, backend, weights: buffers, kv_cache: [...caches].sort() }
    const before = rows.at(-1)
    if (before && before.last_layer === layer - 1 && keyOf(before) === keyOf(row))
      rows[rows.length - 1] = joined(before, row)
    else rows.push(row)
  }
  return rows
}

/** Layers of a MoE may have the same roles in the same buffers, and other sizes. */
const keyOf = ({ backend, weights, kv_cache }: LayerPlacement) =>
  JSON.stringify([backend, weights.map(({ buffer, roles }) => [buffer, roles]).sort(), kv_cache])

function joined(a: LayerPlacement, b: LayerPlacement): LayerPlacement {
  const weights = a.weights.map((own) => {
    const other = b.weights.find(({ buffer }) => buffer === own.buffer)!
    return { ...own, tensors: own.tensors + other.tensors, bytes: own.bytes + other.bytes }
  })
  return { ...a, last_layer: b.last_layer, weights }
}
