/** How each command is called, and what it does: the list of all needs nothing else of them. In the order of the help; those after `export` are not in its list. */
export const COMMANDS = {
  record: {
    command: 'record [command..]',
    describe: 'Run a program that uses llama.cpp, and write a log of what ggml does in it (Linux)',
  },
  convert: {
    command: ['convert <inputs..>', '$0'],
    describe: 'Convert logs to one Perfetto trace (the default command)',
  },
  open: {
    command: 'open <inputs..>',
    describe: 'Show a trace or logs in https://ui.perfetto.dev, in your browser',
  },
  stats: {
    command: 'stats <inputs..>',
    describe: 'Print statistics: speed, where the time of calls goes, operators, workers',
  },
  why: {
    command: 'why <inputs..>',
    describe: 'Print what made the run slow: findings, each with its evidence and a check',
  },
  'what-if': {
    command: 'what-if <inputs..>',
    describe:
      'Predict a run with changes: context, threads, type of weights, batch, experts, or without what disturbed it',
  },
  compare: {
    command: 'compare [inputs..]',
    describe: 'Compare runs of two builds, models or settings: what is slower, and by how much',
  },
  report: {
    command: 'report <inputs..>',
    describe: 'Write a report: one HTML page with findings and figures, which needs no network',
  },
  dag: {
    command: 'dag <inputs..>',
    describe: 'Show the graph of one call: nodes with their times, and what each reads',
  },
  query: {
    command: 'query [inputs..]',
    describe: 'Ask in SQL: a trace or logs (PerfettoSQL), or a dataset of many runs (DuckDB)',
  },
  export: {
    command: 'export <inputs..>',
    describe: 'Add runs to a dataset of Parquet files, for DuckDB, ClickHouse, Spark, pandas',
  },
  doctor: {
    command: 'doctor [program]',
    describe: 'Find llama.cpp and a model, and say how fast they could be here, and how (Linux)',
  },
  check: {
    command: 'check <trace>',
    describe: 'Check that a trace is complete and that Perfetto imports it without errors; if not, exit with code 1',
  },
  peaks: {
    command: 'peaks [log]',
    describe: "Measure the peak rates of this machine: memory bandwidth, FP32, INT8; or ggml's products (Linux)",
  },
  nvtx: {
    command: 'nvtx',
    describe: 'Print the path of the library that records the NVTX ranges and marks of any program (Linux)',
  },
} as const
