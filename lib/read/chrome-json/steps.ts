import { type EngineStep, Inferred, type TraceEvent } from '../../model/events.ts'
import type { Names } from '../../model/names.ts'
import type { ArgReader } from './args.ts'
import { type EngineBatch, engineBatchOf } from './batches.ts'
import type { EventCategory } from './categories.ts'
import type { GpuActivity, GpuSlice } from './gpu.ts'
import type { Rows } from './rows.ts'

const BATCH = 4096

/** An annotation of a step, and the id that its GPU-side annotations share with it. */
interface Annotation extends GpuSlice {
  readonly batch: EngineBatch
  readonly key: string
}

/**
 * Steps of serving engines, each a call of the model. An annotation ends when the CPU has launched a step's work; the call lasts
 * to the end of that work, which is known at the end of the file.
 */
export class EngineSteps {
  private readonly batches = new Map<number, EngineBatch | undefined>()
  private readonly steps: Annotation[] = []
  /** Ends of steps as the GPU saw them, by key. */
  private readonly ends = new Map<string, number>()

  constructor(
    private readonly names: Names,
    private readonly rows: Rows,
    private readonly gpu: GpuActivity,
  ) {}

  /** Takes a slice and its arguments in; returns what it ran if it is a step's annotation. */
  add(slice: GpuSlice & { readonly category: EventCategory }, args: ArgReader): EngineBatch | undefined {
    const { category, name, pid, tid, startNs, endNs } = slice
    const isOnGpu = category.text === 'gpu_user_annotation'
    if (!isOnGpu && category.text !== 'user_annotation') return undefined
    const batch = this.batchOf(name)
    if (!batch) return undefined
    const id = args.whole('External id', -1)
    const key = id < 0 ? '' : `${id} ${name}`
    if (!isOnGpu) this.steps.push({ name, pid, tid, startNs, endNs, batch, key })
    else if (key !== '') this.ends.set(key, Math.max(this.ends.get(key) ?? endNs, endNs))
    return isOnGpu ? undefined : batch
  }

  /** The calls, in order of their starts; after all GPU work. */
  *calls(): Generator<TraceEvent[]> {
    const { steps, rows } = this
    steps.sort((a, b) => a.startNs - b.startNs)
    for (let first = 0; first < steps.length; first += BATCH) {
      yield steps.slice(first, first + BATCH).map((annotation, i): TraceEvent => {
        const { batch, startNs, tid } = annotation
        const { phase, tokens } = batch
        const { endNs, step, inferred } = this.endOf(annotation)
        return { kind: 'token', call: first + i, phase, tokens, startNs, endNs, tid: rows.number(tid), inferred, step }
      })
    }
  }

  private endOf(annotation: Annotation): { endNs: number; step: EngineStep; inferred: number } {
    const { batch, startNs, endNs: launchedNs, key } = annotation
    const { pieces, endNs: workEndNs, unknown } = this.gpu.launchedIn(annotation)
    const gpuEndNs = Math.max(workEndNs, this.ends.get(key) ?? -Infinity)
    const isKnown = gpuEndNs > -Infinity && unknown === 0
    const step: EngineStep = {
      requests: batch.requests,
      launchNs: launchedNs - startNs,
      gpuWork: pieces,
      endOf: gpuEndNs >= launchedNs ? 'GPU work' : 'launch',
      launchesWithoutWork: unknown,
    }
    return { endNs: Math.max(launchedNs, gpuEndNs), step, inferred: isKnown ? 0 : Inferred.NoEnd }
  }

  private batchOf(name: number): EngineBatch | undefined {
    if (!this.batches.has(name)) this.batches.set(name, engineBatchOf(this.names.text(name)))
    return this.batches.get(name)
  }
}
