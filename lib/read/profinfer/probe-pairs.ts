import type { Position } from '../../errors.ts'
import { Inferred, type Phase } from '../../model/events.ts'
import { issueOf } from '../../model/issues.ts'
import { parseTensorName } from '../../model/tensors.ts'
import { UNKNOWN } from '../../model/unknown.ts'
import { LookAhead, type Preview } from '../common/look-ahead.ts'
import type { ReadContext } from '../format.ts'
import { findThreadIds, Workers } from './threads.ts'

/**
 * Makes operators, graphs and calls of start and end probes that contain thread ids only: an end belongs to the latest
 * start of its thread, the thread that runs the graph is worker 0, and the time between two operators of a thread is
 * its wait at the barrier.
 */

/** A node as a start row describes it. */
export interface ProbeNode {
  /** -1 = not recorded. */
  readonly op: number
  readonly name: string
  /** Of the ggml_tensor struct; 0 = not recorded. */
  readonly address: number
  readonly ne: readonly number[] | undefined
  readonly sources: readonly { readonly address: number; readonly ne: readonly number[] | undefined }[]
  /** Id of its tensor event; -1 until that was added. */
  id: number
}

/** One probe hit. */
export interface Probe {
  readonly atNs: number
  readonly at: Position
  readonly type: number
  readonly tid: number
  /** Id of the process, which may be swapped with the thread's; -1 = not recorded. */
  readonly tgid: number
  /** -1 = not recorded. */
  readonly cpu: number
  readonly guid: string
  readonly node: ProbeNode | undefined
  readonly counters: readonly number[] | undefined
  readonly counterNames: readonly string[]
}

interface Call {
  readonly startNs: number
  readonly index: number
  readonly isWarmUp: boolean
  tokens: number
}

interface Graph {
  readonly startNs: number
  readonly backend: number
  readonly call: Call | undefined
  readonly host: number
  readonly tids: Set<number>
  nodes: number
}

/** A thread's operator: running while `endNs` is undefined, then waiting. */
interface Running {
  readonly probe: Probe
  readonly worker: number
  readonly graph: Graph | undefined
  readonly call: Call | undefined
  endNs: number | undefined
}

/** Rows in the preview, and by how many a row may be late. */
const WINDOW = 32_768
/** llama.cpp warms up with two tokens (BOS and EOS; common/common.cpp). */
const WARM_UP_TOKENS = 2
/** `ggml_backend_guid` of the backends ProfInfer knows. */
const BACKENDS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    'aa67c743-96e6-a38a-e3af-ea9236bcfc89': 'CPU',
    'dee070a2-734e-4dbc-b0c7-4fd46d4e90fe': 'OpenCL',
    'c9bdb702-4936-4212-af35-a287d8c92920': 'RKNPU',
  }),
)

/** Operators, graphs and calls from start and end probes. */
export class ProbePairs extends LookAhead<Probe> {
  private readonly workers = new Workers()
  private readonly running = new Map<number, Running>()
  private readonly calls = new Map<number, Call>()
  private readonly graphs = new Map<number, Graph>()
  private readonly byAddress = new Map<number, number>()
  private readonly leaves = new Map<string, number>()
  private hosts = new Set<number>()
  private idsAreSwapped = false
  private firstIsWarmUp = false
  private callCount = 0
  private tensors = 0
  private lastNs = -Infinity
  private lastAt: Position = { byte: 0 }

  /** `idColumns`: names of the columns of thread and process ids, where there are both. */
  constructor(
    format: string,
    context: ReadContext,
    private readonly idColumns?: readonly [tid: string, tgid: string],
  ) {
    super(format, context, WINDOW)
  }

  /** Decides which column has the thread ids, which threads run graphs, and whether the first call is a warm-up. */
  protected override preview(probes: readonly Probe[]): Preview {
    const ids = this.idColumns && findThreadIds(probes, this.idColumns)
    this.idsAreSwapped = ids?.areSwapped === true
    const hosts = probes.filter((probe) => HOST_TYPES.has(probe.type))
    this.hosts = new Set(hosts.map((probe) => (this.idsAreSwapped ? probe.tgid : probe.tid)))
    const batches: number[] = []
    for (const { type, node } of probes) {
      if (type === 10) batches.push(-1)
      else if (node && batches.at(-1) === -1) batches[batches.length - 1] = tokensOf(node)
    }
    this.firstIsWarmUp = batches[0] === WARM_UP_TOKENS && (batches[1] ?? 0) > 1
    const nodes = [...new Set(probes.flatMap((probe) => probe.node ?? []))].filter((node) => node.op >= 0)
    return {
      uses: nodes.map((node) => ({ op: node.op, result: node.name, sources: [] })),
      attributes: {
        worker_indices: 'inferred: worker 0 runs the graph, the others are threads that are active at the same time',
        barrier_waits: 'inferred: the gaps between operators of a thread; they include operators without a probe',
        ...(ids && { thread_ids: ids.about }),
      },
    }
  }

