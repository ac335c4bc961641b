import { backendProfiler } from './backends/backend-profiler.ts'
import { openclCsv } from './backends/opencl-csv.ts'
import { blasLog } from './blas/blas-log.ts'
import { onednn } from './blas/onednn.ts'
import { chromeJson } from './chrome-json/chrome-json.ts'
import { aiperf } from './clients/aiperf.ts'
import { genaiPerf } from './clients/genai-perf.ts'
import { otlp } from './clients/otlp.ts'
import { formatIn } from './detect.ts'
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

/** The format whose `sniff` recognises the start of an input, or undefined: of an Analysis, too, whose fields may be named as theirs. */
export function sniffFormat(head: Uint8Array, formats: readonly Format[] = FORMATS): Format | undefined {
  return formatIn(head, formats)
}

/** The options with all known formats: those that they contain are tried first. */
export function withKnown<T extends { readonly formats?: readonly Format[] | undefined }>(options: T): T {
  const known = { formats: [...(options.formats ?? []), ...FORMATS], known: FORMATS }
  return { ...options, ...known }
}
