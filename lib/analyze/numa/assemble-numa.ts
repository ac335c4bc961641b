import { DefaultMap } from '../../model/default-map.ts'
import type { TensorEvent } from '../../model/events.ts'
import { parseTensorName } from '../../model/tensors.ts'
import { nodesOf } from '../../model/topology.ts'
import type { NumaBuffer, NumaFigures, NumaOperator, NumaReads, NumaTensor, NumaWorker } from './figures.ts'
import { type Executions, type NumaOfInput, readBy } from './numa.ts'
import { NodeBytes, PagePlaces } from './places.ts'
import { rowsOf } from './split.ts'

type Facts = Readonly<Record<string, string | number>>

/** Tensors that are listed. */
const TENSORS_MAX = 1024
/** Name of the buffers with weights in another order. */
const REPACKED = 'CPU_REPACK'
/** Of a weight: more are only in damaged logs. */
const PARTS_MAX = 1 << 20

/** NodeReads by the node of the worker (-1: not known) and the node of what it read. */
class NodeReads {
  all = 0
  local = 0
  remote = 0
  estimated = 0
  readonly byNode: NodeBytes

  constructor(nodes: number) {
    this.byNode = new NodeBytes(nodes)
  }

  add(from: number, bytes: NodeBytes, times: number, isEstimate: boolean): void {
    const sum = bytes.sum * times
    this.all += sum
    if (isEstimate) this.estimated += sum
    this.byNode.addAll(bytes, times)
    if (from < 0) return
    bytes.known.forEach((part, node) => {
      if (node === from) this.local += part * times
      else this.remote += part * times
    })
  }

  figures(): NumaReads {
    const known = this.local + this.remote
    return {
      ...{ read_bytes: this.all, local_bytes: this.local, remote_bytes: this.remote },
      local_share: known > 0 ? this.local / known : null,
    }
  }

  get estimatedShare(): number {
    return this.all > 0 ? this.estimated / this.all : 0
  }
}

/** In which part of its executions a product reads each matrix of its weight. */
interface ExpertShares {
  shareOf(matrix: number): number
  readonly isKnown: boolean
}

const ALL_OF_ONE: ExpertShares = { shareOf: () => 1, isKnown: true }

/** Sums what workers read, by what they read and where it is. */
class ReadSums {
  readonly all: NodeReads
  readonly tensors: DefaultMap<number, NodeReads>
  readonly operators: DefaultMap<string, NodeReads>
  readonly workers: DefaultMap<number, { readonly reads: NodeReads; readonly onNode: Map<number, number> }>
  private readonly nodeOf: ReadonlyMap<number, number>
  private readonly isNuma: boolean
  private readonly count: number

  constructor(
    private readonly input: NumaOfInput,
    private readonly first: PagePlaces,
    private readonly last: PagePlaces,
    facts: Facts,
  ) {
    const nodes = nodesOf(facts)
    this.count = countOf(nodes)
    this.nodeOf = new Map(nodes.flatMap(({ node, cpus }) => cpus.map((cpu) => [cpu, node] as const)))
    this.isNuma =
      facts['numa.ggml'] === undefined ? facts['numa.mode'] !== undefined : String(facts['numa.ggml']) === '1'
    const reads = () => new NodeReads(this.count)
    this.all = reads()
    this.tensors = new DefaultMap(reads)
    this.operators = new DefaultMap(reads)
    this.workers = new DefaultMap(() => ({ reads: reads(), onNode: new Map() }))
  }

  /** Bytes by node: where the last look found a page, or else the first one. */
  in(from: number, end: number): NodeBytes {
    const bytes = new NodeBytes(this.count)
    this.last.in(from, end, (from, end, node) => {
      if (node >= 0) bytes.add(node, end - from)
      else this.first.in(from, end, (from, end, node) => bytes.add(node, end - from))
    })
    return bytes
  }

  add(executions: Executions): void {
    const { tensors } = this.input.defined
    const node = tensors[executions.tensor]!
    for (const source of readBy(this.input.defined, executions.tensor)) {
      const weight = tensors[source]!
      const parts = this.partsOf(node, weight, executions)
      for (const { worker, cpu, times } of executions.of) {
        const bytes = parts.bytes[worker]
        if (bytes)
          this.addPart(node, source, bytes, {
            worker,
            on: this.nodeOf.get(cpu) ?? -1,
            times,
            isEstimate: parts.isEstimate,
          })
      }
    }
  }

