import {
  ExtraData,
  GpuCorrelation,
  GpuRenderStageEvent,
  InternedData,
  InternedGpuRenderStageSpecification,
  InternedGraphicsContext,
  InternedGraphicsContextApi,
  InternedGpuRenderStageSpecificationRenderStageCategory as StageCategory,
  TracePacket,
  TrackEvent,
} from '../../generated/perfetto.ts'
import { type ArgFields, jsonOf } from '../../model/args.ts'
import { INT32_MAX } from '../../model/limits.ts'
import type { Names } from '../../model/names.ts'
import type { GpuQueue, GpuSink, GpuWork } from '../../sink/writer.ts'
import { Piece } from '../byte-writer.ts'
import { IidSet } from './iids.ts'
import { ProtoWriter } from './proto-writer.ts'

const STAGES: Readonly<Record<string, string>> = {
  kernel: 'A kernel, or the kernels of an operator of ggml.',
  memcpy: 'A copy of memory, from or to a device.',
  memset: 'Memory that is set to a value.',
  graph: 'A CUDA graph, or a submission, as a whole.',
  migration: 'Pages of unified memory that the driver moves, because they are used elsewhere.',
}
/** Interned ids: first those of stages, then those of queues. */
const STAGE_IIDS = Object.keys(STAGES).map((name, i) => [name, i + 1] as const)
const QUEUES_FROM = STAGE_IIDS.length

/** Texts of the shared `Names` as a protobuf field, each encoded once. */
class EncodedNames {
  private readonly encoded: (Uint8Array | undefined)[] = []
  private readonly scratch = new ProtoWriter()

  constructor(
    private readonly names: Names,
    private readonly field: number,
  ) {}

  of(name: number): Uint8Array {
    return this.encoded[name] ?? this.encode(name)
  }

  private encode(name: number): Uint8Array {
    this.scratch.string(this.field, this.names.text(name))
    const encoded = this.scratch.take()
    this.encoded[name] = encoded
    return encoded
  }
}

/** Values of one argument whose encodings are cached. */
const VALUES_MAX = 1 << 10
const MEMORABLE_MAX = 1 << 16

/** Arguments of GPU work, whose values are texts here. Frequent ones are encoded once. */
class EncodedArgs {
  /** By key, and by number or by the id of a name. */
  private readonly numbers: (Map<number, Piece> | undefined)[] = []
  private readonly texts: (Map<number, Piece> | undefined)[] = []
  private readonly scratch = new ProtoWriter()

  constructor(private readonly names: Names) {}

  write(out: ProtoWriter, arg: ArgFields): void {
    const { name, int, double = NaN } = arg
    if (name !== undefined) return this.known(out, this.texts, arg, name)
    const number = int ?? double
    if (Math.abs(number) < MEMORABLE_MAX) return this.known(out, this.numbers, arg, number)
    this.encode(out, arg)
  }

  private known(out: ProtoWriter, tables: (Map<number, Piece> | undefined)[], arg: ArgFields, value: number): void {
    let table = tables[arg.key]
    if (!table) {
      table = new Map()
      tables[arg.key] = table
    }
    const known = table.get(value)
    if (known) return out.piece(known)
    if (table.size === VALUES_MAX) return this.encode(out, arg)
    this.encode(this.scratch, arg)
    const encoded = new Piece(this.scratch.take())
    table.set(value, encoded)
    out.piece(encoded)
  }

  private encode(out: ProtoWriter, arg: ArgFields): void {
    const data = out.begin(GpuRenderStageEvent.extra_data)
    out.string(ExtraData.name, this.names.text(arg.key))
    out.string(ExtraData.value, this.textOf(arg))
    out.end(data)
  }

  private textOf({ name, text, int, double, pointer, big, json }: ArgFields): string {
    if (name !== undefined) return this.names.text(name)
    if (text !== undefined) return text
    if (pointer !== undefined) return `0x${pointer.toString(16)}`
    const number = int ?? double ?? big
    if (number !== undefined) return `${number}`
    return typeof json === 'number' ? this.names.text(json) : jsonOf(json)
  }
}

