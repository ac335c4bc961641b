import type { TraceEvent } from '../model/events.ts'
import type { TrackContext } from './context.ts'
import type { RequestArea } from './requests/area.ts'

/** Draws events of some kinds. */
interface Area {
  take(event: TraceEvent): void
  finish?(): void
}

/** Each gets events of its kinds only. */
type Load = () => Promise<new (context: TrackContext) => { take(event: never): void }>
/** The areas that are loaded, for all inputs of a trace. */
export type LoadedAreas = Map<Load, new (context: TrackContext) => Area>

const requests = async () => (await import('./requests/area.ts')).RequestArea
const benchmarks = async () => (await import('./benchmarks/area.ts')).BenchmarkArea
const gpu = async () => (await import('./gpu/area.ts')).GpuArea
const nvtx = async () => (await import('./nvtx/area.ts')).NvtxArea
const own = async () => (await import('./own/area.ts')).OwnArea
const power = async () => (await import('./power/area.ts')).PowerArea
const rpc = async () => (await import('./rpc/area.ts')).RpcArea
const blas = async () => (await import('./blas/area.ts')).BlasArea

/** Areas that many logs have no events of: programs load them with their first events. In the order in which they finish. */
const AREAS: readonly Load[] = [requests, benchmarks, gpu, nvtx, own, power, blas, rpc]

/** By kinds of events; all others are of {@link own}. */
const BY_KIND: Partial<Record<TraceEvent['kind'], Load>> = {
  ...{ token: requests, function: requests, sequence: requests, task: requests, request: requests },
  ...{ gpu, 'gpu-sync': gpu, api: gpu },
  ...{ nvtx, 'nvtx-name': nvtx, 'nvtx-gpu': nvtx, range: nvtx },
  ...{ meter: power, reading: power },
  benchmark: benchmarks,
  blas,
  rpc,
}

/** All areas, for what draws without pauses. */
export async function allAreas(): Promise<LoadedAreas> {
  const loaded: LoadedAreas = new Map()
  for (const load of AREAS) loaded.set(load, await load())
  return loaded
}

/** The areas of an input: each is made with the first of its events. */
export class InputAreas {
  private readonly made = new Map<Load, Area>()
  private readonly byKind = new Map<string, Area>()
  private missing: Load | undefined

  constructor(
    private readonly loaded: LoadedAreas,
    private readonly context: TrackContext,
  ) {}

  /** The area of calls and requests, after the first call. */
  get requests(): RequestArea {
    return this.made.get(requests) as RequestArea
  }

  /** The area of an event; undefined where it is not loaded. */
  of(event: TraceEvent): Area | undefined {
    return this.byKind.get(event.kind) ?? this.make(event.kind)
  }

  /** Loads the area that {@link of} missed. */
  async load(): Promise<void> {
    const { missing, loaded } = this
    if (missing) loaded.set(missing, await missing())
  }

  /** All but {@link requests}, whose rows end earlier. */
  finish(): void {
    for (const load of AREAS) if (load !== requests) this.made.get(load)?.finish?.()
  }

  private make(kind: TraceEvent['kind']): Area | undefined {
    const load = BY_KIND[kind] ?? own
    const Made = this.loaded.get(load)
    if (!Made) {
      this.missing = load
      return undefined
    }
    const area = this.made.get(load) ?? new Made(this.context)
    this.made.set(load, area)
    this.byKind.set(kind, area)
    return area
  }
}
