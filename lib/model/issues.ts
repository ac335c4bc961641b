import type { Position } from '../errors.ts'

/** A kind of data in a log. */
export type RecordedKind =
  | 'calls'
  | 'graphs'
  | 'operators'
  | 'counters'
  | 'experts'
  | 'memory'
  | 'copies'
  | 'states'
  | 'scheduler'
  | 'nvtx'
  | 'gpu'
  | 'blas'
  | 'power'
  | 'requests'
  | 'benchmarks'

/** The kinds of data, in the order in which they are listed, each with its kinds of events. */
export const RECORDED_EVENTS = {
  calls: ['token'],
  graphs: ['graph'],
  operators: ['operator'],
  counters: ['counted'],
  experts: ['experts'],
  memory: ['allocation'],
  copies: ['copy'],
  states: ['state'],
  scheduler: ['switch', 'waking'],
  nvtx: ['nvtx'],
  power: ['reading'],
  gpu: ['gpu', 'api', 'gpu-sync'],
  blas: ['blas'],
  requests: ['request'],
  benchmarks: ['benchmark'],
} as const satisfies Readonly<Record<RecordedKind, readonly string[]>>

/** All of them. */
export const RECORDED_KINDS = Object.keys(RECORDED_EVENTS) as RecordedKind[]

/** One kind of problem of an input. */
export interface IssueKind {
  /** A short phrase: the name on the Issues track; issues are counted by it. */
  readonly title: string
  /** The effect on the results, or the remedy. */
  readonly hint: string
  /** Is an event of the run missing in the results? The only definition of a loss. */
  readonly isLoss: boolean
  /** What is missing, where the code says it; else any kind of data that the input contains. */
  readonly lost?: readonly LostKind[]
}

/** A kind of data that an input may lack; `end`: all after its last event, and nothing before it. */
export type LostKind = RecordedKind | 'CUDA events' | 'end'

/**
 * The catalogue of the problems that do not stop the reading of an input. Codes are stable and never reused: scripts may
 * test for them.
 */
