import type { ArgumentsCamelCase, InferredOptionTypes } from 'yargs'
import { FAULT_COUNTERS, UsageError } from '../../lib/cli.ts'
import { BROWSER, WAIT } from '../commands/open.ts'
import {
  bytes,
  FORCE,
  flag,
  milliseconds,
  once,
  oneOf,
  oneOrMore,
  parseTokens,
  seldom,
  valued,
  whole,
  words,
} from '../options.ts'

/** Runs of each value of a sweep. */
export const ROUNDS = 3

/** An option of the recorded program, and the values that it gets. */
export interface Sweep {
  readonly name: string
  readonly values: readonly string[]
}

/** For yargs' `coerce`: `t=1,2,4`. */
function parseSweep(text: string): Sweep {
  const [, name, list = ''] = /^([\w-]+)=(.*)$/.exec(once('--sweep')(text)) ?? []
  const values = list.split(',')
  // They are part of names of files.
  const areNames = values.every((value) => /^[\w.-]+$/.test(value))
  if (name === undefined || !areNames || values.length < 2 || new Set(values).size < values.length)
    throw new UsageError(`--sweep "${text}": expected a name and several values, such as t=1,2,4`)
  return { name, values: values.sort(naturally()) }
}

/** `2` before `10`; made where it is used, as it takes 7 ms. */
const naturally = () => new Intl.Collator('en', { numeric: true }).compare

/** The options of `record`. */
export const OPTIONS = {
  output: {
    alias: 'o',
    ...valued(once('--output'), 'Log to write', '<program>-<time>.ggtrace in this folder'),
  },
  ...FORCE,
  level: {
    ...valued(
      oneOf('--level', ['token', 'graph', 'op']),
      'token (llama_decode calls) | graph (also graphs and copies) | op (also every operator on every worker)',
      'op',
    ),
  },
  attach: {
    ...valued(whole('--attach'), 'Record a process that already runs: needs root, bpftrace'),
    alias: 'p',
  },
  for: seldom(
    valued(
      milliseconds('--for'),
      'With --attach, whose level is graph by default: how long, such as 30s',
      'until Ctrl-C, or it ends',
    ),
  ),
  children: seldom({
    ...flag(
      'Also record the programs that it starts: the first process that calls ggml writes <output>, others <output>.<pid>',
    ),
    default: true,
  }),
  gpu: seldom({
    ...flag('Record when GPUs computed operators and copied data, where ggml uses CUDA or Vulkan; --no-gpu: do not'),
    default: true,
  }),
  cupti: seldom(
    valued(
      once('--cupti'),
      "The library with the times of CUDA's devices, where it is not found",
      'libcupti.so of the CUDA toolkit',
    ),
  ),
  'gpu-events': seldom(
    flag(
      'Without CUPTI, time each node on CUDA devices by events on its stream, not only each graph run; costs some µs a node, and ' +
        'kernels of neighbouring nodes do not overlap',
    ),
  ),
  sync: seldom(flag('Compute node by node, to time operators of backends such as GPUs, too; makes the run slower')),
  libraries: seldom(
    flag(
      'Record a library that contains ggml and does not export it, such as an add-on of Node.js; not where a library with another ggml is ' +
        'loaded after it',
    ),
  ),
  states: seldom({
    ...flag('Record when threads ran, waited for a CPU, and were blocked (needs no root); --no-states: do not'),
    default: true,
  }),
  functions: seldom({
    ...flag(
      'Record what the program does around calls: sampling, sequences, text, waiting, loading, drafts; --no-functions: do not',
    ),
    default: true,
  }),
  ask: seldom({
    ...flag(
      'If a device refused operators, ask it afterwards which property decided, in a process of its own; --no-ask: do not',
    ),
    default: true,
  }),
  sched: {
    ...flag(
      "Also record the scheduler's events of the whole machine, to <output>.sched.dat: who took the CPU. Needs root; with " +
        '--attach by default',
    ),
    default: undefined,
  },
  'sched-buffer': seldom(
    valued(
      bytes('--sched-buffer'),
      "With --sched: size of the kernel's buffer of each CPU; larger where events were lost",
      '16M, less where there are many CPUs',
    ),
  ),
  power: flag(
    'Also read meters of the kernel every 100 ms, to <output>.power.csv: energy of CPUs (RAPL), clocks, sensors of power; what ' +
      'is missing here is named',
  ),
  mem: seldom(
    flag(
      'Also record page faults with their addresses, by perf, to <output>.faults.data: by tensor in stats and the trace; ' +
        'if it is not possible, the reason is printed',
    ),
  ),
  tokens: seldom(valued(parseTokens, 'Record graphs and operators of these calls only: 3..5, 7 or 2..')),
  every: seldom(valued(whole('--every'), 'Only every n-th of these calls')),
  ops: seldom(
    valued(
      (value) => words('--ops')(value).map((op) => op.toUpperCase()),
      "Ops to record, by ggml's names: MUL_MAT,MUL_MAT_ID",
      'all',
    ),
  ),
  counters: valued(
    words('--counters'),
    'What to count in each operator on each worker, by names of perf: cycles,page-faults …',
  ),
  faults: seldom(flag(`Short for --counters ${FAULT_COUNTERS.join(',')}`)),
  paused: seldom(flag('Begin paused: record calls only, until --toggle or the program resumes')),
  toggle: seldom(
    valued(
      oneOf('--toggle', ['SIGUSR1', 'SIGUSR2']),
      'The signal that pauses and resumes recording: SIGUSR1 | SIGUSR2',
    ),
  ),
  'max-size': valued(
    bytes('--max-size'),
    'Size limit of the log, such as 500M; records that do not fit are dropped and counted',
  ),
  ring: seldom(flag('With --max-size: keep the last part of the log, not the first')),
  slow: valued(
    milliseconds('--slow'),
    'Keep only calls that last at least so long, such as 200ms, and what preceded them; others are counted',
  ),
  guard: seldom(
    valued(
      whole('--guard'),
      'Record less if recording makes decode slower by more than this many %; every eighth call is not recorded, to compare',
    ),
  ),
  'nvtx-emit': seldom(
    valued(
      oneOrMore('--nvtx-emit', ['phases', 'tokens', 'graphs', 'operators']),
      'Announce these as NVTX ranges, to nsys or in the log: phases, tokens, graphs, operators',
    ),
  ),
  'print-env': seldom(
    flag(
      'Run nothing: print the environment variables with which a program records itself, for programs that a container or a ' +
        'service manager starts. Needs -o with an absolute path',
    ),
  ),
  sweep: valued(
    parseSweep,
    'Record with each of these values by turns, and recommend one: --sweep t=1,2,4 -- llama-bench … -t {t}',
  ),
  rounds: seldom(valued(whole('--rounds'), 'With --sweep: runs of each value', `${ROUNDS}`)),
  open: flag('Open the trace in the browser when the program has ended'),
  browser: seldom({ ...BROWSER.browser, describe: '--no-browser: with --open, only print the URL' }),
  ...WAIT,
  quiet: { alias: 'q', ...flag('No summary; problems are still reported') },
} as const