  private addPart(
    node: TensorEvent,
    source: number,
    bytes: NodeBytes,
    { worker, on, times, isEstimate }: { worker: number; on: number; times: number; isEstimate: boolean },
  ): void {
    const { names } = this.input.defined
    const of = this.workers.of(worker)
    const key = `${names.text(node.op)}\0${parseTensorName(names.text(node.name)).role}`
    for (const reads of [this.all, this.tensors.of(this.rootOf(source)), this.operators.of(key), of.reads])
      reads.add(on, bytes, times, isEstimate)
    of.onNode.set(on, (of.onNode.get(on) ?? 0) + bytes.sum * times)
  }

  /** Bytes of a source that each worker reads in one execution. */
  private partsOf(
    node: TensorEvent,
    weight: TensorEvent,
    { workers, of }: Executions,
  ): { bytes: NodeBytes[]; isEstimate: boolean } {
    const { names } = this.input.defined
    const matrices = (weight.ne?.[2] ?? 1) * (weight.ne?.[3] ?? 1)
    const columns = (node.ne ?? []).slice(1).reduce((product, size) => product * size, 1)
    const computing = {
      isNuma: this.isNuma,
      isRepacked: this.bufferOf(weight) === REPACKED,
      type: names.text(weight.type),
    }
    const isOfExperts = names.text(node.op) === 'MUL_MAT_ID'
    const isPlain = isOfExperts || (matrices === 1 && weight.viewOf === undefined)
    // Each chosen matrix has few tokens.
    const rows =
      isPlain && matrices * workers <= PARTS_MAX
        ? rowsOf(weight, isOfExperts ? 1 : columns, workers, computing)
        : undefined
    const { shareOf, isKnown } = isOfExperts ? this.expertsOf(node, matrices, of) : ALL_OF_ONE
    const { address, sizeBytes } = weight
    const matrixBytes = sizeBytes / matrices
    const partOf = (fromRow: number, toRow: number, allRows: number) => {
      const part = new NodeBytes(this.count)
      for (let matrix = 0; matrix < matrices; matrix++) {
        const [base, rowBytes] = [address + matrix * matrixBytes, matrixBytes / allRows]
        const share = shareOf(matrix)
        if (share > 0) part.addAll(this.in(base + fromRow * rowBytes, base + toRow * rowBytes), share)
      }
      return part
    }
    if (!rows) {
      const equal = new NodeBytes(this.count)
      const read = isOfExperts && matrices <= PARTS_MAX ? partOf(0, 1, 1) : this.in(address, address + sizeBytes)
      equal.addAll(read, 1 / workers)
      return { bytes: Array.from({ length: workers }, () => equal), isEstimate: workers > 1 || !isKnown }
    }
    const bytes = Array.from({ length: workers }, (_, i) => partOf(rows[i]!, rows[i + 1]!, rows.at(-1)!))
    return { bytes, isEstimate: !isKnown }
  }

  /**
   * By expert, in which part of its executions a product reads it. Known where each choice that it used was recorded, and where it has one
   * token: of several, an expert may get so many that its rows are divided in another way. Else all experts are assumed to be equal.
   */
  private expertsOf(node: TensorEvent, experts: number, executions: Executions['of']): ExpertShares {
    const { tensors } = this.input.defined
    const [used = 0, tokens = 1] = tensors[node.sources[2] ?? -1]?.ne ?? []
    const chosen = this.input.chosen.get(node.sources[2] ?? -1)
    const times = new DefaultMap<number, { times: number }>(() => ({ times: 0 }))
    for (const { worker, times: own } of executions) times.of(worker).times += own
    const isWhole = chosen !== undefined && [...times.values()].every((sum) => sum.times === chosen.choices)
    if (isWhole) return { shareOf: (expert) => (chosen.times.get(expert) ?? 0) / chosen.choices, isKnown: tokens === 1 }
    const equal = experts > 0 ? 1 - (1 - Math.min(1, used / experts)) ** tokens : 1
    return { shareOf: () => equal, isKnown: false }
  }

  bufferOf(tensor: TensorEvent): string {
    const { buffers, names } = this.input.defined
    return names.text(buffers.get(tensor.buffer)?.name ?? 0)
  }

  private rootOf(source: number): number {
    const { tensors } = this.input.defined
    const root = tensors[source]?.viewOf
    return root !== undefined && tensors[root] ? root : source
  }
}

const countOf = (nodes: readonly { readonly node: number }[]) => Math.max(0, ...nodes.map(({ node }) => node + 1))

