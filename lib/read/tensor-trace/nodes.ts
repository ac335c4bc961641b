import { DefaultMap } from '../../model/default-map.ts'
import type { Definitions } from '../../model/definitions.ts'
import { type Field, type Layout, sourceCount } from './layouts.ts'
import type { Node } from './passes.ts'
import type { Source } from './places.ts'

const NO_LAYER = 0xffff

/** Finds the node of a record by the bytes that describe it, so that each distinct node is decoded once. */
export class NodeTable {
  private readonly byHash = new DefaultMap<number, { readonly key: Uint8Array; readonly node: Node }[]>(() => [])

  constructor(
    private readonly layout: Layout,
    private readonly definitions: Definitions | undefined,
  ) {}

  /** The node of the record at `start` of `bytes`, which is at `at` of `view`. */
  find(bytes: Uint8Array, start: number, view: DataView, at: number): Node {
    const { identity, recordBytes } = this.layout
    const key = bytes.subarray(start, start + recordBytes)
    const sameHash = this.byHash.of(hashNode(view, at, identity))
    const found = sameHash.find((entry) => isSameNode(entry.key, key, identity))
    if (found) return found.node
    const entry = { key: key.slice(), node: decodeNode(bytes, start, view, at, this.layout, this.definitions) }
    sameHash.push(entry)
    return entry.node
  }
}

const { imul } = Math // looked up once: global look-ups are slow in a test runner's sandbox

function hashNode(view: DataView, at: number, identity: Layout['identity']): number {
  let hash = view.getUint16(at + 12, true) ^ (view.getUint8(at + 16) << 16) ^ (view.getUint8(at + 18) << 24)
  for (const [start, end] of identity) {
    for (let i = at + start; i < at + end; i += 4) hash = imul(hash ^ view.getUint32(i, true), 0x01000193)
  }
  return hash
}

function isSameNode(a: Uint8Array, b: Uint8Array, identity: Layout['identity']): boolean {
  if (a[12] !== b[12] || a[13] !== b[13] || a[16] !== b[16] || a[18] !== b[18]) return false
  for (const [start, end] of identity) for (let i = start; i < end; i++) if (a[i] !== b[i]) return false
  return true
}

function decodeNode(
  bytes: Uint8Array,
  start: number,
  view: DataView,
  at: number,
  layout: Layout,
  definitions: Definitions | undefined,
): Node {
  const { result, sources: fields } = layout
  const count = sourceCount(bytes, start, layout)
  const sources: Source[] = []
  const problems: string[] = []
  if (count > fields.most) problems.push(`expected at most ${fields.most} sources, found ${count}`)
  for (let i = 0; i < Math.min(count, fields.most); i++) {
    const source = fields.at + i * fields.bytes
    const memory = fields.memory === undefined ? 0 : view.getUint8(at + source + fields.memory)
    if (memory > 1) problems.push(`expected memory source 0 (DISK) or 1 (BUFFER), found ${memory}`)
    const place = view.getBigUint64(at + source + fields.place, true)
    const isPlaceless = fields.memory === undefined && place === 0n
    const logged = {
      name: fields.name ? readText(bytes, start + source, fields.name) : '',
      pointer: readAddress(view, at + source + fields.pointer),
      sizeBytes: view.getUint32(at + source + fields.size, true),
      layer: readLayer(view, at + source + fields.layer),
      onDisk: memory === 0 && !isPlaceless,
      place: isPlaceless ? undefined : place,
      isCut: fields.name !== undefined && isCut(bytes, start + source, fields.name),
    }
    sources.push(definitions ? named(logged, definitions) : logged)
  }
  return {
    name: result ? readText(bytes, start, result) : '',
    isCut: result !== undefined && isCut(bytes, start, result),
    op: bytes[start + 16]!,
    layer: readLayer(view, at + 12),
    sources,
    problem: problems.join('; '),
    id: -1,
  }
}

/** Completes a source in the model file from the memory map: a log may truncate names, or have none. */
export function named(source: Source, definitions: Definitions): Source {
  const { onDisk, place, name, isCut, layer, sizeBytes } = source
  const weight = onDisk ? definitions.weightAt(Number(place)) : undefined
  if (!weight) return source
  const full = definitions.names.text(weight.name)
  if (name !== full && name !== '' && !(isCut && full.startsWith(name))) {
    return { ...source, doubt: `expected "${full}" at offset ${place} of the model file, found "${name}"` }
  }
  // The log has the low 32 bits of sizes.
  const isWrapped = weight.sizeBytes > sizeBytes && weight.sizeBytes % 2 ** 32 === sizeBytes
  return {
    ...source,
    name: full,
    isCut: false,
    layer: layer >= 0 ? layer : weight.layer,
    sizeBytes: isWrapped ? weight.sizeBytes : sizeBytes,
    ne: weight.ne,
  }
}

function readLayer(view: DataView, at: number): number {
  const layer = view.getUint16(at, true)
  return layer === NO_LAYER ? -1 : layer
}

/** Addresses of user space fit in 53 bits; the top byte of a tagged pointer (arm64) is masked. */
function readAddress(view: DataView, at: number): number {
  return (view.getUint32(at + 4, true) & 0x1fffff) * 2 ** 32 + view.getUint32(at, true)
}

const decoder = new TextDecoder()

function readText(bytes: Uint8Array, from: number, field: Field): string {
  const start = from + field.at
  let end = start
  while (end < start + field.bytes && bytes[end] !== 0) end++
  return decoder.decode(bytes.subarray(start, end))
}

/** Does a text fill its field, so that it may be truncated? */
function isCut(bytes: Uint8Array, from: number, { at, bytes: length }: Field): boolean {
  return bytes[from + at + length - 2] !== 0
}
