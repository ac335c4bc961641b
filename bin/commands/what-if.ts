import type { ArgumentsCamelCase, CommandModule, InferredOptionTypes } from 'yargs'
import {
  type Analysis,
  analyzeSteps,
  DISTURBANCES,
  type KernelTimes,
  keptKernels,
  keptPeaks,
  parseKernelFile,
  peaksOfMachine,
  predict,
  UsageError,
  WHAT_IF_SERIES,
  type WhatIf,
  type WhatIfPart,
} from '../../lib/cli.ts'
import { COMMANDS } from '../commands.ts'
import { textOfFile } from '../inputs.ts'
import { io } from '../io.ts'
import { CLOCKS, flag, inputsOf, once, oneOrMore, READING, valued, whole } from '../options.ts'
import { analysisOf } from '../stats/inputs.ts'
import { unlessRefused } from '../stats/machine.ts'
import { print, printJson, table } from '../terminal.ts'
import { duration } from '../units.ts'

/** Parts of a phase that are printed. */
const PARTS = 6
/** Parts that change by less of the phase are left out. */
const CHANGE_MIN = 0.005

const OPTIONS = {
  context: valued(whole('--context', 1), 'A prompt of so many tokens, and decoding after it'),
  without: valued(
    oneOrMore('--without', DISTURBANCES),
    `Without what disturbed the run: some of ${DISTURBANCES.join(', ')}`,
  ),
  threads: valued(whole('--threads', 1), 'With so many threads'),
  with: {
    type: 'string',
    array: true,
    requiresArg: true,
    describe:
      'Runs of the same program with other numbers of threads, for --threads: logs of one run each, or Analyses',
  },
  type: valued(once('--type'), 'With weights of this type of ggml, such as q8_0'),
  batch: valued(whole('--batch', 1), 'With so many sequences that are decoded at once'),
  experts: valued(whole('--experts', 1), 'With so many experts for each token, of a model with experts'),
  kernels: valued(
    once('--kernels'),
    'Measured products of the machine, for all changes: a file of `peaks <log> --types … --json`',
    'kept ones',
  ),
  json: flag('Print JSON; docs/reference/what-if.md describes it'),
  ...CLOCKS,
  ...READING,
} as const

interface Arguments extends InferredOptionTypes<typeof OPTIONS> {
  inputs: string[]
}

/** `ggml2perfetto what-if <logs…>` */
export const whatIfCommand: CommandModule<object, Arguments> = {
  ...COMMANDS['what-if'],
  builder: (yargs) =>
    yargs
      .positional(
        'inputs',
        inputsOf(
          "Logs of one run, as for convert, gzip'ed or not, or an Analysis (stats --json --series calls,steps); - for stdin",
        ),
      )
      .options(OPTIONS)
      .example('$0 what-if run.ggtrace --without preempted', 'as if no thread had lost its CPU')
      .example('$0 what-if run.ggtrace --context 4096', 'a prompt of 4096 tokens, and decoding after it')
      .example('$0 what-if t1.ggtrace --threads 2 --with t2.ggtrace', 'by a run with other threads')
      .example('$0 what-if run.ggtrace --type q8_0 --batch 4', 'by what peaks --types measured, else between bounds'),
  handler,
}

async function handler(args: ArgumentsCamelCase<Arguments>): Promise<void> {
  const { context, without, threads, type, batch, experts, json, with: paths = [] } = args
  if (paths.length > 0 && threads === undefined) throw new UsageError('--with: only with --threads')
  const analysis = await analysisOf(args, { series: WHAT_IF_SERIES }, analyzeSteps)
  const others: Analysis[] = []
  for (const path of paths)
    others.push(await analysisOf({ ...args, inputs: [path] }, { series: WHAT_IF_SERIES }, analyzeSteps))
  const peaks = await unlessRefused(keptPeaks(io().env))
  const result = predict(
    analysis,
    { context, without, threads, type, batch, experts },
    { others, kernels: await kernelsOf(args.kernels, analysis), peaks: peaks && peaksOfMachine(peaks) },
  )
  await (json ? printJson(JSON.stringify(result, null, 2)) : print(describe(result)))
}

/** Those of a file, or those that are kept of the run's ggml. */
async function kernelsOf(path: string | undefined, { run }: Analysis): Promise<KernelTimes | undefined> {
  if (path === undefined) return run.build === null ? undefined : unlessRefused(keptKernels(io().env, run.build))
  return parseKernelFile(await textOfFile('--kernels', path), `--kernels ${path}`)
}

function describe({ sentence, parts, basis, ...figures }: WhatIf): string[] {
  const refused = [
    ['decode', figures.tpot_ns.why],
    ['TTFT', figures.ttft_ns.why],
  ] as const
  const isRefused = sentence.startsWith('cannot say') || figures.is_unchanged
  return [
    sentence,
    ...refused.flatMap(([what, why]) => (why === null || isRefused ? [] : [`${what}: cannot say: ${why}`])),
    ...(['decode', 'prefill'] as const).flatMap((phase) =>
      partsOf(
        phase,
        parts.filter((part) => part.phase === phase),
      ),
    ),
    ...(basis.length > 0 ? ['', 'rests on:', ...basis.map((text) => `  ${text}`)] : []),
  ]
}

/** What a call takes, now and then: what changes most. */
function partsOf(phase: string, parts: readonly WhatIfPart[]): string[] {
  const [nowNs, thenNs] = [parts, parts].map((all, i) =>
    all.reduce((sum, { now_ns, then_ns }) => sum + (i === 0 ? now_ns : then_ns), 0),
  )
  const changed = parts.filter(({ now_ns, then_ns }) => Math.abs(then_ns - now_ns) >= CHANGE_MIN * nowNs!)
  if (changed.length === 0) return []
  const rows = changed.slice(0, PARTS).map((part) => {
    const name = part.what === 'operators' ? [part.role, part.op, part.type].filter(Boolean).join(' ') : part.what
    return [name, duration(part.now_ns), '→', duration(part.then_ns)]
  })
  return ['', `a ${phase} call: ${duration(nowNs!)} → ${duration(thenNs!)}`, ...table(rows, [0])]
}
