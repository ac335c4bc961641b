// Records of one token as JSON: tensor_trace.bin as the TensorTrace tools convert it (traces/token-NNNNN.json).
//
//     {"token_id": 0, "metadata": {"total_entries": 1696, "timestamp_start_ns": 600604883848933, …}, "entries": [
//       {"entry_id": 2, "timestamp_ns": 600604883882256, "layer_id": 0, "thread_id": 63255, "phase": "PROMPT",
//        "operation_type": "MUL", "dst_name": "attn_norm-0", "num_sources": 2, "sources": [
//          {"name": "norm-0", "tensor_ptr": "0x6ffb2fadd840", "size_bytes": 23040, "layer_id": null,
//           "memory_source": "BUFFER", "buffer_id": 98645160431680},
//          {"name": "blk.0.attn_norm.weight", …, "memory_source": "DISK", "disk_offset": 10165354432}],
//        "expert_ids": [], "num_experts": 0}, …]}
//
// The same records as in the file that they were made of, with names instead of op numbers. Times are CLOCK_MONOTONIC.

import { isObject, type JsonObject, textOf, wholeOf } from '../../input/json.ts'
import { DefaultMap } from '../../model/default-map.ts'
import type { IssueEvent } from '../../model/events.ts'
import type { EventBatch } from '../common/batches.ts'
import { JsonDocument } from '../common/json-document.ts'
import { pickOrigin, TimeGuard } from '../common/time-guard.ts'
import type { Format, ReadContext } from '../format.ts'
import { named } from './nodes.ts'
import { type Node, Passes } from './passes.ts'
import type { Source } from './places.ts'

