import { GgtraceWriter } from '../../lib/core.ts'

/** A graph allocator as ggml's works, with what it must know of each tensor: when it may give its memory to another. */

const BASE = 0x7000_0000_0000
const ALIGNMENT = 32
const ORIGIN_NS = 1_000_000_000_000n

/** What to put into a graph; `sources` are taken modulo what there is to read. */
export interface ArenaOp {
  readonly kind: 'plain' | 'in place' | 'view' | 'write into'
  readonly sources: readonly number[]
  readonly bytes: number
}

interface Owner {
  readonly offset: number
  readonly bytes: number
  /** Index of the node that writes it first; -1: the graph's input. */
  readonly birth: number
  last: number
  /** The node that takes its memory over in place. */
  takenBy: number
}

interface Node {
  readonly kind: ArenaOp['kind']
  /** Indices into `nodes`; -1 is the input. */
  readonly sources: readonly number[]
  readonly owner: Owner
  readonly bytes: number
}

export interface Simulated {
  readonly nodes: readonly Node[]
  readonly input: Owner
  readonly owners: readonly Owner[]
  readonly size: number
}

const aligned = (bytes: number) => Math.ceil(bytes / ALIGNMENT) * ALIGNMENT

/** Decides who reads whom, then places each result, first fit, as soon as memory is free. */
export function simulate(ops: readonly ArenaOp[]): Simulated {
  const planned = ops.map(({ kind, sources, bytes }, i) => ({
    kind: i === 0 && kind !== 'in place' ? ('plain' as const) : kind,
    sources: sources.map((source) => (source % (i + 1)) - 1),
    bytes,
  }))
  // Which node's memory each node uses, and who uses that last.
  const roots: number[] = []
  const rootOf = (node: number) => (node < 0 ? -1 : roots[node]!)
  const last = new Map<number, number>()
  for (const [i, { kind, sources }] of planned.entries()) {
    roots.push(kind === 'view' || kind === 'write into' ? rootOf(sources[0]!) : i)
    if (kind !== 'view') for (const source of sources) last.set(rootOf(source), i)
    if (kind === 'write into') last.set(roots[i]!, i)
  }
  const owners: Owner[] = []
  const place = (bytes: number, birth: number, now: number): Owner => {
    const live = owners.filter((owner) => (owner.last < 0 || owner.last >= now) && owner.takenBy < 0)
    let offset = 0
    for (const { offset: from, bytes: length } of live.sort((a, b) => a.offset - b.offset)) {
      if (from >= offset + aligned(bytes)) break
      offset = Math.max(offset, from + aligned(length))
    }
    const owner = { offset, bytes, birth, last: -1, takenBy: -1 }
    owners.push(owner)
    return owner
  }
  const input = place(64, -1, 0)
  input.last = last.get(-1) ?? -1
  const nodes: Node[] = []
  const ownerOf = (node: number) => (node < 0 ? input : nodes[node]!.owner)
  for (const [i, { kind, sources, bytes }] of planned.entries()) {
    const first = ownerOf(sources[0]!)
    if (kind === 'view' || kind === 'write into') {
      nodes.push({ kind, sources, owner: first, bytes: first.bytes })
      continue
    }
    const isLastUse = first.last === i && first.takenBy < 0
    const inPlace = kind === 'in place' && isLastUse && bytes <= first.bytes
    const owner: Owner = inPlace ? { offset: first.offset, bytes, birth: i, last: -1, takenBy: -1 } : place(bytes, i, i)
    if (inPlace) {
      first.takenBy = i
      owners.push(owner)
    }
    owner.last = last.get(i) ?? -1
    nodes.push({ kind: 'plain', sources, owner, bytes })
  }
  const size = Math.max(...owners.map(({ offset, bytes }) => offset + aligned(bytes)))
  return { nodes, input, owners, size }
}

/** A log in which each graph runs twice on so many workers, and the lifetimes that it must show. */
export function runsOf(graphs: readonly Simulated[], workers: number) {
  const writer = new GgtraceWriter({ originNs: ORIGIN_NS, blockBytes: 4096 })
  writer.run({ 'format.version': '0' }, { monotonic: ORIGIN_NS, boottime: ORIGIN_NS, realtime: ORIGIN_NS })
  writer.type(0, 'f32')
  for (const [number, name] of [
    [1, 'ADD'],
    [2, 'VIEW'],
    [3, 'CPY'],
  ] as const)
    writer.op(number, name)
  const sizeBytes = Math.max(...graphs.map(({ size }) => size))
  const buffer = writer.buffer({ name: 'CPU', usage: 'compute', base: BASE, sizeBytes })
  const host = writer.thread(100)
  const threads = Array.from({ length: workers }, (_, i) => writer.thread(101 + i, i))
  const expected: { tensor: string; startNs: number; endNs: number; offset: number; bytes: number }[] = []
  let now = 1000
  let call = 0
  for (const [g, { nodes, input, owners }] of graphs.entries()) {
    const at = ({ offset }: Owner, bytes: number) => ({ buffer, address: BASE + offset, sizeBytes: bytes })
    const leaf = writer.tensor({ name: `input ${g}`, type: 0, ne: [1], ...at(input, input.bytes) })
    const ids: number[] = []
    const idOf = (node: number) => (node < 0 ? leaf : ids[node]!)
    for (const [i, { kind, sources, owner, bytes }] of nodes.entries()) {
      const isView = kind === 'view' || kind === 'write into'
      const root = owner.birth < 0 ? leaf : ids[owner.birth]
      ids.push(
        writer.tensor({
          name: `${kind} ${g}.${i}`,
          op: kind === 'view' ? 2 : kind === 'write into' ? 3 : 1,
          type: 0,
          ne: [1],
          ...at(owner, bytes),
          sources: sources.map(idOf),
          ...(isView ? { viewSource: root! } : {}),
          ...(kind === 'view' ? { flags: 1 } : {}),
        }),
      )
    }
    for (let run = 0; run < 2; run++) {
      const callStart = now
      host.copy({ what: 'set', startNs: now, endNs: now + 5, bytes: input.bytes, to: buffer, tensor: leaf })
      now += 10
      const computed = nodes.flatMap(({ kind }, i) => (kind === 'view' ? [] : [i]))
      const starts = new Map<number, number>()
      const ends = new Map<number, number>()
      for (const i of computed) {
        threads.forEach((thread, w) => {
          thread.call = call
          const startNs = now + ((w * 7 + i) % 5)
          const endNs = now + 20 + ((w * 5 + i) % 9)
          thread.operator({ tensor: ids[i]!, startNs, endNs, waitEndNs: now + 40 })
          starts.set(i, Math.min(starts.get(i) ?? Infinity, startNs))
          ends.set(i, Math.max(ends.get(i) ?? 0, endNs))
        })
        now += 50
      }
      const callEnd = now + 5
      host.token({ startNs: callStart - 1, endNs: callEnd, call, tokens: 1, spans: [] })
      for (const owner of owners) {
        if (owner.birth < 0 && owner.last < 0) continue // never read: nothing shows that it is there
        const endNs = owner.takenBy >= 0 ? starts.get(owner.takenBy)! : owner.last < 0 ? callEnd : ends.get(owner.last)!
        expected.push({
          tensor: owner.birth < 0 ? `input ${g}` : `${nodes[owner.birth]!.kind} ${g}.${owner.birth}`,
          startNs: owner.birth < 0 ? callStart : starts.get(owner.birth)!,
          endNs,
          offset: owner.offset,
          bytes: owner.bytes,
        })
      }
      now += 100
      call++
    }
  }
  writer.end(now)
  return { log: writer.take(), expected }
}
