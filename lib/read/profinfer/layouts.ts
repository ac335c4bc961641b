/**
 * The versions of ProfInfer's rows, one row per probe hit, as tables (its public code: artifact/Linux/trace_llama.py,
 * artifact/OpenHarmony/trace_llm.c). Times are ns of CLOCK_MONOTONIC, names are cut to 15 bytes. In rows that do not
 * start an operator, the fields of a node are 0 or empty.
 */
export interface Layout {
  /** The first line has the names of the columns, or each cell has its name: `ts:12,func:llama_decode,`. */
  readonly names: 'in the first line' | 'in each cell'
  readonly time: string
  /** Column of the probe's number, or columns of its function and of `start` or `end`. */
  readonly type: string | readonly [func: string, edge: string]
  readonly thread: string
  /** Column of the process id; it may be swapped with {@link thread}. */
  readonly tgid?: string
  readonly cpu: string
  readonly guid: string
  readonly op: string
  readonly name: string
  /** Address of the `ggml_tensor`. */
  readonly address: string
  /** Dimensions are `ne0` … `ne3`; those of sources have a prefix. */
  readonly sources: readonly { readonly address: string; readonly prefix: string }[]
  /** Prefix of the names of counters' columns. */
  readonly counters?: string
  /** Most rows that the logger keeps in memory: it drops the oldest. */
  readonly rowsMax?: number
}

const LINUX = {
  time: 'ts',
  thread: 'pid', // sic: the low half of pid_tgid
  cpu: 'cpu',
  guid: 'guid',
  op: 'op',
  name: 'name',
  address: 'parm_addr',
  counters: 'pmc',
  rowsMax: 1_000_000,
} as const

const LINUX_ADDRESSES = ['first_src_addr', 'second_src_addr', 'third_src_addr', 'fourth_src_addr']

/** The CSV that pandas writes, on Linux. */
export const PANDAS: Layout = {
  ...LINUX,
  names: 'in the first line',
  type: 'type',
  sources: LINUX_ADDRESSES.map((address, i) => ({ address, prefix: `src${i}_` })),
}

/** The older text. Its writer counts sources from 1: `src1_ne0` is of the first one. */
export const TEXT: Layout = {
  ...LINUX,
  names: 'in each cell',
  type: ['func', 'pos'],
  sources: LINUX_ADDRESSES.map((address, i) => ({ address, prefix: `src${i + 1}_` })),
}

/** The CSV of the logger for OpenHarmony, which writes the thread's id to PID, and the process' to TID. */
export const OPENHARMONY: Layout = {
  names: 'in the first line',
  time: 'Timestamp',
  type: 'Type',
  thread: 'PID',
  tgid: 'TID',
  cpu: 'CPU',
  guid: 'GUID',
  op: 'OP',
  name: 'Name',
  address: 'Tensor',
  sources: [0, 1, 2].map((i) => ({ address: `Src${i}`, prefix: `src${i}_` })),
}

/** Numbers of the probes at the start of functions. */
export const PROBES: ReadonlyMap<string, number> = new Map(
  Object.entries({
    llama_decode: 10,
    ggml_compute_forward: 20,
    ggml_backend_graph_compute_async: 30,
    ggml_acc_compute_forward: 40,
    ggml_cl_compute_forward: 40,
    ggml_rk_compute_forward: 40,
  }),
)

/** Added to the number for the probe at a function's start, and at its end. */
export const EDGES: ReadonlyMap<string, number> = new Map(Object.entries({ start: 0, end: 5 }))

/** Indices of the columns; -1 = absent. */
export interface Columns {
  readonly count: number
  readonly time: number
  readonly type: number
  /** Columns of the probe's function and edge. */
  readonly probe: readonly [number, number]
  readonly thread: number
  readonly tgid: number
  readonly cpu: number
  readonly guid: number
  readonly op: number
  readonly name: number
  readonly address: number
  readonly sourceAddresses: readonly number[]
  readonly ne: readonly number[]
  readonly sourceNe: readonly (readonly number[])[]
  readonly counters: readonly number[]
  readonly counterNames: readonly string[]
  /** First of the columns that describe a node, where all later ones are constant for a node; else -1. */
  readonly nodeTail: number
}

/** Names of the required columns. */
export function required({ time, type, thread }: Layout): readonly string[] {
  return [time, ...[type].flat(), thread]
}

/** Finds a layout's columns among the names that a log has. */
export function locate(layout: Layout, names: readonly string[]): Columns {
  const find = (name: string | undefined) => (name === undefined ? -1 : names.indexOf(name))
  const dimensions = (prefix: string) =>
    [0, 1, 2, 3].map((i) => find(`${prefix}ne${i}`)).filter((column) => column >= 0)
  const { sources, type, counters } = layout
  const [func, edge] = typeof type === 'string' ? [] : type
  const counterNames = counters === undefined ? [] : names.filter((name) => name.startsWith(counters))
  const volatile = [...required(layout), layout.tgid, layout.cpu, ...counterNames].map(find)
  const op = find(layout.op)
  const isTail = layout.names === 'in the first line' && op >= 0 && volatile.every((column) => column < op)
  return {
    count: names.length,
    time: find(layout.time),
    type: typeof type === 'string' ? find(type) : -1,
    probe: [find(func), find(edge)],
    thread: find(layout.thread),
    tgid: find(layout.tgid),
    cpu: find(layout.cpu),
    guid: find(layout.guid),
    op,
    name: find(layout.name),
    address: find(layout.address),
    sourceAddresses: sources.map(({ address }) => find(address)),
    ne: dimensions(''),
    sourceNe: sources.map(({ prefix }) => dimensions(prefix)),
    counters: counterNames.map(find),
    counterNames,
    nodeTail: isTail ? op : -1,
  }
}

/** The possible names of cells, for layouts in which each cell has its name. */
export function cellNames(layout: Layout): readonly string[] {
  const { tgid, cpu, guid, op, name, address, sources, counters } = layout
  const prefixes = ['', ...sources.map(({ prefix }) => prefix)]
  return [
    ...required(layout),
    ...(tgid === undefined ? [] : [tgid]),
    ...[cpu, op, name, address, guid],
    ...sources.map((source) => source.address),
    ...prefixes.flatMap((prefix) => [0, 1, 2, 3].map((i) => `${prefix}ne${i}`)),
    ...(counters === undefined ? [] : [counters, `${counters}_0`, `${counters}_1`]),
  ]
}
