import type { ArgumentsCamelCase, CommandModule, InferredOptionTypes } from 'yargs'
import { measurePeaks, type Peak, type Peaks } from '../../lib/cli.ts'
import { io } from '../io.ts'
import { flag } from '../options.ts'
import { note, print, printJson, table } from '../terminal.ts'
import { plural, threeDigits } from '../units.ts'

const OPTIONS = {
  json: flag('Print JSON: bytes and operations per second'),
  fresh: flag('Measure now, even if an earlier result is stored'),
} as const

type Arguments = InferredOptionTypes<typeof OPTIONS>

/** `ggml2perfetto peaks` */
export const peaksCommand: CommandModule<object, Arguments> = {
  command: 'peaks',
  describe: 'Measure the peak rates of this machine: memory bandwidth, FP32, INT8 (Linux)',
  builder: (yargs) =>
    yargs
      .usage(
        '$0 peaks [options]\n\nMeasures the peak rates of this machine: reading memory, multiply-adds of FP32, dot products of ' +
          'INT8; with one thread, and with one on each CPU that it may use (taskset applies). This takes about two seconds. ' +
          'Nothing else should compute in this time. The result is stored for this host.',
      )
      .options(OPTIONS)
      .example('$0 peaks', 'for people')
      .example('$0 peaks --json | jq .readBytes.all', 'for scripts: bytes/s')
      .example('taskset -c 0-3 $0 peaks --fresh', 'of four CPUs'),
  handler,
}

async function handler({ json, fresh }: ArgumentsCamelCase<Arguments>): Promise<void> {
  const onBuild = (compiler: string) => void note(`building the measuring program with ${compiler}, once`)
  const peaks = await measurePeaks({ env: io().env, fresh, onBuild })
  await (json ? printJson(JSON.stringify(peaks, null, 2)) : print(describe(peaks)))
}

function describe(peaks: Peaks): string[] {
  const { cpu, threads, readBytes, fp32Flops, int8Ops, cached } = peaks
  const row = (title: string, { one, all, instructionSet }: Peak, unit: string) => [
    title,
    `${threeDigits(one / 1e9)} ${unit}`,
    `${threeDigits(all / 1e9)} ${unit}`,
    instructionSet,
  ]
  const balance = (title: string, { one, all }: Peak, unit: string) => [
    title,
    `${threeDigits(one / readBytes.one)} ${unit}`,
    `${threeDigits(all / readBytes.all)} ${unit}`,
    '',
  ]
  const rows = [
    ['', '1 thread', plural(threads, 'thread'), 'measured with'],
    row('memory, read', readBytes, 'GB/s'),
    row('FP32', fp32Flops, 'GFLOP/s'),
    row('INT8 dot products', int8Ops, 'GOP/s'),
    balance('balance, FP32', fp32Flops, 'FLOP/byte'),
    balance('balance, INT8', int8Ops, 'OP/byte'),
  ]
  const time = peaks.measuredAt.replace('T', ' ').replace(/\.\d+Z$/, ' UTC')
  return [
    `${cpu}, ${plural(threads, 'CPU')}`,
    ...table(rows, [0, 3]),
    cached ? `measured at ${time}, and kept; --fresh measures again` : `measured now, ${time}`,
  ]
}
