import { Inferred, type Phase } from '../../model/events.ts'
import { issueOf } from '../../model/issues.ts'
import { parseTensorName } from '../../model/tensors.ts'
import { UNKNOWN } from '../../model/unknown.ts'
import { LookAhead, type Preview } from '../common/look-ahead.ts'
import type { ReadContext } from '../format.ts'
import { Places, type Source } from './places.ts'

/**
 * Infers operators, graphs and calls from a log that contains only operator starts of worker 0: each operator lasts until
 * the next one starts, and a call begins where the graph starts again. The last operator of a call has no end.
 */

/** A distinct node: the same result from the same sources. */
export interface Node {
  /** Name of the result; empty where only sources are logged. */
  readonly name: string
  /** The logger may have truncated the name. */
  readonly isCut: boolean
  readonly op: number
  readonly layer: number
  readonly sources: readonly Source[]
  /** The problem of its records, or empty. */
  readonly problem: string
  /** Tensor id; -1 before its first operator. */
  id: number
}

/** One operator start. */
export interface Sample {
  readonly atNs: number
  readonly byte: number
  readonly node: Node
  readonly thread: number
  readonly phase: Phase
  readonly experts: number[] | undefined
}

interface Pass {
  readonly startNs: number
  readonly phase: Phase
  readonly call: number
  readonly tokens: number
  nodes: number
}

/** Records that are previewed before the first event, and the number of records by which one may come late. */
const WINDOW = 2048
/** llama.cpp warms up with two tokens (BOS and EOS; common/common.cpp). */
const WARM_UP_TOKENS = 2
/** Maximum number of expert ids in a record: warm-up runs all experts. */
const EXPERTS_MAX = 16

/** Operators, graphs and calls from operator starts. */
export class Passes extends LookAhead<Sample> {
  private places = new Places([], undefined)
  private startsAtEmbedding = false
  private firstNode: Node | undefined
  private warmUp = false
  private pass: Pass | undefined
  private pending: Sample | undefined
  private calls = 0
  private tensors = 0

  /** `facts`: attributes of the trace. */
  constructor(
    format: string,
    context: ReadContext,
    private readonly facts: Readonly<Record<string, string | number>>,
  ) {
    super(format, context, WINDOW)
  }

  /** Determines the meaning of pointers, where calls begin, and whether the first one is a warm-up. */
  protected override preview(samples: readonly Sample[]): Preview {
    const nodes = [...new Set(samples.map((sample) => sample.node))]
    this.places = new Places(
      nodes.flatMap((node) => node.sources),
      this.definitions,
    )
    this.startsAtEmbedding = nodes.some(isEmbedding)
    this.firstNode = samples[0]?.node
    this.warmUp = this.isWarmUp(samples)
    return {
      uses: nodes.map(({ op, name, sources }) => ({ op, result: name, sources: sources.map((source) => source.name) })),
      attributes: {
        ...this.facts,
        pointers: this.places.about,
        operator_ends: 'inferred: the start of the next record; the last operator of a call has none',
        calls: 'inferred: from repeating graphs',
      },
    }
  }

  /** llama.cpp's warm-up: two prompt tokens at the start, then another prompt; or all experts are used. */
  private isWarmUp(samples: readonly Sample[]): boolean {
    const first = samples[0]
    if (first?.phase !== 'prefill' || tokensOf(first.node) !== WARM_UP_TOKENS) return false
    const second = samples.findIndex((sample, i) => i > 0 && this.beginsPass(sample, first.phase))
    const pass = second < 0 ? samples : samples.slice(0, second)
    return samples[second]?.phase === 'prefill' || pass.some((sample) => sample.experts?.length === EXPERTS_MAX)
  }

  private beginsPass(sample: Sample, phase: Phase): boolean {
    if (this.startsAtEmbedding) return isEmbedding(sample.node)
    return sample.phase !== phase || isSameStep(sample.node, this.firstNode!)
  }

  protected override release(sample: Sample): void {
    const last = this.pending
    if (last && sample.atNs < last.atNs) {
      const detail = `expected at most ${this.size} records out of order, found one ${last.atNs - sample.atNs} ns late`
      this.report(issueOf('record-out-of-order', detail, { byte: sample.byte }, sample.atNs))
      this.operator(sample, sample.atNs, Inferred.NoEnd)
      return
    }
    if (!this.pass || this.beginsPass(sample, this.pass.phase)) this.beginPass(sample)
    else if (last) this.operator(last, sample.atNs, Inferred.End)
    this.pending = sample
  }