  /** Ends open calls, graphs and operators at the time of the last row. */
  protected override close(): void {
    const open =
      this.calls.size + this.graphs.size + [...this.running.values()].filter(({ endNs }) => endNs === undefined).length
    if (open > 0) {
      const detail = `still open at the last row: ${this.calls.size} × llama_decode, ${this.graphs.size} × graph compute`
      this.report(issueOf('log-ends-in-call', detail, this.lastAt, this.lastNs))
    }
    for (const tid of [...this.running.keys()]) this.endWait(tid, this.lastNs)
    for (const [tid, graph] of this.graphs) this.endGraph(tid, graph, this.lastNs, Inferred.NoEnd)
    for (const [tid, call] of this.calls) this.endCall(tid, call, this.lastNs, Inferred.NoEnd)
  }

  protected override release(row: Probe): void {
    const probe = this.idsAreSwapped ? { ...row, tid: row.tgid } : row
    const { atNs, at, tid } = probe
    if (tid < 0)
      return this.report(issueOf('unreadable-row', `expected a thread id, found ${tid < -1 ? tid : 'none'}`, at, atNs))
    if (atNs < this.lastNs) return this.reportLate('rows', this.lastNs - atNs, at, atNs)
    this.lastNs = atNs
    this.lastAt = at
    switch (probe.type) {
      case 10:
        return this.beginCall(probe)
      case 15:
        return this.endOpen(this.calls, probe, () => this.endCall(tid, this.calls.get(tid)!, atNs, 0))
      case 20:
      case 40:
        return this.beginOperator(probe)
      case 25:
      case 45:
        return this.endOperator(probe)
      case 30:
        return this.beginGraph(probe)
      case 35:
        return this.endOpen(this.graphs, probe, () => this.endGraph(tid, this.graphs.get(tid)!, atNs, 0))
      default:
        this.report(issueOf('unknown-probe', `expected 10 … 45, found ${probe.type}`, at, atNs))
    }
  }

  private endOpen(open: Map<number, unknown>, probe: Probe, end: () => void): void {
    if (open.has(probe.tid)) end()
    else this.report(issueOf('end-without-start', `type ${probe.type} of thread ${probe.tid}`, probe.at, probe.atNs))
  }

  private beginCall(probe: Probe): void {
    const { tid, atNs } = probe
    const open = this.calls.get(tid)
    if (open) this.endCall(tid, open, atNs, this.noEnd(probe))
    const isWarmUp = this.firstIsWarmUp
    this.firstIsWarmUp = false
    this.calls.set(tid, { startNs: atNs, index: isWarmUp ? -1 : this.callCount++, isWarmUp, tokens: -1 })
  }

  private endCall(tid: number, call: Call, endNs: number, inferred: number): void {
    this.calls.delete(tid)
    this.workers.release(tid)
    const { startNs, index, tokens } = call
    const counted = tokens < 0 ? 0 : Inferred.TokenCount
    const phase = phaseOf(call)
    inferred |= counted | Inferred.Phase
    this.emit({ kind: 'token', call: index, phase, tokens, startNs, endNs, tid, inferred })
  }

  private beginGraph(probe: Probe): void {
    const { tid, atNs, guid } = probe
    const open = this.graphs.get(tid)
    if (open) this.endGraph(tid, open, atNs, this.noEnd(probe))
    this.endWait(tid, atNs)
    const backend = this.names.id(BACKENDS.get(guid) ?? (guid.length > 1 ? `backend ${guid}` : ''))
    const graph = { startNs: atNs, backend, call: this.calls.get(tid), host: tid, tids: new Set([tid]), nodes: 0 }
    this.graphs.set(tid, graph)
    this.workers.host(tid)
  }

  private endGraph(tid: number, graph: Graph, endNs: number, inferred: number): void {
    for (const worker of graph.tids) {
      this.endWait(worker, endNs)
      this.workers.release(worker)
    }
    this.graphs.delete(tid)
    const { startNs, backend, nodes, call } = graph
    this.emit({ kind: 'graph', startNs, endNs, backend, nodes, call: call?.index ?? -1, inferred })
  }

