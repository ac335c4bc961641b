import { getOrMake } from '../../model/default-map.ts'
import { type EngineStep, Inferred, type Phase, type TraceEvent } from '../../model/events.ts'
import type { Names } from '../../model/names.ts'
import type { ArgReader } from './args.ts'
import type { Place } from './fields.ts'
import type { GpuActivity } from './gpu.ts'
import type { Rows } from './rows.ts'

const BATCH = 4096

/** An annotation of a step, and its key, which it shares with its annotations on the GPU. */
interface Annotation extends Place {
  readonly batch: EngineBatch
  readonly key: string
}

/**
 * Steps of serving engines, each a call of the model. The annotation of a step ends when the CPU has launched its work; the call
 * lasts to the end of that work, which is known at the end of the file.
 */
export class EngineSteps {
  private readonly batches = new Map<number, EngineBatch | undefined>()
  private readonly steps: Annotation[] = []
  /** From the first to the last GPU work of steps, by key. */
  private readonly spans = new Map<string, { startNs: number; endNs: number }>()

  constructor(
    private readonly names: Names,
    private readonly rows: Rows,
    private readonly gpu: GpuActivity,
  ) {}

  /** Adds a slice; returns its batch if it is the annotation of a step. */
  add(slice: Place, args: ArgReader): EngineBatch | undefined {
    const { category, name, startNs, endNs } = slice
    const isOnGpu = category.text === 'gpu_user_annotation'
    if (!isOnGpu && category.text !== 'user_annotation') return undefined
    const batch = this.batchOf(name)
    if (!batch) return undefined
    const id = args.whole('External id', -1)
    const key = id < 0 ? '' : `${id} ${name}`
    if (!isOnGpu) this.steps.push({ ...slice, batch, key })
    else if (key !== '') {
      const span = getOrMake(this.spans, key, () => ({ startNs, endNs }))
      span.startNs = Math.min(span.startNs, startNs)
      span.endNs = Math.max(span.endNs, endNs)
    }
    return isOnGpu ? undefined : batch
  }

  /** The calls, in order of their starts; only after all GPU work was added. */
  *calls(): Generator<TraceEvent[]> {
    const { steps, rows } = this
    steps.sort((a, b) => a.startNs - b.startNs)
    for (let first = 0; first < steps.length; first += BATCH) {
      yield steps.slice(first, first + BATCH).map((annotation, i): TraceEvent => {
        const { batch, startNs, tid } = annotation
        const { phase, tokens } = batch
        const { endNs, step, inferred } = this.endOf(annotation)
        return {
          kind: 'token',
          call: first + i,
          phase,
          tokens,
          startNs,
          endNs,
          tid: rows.threadNumber(tid),
          inferred,
          step,
        }
      })
    }
  }

  private endOf(annotation: Annotation): { endNs: number; step: EngineStep; inferred: number } {
    const { batch, startNs, endNs: launchedNs, key } = annotation
    const { pieces, unknown, ...launched } = this.gpu.launchedIn(annotation)
    const onGpu = this.spans.get(key)
    const gpuStartNs = Math.min(launched.startNs, onGpu?.startNs ?? Infinity)
    const gpuEndNs = Math.max(launched.endNs, onGpu?.endNs ?? -Infinity)
    const isKnown = gpuEndNs > -Infinity && unknown === 0
    const isLast = gpuEndNs >= launchedNs
    const step: EngineStep = {
      requests: batch.requests,
      decoding: batch.decoding,
      launchNs: launchedNs - startNs,
      gpuWork: pieces,
      workNs: isKnown && isLast ? gpuEndNs - gpuStartNs : -1,
      endOf: isLast ? 'GPU work' : 'launch',
      launchesWithoutWork: unknown,
    }
    return { endNs: Math.max(launchedNs, gpuEndNs), step, inferred: isKnown ? 0 : Inferred.NoEnd }
  }

  private batchOf(name: number): EngineBatch | undefined {
    if (!this.batches.has(name)) this.batches.set(name, engineBatchOf(this.names.text(name)))
    return this.batches.get(name)
  }
}

/** The batch of a step, from its annotation. */
export interface EngineBatch {
  readonly phase: Phase
  /** Number of computed tokens, or -1. */
  readonly tokens: number
  /** Number of requests. */
  readonly requests: number
  /** Those of them that decode. */
  readonly decoding: number
  /** Requests and tokens, for the annotation's arguments. */
  readonly counts: Readonly<Record<string, number>>
}

/** `execute_32_context_0(sq0sk0…)_generation_32(sq32sk55086…)`, `execute_context_1(888_788544)_generation_0(0)` */
const COUNTED = /^execute_(?:(\d+)_)?context_(\d+)\(([^)]*)\)_generation_(\d+)\(([^)]*)\)/
/** `execute_new_2_cached_30`: numbers of requests only. */
const REQUESTS = /^execute_new_(\d+)_cached_(\d+)/

/**
 * Parses the annotation that vLLM and SGLang write for each step: context requests prefill, generation requests decode;
 * sq is the sum of query lengths, sk that of the keys that they attend to.
 */
function engineBatchOf(name: string): EngineBatch | undefined {
  const counted = COUNTED.exec(name)
  if (counted) {
    const [, all, contexts, context, generations, generation] = counted
    const counts = { ...countsOf('context', contexts!, context!), ...countsOf('generation', generations!, generation!) }
    const sum = (counts['context_tokens'] ?? 0) + (counts['generation_tokens'] ?? 0)
    const requests = Number(contexts) + Number(generations)
    const decoding = Number(generations)
    return { phase: phaseOf(Number(contexts), decoding), tokens: Number(all ?? sum), requests, decoding, counts }
  }
  const [, fresh, cached] = REQUESTS.exec(name) ?? []
  if (fresh === undefined) return undefined
  const counts = { new_requests: Number(fresh), cached_requests: Number(cached) }
  return {
    phase: phaseOf(Number(fresh), Number(cached)),
    tokens: -1,
    requests: Number(fresh) + Number(cached),
    decoding: Number(cached),
    counts,
  }
}

/** A step with requests of both kinds has no time of either. */
const phaseOf = (prefilling: number, decoding: number): Phase =>
  prefilling === 0 ? 'decode' : decoding === 0 ? 'prefill' : 'mixed'

function countsOf(what: string, requests: string, sums: string): Record<string, number> {
  const tokens = /^(?:sq)?(\d+)/.exec(sums)?.[1]
  const keys = /^sq\d+sk(\d+)/.exec(sums)?.[1]
  return {
    [`${what}_requests`]: Number(requests),
    ...(tokens !== undefined && { [`${what}_tokens`]: Number(tokens) }),
    ...(keys !== undefined && { [`${what}_kv_tokens`]: Number(keys) }),
  }
}
