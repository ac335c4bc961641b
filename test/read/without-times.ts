import { type Analysis, type EventInput, eventsOf, Names, type TraceEvent } from '../../lib/index.ts'
import { randomOf } from '../line/support.ts'

/** Real inputs whose times are removed, made equal, or put out of order, and what is made of them. */

/** Inputs, and where their times are. */
export const TIMES: readonly (readonly [fixture: string, pattern: RegExp])[] = [
  ['aiperf/documented.jsonl', /(?<="\w*(?:timestamp|start|ack|end)_ns":\s*)\d+/g],
  ['genai-perf/profile.json', /\b\d{19}\b/g],
  ['backend-profiler/two-backends.json', /(?<="start_ns":\s*)\d+/g],
  ['bpftrace/op.txt', /(?<=^g2p op )\d+|(?<=^g2p op \d+ \d+ \d+ \d+ )\d+(?: \d+)/gm],
  ['bpftrace/token.txt', /(?<=^g2p token )\d+|(?<=^g2p token \d+ \d+ \d+ )\d+/gm],
  ['bpftrace/sched.txt', /(?<=^g2p (?:switch|waking) )\d+/gm],
  ['chrome-json/gpu-only.json', /(?<="ts":\s*)[\d.]+/g],
  ['chrome-json/absolute.json', /(?<="ts":\s*)[\d.]+/g],
  ['chrome-json/vllm.json.gz', /(?<="ts":\s*)[\d.]+/g],
  ['chrome-json/communication.json.gz', /(?<="ts":\s*)[\d.]+/g],
  ['ftrace/trace.txt', /(?<= )\d+\.\d{6}(?=:)/g],
  ['llama-bench/tests.jsonl', /(?<="test_time": ")[^"]*/g],
  ['llama-log/vulkan.log', /^\d+\.\d\d\.\d{3}\.\d{3}/gm],
  ['llama-log/backends.log', /(?<=(?:start|end)_us=|start )\d+/g],
  ['nsys-nvtx-trace/jax.csv', /^\d{11}|(?<=^\d*,)\d{11}/gm],
  ['onednn/v3.7.log', /(?<=^onednn_verbose,(?:v1,)?)\d+\.\d+/gm],
  ['otlp/vllm.jsonl', /(?<="(?:startT|endT|t)imeUnixNano":\s*")\d+/g],
  ['otlp/sglang.json', /(?<="(?:startT|endT|t)imeUnixNano":\s*")\d+/g],
  ['perf-script/default.txt', /(?<= )\d+\.\d{6}(?=:)/g],
  ['perf-stat/program.csv', /(?<=^ +)\d+\.\d+/gm],
  ['perf-stat/program.jsonl', /(?<="interval" : )[\d.]+/g],
  ['perf-stat/program.txt', /(?<=^ +)\d+\.\d{9}/gm],
  ['power/amd-smi.csv', /^\d{10}/gm],
  ['power/amd-smi.json', /(?<="timestamp": )\d+/g],
  ['power/dcgm.txt', /^\d+\.\d+/gm],
  ['power/nvidia-smi.csv', /^[\d/]+ [\d:.]+(?=,)/gm],
  ['power/nvidia-dmon.txt', /(?<=^ )\d{8} +[\d:]+/gm],
  ['power/power.csv', /^\d+(?=,)/gm],
  ['power/tegrastats.txt', /^[\d-]+ [\d:]+/gm],
  ['power/turbostat.txt', /^\d+\.\d{6}/gm],
  ['profinfer-csv/tiny.csv', /(?<=^\d+,)\d+/gm],
  ['profinfer-openharmony/tiny.csv', /(?<=\),\d+,\d+,\d+,)\d+/g],
  ['profinfer-text/tiny.txt', /(?<=^ts:)\d+/gm],
  ['profinfer-ktrace/tiny.txt', /^\d+(?= \[)/gm],
  ['rocprofv3/calls.json', /(?<="(?:start|end)(?:_timestamp)?":\s*)\d+/g],
  ['server/v0.7.0-lv3.log', /^\d+\.\d\d\.\d{3}\.\d{3} [IWED] /gm],
  ['server/v0.7.0-lv4.log', /^\d+\.\d\d\.\d{3}\.\d{3} [IWED] /gm],
  ['server/v0.7.0-lv5.log', /^\d+\.\d\d\.\d{3}\.\d{3} [IWED] /gm],
  ['server/v0.7.0-lv4.jsonl', /(?<="time":)\d+/g],
  ['streamline/timeline.csv', /^\d+\.\d{3}(?=,)/gm],
  ['tensor-trace-json/tiny.json', /(?<="timestamp(?:_relative)?_(?:ns|ms)": )[\d.]+/g],
  ['blas-log/hipblaslt.log', /(?<=^\[)[\d-]+ [\d:]+/gm],
  ['blas-log/cublas.log', /(?<=Time: )\S+ elapsed from start [\d.]+ minutes or [\d.]+ seconds/g],
]

/**
 * How times are changed: `exchanged`: of neighbours; `random`: each is one of the others; `lines`: the times stay, their lines are out of
 * order.
 */
export const WAYS = ['removed', 'equal', 'reversed', 'exchanged', 'random', 'lines'] as const
export type Way = (typeof WAYS)[number]

/** An input with other times. */
export function changed(bytes: Uint8Array, pattern: RegExp, way: Way): Uint8Array {
  const text = new TextDecoder().decode(bytes)
  const times = [...text.matchAll(pattern)].map(([time]) => time)
  const random = randomOf(7)
  if (way === 'lines') {
    // Blocks of lines change places, after the head.
    const lines = text.split('\n')
    const from = Math.min(lines.length, 9)
    for (let at = lines.length - 2; at > from; at--) {
      const other = Math.max(from, at - Math.floor(random() * 40))
      ;[lines[at], lines[other]] = [lines[other]!, lines[at]!]
    }
    return new TextEncoder().encode(lines.join('\n'))
  }
  let i = 0
  const other = (time: string) => {
    const at = i++
    if (way === 'removed') return ''
    if (way === 'equal') return times[0]!
    if (way === 'random') return times[Math.floor(random() * times.length)]!
    if (way === 'reversed') return times[times.length - 1 - at]!
    // Neighbours change places.
    return times[at ^ 1] ?? time
  }
  return new TextEncoder().encode(text.replace(pattern, other))
}

/** Fields of events that are times. */
const FIELDS = ['startNs', 'endNs', 'waitEndNs'] as const
/** Kinds of events that come in any order: others are nested. */
const KINDS: ReadonlySet<string> = new Set(['operator', 'graph', 'token'])
type Times = Partial<Record<(typeof FIELDS)[number], number>>

/** An input of a binary format whose events begin at other times, or last no time. */
export async function changedEvents(bytes: Uint8Array, way: Way): Promise<EventInput> {
  const names = new Names()
  const events: TraceEvent[] = []
  for await (const batch of eventsOf({ name: 'log', source: bytes }, names)) events.push(...batch)
  const startOf = (event: TraceEvent) => (KINDS.has(event.kind) ? (event as Times).startNs : undefined)
  const starts = events.flatMap((event) => startOf(event) ?? [])
  const random = randomOf(7)
  let i = 0
  const made = events.map((event) => {
    const times = event as Times
    const startNs = startOf(event)
    if (startNs === undefined) return event
    const at = i++
    const places = {
      equal: 0,
      reversed: starts.length - 1 - at,
      exchanged: at ^ 1,
      random: Math.floor(random() * starts.length),
    }
    const other = starts[places[way as keyof typeof places]] ?? startNs
    const changed = FIELDS.flatMap((key) => {
      const ns = times[key]
      return ns === undefined ? [] : [[key, way === 'equal' ? other : other + ns - startNs]]
    })
    return { ...event, ...Object.fromEntries(changed) } as TraceEvent
  })
  return {
    name: 'log',
    *events(of: Names) {
      for (let id = 1; names.text(id) !== ''; id++) of.id(names.text(id))
      // Each reading has its own: the line may place events in place.
      yield made.map((event) => ({ ...event }))
    },
  }
}

/** Fields that may be negative: differences, and places in time. */
const SIGNED = /offset|difference|ms_per|change|at_0_ns|_at_ns|start_ns/

/** Figures that no run can have. */
export function impossibleIn(analysis: Analysis): string[] {
  const found: string[] = []
  const walk = (value: unknown, path: string): void => {
    if (typeof value === 'object' && value !== null)
      for (const [key, of] of Object.entries(value)) walk(of, `${path}.${key}`)
    if (typeof value !== 'number' || SIGNED.test(path)) return
    const isNegative = value < 0 && /(?:_ns|_s|_share|\.share)$/.test(path)
    if (!Number.isFinite(value) || isNegative || (value > 1 + 1e-9 && /_share$/.test(path)))
      found.push(`${path}: ${value}`)
  }
  walk(analysis, '')
  for (const { id, parts, latency_ns, ttft_ns } of analysis.series?.requests?.rows ?? []) {
    const sumNs = Object.values(parts ?? {}).reduce((sum: number, ns) => sum + (ns ?? 0), 0)
    // The figures of servers are rounded to 10 µs.
    if (latency_ns !== null && sumNs > latency_ns + 20_000)
      found.push(`request ${id}: parts of ${sumNs} in ${latency_ns}`)
    if (latency_ns !== null && ttft_ns !== null && ttft_ns > latency_ns) found.push(`request ${id}: TTFT ${ttft_ns}`)
  }
  return found
}

/** Durations that are the first to be read. */
export function headlinesOf({ calls, series, power }: Analysis): (number | null)[] {
  const { ttft_ns, tpot_ns, decode_tokens_per_s, prefill_tokens_per_s } = calls
  return [
    ...[ttft_ns, tpot_ns, decode_tokens_per_s, prefill_tokens_per_s],
    ...(series?.requests?.rows ?? []).flatMap(({ latency_ns, ttft_ns, tpot_ns }) => [latency_ns, ttft_ns, tpot_ns]),
    ...(power?.devices ?? []).flatMap(({ energy }) => energy.map(({ energy_j }) => energy_j)),
  ]
}
