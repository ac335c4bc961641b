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
import type { ProtoWriter } from './proto-writer.ts'
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

/** Writes GPU work as what Perfetto calls render stages, into packets of one sequence. */
export class GpuStages {
  private readonly stages = new Map(STAGE_IIDS)
  private readonly told = new IidSet()
  private readonly contexts = new Map<number, number>()

  constructor(
    private readonly out: ProtoWriter,
    private readonly names: Names,
  ) {}

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
    out.string(GpuRenderStageEvent.name, this.names.text(name))
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
    const { out, names } = this
    const data = out.begin(GpuRenderStageEvent.extra_data)
    out.string(ExtraData.name, names.text(arg.key))
    if ('name' in arg) out.string(ExtraData.value, names.text(arg.name))
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
