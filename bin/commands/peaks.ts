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
          'Nothing else should compute in this time: a result under load is printed as disturbed, and not kept. One that is kept is what ' +
          'stats, why and report compare runs on this machine with.',
      )
      .options(OPTIONS)
      .example('$0 peaks', 'for people')
      .example('$0 peaks --json | jq .read_bytes.all', 'for scripts: bytes/s')
      .example('taskset -c 0-3 $0 peaks --fresh', 'of four CPUs'),
  handler,
}

async function handler({ json, fresh }: ArgumentsCamelCase<Arguments>): Promise<void> {
  const onBuild = (compiler: string) => void note(`building the measuring program with ${compiler}, once`)
  const peaks = await measurePeaks({ env: io().env, fresh, onBuild })
  await (json ? printJson(JSON.stringify(peaks, null, 2)) : print(describe(peaks)))
}

function describe(peaks: Peaks): string[] {
  const { cpu, threads, read_bytes, fp32_flops, int8_ops, disturbed, cached } = peaks
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
  const time = peaks.measured_at.replace('T', ' ').replace(/\.\d+Z$/, ' UTC')
  return [
    `${cpu}, ${plural(threads, 'CPU')}`,
    ...table(rows, [0, 3]),
    cached ? `measured at ${time}, and kept; --fresh measures again` : `measured now, ${time}`,
    ...(disturbed === null ? [] : [`disturbed, and not kept: ${disturbed}; measure again when nothing else computes`]),
  ]
}