/** Where memory is and who reads it; null where the log contains no pages, and of a machine with one node. */
export function numaOf(input: NumaOfInput | null, facts: Facts): NumaFigures | null {
  const nodes = nodesOf(facts)
  if (!input || nodes.length < 2) return null
  const { defined, pages } = input
  const [first, last] = (['first', 'last'] as const).map((moment) => {
    const places = new PagePlaces()
    for (const event of pages) if (event.moment === moment) places.add(event)
    return places
  }) as [PagePlaces, PagePlaces]
  const sums = new ReadSums(input, first, last, facts)
  for (const executions of input.executions) if (defined.tensors[executions.tensor]) sums.add(executions)
  const byNode = (bytes: NodeBytes) => nodes.map(({ node }) => bytes.known[node] ?? 0)
  const tensors = [...sums.tensors].map(([id, reads]): NumaTensor => {
    const tensor = defined.tensors[id]!
    const bytes = sums.in(tensor.address, tensor.address + Math.max(0, tensor.sizeBytes))
    return {
      ...{ tensor: defined.names.text(tensor.name), buffer: sums.bufferOf(tensor), size_bytes: tensor.sizeBytes },
      ...{ by_node: byNode(bytes), unknown_bytes: bytes.unknown, ...reads.figures() },
    }
  })
  tensors.sort((a, b) => b.read_bytes - a.read_bytes)
  const rest = restOf(facts)
  return {
    nodes: nodes.map(({ node, list }, i) => ({
      ...{ node, cpus: list, tensor_bytes: tensors.reduce((sum, { by_node }) => sum + by_node[i]!, 0) },
      ...{ other_bytes: rest ? (rest.get(node) ?? 0) : null, read_bytes: sums.all.byNode.known[node] ?? 0 },
    })),
    mode: facts['numa.mode'] === undefined ? null : String(facts['numa.mode']),
    balancing: facts['numa.balancing'] === undefined ? null : String(facts['numa.balancing']) !== '0',
    policies: input.policies,
    buffers: buffersOf(input, countOf(nodes), byNode),
    tensors: tensors.slice(0, TENSORS_MAX),
    other_tensors: Math.max(0, tensors.length - TENSORS_MAX),
    workers: [...sums.workers]
      .sort(([a], [b]) => a - b)
      .map(([worker, { reads, onNode }]): NumaWorker => {
        const [[node, bytes] = [-1, 0]] = [...onNode].sort(([, a], [, b]) => b - a)
        const figures = reads.figures()
        const node_share = figures.read_bytes > 0 ? bytes / figures.read_bytes : 0
        return { worker, node, node_share, by_node: byNode(reads.byNode), ...figures }
      }),
    operators: [...sums.operators]
      .map(([key, reads]): NumaOperator => {
        const [op = '', role = ''] = key.split('\0')
        return { op, role, ...reads.figures(), estimated_share: reads.estimatedShare }
      })
      .sort((a, b) => b.read_bytes - a.read_bytes),
    read_bytes: sums.all.all,
    local_share: sums.all.figures().local_share,
    estimated_share: sums.all.estimatedShare,
  }
}

/** Each buffer that the kernel was asked for, by its first page. */
function buffersOf(
  { pages, defined }: NumaOfInput,
  nodes: number,
  byNode: (bytes: NodeBytes) => number[],
): NumaBuffer[] {
  const rows = new Map<
    string,
    { buffer: NumaBuffer; first: NodeBytes; last: NodeBytes; moments: Set<string>; next: number }
  >()
  for (const { buffer, moment, address, pageBytes, stride, policy, kernelPageBytes, runs } of pages) {
    // Long lists are several records: the next one begins where the one before ends.
    const joined = [...rows.values()].find(
      (row) => row.next === address && row.buffer.buffer === defined.names.text(buffer),
    )
    const key = `${address}`
    const row = joined ??
      rows.get(key) ?? {
        ...{ first: new NodeBytes(nodes), last: new NodeBytes(nodes), moments: new Set<string>(), next: 0 },
        buffer: {
          ...{ buffer: defined.names.text(buffer), asked_share: 1 / stride, policy: defined.names.text(policy) },
          ...{ page_bytes: kernelPageBytes, first: null, last: null },
        },
      }
    if (!joined) rows.set(key, row)
    row.moments.add(moment)
    row.next = address
    for (let i = 0; i < runs.length; i += 2) {
      const bytes = runs[i]! * pageBytes * stride
      row[moment].add(runs[i + 1]!, bytes)
      row.next += bytes
    }
  }
  const pagesOf = (bytes: NodeBytes) => ({ by_node: byNode(bytes), absent_bytes: bytes.unknown })
  return [...rows.values()].map(({ buffer, first, last, moments }) => ({
    ...buffer,
    first: moments.has('first') ? pagesOf(first) : null,
    last: moments.has('last') ? pagesOf(last) : null,
  }))
}

/** `0:123456|1:789`: bytes by node. */
function restOf(facts: Facts): Map<number, number> | undefined {
  const text = facts['numa.rest']
  if (text === undefined) return undefined
  return new Map(
    String(text)
      .split('|')
      .map((part) => part.split(':').map(Number) as [number, number]),
  )
}
