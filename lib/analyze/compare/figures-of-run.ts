import { DefaultMap } from '../../model/default-map.ts'
import type { Phase } from '../../model/events.ts'
import type { Analysis, BenchmarkFigures, Buckets, OperatorRow } from '../analysis.ts'
import { RELATIVE_ERROR } from '../common/sketches.ts'
import { computingNs } from '../operators/computing.ts'
import type { Effect } from './figures.ts'

/** A figure of one run. */
export interface RunFigure extends Pick<Effect, 'group' | 'phase' | 'name' | 'unit'> {
  readonly value: number
}

/** The share of the shortest and of the longest durations of each kind of node that is left out. */
const TRIMMED = 0.05
const GAMMA = (1 + RELATIVE_ERROR) / (1 - RELATIVE_ERROR)

/** The figures of a run that are compared. Times of parts, operators, layers, types and workers are per call of their phase. */
export function figuresOf(analysis: Analysis): RunFigure[] {
  return [
    ...speed(analysis),
    ...benchmarks(analysis),
    ...parts(analysis),
    ...operators(analysis),
    ...workers(analysis),
    ...memory(analysis),
  ]
}

function speed({ calls, first_calls }: Analysis): RunFigure[] {
  const { ttft_ns, prefill_tokens_per_s, tpot_ns, tpot } = calls
  const [group, unit] = ['speed', 'ns'] as const
  const decode = first_calls.find(({ phase }) => phase === 'decode')
  const all: [name: string, phase: Phase | null, value: number | null | undefined][] = [
    ['TTFT', 'prefill', ttft_ns],
    ['prefill, a token', 'prefill', prefill_tokens_per_s && 1e9 / prefill_tokens_per_s],
    ['TPOT', 'decode', tpot_ns],
    ['TPOT p50', 'decode', tpot?.p50_ns],
    ['TPOT p99', 'decode', tpot && tpot.count >= 100 ? tpot.p99_ns : null],
    ['first decode', 'decode', decode?.time_ns],
  ]
  return all.flatMap(([name, phase, value]) => (value ? [{ group, phase, name, unit, value }] : []))
}

/** Time of a token in each test that a program measured itself. Tests of one name differ in their options. */
function benchmarks({ benchmarks = [] }: Partial<Analysis>): RunFigure[] {
  const optionsOf = ({ parameters }: BenchmarkFigures) => `${COMPARED.map((key) => parameters[key] ?? '')}`
  return benchmarks.map((benchmark) => {
    const alike = benchmarks.filter(({ test }) => test === benchmark.test)
    const differing = COMPARED.filter((key) => new Set(alike.map(({ parameters }) => parameters[key])).size > 1)
    const twins = alike.filter((other) => optionsOf(other) === optionsOf(benchmark))
    const options = differing.map((key) => ` ${key}=${benchmark.parameters[key] ?? ''}`).join('')
    const name = `${benchmark.test}${options}${twins.length > 1 ? ` (${twins.indexOf(benchmark) + 1})` : ''}`
    return { group: 'speed', phase: null, name, unit: 'ns', value: 1e9 / benchmark.tokens_per_s }
  })
}

/** The build, and options of llama-bench, of which one input may have several values. */
const COMPARED = [
  'build_commit',
  ...['model_type', 'model', 'n_batch', 'n_ubatch', 'n_threads', 'threads', 'type_k', 'type_v', 'n_gpu_layers', 'ngl'],
  ...['split_mode', 'flash_attn', 'fa', 'n_cpu_moe', 'backends', 'devices', 'load_mode', 'use_mmap', 'embeddings'],
]

/** Phases with their calls. */
const callsByPhase = ({ call_time }: Analysis) =>
  new Map(call_time.flatMap(({ phase, calls }) => (calls > 0 ? [[phase, calls] as const] : [])))

function parts(analysis: Analysis): RunFigure[] {
  const byPhase = callsByPhase(analysis)
  return analysis.call_time.flatMap(({ phase, parts }) => {
    const calls = byPhase.get(phase)
    if (calls === undefined) return []
    return parts.map(({ what, time_ns }) => ({
      ...{ group: 'part' as const, phase, name: what, unit: 'ns' as const, value: time_ns / calls },
    }))
  })
}

