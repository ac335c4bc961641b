// Generated from the entries in lib by scripts/option-names.mjs; do not edit.

/** Options of `GgtraceWriter`. */
export const GGTRACE_WRITER_OPTIONS: readonly string[] = ["blockBytes","originNs"]

/** Options of `TraceWriter`. */
export const TRACE_WRITER_OPTIONS: readonly string[] = ["clock","unit"]

/** Options of `analyze`. */
export const ANALYZE_OPTIONS: readonly string[] = ["cacheTypes","call","checkEvents","clocks","everything","expertCaches","flopsPerToken","formats","from","onProgress","opTable","osRuntime","peaks","series","signal","strict"]

/** Options of `checkTrace`. */
export const CHECK_TRACE_OPTIONS: readonly string[] = ["wasm"]

/** Options of `convert`. */
export const CONVERT_OPTIONS: readonly string[] = ["all","allThreads","barriers","budget","bundle","checkEvents","clocks","detail","findings","flows","formats","from","grouped","memory","onFirstReading","onProgress","opName","opTable","osRuntime","signal","strict","to","tokens"]

/** Options of `convertFile`. */
export const CONVERT_FILE_OPTIONS: readonly string[] = ["all","allThreads","barriers","budget","bundle","checkEvents","clocks","detail","findings","flows","formats","from","grouped","memory","onFirstReading","onProgress","opName","opTable","osRuntime","signal","strict","to","tokens"]

/** Options of `convertInWorker`. */
export const CONVERT_IN_WORKER_OPTIONS: readonly string[] = ["all","allThreads","barriers","budget","bundle","checkEvents","clocks","detail","findings","flows","from","grouped","memory","onFirstReading","onProgress","opName","opTable","osRuntime","signal","strict","to","tokens","worker"]

/** Options of `dagOf`. */
export const DAG_OF_OPTIONS: readonly string[] = ["layers","nodes"]

/** Options of `draw`. */
export const DRAW_OPTIONS: readonly string[] = ["collapse","colorBy","edgeShapes","name","scale","values","views","weights"]

/** Options of `eventsOf`. */
export const EVENTS_OF_OPTIONS: readonly string[] = ["checkEvents","everything","formats","from","onProgress","opTable","osRuntime","signal","strict"]

/** Options of `exportArrow`. */
export const EXPORT_ARROW_OPTIONS: readonly string[] = ["allowEmpty","checkEvents","clocks","everything","formats","from","onProgress","onRead","opTable","osRuntime","signal","strict","table"]

/** Options of `exportRun`. */
export const EXPORT_RUN_OPTIONS: readonly string[] = ["again","allowEmpty","checkEvents","clocks","day","everything","formats","from","onProgress","onRead","opTable","osRuntime","signal","strict"]

/** Options of `findView`. */
export const FIND_VIEW_OPTIONS: readonly string[] = ["wasm"]

/** Options of `fleetReportHtml`. */
export const FLEET_REPORT_HTML_OPTIONS: readonly string[] = ["title"]

/** Options of `inspect`. */
export const INSPECT_OPTIONS: readonly string[] = ["onProgress","signal"]

/** Options of `measureKernels`. */
export const MEASURE_KERNELS_OPTIONS: readonly string[] = ["batches","contexts","env","experts","ggml","onBuild","onStart","threads","types"]

/** Options of `measurePeaks`. */
export const MEASURE_PEAKS_OPTIONS: readonly string[] = ["arch","env","fresh","onBuild","platform"]

/** Options of `modelOf`. */
export const MODEL_OF_OPTIONS: readonly string[] = ["cacheTypes"]

/** Options of `nvtxListener`. */
export const NVTX_LISTENER_OPTIONS: readonly string[] = ["arch","env","loader","onBuild","platform"]

/** Options of `openDataset`. */
export const OPEN_DATASET_OPTIONS: readonly string[] = ["threads"]

/** Options of `openTrace`. */
export const OPEN_TRACE_OPTIONS: readonly string[] = ["wasm"]

/** Options of `record`. */
export const RECORD_OPTIONS: readonly string[] = ["arch","ask","bytesMax","children","command","counters","cupti","env","every","functions","gpu","gpuEvents","group","guard","level","libraries","mem","nvtxEmit","onBuild","onMemProblem","onPowerProblem","onSchedProblem","onStart","ops","output","paused","platform","power","ring","sched","schedBuffer","slow","states","stdio","sync","sysfs","toggle","tokens"]

/** Options of `recordRuns`. */
export const RECORD_RUNS_OPTIONS: readonly string[] = ["commands","folder","level","onBuild","onRun","onStart","random","runs","states","warmup"]

/** Options of `recordVariables`. */
export const RECORD_VARIABLES_OPTIONS: readonly string[] = ["arch","bytesMax","children","counters","cupti","env","every","functions","gpu","gpuEvents","guard","level","libraries","nvtxEmit","onBuild","ops","output","paused","platform","ring","slow","states","sync","toggle","tokens"]

/** Options of `reportHtml`. */
export const REPORT_HTML_OPTIONS: readonly string[] = ["drawing","predictions","title"]

/** Options of `requestsWith`. */
export const REQUESTS_WITH_OPTIONS: readonly string[] = ["request","task"]

/** Options of `summarize`. */
export const SUMMARIZE_OPTIONS: readonly string[] = ["checkEvents","everything","findings","formats","from","onProgress","opTable","osRuntime","signal","strict"]

/** Options of `summarizeFile`. */
export const SUMMARIZE_FILE_OPTIONS: readonly string[] = ["checkEvents","findings","formats","from","onProgress","opTable","osRuntime","signal"]

/** Options of `tablesOf`. */
export const TABLES_OF_OPTIONS: readonly string[] = ["checkEvents","clocks","compression","everything","format","formats","from","onProgress","opTable","osRuntime","signal","strict","traceId"]

/** Options of `whatIf`. */
export const WHAT_IF_OPTIONS: readonly string[] = ["cacheTypes","checkEvents","clocks","everything","expertCaches","flopsPerToken","formats","from","kernels","onProgress","opTable","osRuntime","others","peaks","signal","strict"]

/** Options of `whyRequest`. */
export const WHY_REQUEST_OPTIONS: readonly string[] = ["request","task"]