export const tensorTraceJson: Format = {
  name: 'tensor-trace-json',
  title: 'records of one token of the TensorTrace tools (traces/token-NNNNN.json)',

  sniff(head) {
    const text = new TextDecoder().decode(head).trimStart()
    if (!text.startsWith('{')) return false
    return /"entries"\s*:\s*\[/.test(text) && /"operation_type"\s*:/.test(text) && /"timestamp_ns"\s*:/.test(text)
  },

  read: (source, context) => new TokenDocument(source, context).read(),
}

/** The origin is picked from so many entries. */
const ORIGIN_ENTRIES = 3
const PHASES: ReadonlyMap<string, 'prefill' | 'decode'> = new Map([
  ['PROMPT', 'prefill'],
  ['GENERATE', 'decode'],
])

interface Early {
  readonly entry: JsonObject
  readonly byte: number
}

/** Decodes entries, finds their nodes, and passes both to {@link Passes}. */
class TokenDocument extends JsonDocument {
  private readonly passes: Passes
  private readonly nodes = new Map<string, Node>()
  /** Ops in the order of their first use: the entries contain names only. */
  private readonly ops: string[] = []
  private readonly opNumbers = new DefaultMap((op: string) => this.ops.push(op) - 1)
  private readonly guard = new TimeGuard()
  private early: Early[] | undefined = []
  private originNs = 0

  constructor(
    source: AsyncIterable<Uint8Array>,
    private readonly context: ReadContext,
  ) {
    super(source, tensorTraceJson.name, (path) => {
      return path === '' || path === 'entries' ? 'enter' : path === 'entries/*' ? 'take' : 'skip'
    })
    const opTable = { name: 'recorded', about: 'names in the file', ops: this.ops }
    this.passes = new Passes(tensorTraceJson.name, { ...context, opTable }, {})
  }

  get batch(): EventBatch {
    return this.passes.batch
  }

  protected override get lastNs(): number {
    return this.guard.lastNs
  }

  protected override take(entry: JsonObject): void {
    const { byte } = this.walk
    if (!this.early) return this.add(entry, byte)
    this.early.push({ entry, byte })
    if (this.early.length === ORIGIN_ENTRIES) this.start(this.early)
  }

  protected override report(issue: IssueEvent): void {
    this.passes.report(issue)
  }

  protected override finish(): void {
    if (this.early) this.start(this.early)
    this.passes.finish()
  }

  private start(early: readonly Early[]): void {
    this.early = undefined
    const stamps = early.map(({ entry }) => BigInt(wholeOf(entry, 'timestamp_ns') ?? 0))
    const origin = pickOrigin(stamps)
    this.originNs = Number(origin)
    this.passes.start(origin)
    for (const { entry, byte } of early) this.add(entry, byte)
  }

  private add(entry: JsonObject, byte: number): void {
    const stamp = wholeOf(entry, 'timestamp_ns')
    const op = textOf(entry, 'operation_type')
    if (stamp === undefined || op === '') {
      const found = `${stamp === undefined ? 'no time' : 'no operation'}`
      return this.issue(
        'damaged-record',
        `expected "timestamp_ns" and "operation_type", found ${found}`,
        this.lastNs,
        byte,
      )
    }
    const atNs = stamp - this.originNs
    const doubt = this.guard.doubt(atNs)
    if (doubt !== undefined) return this.issue('impossible-time', doubt, this.lastNs, byte)
    const node = this.nodeOf(entry, op)
    if (node.problem !== '') this.issue('damaged-record', node.problem, atNs, byte)
    const phase = PHASES.get(textOf(entry, 'phase'))
    if (phase === undefined) {
      this.issue('unknown-phase', 'expected PROMPT or GENERATE, found something else; taken as GENERATE', atNs, byte)
    }
    const thread = (wholeOf(entry, 'thread_id') ?? -1) % 2 ** 31
    this.passes.add({ atNs, byte, node, thread, phase: phase ?? 'decode', experts: expertsOf(entry) })
  }

  private nodeOf(entry: JsonObject, op: string): Node {
    const list = Array.isArray(entry['sources']) ? entry['sources'].filter(isObject) : []
    const key = JSON.stringify([op, entry['dst_name'], entry['layer_id'], list])
    const known = this.nodes.get(key)
    if (known) return known
    const { definitions } = this.context
    const sources = list.map((object) => {
      const source = sourceOf(object)
      return definitions ? named(source, definitions) : source
    })
    const count = wholeOf(entry, 'num_sources')
    const node = {
      name: textOf(entry, 'dst_name'),
      isCut: false,
      op: this.opNumbers.of(op),
      layer: layerOf(entry),
      sources,
      problem: count === sources.length ? '' : `expected ${count ?? 'a number of'} sources, found ${sources.length}`,
      id: -1,
    }
    this.nodes.set(key, node)
    return node
  }
}

function sourceOf(object: JsonObject): Source {
  const onDisk = object['memory_source'] === 'DISK'
  const place = placeOf(object[onDisk ? 'disk_offset' : 'buffer_id'])
  const pointer = textOf(object, 'tensor_ptr')
  return {
    name: textOf(object, 'name'),
    // The top byte of a tagged pointer (arm64) is masked.
    pointer: /^0x[\da-f]{1,16}$/.test(pointer) ? Number(BigInt(pointer) & 0x1fffffffffffffn) : 0,
    sizeBytes: wholeOf(object, 'size_bytes') ?? 0,
    layer: layerOf(object),
    onDisk: onDisk && place !== undefined,
    place,
    isCut: false,
  }
}

/** An offset in the model file, or the id of a buffer: as a text where a number cannot hold it. */
function placeOf(value: unknown): bigint | undefined {
  if (typeof value === 'string' && /^\d{1,20}$/.test(value)) return BigInt(value)
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? BigInt(value) : undefined
}

function layerOf(object: JsonObject): number {
  const layer = wholeOf(object, 'layer_id')
  return layer === undefined || layer >= 0xffff ? -1 : layer
}

function expertsOf(entry: JsonObject): number[] | undefined {
  const ids = Array.isArray(entry['expert_ids']) ? entry['expert_ids'] : []
  const experts = ids.filter((id): id is number => Number.isInteger(id) && Math.abs(id) < 2 ** 31)
  return experts.length > 0 ? experts : undefined
}
