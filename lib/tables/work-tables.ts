import {
  amount,
  amountOrNull,
  fraction,
  proseOrNull,
  small,
  smallOrNull,
  text,
  textOrNull,
  time,
  timeOrNull,
  yes,
} from './column.ts'

const TRACE_ID = text('The run: see `trace`.')
const TS = time("Start, since the run's origin.")
const CALL = timeOrNull('Number of its call; null: in none, or not known.')
const TYPE = textOrNull('Type of the weights (the first source that is one), else of the result.')
const BACKEND = textOrNull('The backend.')
const OP = text('The op, such as `MUL_MAT`; of fused nodes the first and the last one, such as `RMS_NORM+MUL`.')
const INFERRED = textOrNull('What of it is not recorded but inferred, such as `wait`; separated by semicolons.')

/** What a node of the graph is; of fused nodes, with their last one. */
const NODE = {
  role: textOrNull("Name of the node's tensor without its layer, such as `ffn_down`."),
  layer: smallOrNull('Layer of the model; null: in none, or not known.'),
  tensor: textOrNull("Name of the node's tensor."),
}

/** Counters of the operator's thread, by the names of perf(1); null: not counted. */
const COUNTS = {
  cycles: timeOrNull('Cycles of the CPU.'),
  instructions: timeOrNull('Instructions.'),
  cache_references: timeOrNull('Accesses of the last cache.'),
  cache_misses: timeOrNull('Those that missed.'),
  branches: timeOrNull('Branches.'),
  branch_misses: timeOrNull('Those that were predicted wrongly.'),
  bus_cycles: timeOrNull('Cycles of the bus.'),
  stalled_cycles_frontend: timeOrNull('Cycles in which the frontend was stalled.'),
  stalled_cycles_backend: timeOrNull('Cycles in which the backend was stalled.'),
  ref_cycles: timeOrNull('Cycles at the reference rate.'),
  task_clock_ns: timeOrNull('Time of its thread on a CPU.'),
  page_faults: amountOrNull('Page faults.'),
  minor_faults: amountOrNull('Page faults without a read from a disk.'),
  major_faults: amountOrNull('Page faults with one.'),
  disk_read_bytes: amountOrNull('Bytes read from disks.'),
  context_switches: amountOrNull('Switches of the thread on its CPU.'),
  cpu_migrations: amountOrNull('Moves of the thread to another CPU.'),
}

/** One row per operator. */
export const operator = {
  about:
    'One node of a graph (or several fused ones) that one worker computed. Work (FLOP, bytes) is that of the node, of all workers.',
  sortedBy: ['worker', 'ts_ns'],
  columns: {
    trace_id: TRACE_ID,
    call: CALL,
    graph: timeOrNull('Number of its graph run: one compute of a graph, of all splits; null: not known.'),
    node: small('Number of the node in the run: the same in each graph run.'),
    worker: small("The worker: ggml's ith."),
    ts_ns: TS,
    dur_ns: time('Time of computing.'),
    wait_ns: time('Wait at the barrier after it.'),
    inner_wait_ns: time('Part of `dur_ns` at barriers within the operator.'),
    op: OP,
    ...NODE,
    type: TYPE,
    backend: BACKEND,
    m: amountOrNull('Of a matrix product: rows of the weights; else elements of the result in its first dimension.'),
    n: amountOrNull('Of a matrix product: columns of the result; else elements of the result in its second dimension.'),
    k: amountOrNull('Of a matrix product: elements that are summed up for each element of the result; else null.'),
    flop: amountOrNull('Floating-point operations of matrix products; 0 for other ops; null: not known.'),
    bytes_read: amountOrNull('Bytes of its sources, each once; null: not known.'),
    bytes_written: amountOrNull('Bytes of its result; null: not known.'),
    bytes_are_max: yes('The choice of experts is not known: `bytes_read` is an upper bound.'),
    tid: smallOrNull('Thread.'),
    cpu: smallOrNull('CPU on which it started.'),
    ...COUNTS,
    other_counters: proseOrNull("Counts of other counters, such as codes of the processor's, as JSON."),
    inferred: INFERRED,
  },
} as const