  private beginOperator(probe: Probe): void {
    const { tid, atNs, node } = probe
    const before = this.running.get(tid)
    if (before && before.endNs === undefined) this.noEnd(probe)
    this.endWait(tid, atNs)
    const graph = this.graphOf(tid)
    const call = graph ? graph.call : [...this.calls.values()].at(-1)
    const isHost = graph ? graph.host === tid : this.hosts.has(tid)
    const worker = isHost ? this.workers.host(tid) : this.workers.of(tid)
    if (graph) {
      graph.tids.add(tid)
      if (isHost) graph.nodes++
    }
    if (call && node && call.tokens < 0) call.tokens = tokensOf(node)
    this.running.set(tid, { probe, worker, graph, call, endNs: undefined })
  }

  private endOperator(probe: Probe): void {
    const { tid, atNs, at, counters, counterNames } = probe
    const running = this.running.get(tid)
    if (!running || running.endNs !== undefined) {
      this.report(issueOf('end-without-start', `type ${probe.type} of thread ${tid}`, at, atNs))
      return
    }
    running.endNs = atNs
    const call = running.call?.index
    counters?.forEach((value, i) => {
      const delta = value - (running.probe.counters?.[i] ?? NaN)
      if (!Number.isSafeInteger(delta)) return
      const name = this.names.id(`${counterNames[i]} of worker ${running.worker}, per operator`)
      this.emit({ kind: 'counter', name, unit: 'count', atNs: running.probe.atNs, value: delta, call })
      this.emit({ kind: 'counter', name, unit: 'count', atNs, value: 0, call })
    })
  }

  /** Adds the thread's operator at the end of its wait. */
  private endWait(tid: number, waitEndNs: number): void {
    const running = this.running.get(tid)
    if (!running) return
    this.running.delete(tid)
    const { probe, worker, call, endNs } = running
    const node = probe.node!
    if (node.id < 0) this.define(node, probe)
    const end = endNs === undefined ? Inferred.NoEnd : 0
    const wait = endNs !== undefined && waitEndNs > endNs ? Inferred.Wait : 0
    this.emit({
      kind: 'operator',
      tensor: node.id,
      worker,
      tid,
      cpu: probe.cpu,
      call: call?.index ?? -1,
      startNs: probe.atNs,
      endNs: endNs ?? waitEndNs,
      waitEndNs,
      experts: undefined,
      inferred: Inferred.Worker | end | wait,
    })
  }

  /** The graph a thread works on: the one it runs, the one it has worked on, else the latest. */
  private graphOf(tid: number): Graph | undefined {
    const own = this.graphs.get(tid)
    if (own) return own
    let latest: Graph | undefined
    for (const graph of this.graphs.values()) {
      if (graph.tids.has(tid)) return graph
      latest = graph
    }
    return latest
  }

  private noEnd(probe: Probe): number {
    this.report(
      issueOf('range-without-end', `type ${probe.type} of thread ${probe.tid} came again`, probe.at, probe.atNs),
    )
    return Inferred.NoEnd
  }

  private define(node: ProbeNode, probe: Probe): void {
    const ops = this.ops
    if (node.op >= 0 && !ops.knows(node.op) && !ops.problem) {
      this.report(issueOf('unknown-op', `op number ${node.op} is not in ${ops.about}`, probe.at, probe.atNs))
    }
    const sources = node.sources.map(({ address, ne }) => this.byAddress.get(address) ?? this.leaf(address, ne))
    const { names } = this
    node.id = this.tensors++
    if (node.address > 0) this.byAddress.set(node.address, node.id)
    const layer = parseTensorName(node.name).layer
    const op = node.op < 0 ? 0 : ops.name(node.op)
    const inferred = ops.inferred ? Inferred.OpName : 0
    const { id, ne, address: structAddress } = node
    this.emit({ ...UNKNOWN.tensor, id, name: names.id(node.name), layer, op, ne, sources, structAddress, inferred })
  }

  /** A source that no operator computed: a weight, an input, or a view of either. */
  private leaf(structAddress: number, ne: readonly number[] | undefined): number {
    const key = `${structAddress} ${ne}`
    const known = this.leaves.get(key)
    if (known !== undefined) return known
    const id = this.tensors++
    this.leaves.set(key, id)
    this.emit({ ...UNKNOWN.tensor, id, name: 0, ne, structAddress })
    return id
  }
}

const HOST_TYPES = new Set([10, 15, 30, 35])

function tokensOf(node: ProbeNode): number {
  return /^(inp_)?embd$/.test(node.name) ? (node.ne?.[1] ?? -1) : -1
}

/** A call of more than one token is a prompt; without a count, only the first call is. */
function phaseOf({ isWarmUp, tokens, index }: Call): Phase {
  if (isWarmUp) return 'warm-up'
  return tokens > 1 || (tokens < 0 && index === 0) ? 'prefill' : 'decode'
}