export const ISSUES = {
  // Any input
  'broken-gzip': {
    isLoss: true,
    lost: ['end'],
    title: 'broken gzip stream',
    hint: 'the file was truncated or changed after it was compressed; the part before the damage is in the trace',
  },
  'broken-archive': {
    isLoss: true,
    lost: ['end'],
    title: 'broken archive',
    hint: 'the archive, or the compressed output of atrace, was truncated or changed; the part before the damage is in the trace',
  },
  'inputs-apart': {
    isLoss: false,
    title: 'no time in common with the other inputs',
    hint: 'the files are of different runs, or their clock is not the assumed one: name the right files, or give the clock (--clock <input>=boot)',
  },
  'recorded-twice': {
    isLoss: false,
    title: 'left out, recorded twice',
    hint: 'two inputs record the scheduler of the same CPU at the same time: it is drawn from the one that records more',
  },
  'impossible-time': {
    isLoss: true,
    title: 'impossible time',
    hint: 'the input is damaged, or its times have another origin: times must be within a day of their neighbours and within 100 days of the first one',
  },
  'value-out-of-range': {
    isLoss: true,
    title: 'value out of range',
    hint: 'no such thread, CPU, tensor, launch or count can exist: the input is damaged there, or its format was misread',
  },
  'late-switch': {
    isLoss: true,
    lost: ['scheduler'],
    title: 'late switch',
    hint: 'the switches of a CPU must be in order of time: a switch after a later one is left out, and the thread that had the CPU may be wrong there',
  },
  'lost-switches': {
    isLoss: true,
    lost: ['scheduler'],
    title: 'lost switches',
    hint: 'switches in between are missing, and the thread that had the CPU is not known there: record with larger buffers (trace-cmd record -b, perf record -m)',
  },
  'call-failed': {
    isLoss: false,
    title: 'failed call',
    hint: 'result 1: enlarge the context (-c) or make batches smaller; failed calls are not part of any time or rate',
  },
  'event-without-time': {
    isLoss: true,
    title: 'event without a time',
    hint: 'the input does not record when it happened: the event is left out',
  },
  'request-without-end': {
    isLoss: true,
    title: 'request without an end',
    hint: 'lines or events of its end are missing in the input: of more requests at a time than llama.cpp can have, the first is unfinished from there on',
  },
  'event-without-end': {
    isLoss: false,
    title: 'event without an end',
    hint: 'the input has no duration for it, or one below 0: the event is drawn with a duration of 0',
  },
  'end-without-start': {
    isLoss: true,
    title: 'end without a start',
    hint: 'the range began before the recording, or its start was lost: the range is not in the trace',
  },
  'range-without-end': {
    isLoss: false,
    title: 'range without an end',
    hint: 'the range was still open when the recording ended, or its end was lost: its duration is not known',
  },
  'record-out-of-order': {
    isLoss: false,
    title: 'record out of order',
    hint: 'the record comes so late in the input that later events are drawn already: durations near it may be wrong',
  },
  'late-record': {
    isLoss: true,
    title: 'late record',
    hint: 'the record comes so late in the input that its place in time is passed: it is left out',
  },
  'torn-record': {
    isLoss: true,
    lost: ['end'],
    title: 'torn record',
    hint: 'the input ends within a record: the file was truncated, or was still being written; all earlier records are in the trace',
  },
  'damaged-record': {
    isLoss: true,
    title: 'damaged record',
    hint: 'the input is damaged there: the unreadable part of the record is left out',
  },
  'short-record': {
    isLoss: true,
    title: 'short record',
    hint: 'the record has fewer bytes than its type needs: it is damaged, or of an unknown version; it is left out',
  },
  'lost-records': {
    isLoss: true,
    title: 'lost records',
    hint: 'the buffers of the recorder were full, and events are missing there: record less, or with larger buffers (perf record -m, trace-cmd record -b, buffer_size_kb in tracefs, BPFTRACE_PERF_RB_PAGES)',
  },
  'lost-states': {
    isLoss: true,
    lost: ['states'],
    title: 'lost states of threads',
    hint: 'the threads of the program changed their state faster than the recorder writes it, and some states are missing; calls, graphs and operators are complete: record --sched, as root, has larger buffers',
  },
  'lost-gpu-work': {
    isLoss: true,
    lost: ['gpu'],
    title: 'lost work of a GPU',
    hint: 'its times could not be read: pieces of work of the GPU are missing; calls, graphs and operators of the CPU are complete',
  },
  'overlapping-work': {
    isLoss: false,
    title: 'work within other work of its stream',
    hint: 'a stream runs one piece of work after the other: the outer one has a wrong end, and its duration counts in the sums of kernels; times of devices and streams count each moment once',
  },
  'lost-counters': {
    isLoss: true,
    lost: ['counters'],
    title: 'lost counters of a thread',
    hint: 'the kernel gives no counters for this thread: its operators have none; their times are complete',
  },
  'dropped-records': {
    isLoss: true,
    title: 'dropped records',
    hint: 'the log had no space for them, and events are missing there: the disk was full, or a size limit was reached',
  },
  'disk-full': {
    isLoss: true,
    title: 'the disk was full',
    hint: 'the log is incomplete: free space, write it to another disk (-o), or record less (--max-size, --ring, --tokens, --ops)',
  },
  'log-full': {
    isLoss: true,
    title: 'the log reached its size limit',
    hint: 'record --max-size sets the limit; --ring keeps the last part of the run instead of the first',
  },
  'log-cut': {
    isLoss: true,
    lost: ['end'],
    title: 'the log was truncated while it was recorded',
    hint: 'the log is incomplete: it ended when another program truncated it, such as logrotate with copytruncate, whose copy has what was recorded before; exclude it from rotation',
  },
  'process-limit': {
    isLoss: true,
    title: 'the program reached its limit for the size of files',
    hint: 'the log is incomplete: raise the limit (ulimit -f), or record less (--tokens, --ops)',
  },
  'unreadable-row': {
    isLoss: true,
    title: 'unreadable row',
    hint: 'a required value is missing or has another form: the row is left out',
  },
  'unknown-op': {
    isLoss: false,
    title: 'unknown op',
    hint: 'the op is drawn by its number: name the table of the ggml version that ran, or a file with its op names (--op-table)',
  },
  'op-table-unclear': {
    isLoss: false,
    title: 'op table unclear',
    hint: 'ops may be drawn by their numbers, or by wrong names: name the table of the ggml version that ran, or a file with its op names (--op-table)',
  },

  // Logs of llama-server
  'calls-without-time': {
    isLoss: false,
    title: 'calls without a time',
    hint: 'only the order of the calls is known: oneDNN writes times with ONEDNN_VERBOSE_TIMESTAMP=1, cuBLAS and the traces of cuBLASLt and hipBLASLt have them to 1 s, rocBLAS has none',
  },
  'unreadable-call': {
    isLoss: true,
    title: 'unreadable call',
    hint: 'the line is damaged, or of another version of the library: the call is left out',
  },
  'lines-without-time': {
    isLoss: false,
    title: 'lines without a time',
    hint: "only the order of the lines and the server's own figures mean something: start it with --log-timestamps and --log-prefix, or collect the log with times (docker logs --timestamps, journalctl -o short-iso-precise)",
  },
  'server-started-again': {
    isLoss: true,
    lost: ['end'],
    title: 'the server was started again',
    hint: 'its tasks are numbered from 0 again, and the lines from there on are left out: give each run in a file of its own',
  },
  'no-tasks': {
    isLoss: false,
    title: 'no tasks',
    hint: 'the server got no requests, or writes less: start it with -lv 4 (-lv 5 adds the queue)',
  },

  // Power, clocks and utilization
  'gpus-by-order': {
    isLoss: false,
    title: 'GPUs by the order of rows',
    hint: 'the log does not say what GPU a row is of: rows that are close together in time are taken as the GPUs of one reading, in their order; query index or uuid, too',
  },
  'readings-without-time': {
    isLoss: false,
    title: 'readings without times',
    hint: 'their distances are assumed: record times (nvidia-smi dmon -o DT, turbostat --show Time_Of_Day_Seconds,…, dcgmi dmon | ts %.s), and give the begin (--clock <input>=@1444.4s)',
  },
  'no-readings': {
    isLoss: false,
    title: 'no readings',
    hint: 'the tool wrote no values, or writes them in another form: record with a header (--format=csv without noheader)',
  },

  // ggtrace
  'damaged-block': {
    isLoss: true,
    title: 'damaged block',
    hint: 'the checksum or the size of the block is wrong: its records are left out',
  },
  'damaged-bytes': {
    isLoss: true,
    title: 'damaged bytes',
    hint: 'the bytes between two blocks are no block: a block may be missing there',
  },
  'torn-block': {
    isLoss: true,
    lost: ['end'],
    title: 'torn block',
    hint: 'the file was truncated, or is still being written: the present records are read, but no checksum covers them',
  },
  'open-blocks': {
    isLoss: false,
    title: 'open blocks',
    hint: 'the recorder did not close them: their records are read, but no checksum covers them',
  },
  'run-without-end': {
    isLoss: true,
    lost: ['end'],
    title: 'run did not end',
    hint: 'the process was killed, or the file was truncated: the last events may be missing',
  },
  'lost-blocks': {
    isLoss: true,
    title: 'lost blocks',
    hint: 'a part of the file is missing or damaged: events of one thread are not in the trace',
  },
  'repeated-block': {
    isLoss: false,
    title: 'repeated block',
    hint: 'parts of the file were copied twice, or two logs were joined: each block is read once',
  },
  'block-out-of-order': {
    isLoss: false,
    title: 'block out of order',
    hint: 'parts of the file were joined in another order: the block is read, but events of its thread may be in the wrong place',
  },
  'missing-records': {
    isLoss: true,
    title: 'missing records',
    hint: 'the recorder wrote more events than the file contains: a part of the file is missing or damaged',
  },
  'lost-definitions': {
    isLoss: true,
    title: 'lost definitions',
    hint: 'a part of the file is missing or damaged: names, tensors and graphs may be unknown or wrong',
  },
  'undefined-id': {
    isLoss: false,
    title: 'id without a definition',
    hint: 'its definition is in a part of the file that is missing or damaged: it is drawn by its number',
  },
  'operator-without-worker': {
    isLoss: true,
    lost: ['operators'],
    title: 'operator without a worker',
    hint: 'the recorder did not store which worker ran the operators of the block: they are left out',
  },
  'unknown-version': {
    isLoss: false,
    title: 'unknown version',
    hint: 'a later version of ggml2perfetto recorded the log: read it with that version or a later one',
  },
  'recorded-less': {
    isLoss: true,
    lost: ['graphs', 'operators', 'counters', 'experts'],
    title: 'recorded less',
    hint: 'recording took more time than its guard allows, and the recorder left out a part of the events from there on: allow more (--guard), or record fewer kinds of events',
  },

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

/** A code of {@link ISSUES}. */
export type IssueCode = keyof typeof ISSUES

/** The kind of an issue; undefined for one that is not in the catalogue. */
export function kindOfIssue({ code }: { readonly code?: string | undefined }): IssueKind | undefined {
  return code !== undefined && Object.hasOwn(ISSUES, code) ? ISSUES[code as IssueCode] : undefined
}

/** A problem of the input that did not stop the reading. Shown in the trace where it happened. */
export interface IssueEvent {
  readonly kind: 'issue'
  /** Its code in the catalogue (issues.ts), if it has one. */
  readonly code?: IssueCode | undefined
  /** A fixed phrase, by which issues are counted. */
  readonly title: string
  /** What was expected and what was found. */
  readonly detail: string
  readonly at: Position
  readonly atNs: number
  /** What is missing, where the reader knows it better than the catalogue does. */
  readonly lost?: readonly LostKind[] | undefined
}

/**
 * An issue of the catalogue. `detail`: what was expected and what was found; `atNs`: since the input's origin; `lost`: what is missing,
 * where the catalogue does not say it.
 */
export function issueOf(
  code: IssueCode,
  detail: string,
  at: Position,
  atNs: number,
  lost?: readonly LostKind[],
): IssueEvent {
  return { kind: 'issue', code, title: ISSUES[code].title, detail, at, atNs, ...(lost && { lost }) }
}