/** Its arguments. */
export interface Arguments extends InferredOptionTypes<typeof OPTIONS> {
  command: string[] | undefined
}

/** Options that go to the recorder as they are. */
const OWN = [
  ...([
    'output',
    'level',
    'children',
    'gpu',
    'cupti',
    'gpuEvents',
    'sync',
    'libraries',
    'states',
    'functions',
    'tokens',
    'every',
    'ops',
  ] as const),
  ...(['paused', 'toggle', 'ring', 'slow', 'guard', 'nvtxEmit'] as const),
] as const

/** The options that select what is recorded. */
export function chosen(args: ArgumentsCamelCase<Arguments>) {
  const { maxSize, ring, sched, schedBuffer, power, mem, ask } = args
  if (!args.browser && !args.open) throw new UsageError('--no-browser: expected --open, too')
  if (ring && maxSize === undefined) throw new UsageError('--ring: expected a size, too\nhint: --ring --max-size 64M')
  if (schedBuffer !== undefined && !sched) throw new UsageError('--sched-buffer: expected --sched, too')
  const own = Object.fromEntries(OWN.map((key) => [key, args[key]])) as Pick<typeof args, (typeof OWN)[number]>
  const beside = {
    ...(sched && { sched, schedBuffer }),
    ...(power && { power }),
    ...(mem && { mem }),
    ...(!ask && { ask }),
  } // which --print-env has not
  return { ...own, counters: counted(args), ...beside, bytesMax: maxSize }
}

/** Options that the recorder has, which bpftrace does not replace. */
const NOT_ATTACHED = [
  ...([
    'sync',
    'libraries',
    'ops',
    'every',
    'counters',
    'faults',
    'paused',
    'toggle',
    'ring',
    'slow',
    'guard',
    'tokens',
  ] as const),
  ...(['cupti', 'gpuEvents', 'maxSize', 'nvtxEmit', 'printEnv', 'sweep', 'power', 'mem', 'schedBuffer'] as const),
] as const

/** What is recorded of a process that already runs. */
export function attached(args: ArgumentsCamelCase<Arguments>, pid: number) {
  const other = NOT_ATTACHED.find((key) => args[key] !== undefined && args[key] !== false)
  const name = other?.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
  if (name !== undefined) throw new UsageError(`--attach: not possible with --${name}`)
  if (args.command !== undefined && args.command.length > 0)
    throw new UsageError('--attach: expected no program\nhint: without --attach, the program is started')
  const { output, level, states } = args
  return {
    pid,
    output,
    level,
    sched: args.sched ?? states,
    seconds: args.for === undefined ? undefined : args.for / 1000,
  }
}

/** What is counted; undefined for nothing. */
export function counted({ counters = [], faults }: Arguments): string[] | undefined {
  const all = [...new Set([...counters, ...(faults ? FAULT_COUNTERS : [])])]
  return all.length > 0 ? all : undefined
}