/** Live bytes at the peak of each buffer, allocated bytes, weights that a call reads. */
function memory({ memory }: Analysis): RunFigure[] {
  if (!memory) return []
  const figure = (name: string, phase: Phase | null, value: number | null): RunFigure[] =>
    value === null ? [] : [{ group: 'memory', phase, name, unit: 'bytes', value }]
  return [
    ...memory.buffers.flatMap(({ usage, name, arena }) =>
      figure(`peak of ${name === '' ? usage : name}`, null, arena?.peak_live_bytes ?? null),
    ),
    ...figure('allocated', null, memory.allocations?.peak_bytes ?? null),
    ...memory.weights_read.flatMap(({ phase, bytes_per_call }) => figure('weights read a call', phase, bytes_per_call)),
  ]
}

/** Operators by role and op, layer, and type of their weights. */
function operators(analysis: Analysis): RunFigure[] {
  const sums = new DefaultMap<string, { value: number }>(() => ({ value: 0 }))
  const calls = callsByPhase(analysis)
  for (const row of analysis.operators.rows) {
    const { phase, role, op, layer, type } = row
    const phaseCalls = phase === 'none' ? undefined : calls.get(phase)
    if (phaseCalls === undefined) continue
    const value = typicalNs(row) / phaseCalls
    const groups = [
      ['role', role === '' ? op : `${role} ${op}`],
      ['layer', layer < 0 ? 'no layer' : `blk.${layer}`],
      ['type', type],
    ] as const
    for (const [group, name] of groups) sums.of(JSON.stringify([group, phase, name])).value += value
  }
  return [...sums].map(([key, { value }]) => {
    const [group, phase, name] = JSON.parse(key) as ['role' | 'layer' | 'type', Phase, string]
    return { group, phase, name, unit: 'ns', value }
  })
}

/** Of fewer durations, none is left out. */
const TRIMMED_MIN = 1 / TRIMMED

/**
 * Time of computing of a row without outliers: the mean of the middle 90 % of durations, times their number. A few operators that were
 * preempted change a sum by more than what is looked for; they are in the figures of speed and of parts. Of few operators, the sum
 * without the time in which they had no CPU.
 */
function typicalNs(row: OperatorRow): number {
  const { duration, buckets, executions } = row
  if (!duration || !buckets || executions < TRIMMED_MIN) return computingNs(row)
  const [least, most] = [executions * TRIMMED, executions * (1 - TRIMMED)]
  const zeros = executions - buckets.counts.reduce((sum, count) => sum + count, 0)
  let [rank, sum] = [zeros, 0]
  for (const [i, count] of buckets.counts.entries()) {
    const taken = Math.min(rank + count, most) - Math.max(rank, least)
    if (taken > 0) sum += taken * middleOf(buckets, i)
    rank += count
  }
  return (sum / (most - least)) * executions
}

/** The value in the middle of a bucket, as DDSketch has it. */
const middleOf = ({ first }: Buckets, i: number) => (2 * GAMMA ** (first + i)) / (GAMMA + 1)

function workers(analysis: Analysis): RunFigure[] {
  const calls = callsByPhase(analysis)
  return analysis.workers.flatMap(({ worker, by_phase }) =>
    [...calls].flatMap(([phase, share]): RunFigure[] => {
      const time = by_phase[phase]
      if (!time) return []
      const figure = (name: string, ns: number) => ({
        ...{
          group: 'worker' as const,
          phase,
          name: `worker ${worker}: ${name}`,
          unit: 'ns' as const,
          value: ns / share,
        },
      })
      const { wait_ns, wait_open_ns } = time
      const waits = [figure('barrier wait', wait_ns - (wait_open_ns ?? 0))]
      if (wait_open_ns !== undefined) waits.push(figure('barrier open', wait_open_ns))
      return [figure('computing', computingNs(time)), ...waits]
    }),
  )
}
