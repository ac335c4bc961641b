import type { ArgumentsCamelCase, CommandModule, InferredOptionTypes } from 'yargs'
import {
  analyzeSteps,
  type KernelTimes,
  measureKernels,
  measurePeaks,
  type Peak,
  type Peaks,
  UsageError,
  WHAT_IF_SERIES,
} from '../../lib/cli.ts'
import { COMMANDS } from '../commands.ts'
import { io } from '../io.ts'
import { flag, once, valued, wholes, words } from '../options.ts'
import { interruptible } from '../signals.ts'
import { analysisOf } from '../stats/inputs.ts'
import { note, print, printJson, table } from '../terminal.ts'
import { duration, plural, threeDigits } from '../units.ts'

/** Rows of measured products that are printed. */
const ROWS = 60
const INTERRUPTED = 'interrupted: nothing was measured'

const OPTIONS = {
  types: valued(words('--types'), "Measure ggml's products of these types for <log>: q4_0"),
  threads: valued(wholes('--threads'), 'With --types: with these numbers of threads, too: 1,2,4'),
  batch: valued(wholes('--batch'), 'With --types: with these numbers of sequences, too: 8'),
  context: valued(wholes('--context'), 'With --types: with prompts of these lengths, too: 512'),
  experts: valued(wholes('--experts'), 'With --types: with these experts of a token, too: 2,4'),
  ggml: valued(once('--ggml'), "With --types: folder of ggml's libraries", 'of <log>'),
  json: flag('Print JSON: bytes and operations per second; of --types ns'),
  fresh: flag('Measure now, even if an earlier result is stored'),
} as const

interface Arguments extends InferredOptionTypes<typeof OPTIONS> {
  log: string | undefined
}

/** `ggml2perfetto peaks` */
export const peaksCommand: CommandModule<object, Arguments> = {
  ...COMMANDS.peaks,
  builder: (yargs) =>
    yargs
      .usage(
        '$0 peaks [options]\n$0 peaks <log> --types <types>\n\nMeasures the peak rates of this machine: reading memory, multiply-adds of FP32, dot products of ' +
          'INT8; with one thread, and with one on each CPU that it may use (taskset applies). This takes about two seconds. ' +
          'Nothing else should compute in this time: a result under load is printed as disturbed, and not kept. One that is kept is what ' +
          "stats, why and report compare runs on this machine with.\n\nWith --types, measures what ggml's own products of the weights of a run take, at its types and " +
          'others, by its libraries. The times are kept: what-if predicts --type, --threads and --batch by them.',
      )
      .positional('log', {
        type: 'string',
        describe:
          'With --types: a log of this machine (record --level op), or its Analysis, whose shapes of weights are measured',
      })
      .options(OPTIONS)
      .example('$0 peaks', 'for people')
      .example('$0 peaks --json | jq .read_bytes.all', 'for scripts: bytes/s')
      .example('taskset -c 0-3 $0 peaks --fresh', 'of four CPUs')
      .example('$0 peaks run.ggtrace --types q8_0,q4_K', 'for what-if run.ggtrace --type q8_0'),
  handler,
}

async function handler(args: ArgumentsCamelCase<Arguments>): Promise<void> {
  const { json, fresh, types, log } = args
  const onBuild = (compiler: string) => void note(`building the measuring program with ${compiler}, once`)
  if (types !== undefined) return interruptible(INTERRUPTED, () => handleKernels(args, types, onBuild))
  const given = (['threads', 'batch', 'context', 'experts', 'ggml'] as const).find(
    (option) => args[option] !== undefined,
  )
  if (given !== undefined) throw new UsageError(`--${given}: only with --types`)
  if (log !== undefined) throw new UsageError(`${log}: a log is measured with --types only\nhint: --types q4_0,q8_0`)
  const peaks = await interruptible(INTERRUPTED, () => measurePeaks({ env: io().env, fresh, onBuild }))
  await (json ? printJson(JSON.stringify(peaks, null, 2)) : print(describe(peaks)))
}

