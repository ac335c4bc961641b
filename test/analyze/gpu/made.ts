import type { GpuDevice } from '../../../lib/analysis.ts'
import { type Analysis, analyze, type EventInput, type TraceEvent } from '../../../lib/index.ts'

/** GPU work, calls and ranges that a test makes. */

export interface MadeWork {
  readonly name: string
  readonly what?: 'kernel' | 'memcpy' | 'memset' | 'graph' | 'migration'
  readonly device?: number
  readonly stream?: number
  readonly startNs: number
  readonly endNs: number
  readonly correlation?: number
  readonly facts?: Readonly<Record<string, number | string>>
}

export interface MadeCall {
  readonly name: string
  readonly tid?: number
  readonly startNs: number
  readonly endNs: number
  readonly correlation?: number | undefined
}

/** An NVTX range of a thread, or a slice of a track of that thread. */
export interface MadeRange {
  readonly name: string
  readonly category?: 'cpu_op' | 'user_annotation' | 'python_function' | 'gpu_user_annotation' | 'nvtx'
  readonly tid?: number
  readonly startNs: number
  readonly endNs: number
}

export interface MadeGpu {
  readonly work: readonly MadeWork[]
  readonly calls?: readonly MadeCall[]
  readonly ranges?: readonly MadeRange[]
}

const PID = 100

/** Calls come after the work, as readers yield them. */
export const madeInput = ({ work, calls = [], ranges = [] }: MadeGpu): EventInput => ({
  name: 'made',
  *events(names) {
    const id = (text: string) => names.id(text)
    yield [{ kind: 'input', format: 'made', clock: 'MONOTONIC', originNs: 0n, attributes: {} }]
    const tids = [...new Set(ranges.map(({ tid = 1 }) => tid))]
    yield tids.map(
      (tid): TraceEvent => ({ kind: 'own-track', id: tid, name: `thread ${tid}`, description: '', nests: true, tid }),
    )
    yield work.map((of): TraceEvent => {
      const { name, what = 'kernel', device = 0, stream = 7, startNs, endNs, correlation = -1, facts = {} } = of
      const place = { device, context: 1, contextName: 0, stream, streamName: 0, pid: PID }
      return { kind: 'gpu', what, name: id(name), startNs, endNs, ...place, correlation, signature: 0, facts }
    })
    yield ranges.flatMap(({ name, category = 'nvtx', tid = 1, startNs, endNs }): TraceEvent[] => {
      if (category !== 'nvtx')
        return [{ kind: 'own-slice', track: tid, name: id(name), category: id(category), startNs, endNs }]
      const common = { kind: 'nvtx', tid, thread: 0, domain: 0, category: 0, color: -1 } as const
      const range = startNs * 1000 + tid
      return [
        { ...common, what: 'start', atNs: startNs, range, message: id(name) },
        { ...common, what: 'end', atNs: endNs, range, message: 0 },
      ]
    })
    const launched = (correlation: number) => work.filter((of) => of.correlation === correlation).length
    yield calls.map(({ name, tid = 1, startNs, endNs, correlation = -1 }): TraceEvent => {
      const place = { pid: PID, tid, correlation, thread: 0, result: 0 }
      return { kind: 'api', library: 'cuda', name: id(name), startNs, endNs, ...place, launched: launched(correlation) }
    })
  },
})

export const analysisOf = (made: MadeGpu): Promise<Analysis> => analyze(madeInput(made))

export async function devicesOf(made: MadeGpu): Promise<readonly GpuDevice[]> {
  return (await analysisOf(made)).gpu!.devices
}
