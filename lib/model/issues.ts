import type { Position } from '../errors.ts'

/** One kind of thing that can be wrong in an input. */
export interface IssueKind {
  /** What is wrong, as a short phrase: the name of its slices on the Issues track; issues are counted by it. */
  readonly title: string
  /** What it means for the figures, or what the user can do about it. */
  readonly hint: string
}

/**
 * The catalogue of what can be wrong in an input that is read all the same. Codes are stable and never reused: scripts may
 * test for them.
 */
export const ISSUES = {
  // Any input
  'broken-gzip': {
    title: 'broken gzip stream',
    hint: 'the file was cut or changed after it was compressed; what comes before the damage is in the trace',
  },
  'inputs-apart': {
    title: 'no time in common with the other inputs',
    hint: 'the files are of different runs, or not on the clock that was taken for theirs: name the right files, or give the clock (--clock <input>=boot)',
  },
  'recorded-twice': {
    title: 'left out, recorded twice',
    hint: 'two inputs record the scheduler of the same CPU at the same time: it is drawn from the one that records more',
  },
  'impossible-time': {
    title: 'impossible time',
    hint: 'the input is damaged, or counts times from elsewhere: times must lie within a day of their neighbours and within 100 days of the first one',
  },
  'value-out-of-range': {
    title: 'value out of range',
    hint: 'no such thread, CPU, tensor, launch or count can exist: the input is damaged there, or its format was misread',
  },
  'late-switch': {
    title: 'late switch',
    hint: 'the switches of a CPU must be in order of time: one that comes after a later one is left out, and which thread had the CPU may be wrong there',
  },
  'lost-switches': {
    title: 'lost switches',
    hint: 'switches in between are missing, and which thread had the CPU is not known there: record with larger buffers (trace-cmd record -b, perf record -m)',
  },
  'call-failed': {
    title: 'failed call',
    hint: 'result 1: enlarge the context (-c) or make batches smaller; failed calls are in no time and no rate',
  },
  'event-without-time': {
    title: 'event without a time',
    hint: 'the input says nothing about when it was: the event is left out',
  },
  'event-without-end': {
    title: 'event without an end',
    hint: 'the input has no duration for it, or one below 0: the event is drawn with a duration of 0',
  },
  'end-without-start': {
    title: 'end without a start',
    hint: 'the range began before the recording, or its start was lost: the range is not in the trace',
  },
  'range-without-end': {
    title: 'range without an end',
    hint: 'the range was still open when the recording ended, or its end was lost: its duration is not known',
  },
  'record-out-of-order': {
    title: 'record out of order',
    hint: 'the record comes later in the input than others are held back for it: durations near it may be wrong',
  },
  'torn-record': {
    title: 'torn record',
    hint: 'the input ends within a record: the file was cut, or was still being written; what comes before is in the trace',
  },
  'damaged-record': {
    title: 'damaged record',
    hint: 'the input is damaged there: what cannot be read of the record is left out',
  },
  'short-record': {
    title: 'short record',
    hint: 'the record has fewer bytes than its type needs: it is damaged, or of a version that is not known; it is left out',
  },
  'lost-records': {
    title: 'lost records',
    hint: 'the recorder had no room for them, and what happened there is missing: record less, or with larger buffers (perf record -m, trace-cmd record -b, buffer_size_kb in tracefs, BPFTRACE_PERF_RB_PAGES)',
  },
  'unreadable-row': {
    title: 'unreadable row',
    hint: 'a value that is needed is missing or has another form: the row is left out',
  },
  'unknown-op': {
    title: 'unknown op',
    hint: 'the op is drawn by its number: name the table of the ggml version that ran, or a file with its op names (--op-table)',
  },
  'op-table-unclear': {
    title: 'op table unclear',
    hint: 'ops may be drawn by their numbers, or by wrong names: name the table of the ggml version that ran, or a file with its op names (--op-table)',
  },

  // ggtrace
  'damaged-block': {
    title: 'damaged block',
    hint: 'the checksum or the size of the block is wrong: its records are left out',
  },
  'damaged-bytes': {
    title: 'damaged bytes',
    hint: 'there is something between the blocks that is none: a block may be missing there',
  },
  'torn-block': {
    title: 'torn block',
    hint: 'the file was cut, or is still being written: the records that are there are read, but no checksum covers them',
  },
  'open-blocks': {
    title: 'open blocks',
    hint: 'the recorder did not close them: their records are read, but no checksum covers them',
  },
  'run-without-end': {
    title: 'run did not end',
    hint: 'the process was killed, or the file was cut: the last events may be missing',
  },
  'lost-blocks': {
    title: 'lost blocks',
    hint: 'a part of the file is missing or damaged, and with it the events of one thread: what it did there is not in the trace',
  },
  'repeated-block': {
    title: 'repeated block',
    hint: 'parts of the file were copied twice, or two logs were joined: each block is read once',
  },
  'block-out-of-order': {
    title: 'block out of order',
    hint: 'parts of the file were put together in another order: the block is read, but events of its thread may be placed wrongly',
  },
  'missing-records': {
    title: 'missing records',
    hint: 'the recorder wrote more events than the file contains: a part of the file is missing or damaged',
  },
  'lost-definitions': {
    title: 'lost definitions',
    hint: 'a part of the file is missing or damaged: names, tensors and graphs may be unknown, or be those of others',
  },
  'undefined-id': {
    title: 'id without a definition',
    hint: 'what the id stands for is in a part of the file that is missing or damaged: it is drawn by its number',
  },
  'operator-without-worker': {
    title: 'operator without a worker',
    hint: 'the recorder did not store which worker ran the operators of the block: they are left out',
  },
  'unknown-version': {
    title: 'unknown version',
    hint: 'a later version of ggml2perfetto recorded the log: read it with that version or a later one',
  },
  'recorded-less': {
    title: 'recorded less',
    hint: 'recording took more time than its guard allows, so that the recorder left out a part of the events from there on: allow more (--guard), or record fewer kinds of events',
  },

  // ProfInfer
  'unknown-probe': {
    title: 'unknown probe type',
    hint: 'another version of the logger wrote the row, or it is damaged: it is left out',
  },
  'log-ends-in-call': {
    title: 'log ends within a call',
    hint: 'the logger was stopped while llama.cpp computed: the last call, its graphs and operators end at the last row',
  },

  // Chrome JSON
  'json-damaged': {
    title: 'damaged document',
    hint: 'the file is no sound JSON there: what lies between the damage and the next event is left out',
  },
  'json-without-end': {
    title: 'document without an end',
    hint: 'the program that wrote the file did not finish it, or the file was cut: later events are missing',
  },
  'json-behind-end': {
    title: 'bytes behind the end of the document',
    hint: 'files were joined, or one was written over a longer one; give each document as a file of its own',
  },
  'json-large-event': {
    title: 'event too large',
    hint: 'one event has an argument of many megabytes; all other events are in the trace',
  },
  'json-no-phase': {
    title: 'event without a phase',
    hint: 'without a "ph" the kind of the event is not known: the event is left out',
  },
  'json-no-base-time': {
    title: 'no base time',
    hint: 'when the run was is not known, and how it lies to other inputs (--clock): the end of a pipe is read too late for that, give the file itself',
  },
  'too-many-open': {
    title: 'too many slices open at once',
    hint: 'more than 4 096 were open on one row, or in one operation, or as many operations: further ones are left out',
  },
  'late-begin-or-end': {
    title: 'begins or ends far out of order',
    hint: 'ranges near them may be paired wrongly: sort the events of the file by "ts"',
  },

  // Nsight Systems
  'unread-table': {
    title: 'table not read',
    hint: 'export the report anew with nsys export --type sqlite; or let sqlite3 write the rows into an ordinary table',
  },
  'database-damaged': {
    title: 'damaged file',
    hint: 'pages of the SQLite file are damaged, and their rows are missing: export the report anew with nsys export --type sqlite',
  },
  'row-before-session': {
    title: 'row before the session',
    hint: 'the report does not contain when the session began, so that times before it cannot be placed: the row is left out',
  },
  'graph-kernels-hidden': {
    title: 'kernels hide inside CUDA graphs',
    hint: 'kernels that a CUDA graph ran are not in the report one by one: record with nsys profile --cuda-graph-trace=node',
  },
  'cuda-events-without-time': {
    title: 'CUDA events without a time',
    hint: 'CUDA events are not in the trace: record with nsys profile --cuda-event-trace=true',
  },
  'nvtx-type-unknown': {
    title: 'NVTX rows of an unknown type',
    hint: 'a later version of Nsight Systems wrote them, or the file is damaged: the rows are left out',
  },
  'profiler-warning': {
    title: 'the profiler warned',
    hint: 'the message is of Nsight Systems (its diagnostics summary): some data may be missing in the report',
  },
  'profiler-error': {
    title: 'the profiler had an error',
    hint: 'the message is of Nsight Systems (its diagnostics summary): data are missing in the report',
  },

  // Recordings of the kernel
  'old-thread-states': {
    title: 'numbers of thread states of an older kernel',
    hint: 'Linux before 4.15 numbers the states in other ways, so that some may be wrong: give the recording itself (trace.dat, perf.data)',
  },
  'nothing-traced': {
    title: 'nothing traced',
    hint: 'a stripped file has no names of functions (nm <file>, nm -D <file>), and another file than the one that runs is not called: trace a build that is not stripped, or, if it is linked dynamically, use ggml2perfetto record',
  },
  'no-scheduler-events': {
    title: 'no scheduler events',
    hint: 'the recording is of other events: record the scheduler (trace-cmd record -e sched, perf record -e sched:sched_switch,sched:sched_waking)',
  },
  'no-cpu': {
    title: 'no CPU recorded',
    hint: 'which CPU had which thread is not known: record the CPU (perf record -a or --sample-cpu), or print it (perf script -F comm,pid,tid,cpu,time,event,trace)',
  },
  'no-event-formats': {
    title: 'missing event formats',
    hint: 'without the formats of the kernel that ran its tracepoints cannot be read: give the whole file that was recorded',
  },
  'torn-file': {
    title: 'torn file',
    hint: 'the end of the file is missing, and with it names and formats that perf writes last: records that need none are read',
  },
  'damaged-page': {
    title: 'damaged page',
    hint: "the rest of this page of the kernel's ring buffer is left out: events of its CPU are missing there",
  },
  'damaged-compression': {
    title: 'damaged compression',
    hint: 'a compressed part of the file is damaged: its events, of perf.data also those behind it, are missing',
  },
  'buffer-on-other-clock': {
    title: 'buffer on another clock',
    hint: 'buffers of one recording can only be drawn together on one clock: record all with the same (trace-cmd record -C mono)',
  },
  'late-clock-marker': {
    title: 'late clock marker',
    hint: 'the clock was not known when the first events were read: write the marker first, or name the clock (--clock <input>=mono)',
  },

  // TensorTrace and its companions
  'log-hole': {
    title: 'hole in the log',
    hint: 'records between others are empty: operators are missing there, and the operator before is drawn longer than it ran',
  },
  'unknown-phase': {
    title: 'unknown phase',
    hint: 'the record is taken as one of decoding: where a prefill begins or ends may be wrong',
  },
  'too-many-experts': {
    title: 'too many experts',
    hint: 'the record is damaged there: the experts of this operator are not in the trace',
  },
  'other-weight': {
    title: 'other weight in the memory map',
    hint: 'the memory map is of another model file, or of another version of it: the name of the log is kept',
  },
  'companion-entry': {
    title: 'unusable entry of a companion',
    hint: 'a field is missing or damaged, or the entry contradicts the ones before it: the entry is left out',
  },
  'graph-edge': {
    title: 'edge from outside the graph',
    hint: 'the graph file is incomplete or not one graph: the node is kept without that source',
  },
} as const satisfies Readonly<Record<string, IssueKind>>

/** A code of {@link ISSUES}. */
export type IssueCode = keyof typeof ISSUES

/** Something in the input was wrong and reading went on. Shown in the trace where it happened. */
export interface IssueEvent {
  readonly kind: 'issue'
  /** Its code in the catalogue (issues.ts), where it has one. */
  readonly code?: IssueCode | undefined
  /** What is wrong, as a fixed phrase: issues are counted by it. */
  readonly title: string
  /** Expectation and finding, for this one. */
  readonly detail: string
  readonly at: Position
  readonly atNs: number
}

/** An issue of the catalogue. `detail`: what was expected and what was found, here; `atNs`: since the input's origin. */
export function issueOf(code: IssueCode, detail: string, at: Position, atNs: number): IssueEvent {
  return { kind: 'issue', code, title: ISSUES[code].title, detail, at, atNs }
}
