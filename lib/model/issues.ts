import type { Position } from '../errors.ts'

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
} as const satisfies Readonly<Record<string, readonly string[]>>

/** A kind of data in a log. */
export type RecordedKind = keyof typeof RECORDED_EVENTS

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

/**
 * A kind of data that an input may lack; `functions`: what llama.cpp does outside of calls, `placement`: what devices were asked, `pages`: the NUMA nodes of memory, `end`: all after
 * its last event, and nothing before it.
 */
export type LostKind = RecordedKind | 'CUDA events' | 'functions' | 'placement' | 'pages' | 'end'

/** Words for kinds whose names are none. */
export const LOST_WORDS: Readonly<Partial<Record<LostKind, string>>> = {
  end: 'the end of the run',
  functions: 'functions outside of calls',
  pages: 'NUMA nodes of memory',
  blas: 'math libraries',
  states: 'states of threads',
  scheduler: 'the scheduler',
  nvtx: 'NVTX ranges',
  gpu: 'work of GPUs',
}

/** Events of the run are missing in the results: of the kinds `lost`, or of any that the input contains. */
function loss(title: string, hint: string, ...lost: readonly LostKind[]): IssueKind {
  return { title, hint, isLoss: true, ...(lost.length > 0 && { lost }) }
}

/** No event of the run is missing. */
function flaw(title: string, hint: string): IssueKind {
  return { title, hint, isLoss: false }
}

/**
 * The catalogue of the problems that do not stop the reading of an input. Codes are stable and never reused: scripts may
 * test for them.
 */
