import { isOnHost } from '../../model/backends.ts'
import type { Analysis } from '../analysis.ts'
import { phasesOf } from './rule.ts'

/** What a log does not contain, so that rules could not look at it. */
export interface NotRecorded {
  /** In words. */
  readonly what: string
  /** The command that records it, or why that is not possible. */
  readonly record: string
}

interface Kind extends NotRecorded {
  readonly isMissing: (analysis: Analysis) => boolean
}

const RECORD = 'ggml2perfetto record'

/** Kinds of data that a run of llama.cpp may have, and that its log may lack. */
const KINDS: readonly Kind[] = [
  {
    what: 'what each worker computed, and how long it waited at barriers',
    record: `${RECORD} --level op -- <program>`,
    isMissing: ({ operators, gpu }) => operators.executions === 0 && gpu === null,
  },
  {
    what: 'when workers had no CPU, or were blocked',
    record: `${RECORD} -- <program>, without --no-states`,
    isMissing: ({ run, scheduling }) => run.workers > 0 && scheduling === null,
  },
  {
    what: 'the CPUs that workers ran on',
    record: `${RECORD} --sched -- <program>, and the recording that it writes`,
    isMissing: ({ run }) => run.workers > 1 && run.cpus_used === null,
  },
  {
    what: 'when devices computed, copied and waited',
    record: `${RECORD} -- <program>, with CUPTI or ROCm's profiler on the machine; for others --sync`,
    isMissing: ({ run, gpu, rpc }) => gpu === null && rpc === null && run.backends.some((name) => !isOnHost(name)),
  },
  {
    what: 'loading, sampling, and what else the program did between calls',
    record: `${RECORD} -- <program>, without --no-functions`,
    isMissing: ({ load, sampling, functions }) => load === null && sampling === null && functions.length === 0,
  },
  {
    what: 'power, clocks and temperatures',
    record: `${RECORD} --power -- <program>`,
    isMissing: ({ power }) => power === null,
  },
]

/** What the log of a run with calls lacks; none of a log without calls, whose verdict contains what to record. */
export function notRecorded(analysis: Analysis): NotRecorded[] {
  if (phasesOf(analysis).length === 0) return []
  return KINDS.filter(({ isMissing }) => isMissing(analysis)).map(({ what, record }) => ({ what, record }))
}
