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
} from '../generated/perfetto.ts'
import type { Names } from '../model/names.ts'
import type { ExtraArg } from './args.ts'
import { IidSet } from './iids.ts'
import { ProtoWriter } from './proto-writer.ts'
import type { GpuQueue, GpuWork } from './writer.ts'

const STAGES: Readonly<Record<string, string>> = {
  kernel: 'A CUDA kernel.',
  memcpy: 'A copy of memory, from or to a device.',
  memset: 'Memory that is set to a value.',
  graph: 'A CUDA graph as a whole.',
}
/** Interned ids of stages come behind those of queues. */
const STAGE_IIDS = Object.keys(STAGES).map((name, i) => [name, i + 1] as const)
const QUEUES_FROM = STAGE_IIDS.length

/** Texts of the shared `Names` as a field, each encoded once. */
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

/** Writes GPU work as what Perfetto calls render stages, into packets of one sequence. */
export class GpuStages {
  private readonly stages = new Map(STAGE_IIDS)
  private readonly told = new IidSet()
  private readonly contexts = new Map<number, number>()

  private readonly workNames: EncodedNames
  private readonly argNames: EncodedNames
  private readonly argTexts: EncodedNames

  constructor(
    private readonly out: ProtoWriter,
    names: Names,
  ) {
    this.workNames = new EncodedNames(names, GpuRenderStageEvent.name)
    this.argNames = new EncodedNames(names, ExtraData.name)
    this.argTexts = new EncodedNames(names, ExtraData.value)
  }

  /** Writes the fields of a packet. */
  write({ queue, stage, startNs, endNs, name, id, submission, extra }: GpuWork): void {
    const { out } = this
    const queueIid = QUEUES_FROM + queue.id
    const stageIid = this.stages.get(stage)!
    const context = this.contexts.get(queue.pid) ?? 0
    if (!this.told.has(queueIid) || !this.told.has(stageIid)) this.intern(queue, queueIid, stage, stageIid)
    const event = out.begin(TracePacket.gpu_render_stage_event)
    out.varint(GpuRenderStageEvent.event_id, id) // without one, trace_processor leaves the event out
    out.varint(GpuRenderStageEvent.duration, endNs - startNs)
    out.varint(GpuRenderStageEvent.context, context || this.contexts.get(queue.pid)!)
    if (extra) for (const arg of extra) this.arg(arg)
    if (submission >= 0) out.varint(GpuRenderStageEvent.submission_id, submission)
    out.varint(GpuRenderStageEvent.gpu_id, queue.gpu)
    out.varint(GpuRenderStageEvent.hw_queue_iid, queueIid)
    out.varint(GpuRenderStageEvent.stage_iid, stageIid)
    out.raw(this.workNames.of(name))
    out.end(event)
  }

  private intern({ pid, name, description }: GpuQueue, queueIid: number, stage: string, stageIid: number): void {
    const { out } = this
    const interned = out.begin(TracePacket.interned_data)
    if (!this.contexts.has(pid)) {
      this.contexts.set(pid, this.contexts.size + 1)
      const context = out.begin(InternedData.graphics_contexts)
      out.varint(InternedGraphicsContext.iid, this.contexts.size)
      if (pid > 0) out.varint(InternedGraphicsContext.pid, pid)
      out.varint(InternedGraphicsContext.api, InternedGraphicsContextApi.CUDA)
      out.end(context)
    }
    if (this.told.add(queueIid)) this.specify(queueIid, name, description, StageCategory.OTHER)
    if (this.told.add(stageIid)) this.specify(stageIid, stage, STAGES[stage]!, StageCategory.COMPUTE)
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

  /** All values are texts here. */
  private arg(arg: ExtraArg): void {
    const { out } = this
    const data = out.begin(GpuRenderStageEvent.extra_data)
    out.raw(this.argNames.of(arg.key))
    if ('name' in arg) out.raw(this.argTexts.of(arg.name))
    else if ('text' in arg) out.string(ExtraData.value, arg.text)
    else if ('int' in arg) out.string(ExtraData.value, `${arg.int}`)
    else if ('double' in arg) out.string(ExtraData.value, `${arg.double}`)
    else if ('big' in arg) out.string(ExtraData.value, `${arg.big}`)
    else out.string(ExtraData.value, `0x${arg.pointer.toString(16)}`)
    out.end(data)
  }
}

/** Writes into a slice's event which GPU work it launched. */
export function writeLaunch(out: ProtoWriter, work: number): void {
  const correlation = out.begin(TrackEvent.gpu_correlation)
  out.varint(GpuCorrelation.render_stage_submission_event_ids, work)
  out.end(correlation)
}
