import type { IssueKind } from './issue-kind.ts'

/** Issues of the formats of other recorders. */
export const OF_FORMATS = {
  // ProfInfer
  'unknown-probe': {
    isLoss: true,
    title: 'unknown probe type',
    hint: 'another version of the logger wrote the row, or it is damaged: it is left out',
  },
  'log-ends-in-call': {
    isLoss: false,
    title: 'log ends within a call',
    hint: 'the logger was stopped while llama.cpp computed: the last call, its graphs and operators end at the last row',
  },

  // Chrome JSON
  'json-damaged': {
    isLoss: true,
    title: 'damaged document',
    hint: 'the file is not valid JSON there: the part between the damage and the next event is left out',
  },
  'json-without-end': {
    isLoss: true,
    lost: ['end'],
    title: 'document without an end',
    hint: 'the program that wrote the file did not finish it, or the file was truncated: later events are missing',
  },
  'json-behind-end': {
    isLoss: true,
    lost: ['end'],
    title: 'bytes after the end of the document',
    hint: 'files were joined, or one was written over a longer one; give each document as a separate file',
  },
  'json-large-event': {
    isLoss: true,
    title: 'event too large',
    hint: 'one event has an argument of many megabytes; all other events are in the trace',
  },
  'json-no-phase': {
    isLoss: true,
    title: 'event without a phase',
    hint: 'without a "ph" the kind of the event is not known: the event is left out',
  },
  'json-no-base-time': {
    isLoss: false,
    title: 'no base time',
    hint: 'the time of the run and its offset to other inputs (--clock) are not known: in a pipe the base time comes too late, give the file itself',
  },
  'too-many-open': {
    isLoss: true,
    title: 'too many slices open at once',
    hint: 'more than 4 096 slices were open on one row or in one operation, or more than 4 096 operations: further ones are left out',
  },
  'late-begin-or-end': {
    isLoss: false,
    title: 'begins or ends far out of order',
    hint: 'ranges near them may be paired wrongly: sort the events of the file by "ts"',
  },

  // Nsight Systems
  'unread-table': {
    isLoss: true,
    title: 'table not read',
    hint: 'export the report again with nsys export --type sqlite; or copy the rows into an ordinary table with sqlite3',
  },
  'database-damaged': {
    isLoss: true,
    title: 'damaged file',
    hint: 'pages of the SQLite file are damaged, and their rows are missing: export the report again with nsys export --type sqlite',
  },
  'row-before-session': {
    isLoss: true,
    title: 'row before the session',
    hint: 'the report does not record the start of the session, so that times before it are not known: the row is left out',
  },
  'graph-kernels-hidden': {
    isLoss: true,
    lost: ['gpu'],
    title: 'kernels hide inside CUDA graphs',
    hint: 'the report does not contain the single kernels of a CUDA graph: record with nsys profile --cuda-graph-trace=node',
  },
  'cuda-events-without-time': {
    isLoss: true,
    lost: ['CUDA events'],
    title: 'CUDA events without a time',
    hint: 'CUDA events are not in the trace: record with nsys profile --cuda-event-trace=true',
  },
  'profiles-without-kernel': {
    isLoss: false,
    title: 'profiled kernels not in the log',
    hint: 'Nsight Compute profiled another run, another process, or launches that the log does not contain: their metrics are in the statistics only',
  },
  'nvtx-type-unknown': {
    isLoss: true,
    lost: ['nvtx'],
    title: 'NVTX rows of an unknown type',
    hint: 'a later version of Nsight Systems wrote them, or the file is damaged: the rows are left out',
  },
  'profiler-warning': {
    isLoss: false,
    title: 'the profiler warned',
    hint: 'the message is from the diagnostics summary of Nsight Systems: some data may be missing in the report',
  },
  'profiler-error': {
    isLoss: true,
    title: 'the profiler had an error',
    hint: 'the message is from the diagnostics summary of Nsight Systems: data are missing in the report',
  },

  // Recordings of the kernel
  'old-thread-states': {
    isLoss: false,
    title: 'numbers of thread states of an older kernel',
    hint: 'Linux before 4.15 has other numbers for the states, and some may be wrong: give the recording itself (trace.dat, perf.data)',
  },
  'nothing-traced': {
    isLoss: false,
    title: 'nothing traced',
    hint: 'the file has no function names (nm <file>, nm -D <file>), or the process runs another file: trace a build that is not stripped, or, if it is linked dynamically, use ggml2perfetto record',
  },
  'no-scheduler-events': {
    isLoss: false,
    title: 'no scheduler events',
    hint: 'the recording contains other events: record the scheduler (trace-cmd record -e sched, perf record -e sched:sched_switch,sched:sched_waking)',
  },
  'no-cpu': {
    isLoss: false,
    title: 'no CPU recorded',
    hint: 'the CPUs of the threads are not known: record the CPU (perf record -a or --sample-cpu), or print it (perf script -F comm,pid,tid,cpu,time,event,trace)',
  },
  'no-event-formats': {
    isLoss: true,
    title: 'missing event formats',
    hint: 'tracepoints cannot be read without the event formats of their kernel: give the whole recorded file',
  },
  'torn-file': {
    isLoss: true,
    title: 'torn file',
    hint: 'the end of the file is missing, where perf writes names and formats: only records that need none are read',
  },
  'damaged-page': {
    isLoss: true,
    title: 'damaged page',
    hint: "the rest of this page of the kernel's ring buffer is left out: events of its CPU are missing there",
  },
  'damaged-compression': {
    isLoss: true,
    title: 'damaged compression',
    hint: 'a compressed part of the file is damaged: its events, of perf.data also all later ones, are missing',
  },
  'buffer-on-other-clock': {
    isLoss: true,
    title: 'buffer on another clock',
    hint: 'buffers of one recording can only be drawn together if they have the same clock: record them with one (trace-cmd record -C mono)',
  },
  'late-clock-marker': {
    isLoss: false,
    title: 'late clock marker',
    hint: 'the clock was not known when the first events were read: write the marker first, or give the clock (--clock <input>=mono)',
  },

  // TensorTrace and its companions
  'log-hole': {
    isLoss: true,
    lost: ['operators'],
    title: 'hole in the log',
    hint: 'empty records: operators are missing there, and the operator before is drawn longer than it ran',
  },
  'unknown-phase': {
    isLoss: false,
    title: 'unknown phase',
    hint: 'the record is assumed to be of decoding: the border of a prefill may be wrong',
  },
  'too-many-experts': {
    isLoss: true,
    lost: ['experts'],
    title: 'too many experts',
    hint: 'the record is damaged there: the experts of this operator are not in the trace',
  },
  'other-weight': {
    isLoss: false,
    title: 'other weight in the memory map',
    hint: 'the memory map is of another model file, or of another version of it: the name in the log is used',
  },
  'companion-entry': {
    isLoss: true,
    title: 'unusable entry of a companion',
    hint: 'a field is missing or damaged, or the entry contradicts earlier ones: the entry is left out',
  },
  'graph-edge': {
    isLoss: false,
    title: 'edge from outside the graph',
    hint: 'the graph file is incomplete or contains several graphs: the node is kept without that source',
  },
} as const satisfies Readonly<Record<string, IssueKind>>