  private beginPass(sample: Sample): void {
    this.endPass()
    const isWarmUp = this.warmUp
    this.warmUp = false
    this.pass = {
      startNs: sample.atNs,
      phase: isWarmUp ? 'warm-up' : sample.phase,
      call: isWarmUp ? -1 : this.calls++,
      tokens: tokensOf(sample.node),
      nodes: 0,
    }
  }

  protected override close(): void {
    this.endPass()
  }

  private endPass(): void {
    const { pass, pending } = this
    if (!pass || !pending) return
    this.operator(pending, pending.atNs, Inferred.NoEnd)
    const { startNs, phase, call, tokens, nodes } = pass
    const endNs = pending.atNs
    const backend = this.names.id('CPU')
    const inferred = Inferred.Call | Inferred.NoEnd
    this.emit({ kind: 'graph', startNs, endNs, backend, nodes, call, inferred })
    const counted = tokens < 0 ? 0 : Inferred.TokenCount
    const guessed = phase === 'warm-up' ? Inferred.Phase : 0
    const tid = pending.thread
    this.emit({ kind: 'token', call, phase, tokens, startNs, endNs, tid, inferred: inferred | counted | guessed })
    this.pending = undefined
    this.pass = undefined
  }

  private operator(sample: Sample, endNs: number, inferred: number): void {
    const { atNs, node, thread, experts } = sample
    if (node.id < 0) this.define(node, sample)
    if (this.pass) this.pass.nodes++
    this.emit({
      kind: 'operator',
      tensor: node.id,
      worker: 0,
      tid: thread,
      cpu: -1,
      call: this.pass?.call ?? -1,
      startNs: atNs,
      endNs,
      waitEndNs: endNs,
      experts,
      inferred,
    })
  }

  private define(node: Node, sample: Sample): void {
    const { names, ops } = this
    if (!ops.knows(node.op) && !ops.problem) {
      const detail = `op number ${node.op} is not in ${ops.about}`
      this.report(issueOf('unknown-op', detail, { byte: sample.byte + 16 }, sample.atNs))
    }
    const sources = node.sources.map((source) => {
      if (source.doubt) this.report(issueOf('other-weight', source.doubt, { byte: sample.byte }, sample.atNs))
      const id = this.places.tensor(source, names, this.tensors, (event) => this.emit(event))
      if (id === this.tensors) this.tensors++
      return id
    })
    node.id = this.tensors++
    const { id } = node
    const [name, layer, op] = [names.id(node.name), this.layerOf(node), ops.name(node.op)]
    this.emit({ ...UNKNOWN.tensor, id, name, layer, op, sources, inferred: ops.inferred ? Inferred.OpName : 0 })
  }

  /** The recorded layer, else that of the name (a truncated name may lack digits), else that of a companion. */
  private layerOf({ layer, name, isCut }: Node): number {
    if (layer >= 0) return layer
    const named = isCut && /\d$/.test(name) ? -1 : parseTensorName(name).layer
    return named >= 0 ? named : (this.definitions?.layerOf(name) ?? -1)
  }
}

/** The embedding lookup of the batch's tokens: the first node of every llama graph with tokens as input. */
function isEmbedding(node: Node): boolean {
  return node.sources[0]?.name === 'token_embd.weight' && /^(inp_)?embd$/.test(node.name)
}

/** The lookup's second source contains one i32 per token. (One logger records a size of 1 byte for one token.) */
function tokensOf(node: Node): number {
  const ids = isEmbedding(node) ? node.sources[1] : undefined
  return ids ? Math.max(1, Math.floor(ids.sizeBytes / 4)) : -1
}

/** Are two nodes the same step of the graph? Sizes and addresses may differ. */
function isSameStep(a: Node, b: Node): boolean {
  const [aFirst, bFirst] = [a.sources[0]?.name, b.sources[0]?.name]
  return a === b || ((a.name || aFirst) !== '' && a.name === b.name && a.op === b.op && aFirst === bFirst)
}