async function handleKernels(
  args: ArgumentsCamelCase<Arguments>,
  types: readonly string[],
  onBuild: (compiler: string) => void,
): Promise<void> {
  const { json, fresh, log, threads, batch: batches, context: contexts, experts, ggml } = args
  if (fresh) throw new UsageError('--fresh: --types always measures')
  if (log === undefined)
    throw new UsageError('--types: no log is given\nhint: ggml2perfetto peaks run.ggtrace --types q8_0')
  const analysis = await analysisOf({ inputs: [log] }, { series: WHAT_IF_SERIES }, analyzeSteps)
  const onStart = (count: number) =>
    void note(`measuring ${plural(count, 'product')}, about ${Math.ceil(count / 3)} s: nothing else should compute`)
  const times = await measureKernels(analysis, {
    env: io().env,
    types,
    threads,
    batches,
    contexts,
    experts,
    ggml,
    onBuild,
    onStart,
  })
  await (json ? printJson(JSON.stringify(times, null, 2)) : print(describeKernels(times)))
}

/** The latest measured ones, which are those of this time. */
function describeKernels({ cpu, build, products, attention = [], nodes }: KernelTimes): string[] {
  const rows = products
    .slice(-ROWS)
    .map(({ type, columns, rows, experts, used = 1, buffer, tokens, threads, ns, second_ns }) => [
      `${type} ${columns} × ${rows}${experts === undefined ? '' : `, ${used} of ${experts}`}`,
      buffer,
      `${tokens}`,
      `${threads}`,
      duration(ns),
      differenceOf(ns, second_ns),
      `${threeDigits((2 * columns * rows * used * tokens) / ns)} GFLOP/s`,
    ])
  const ofAttention = attention
    .slice(-ROWS)
    .map(({ heads, kv_heads, head_size, k_type, v_type, tokens, context, threads, ns, second_ns }) => [
      `attention ${heads} × ${head_size} on ${kv_heads}, ${k_type}${v_type === k_type ? '' : ` and ${v_type}`}`,
      `after ${context}`,
      `${tokens}`,
      `${threads}`,
      duration(ns),
      differenceOf(ns, second_ns),
      '',
    ])
  return [
    `${cpu}, ggml ${build}: ${plural(products.length, 'product')} are kept`,
    ...table(
      [['weights', 'buffer', 'tokens', 'threads', 'time', 'rounds differ by', ''], ...rows, ...ofAttention],
      [0, 1],
    ),
    ...nodes.map(({ threads, ns }) => `start and barrier of a node, ${plural(threads, 'thread')}: ${duration(ns)}`),
  ]
}

/** What another round took more: much, where other programs computed. */
const differenceOf = (ns: number, second = ns) => `${Math.round(100 * (second / ns - 1))} %`

function describe(peaks: Peaks): string[] {
  const { cpu, threads, disturbed, cached } = peaks
  const time = peaks.measured_at.replace('T', ' ').replace(/\.\d+Z$/, ' UTC')
  return [
    `${cpu}, ${plural(threads, 'CPU')}`,
    ...peakTable(peaks),
    cached ? `measured at ${time}, and kept; --fresh measures again` : `measured now, ${time}`,
    ...(disturbed === null ? [] : [`disturbed, and not kept: ${disturbed}; measure again when nothing else computes`]),
  ]
}

/** The rates with one thread and with all, and their balances. */
export function peakTable({ threads, read_bytes, fp32_flops, int8_ops }: Peaks): string[] {
  const row = (title: string, { one, all, instruction_set }: Peak, unit: string) => [
    title,
    `${threeDigits(one / 1e9)} ${unit}`,
    `${threeDigits(all / 1e9)} ${unit}`,
    instruction_set,
  ]
  const balance = (title: string, { one, all }: Peak, unit: string) => [
    title,
    `${threeDigits(one / read_bytes.one)} ${unit}`,
    `${threeDigits(all / read_bytes.all)} ${unit}`,
    '',
  ]
  const rows = [
    ['', '1 thread', plural(threads, 'thread'), 'measured with'],
    row('memory, read', read_bytes, 'GB/s'),
    row('FP32', fp32_flops, 'GFLOP/s'),
    row('INT8 dot products', int8_ops, 'GOP/s'),
    balance('balance, FP32', fp32_flops, 'FLOP/byte'),
    balance('balance, INT8', int8_ops, 'OP/byte'),
  ]
  return table(rows, [0, 3])
}
