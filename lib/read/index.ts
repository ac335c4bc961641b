import { closest, UsageError } from '../errors.ts'
import { backendProfiler } from './backends/backend-profiler.ts'
import { openclCsv } from './backends/opencl-csv.ts'
import { blasLog } from './blas/blas-log.ts'
import { onednn } from './blas/onednn.ts'
import { chromeJson } from './chrome-json/chrome-json.ts'
import { aiperf } from './clients/aiperf.ts'
import { genaiPerf } from './clients/genai-perf.ts'
import { otlp } from './clients/otlp.ts'
import { isAnalysis } from './documents.ts'
import type { Format } from './format.ts'
import { ggtrace } from './ggtrace/ggtrace.ts'
import { ncu } from './gpu/ncu/ncu.ts'
import { nsys } from './gpu/nsys/nsys.ts'
import { nsysGpuTrace } from './gpu/nsys/nsys-gpu-trace.ts'
import { nsysNvtxTrace } from './gpu/nsys/nsys-nvtx-trace.ts'
import { rocprofv3 } from './gpu/rocprofv3/rocprofv3.ts'
import { perfData } from './kernel/perf-data/perf-data.ts'
import { perfStat } from './kernel/perf-stat/perf-stat.ts'
import { streamline } from './kernel/streamline/streamline.ts'
import { bpftrace } from './kernel/text/bpftrace.ts'
import { ftrace } from './kernel/text/ftrace.ts'
import { perfScript } from './kernel/text/perf-script.ts'
import { traceDat } from './kernel/trace-dat/trace-dat.ts'
import { llamaBench } from './llama-bench/llama-bench.ts'
import { llamaLog } from './llama-log/llama-log.ts'
import { llamaServer } from './llama-server/llama-server.ts'
import { nearestFormat } from './nearest.ts'
import { amdSmi } from './power/amd-smi.ts'
import { dcgm } from './power/dcgm.ts'
import { nvidiaDmon } from './power/nvidia-dmon.ts'
import { nvidiaSmi } from './power/nvidia-smi.ts'
import { power } from './power/power.ts'
import { tegrastats } from './power/tegrastats.ts'
import { turbostat } from './power/turbostat.ts'
import { profinferCsv, profinferOpenharmony, profinferText } from './profinfer/profinfer.ts'
import { profinferKtrace } from './profinfer/profinfer-ktrace.ts'
import { bufferStats } from './tensor-trace/buffer-stats.ts'
import { bufferTimeline } from './tensor-trace/buffer-timeline.ts'
import { ggmlGraph } from './tensor-trace/ggml-graph.ts'
import { memoryMap } from './tensor-trace/memory-map.ts'
import { tensorTrace } from './tensor-trace/tensor-trace.ts'
import { tensorTraceJson } from './tensor-trace/tensor-trace-json.ts'

/** The known formats, in the order of detection: magic numbers first, then texts, guesses from structure last. */
export const FORMATS: readonly Format[] = [
  ggtrace,
  traceDat,
  perfData,
  nsys,
  nsysGpuTrace,
  nsysNvtxTrace,
  ncu,
  rocprofv3,
  chromeJson, // its texts may contain logs
  power,
  nvidiaSmi,
  nvidiaDmon,
  dcgm,
  amdSmi,
  turbostat,
  tegrastats,
  bufferStats,
  bufferTimeline,
  memoryMap,
  ggmlGraph,
  tensorTraceJson,
  profinferCsv,
  profinferOpenharmony,
  profinferText,
  profinferKtrace,
  bpftrace,
  onednn,
  blasLog,
  llamaBench,
  backendProfiler,
  openclCsv,
  aiperf,
  genaiPerf,
  otlp,
  llamaLog,
  llamaServer,
  perfStat,
  streamline,
  ftrace,
  perfScript,
  tensorTrace,
]

/** How the format of an input is found. */
export interface FormatChoice {
  /** Name of the format; by default it is detected. */
  readonly from?: string | undefined
  /** Further formats, tried before the known ones. */
  readonly formats?: readonly Format[] | undefined
  /** Name of the input in errors. */
  readonly input: string
}

/**
 * The format of an input that begins with `head`. `from` names the format of logs only: companions are still detected. Throws
 * UsageError for an unknown format.
 */
export function formatOf(head: Uint8Array, { from, formats: further = [], input }: FormatChoice): Format {
  const formats = [...further, ...FORMATS]
  if (from === undefined) return detect(formats, head, input)
  const named = formatByName(formats, from)
  const found = named.isCompanion ? undefined : sniffFormat(head, formats)
  return found?.isCompanion ? found : named
}

/** The format whose `sniff` recognises the start of an input, or undefined: of an Analysis, too, whose fields may be named as theirs. */
export function sniffFormat(head: Uint8Array, formats: readonly Format[] = FORMATS): Format | undefined {
  return isAnalysis(head) ? undefined : formats.find((format) => format.sniff(head))
}

function detect(formats: readonly Format[], head: Uint8Array, input: string): Format {
  if (head.length === 0) throw new UsageError(`${input}: the input is empty (0 bytes)`)
  const format = sniffFormat(head, formats)
  if (format) return format
  if (isAnalysis(head)) throw new UsageError(`${input}: is an Analysis, not a log\nhint: ggml2perfetto stats ${input}`)
  throw new UsageError(
    `${input}: not a known format; it begins with ${describeBytes(head)}\n` +
      `hint: ${/\.(?:nsys-rep|qdrep)$/i.test(input) ? NSYS_HINT : hintOf(nearestFormat(head, formats))}`,
  )
}

function hintOf(nearest: Format | undefined): string {
  if (!nearest) return 'name the format with --from; docs/formats.md lists them'
  return `the nearest one is ${nearest.name} (${nearest.title}): --from ${nearest.name}; docs/formats.md lists all`
}

/** The native format of Nsight Systems is not documented. */
const NSYS_HINT = 'nsys export --type sqlite converts it into a file that can be read'

function formatByName(formats: readonly Format[], name: string): Format {
  const format = formats.find((known) => known.name === name)
  if (format) return format
  const meant = closest(
    name,
    formats.map((known) => known.name),
  )
  const hint = meant === undefined ? '' : `\nhint: did you mean ${meant}?`
  throw new UsageError(`no format is called "${name}"; known formats:\n${listFormats(formats)}${hint}`)
}

function listFormats(formats: readonly Format[]): string {
  const width = Math.max(...formats.map((format) => format.name.length))
  return formats.map((format) => `  ${format.name.padEnd(width)}  ${format.title}`).join('\n')
}

function describeBytes(head: Uint8Array): string {
  const first = head.subarray(0, 16)
  const hex = Array.from(first, (byte) => byte.toString(16).padStart(2, '0')).join(' ')
  const text = Array.from(first, (byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : '.')).join('')
  return `${hex}  "${text}"`
}