/** One row per phase, role, op, type and backend. */
export const operator_sum = {
  about:
    'The rows of `operator` of one phase, role, op, type and backend, summed up. Each of these has the work (FLOP, bytes) of all workers, so that the sum of work by that of `dur_ns` is a rate of the nodes.',
  sortedBy: ['phase', 'role', 'op', 'type', 'backend'],
  columns: {
    trace_id: TRACE_ID,
    phase: textOrNull(
      'Phase of their calls; null: in none, or the log lacks the call, or has it only long after them.',
    ),
    role: NODE.role,
    op: OP,
    type: TYPE,
    backend: BACKEND,
    operators: amount('Rows of `operator`.'),
    dur_ns: time('Sum of their `dur_ns`.'),
    wait_ns: time('Sum of their `wait_ns`.'),
    inner_wait_ns: time('Sum of their `inner_wait_ns`.'),
    longest_ns: time('The longest `dur_ns`.'),
    flop: amountOrNull('Sum of `flop`, where it is known; null: of no row, or above 2^63 - 1.'),
    bytes_read: amountOrNull('Sum of `bytes_read`, where it is known; null: of no row, or above 2^63 - 1.'),
    bytes_written: amountOrNull('Sum of `bytes_written`, where it is known; null: of no row, or above 2^63 - 1.'),
    bytes_are_max: yes('`bytes_read` of some of them is an upper bound.'),
  },
} as const

/** One row per state of a thread. */
export const state = {
  about: "One state of a worker's thread, from its begin to its end.",
  sortedBy: ['worker', 'ts_ns'],
  columns: {
    trace_id: TRACE_ID,
    worker: smallOrNull('The worker that the thread serves; null: it is not one.'),
    tid: small('Thread.'),
    ts_ns: TS,
    dur_ns: time('Duration.'),
    state: text('`running`, `runnable` (preempted), `woken` (runnable after a wait) or `blocked`.'),
    cpu: smallOrNull('CPU on which it runs, or ran last.'),
    wait: textOrNull("The kernel's letter of the state in which it waits: S, D …"),
    taken_by: textOrNull(
      'Thread that had the CPU longest while it waited; of the state `woken`, the thread that woke it.',
    ),
    taken_by_ns: timeOrNull('For how long.'),
    inferred: INFERRED,
  },
} as const

/** One row per work of a GPU. */
export const gpu = {
  about: 'One kernel, copy, fill or graph that a GPU ran, or a wait for one.',
  sortedBy: ['device', 'stream', 'ts_ns'],
  columns: {
    trace_id: TRACE_ID,
    call: CALL,
    what: text('`kernel`, `memcpy`, `memset`, `graph`, `migration` or `sync`.'),
    device: smallOrNull('Number of the device.'),
    context: smallOrNull('Number of its context.'),
    stream: smallOrNull('Number of the stream.'),
    queue: textOrNull('Name of the queue, of an API without streams.'),
    pid: smallOrNull('Process that launched it.'),
    ts_ns: TS,
    dur_ns: time('Duration.'),
    name: text('Name of the kernel or of the kind of copy.'),
    op: textOrNull('The op of the node that it computed.'),
    ...NODE,
    correlation: timeOrNull("The profiler's id, which it shares with the call that launched it."),
    bytes: amountOrNull('Bytes copied or filled.'),
  },
} as const

/** One row per sample of a counter. */
export const counter = {
  about:
    'One sample of a series of numbers, such as a clock rate or free memory. Counters of operators are columns of `operator`.',
  sortedBy: ['name', 'ts_ns'],
  columns: {
    trace_id: TRACE_ID,
    call: CALL,
    name: text('Name of the counter.'),
    unit: text('`bytes`, `count` or `ns`; of a counter of another program, its own unit.'),
    ts_ns: time("Time, since the run's origin."),
    value: fraction('Its value.'),
  },
} as const

/** One row per chosen expert. */
export const expert = {
  about: 'One expert that a router chose for a token.',
  sortedBy: ['layer', 'ts_ns'],
  columns: {
    trace_id: TRACE_ID,
    call: CALL,
    layer: smallOrNull('Layer of the router.'),
    ts_ns: time('Start of the first operator that used the choice, or the time of the choice.'),
    token: small('Index of the token in its batch.'),
    rank: small('Place among the experts of the token, from 0.'),
    expert: small('Number of the expert.'),
  },
} as const

/** One row per finding. */
export const finding = {
  about: 'One sentence of the diagnosis (docs/reference/findings.md), most time first.',
  sortedBy: ['rank'],
  columns: {
    trace_id: TRACE_ID,
    rank: small('Place, from 0.'),
    rule: text('Its rule.'),
    sentence: proseOrNull('The sentence.'),
    time_ns: time('Time that it explains.'),
    confidence: text('`high`, `medium` or `low`.'),
    evidence: proseOrNull('The figures behind it, as JSON.'),
    advice: proseOrNull('What to do about it.'),
  },
} as const