export const ISSUES = {
  // Any input
  'broken-gzip': loss(
    'broken gzip stream',
    'the file was truncated or changed after it was compressed; the part before the damage is in the trace',
    'end',
  ),
  'broken-archive': loss(
    'broken archive',
    'the archive, or the compressed output of atrace, was truncated or changed; the part before the damage is in the trace',
    'end',
  ),
  'other-files': flaw(
    'one file of the archive',
    'files of one run are given together: unpack the archive, and give all of them',
  ),
  'inputs-apart': flaw(
    'no time in common with the other inputs',
    'the files are of different runs, or their clock is not the assumed one: name the right files, or give the clock (--clock <input>=boot)',
  ),
  'pid-namespace': flaw(
    "threads have the machine's numbers",
    'the program ran in a PID namespace (a container), and the recording has the numbers of the machine: threads were matched by the times of their switches, and have the numbers of the log',
  ),
  'recorded-twice': flaw(
    'left out, recorded twice',
    'two inputs record the scheduler of the same CPU at the same time: it is drawn from the one that records more',
  ),
  'impossible-time': loss(
    'impossible time',
    'the input is damaged, or its times have another origin: times must be within a day of their neighbours and within 100 days of the first one',
  ),
  'value-out-of-range': loss(
    'value out of range',
    'no such thread, CPU, tensor, launch or count can exist: the input is damaged there, or its format was misread',
  ),
  'late-switch': loss(
    'late switch',
    'the switches of a CPU must be in order of time: a switch after a later one is left out, and the thread that had the CPU may be wrong there',
    'scheduler',
  ),
  'lost-switches': loss(
    'lost switches',
    'switches in between are missing, and the thread that had the CPU is not known there: record with larger buffers (record --sched-buffer, trace-cmd record -b, perf record -m); where no buffer was full, the kernel does not trace some threads',
    'scheduler',
  ),
  'call-failed': flaw(
    'failed call',
    'result 1: enlarge the context (-c) or make batches smaller; failed calls, and those that an exception or longjmp left, are not part of any time or rate',
  ),
  'event-without-time': loss(
    'event without a time',
    'the input does not record when it happened: the event is left out',
  ),
  'request-without-end': loss(
    'request without an end',
    'lines or events of its end are missing in the input: of more requests at a time than llama.cpp can have, the first is unfinished from there on',
  ),
  'event-without-end': flaw(
    'event without an end',
    'the input has no duration for it, or one below 0: the event is drawn with a duration of 0',
  ),
  'end-without-start': loss(
    'end without a start',
    'the range began before the recording, or its start was lost: the range is not in the trace',
  ),
  'range-without-end': flaw(
    'range without an end',
    'the range was still open when the recording ended, or its end was lost: its duration is not known',
  ),
  'record-out-of-order': flaw(
    'record out of order',
    'the record comes so late in the input that later events are drawn already: durations near it may be wrong',
  ),
  'late-record': loss(
    'late record',
    'the record comes so late in the input that its place in time is passed: it is left out',
  ),
  'torn-record': loss(
    'torn record',
    'the input ends within a record: the file was truncated, or was still being written; all earlier records are in the trace',
    'end',
  ),
  'damaged-record': loss('damaged record', 'the input is damaged there: the unreadable part of the record is left out'),
  'short-record': loss(
    'short record',
    'the record has fewer bytes than its type needs: it is damaged, or of an unknown version; it is left out',
  ),
  'lost-records': loss(
    'lost records',
    'the buffers of the recorder were full, and events are missing there: record less, or with larger buffers (record --sched-buffer, perf record -m, trace-cmd record -b, buffer_size_kb in tracefs, BPFTRACE_PERF_RB_PAGES)',
  ),
  'lost-states': loss(
    'lost states of threads',
    'the threads of the program changed their state faster than the recorder writes it, and some states are missing; calls, graphs and operators are complete: record --sched, as root, has larger buffers',
    'states',
  ),
  'lost-gpu-work': loss(
    'lost work of a GPU',
    'its times could not be read: pieces of work of the GPU are missing; calls, graphs and operators of the CPU are complete',
    'gpu',
  ),
  'gpu-work-without-launch': loss(
    'work of a GPU without its launch',
    'it is on its stream in the trace, and missing in the figures of its call, graph and operator: CUPTI delivered it without the launch, or so late that the launch was forgotten',
    'gpu',
  ),
  'states-end': loss(
    'states of threads end early',
    'the recorder could not find out any more whether other threads run (/proc/self), and states are missing from there on; calls, graphs and operators are complete: record --sched, as root, does not depend on it',
    'states',
  ),
  'left-out-functions': loss(
    'functions left out',
    'conversions of a token to text after the first 1024 between two calls are left out: the time that the program takes for them is too small in the figures',
    'functions',
  ),
  'unseen-calls': loss(
    'calls that the recorder does not see',
    'the compiler made copies of functions for some of their calls (.constprop, .isra, .part), or a library made calls while it was loaded: these calls are missing. Shared libraries (cmake -DBUILD_SHARED_LIBS=ON) have no such copies',
  ),
  'unseen-pages': loss(
    'NUMA nodes of memory are not known',
    'the kernel refused move_pages(2), and the nodes of memory are missing: in a container, give it the capability CAP_SYS_NICE',
    'pages',
  ),
  'clock-corrected': flaw(
    'corrected clock',
    "times come from the processor's counter, which stopped or jumped, as when the machine was suspended: a duration across that moment may be wrong by so much",
  ),
  'overlapping-work': flaw(
    'work within other work of its stream',
    'a stream runs one piece of work after the other: the outer one has a wrong end, and its duration counts in the sums of kernels; times of devices and streams count each moment once',
  ),
  'lost-counters': loss(
    'lost counters of a thread',
    'the kernel gives no counters for this thread: its operators have none; their times are complete',
    'counters',
  ),
  'dropped-records': loss(
    'dropped records',
    'the log had no space for them, and events are missing there: the disk was full, or a size limit was reached',
  ),
  'disk-full': loss(
    'the disk was full',
    'the log is incomplete: free space, write it to another disk (-o), or record less (--max-size, --ring, --tokens, --ops)',
  ),
  'log-full': loss(
    'the log reached its size limit',
    'record --max-size sets the limit; --ring keeps the last part of the run instead of the first',
  ),
  'log-cut': loss(
    'the log was truncated while it was recorded',
    'the log is incomplete: it ended when another program truncated it, such as logrotate with copytruncate, whose copy has what was recorded before; exclude it from rotation',
    'end',
  ),
  'process-limit': loss(
    'the program reached its limit for the size of files',
    'the log is incomplete: raise the limit (ulimit -f), or record less (--tokens, --ops)',
  ),
  'unreadable-row': loss('unreadable row', 'a required value is missing or has another form: the row is left out'),
  'unknown-op': flaw(
    'unknown op',
    'the op is drawn by its number: name the table of the ggml version that ran, or a file with its op names (--op-table)',
  ),
  'op-table-unclear': flaw(
    'op table unclear',
    'ops may be drawn by their numbers, or by wrong names: name the table of the ggml version that ran, or a file with its op names (--op-table)',
  ),

  // Logs of llama-server
  'calls-without-time': flaw(
    'calls without a time',
    'only the order of the calls is known: oneDNN writes times with ONEDNN_VERBOSE_TIMESTAMP=1, cuBLAS and the traces of cuBLASLt and hipBLASLt have them to 1 s, rocBLAS has none',
  ),
  'unreadable-call': loss(
    'unreadable call',
    'the line is damaged, or of another version of the library: the call is left out',
  ),
  'lines-without-time': flaw(
    'lines without a time',
    "only the order of the lines and the server's own figures mean something: start it with --log-timestamps and --log-prefix, or collect the log with times (docker logs --timestamps, journalctl -o short-iso-precise)",
  ),
  'server-started-again': loss(
    'the server was started again',
    'its tasks are numbered from 0 again, and the lines from there on are left out: give each run in a file of its own',
    'end',
  ),
  'no-tasks': flaw(
    'no tasks',
    'the server got no requests, or writes less: start it with -lv 4 (-lv 5 adds the queue)',
  ),

  // Power, clocks and utilization
  'gpus-by-order': flaw(
    'GPUs by the order of rows',
    'the log does not say what GPU a row is of: rows that are close together in time are taken as the GPUs of one reading, in their order; query index or uuid, too',
  ),
  'readings-without-time': flaw(
    'readings without times',
    'their distances are assumed: record times (nvidia-smi dmon -o DT, turbostat --show Time_Of_Day_Seconds,…, dcgmi dmon | ts %.s), and give the begin (--clock <input>=@1444.4s)',
  ),
  'no-readings': flaw(
    'no readings',
    'the tool wrote no values, or writes them in another form: record with a header (--format=csv without noheader)',
  ),

  // ggtrace
  'damaged-block': loss('damaged block', 'the checksum or the size of the block is wrong: its records are left out'),
  'damaged-bytes': loss('damaged bytes', 'the bytes between two blocks are no block: a block may be missing there'),
  'torn-block': loss(
    'torn block',
    'the file was truncated, or is still being written: the present records are read, but no checksum covers them',
    'end',
  ),
  'open-blocks': flaw(
    'open blocks',
    'the recorder did not close them: their records are read, but no checksum covers them',
  ),
  'run-without-end': loss(
    'run did not end',
    'the process was killed, or the file was truncated: the last events may be missing',
    'end',
  ),
  'lost-blocks': loss(
    'lost blocks',
    'a part of the file is missing or damaged: events of one thread are not in the trace',
  ),
  'repeated-block': flaw(
    'repeated block',
    'parts of the file were copied twice, or two logs were joined: each block is read once',
  ),
  'block-out-of-order': flaw(
    'block out of order',
    'parts of the file were joined in another order: the block is read, but events of its thread may be in the wrong place',
  ),
  'missing-records': loss(
    'missing records',
    'the recorder wrote more events than the file contains: a part of the file is missing or damaged',
  ),
  'lost-definitions': loss(
    'lost definitions',
    'a part of the file is missing or damaged: names, tensors and graphs may be unknown or wrong',
  ),
  'undefined-id': flaw(
    'id without a definition',
    'its definition is in a part of the file that is missing or damaged: it is drawn by its number',
  ),
  'operator-without-worker': loss(
    'operator without a worker',
    'the recorder did not store which worker ran the operators of the block: they are left out',
    'operators',
  ),
  'unknown-version': flaw(
    'unknown version',
    'a later version of ggml2perfetto recorded the log: read it with that version or a later one',
  ),
  'recorded-less': loss(
    'recorded less',
    'recording took more time than its guard allows, and the recorder left out a part of the events from there on: allow more (--guard), or record fewer kinds of events',
    'graphs',
    'operators',
    'counters',
    'experts',
  ),
  'fast-calls': flaw(
    'fast calls left out',
    'record --slow keeps only calls as long as its limit, with what preceded them: rates and shares are of these',
  ),
  'program-clock': flaw(
    "the program's clock is not real time",
    'a library changes the clock of the program, such as libfaketime: times here are of the system, and differ from those that the program prints, and from those in logs that it writes',
  ),

  // ProfInfer
  'unknown-probe': loss(
    'unknown probe type',
    'another version of the logger wrote the row, or it is damaged: it is left out',
  ),
  'log-ends-in-call': flaw(
    'log ends within a call',
    'the logger was stopped while llama.cpp computed: the last call, its graphs and operators end at the last row',
  ),

  // Chrome JSON
  'json-damaged': loss(
    'damaged document',
    'the file is not valid JSON there: the part between the damage and the next event is left out',
  ),
  'json-without-end': loss(
    'document without an end',
    'the program that wrote the file did not finish it, or the file was truncated: later events are missing',
    'end',
  ),
  'json-behind-end': loss(
    'bytes after the end of the document',
    'files were joined, or one was written over a longer one; give each document as a separate file',
    'end',
  ),
  'json-large-event': loss(
    'event too large',
    'one event has an argument of many megabytes; all other events are in the trace',
  ),
  'json-no-phase': loss(
    'event without a phase',
    'without a "ph" the kind of the event is not known: the event is left out',
  ),
  'json-no-base-time': flaw(
    'no base time',
    'the time of the run and its offset to other inputs (--clock) are not known: in a pipe the base time comes too late, give the file itself',
  ),
  'too-many-open': loss(
    'too many slices open at once',
    'more than 4 096 slices were open on one row or in one operation, or more than 4 096 operations: further ones are left out',
  ),
  'late-begin-or-end': flaw(
    'begins or ends far out of order',
    'ranges near them may be paired wrongly: sort the events of the file by "ts"',
  ),

  // Nsight Systems
  'unread-table': loss(
    'table not read',
    'export the report again with nsys export --type sqlite; or copy the rows into an ordinary table with sqlite3',
  ),
  'database-damaged': loss(
    'damaged file',
    'pages of the SQLite file are damaged, and their rows are missing: export the report again with nsys export --type sqlite',
  ),
  'row-before-session': loss(
    'row before the session',
    'the report does not record the start of the session, so that times before it are not known: the row is left out',
  ),
  'graph-kernels-hidden': loss(
    'kernels hide inside CUDA graphs',
    'the report does not contain the single kernels of a CUDA graph: record with nsys profile --cuda-graph-trace=node',
    'gpu',
  ),
  'cuda-events-without-time': loss(
    'CUDA events without a time',
    'CUDA events are not in the trace: record with nsys profile --cuda-event-trace=true',
    'CUDA events',
  ),
  'profiles-without-kernel': flaw(
    'profiled kernels not in the log',
    'Nsight Compute profiled another run, another process, or launches that the log does not contain: their metrics are in the statistics only',
  ),
  'nvtx-type-unknown': loss(
    'NVTX rows of an unknown type',
    'a later version of Nsight Systems wrote them, or the file is damaged: the rows are left out',
    'nvtx',
  ),
  'profiler-warning': flaw(
    'the profiler warned',
    'the message is from the diagnostics summary of Nsight Systems: some data may be missing in the report',
  ),
  'profiler-error': loss(
    'the profiler had an error',
    'the message is from the diagnostics summary of Nsight Systems: data are missing in the report',
  ),

  // Recordings of the kernel
  'old-thread-states': flaw(
    'numbers of thread states of an older kernel',
    'Linux before 4.15 has other numbers for the states, and some may be wrong: give the recording itself (trace.dat, perf.data)',
  ),
  'nothing-traced': flaw(
    'nothing traced',
    'the process did nothing meanwhile; or the file has no function names (nm <file>, nm -D <file>), or the process runs another file: trace a build that is not stripped, or, if it is linked dynamically, use ggml2perfetto record',
  ),
  'no-scheduler-events': flaw(
    'no scheduler events',
    'the recording contains other events: record the scheduler (trace-cmd record -e sched, perf record -e sched:sched_switch,sched:sched_waking)',
  ),
  'no-cpu': flaw(
    'no CPU recorded',
    'the CPUs of the threads are not known: record the CPU (perf record -a or --sample-cpu), or print it (perf script -F comm,pid,tid,cpu,time,event,trace)',
  ),
  'no-event-formats': loss(
    'missing event formats',
    'tracepoints cannot be read without the event formats of their kernel: give the whole recorded file',
  ),
  'torn-file': loss(
    'torn file',
    'the end of the file is missing, where perf writes names and formats: only records that need none are read',
  ),
  'damaged-page': loss(
    'damaged page',
    "the rest of this page of the kernel's ring buffer is left out: events of its CPU are missing there",
  ),
  'damaged-compression': loss(
    'damaged compression',
    'a compressed part of the file is damaged: its events, of perf.data also all later ones, are missing',
  ),
  'buffer-on-other-clock': loss(
    'buffer on another clock',
    'buffers of one recording can only be drawn together if they have the same clock: record them with one (trace-cmd record -C mono)',
  ),
  'late-clock-marker': flaw(
    'late clock marker',
    'the clock was not known when the first events were read: write the marker first, or give the clock (--clock <input>=mono)',
  ),

  // TensorTrace and its companions
  'log-hole': loss(
    'hole in the log',
    'empty records: operators are missing there, and the operator before is drawn longer than it ran',
    'operators',
  ),
  'unknown-phase': flaw(
    'unknown phase',
    'the record is assumed to be of decoding: the border of a prefill may be wrong',
  ),
  'too-many-experts': loss(
    'too many experts',
    'the record is damaged there: the experts of this operator are not in the trace',
    'experts',
  ),
  'other-weight': flaw(
    'other weight in the memory map',
    'the memory map is of another model file, or of another version of it: the name in the log is used',
  ),
  'companion-entry': loss(
    'unusable entry of a companion',
    'a field is missing or damaged, or the entry contradicts earlier ones: the entry is left out',
  ),
  'graph-edge': flaw(
    'edge from outside the graph',
    'the graph file is incomplete or contains several graphs: the node is kept without that source',
  ),
} satisfies Readonly<Record<string, IssueKind>>

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