/** Writes GPU work as Perfetto's render stages, in packets of one sequence. */
export class PerfettoGpu implements GpuSink {
  draws = 0
  private readonly stages = new Map(STAGE_IIDS)
  private readonly interned = new IidSet()
  /** By process and API. */
  private readonly contexts = new Map<string, number>()
  private readonly workNames: EncodedNames
  private readonly args: EncodedArgs

  /** `packet` begins a packet of the sequence at a time; {@link work} ends it. */
  constructor(
    private readonly out: ProtoWriter,
    names: Names,
    private readonly packet: (atNs: number) => number,
  ) {
    this.workNames = new EncodedNames(names, GpuRenderStageEvent.name)
    this.args = new EncodedArgs(names)
  }

  work({ queue, stage, startNs, endNs, name, id, submission, extra }: GpuWork): void {
    const { out } = this
    this.draws++
    const packet = this.packet(startNs)
    const queueIid = QUEUES_FROM + queue.id
    const stageIid = this.stages.get(stage)!
    if (!this.interned.has(queueIid) || !this.interned.has(stageIid)) this.intern(queue, queueIid, stage, stageIid)
    const event = out.begin(TracePacket.gpu_render_stage_event)
    out.varint(GpuRenderStageEvent.event_id, id) // trace_processor ignores events without an id
    out.varint(GpuRenderStageEvent.duration, endNs - startNs)
    out.varint(GpuRenderStageEvent.context, this.contexts.get(contextOf(queue))!)
    if (extra) for (const arg of extra) this.args.write(out, arg)
    if (submission >= 0) out.varint(GpuRenderStageEvent.submission_id, submission)
    out.varint(GpuRenderStageEvent.gpu_id, queue.gpu)
    out.varint(GpuRenderStageEvent.hw_queue_iid, queueIid)
    out.varint(GpuRenderStageEvent.stage_iid, stageIid)
    out.raw(this.workNames.of(name))
    out.end(event)
    out.end(packet)
  }

  private intern(queue: GpuQueue, queueIid: number, stage: string, stageIid: number): void {
    const { out } = this
    const { pid, name, description, api } = queue
    const interned = out.begin(TracePacket.interned_data)
    if (!this.contexts.has(contextOf(queue))) {
      this.contexts.set(contextOf(queue), this.contexts.size + 1)
      const context = out.begin(InternedData.graphics_contexts)
      out.varint(InternedGraphicsContext.iid, this.contexts.size)
      if (pid > 0 && pid <= INT32_MAX) out.varint(InternedGraphicsContext.pid, pid) // Perfetto's has 32 bits
      out.varint(InternedGraphicsContext.api, InternedGraphicsContextApi[api])
      out.end(context)
    }
    if (this.interned.add(queueIid)) this.specify(queueIid, name, description, StageCategory.OTHER)
    if (this.interned.add(stageIid)) this.specify(stageIid, stage, STAGES[stage]!, StageCategory.COMPUTE)
    out.end(interned)
  }

  private specify(iid: number, name: string, description: string, category: number): void {
    const { out } = this
    const specification = out.begin(InternedData.gpu_specifications)
    out.varint(InternedGpuRenderStageSpecification.iid, iid)
    out.string(InternedGpuRenderStageSpecification.name, name)
    out.string(InternedGpuRenderStageSpecification.description, description)
    out.varint(InternedGpuRenderStageSpecification.category, category)
    out.end(specification)
  }
}

function contextOf({ pid, api }: GpuQueue): string {
  return `${pid} ${api}`
}

/** Writes the reference from a slice to the GPU work that it launched. */
export function writeLaunch(out: ProtoWriter, work: number): void {
  const correlation = out.begin(TrackEvent.gpu_correlation)
  out.varint(GpuCorrelation.render_stage_submission_event_ids, work)
  out.end(correlation)
}
