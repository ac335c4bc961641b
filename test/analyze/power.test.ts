import { describe, expect, test } from '@jest/globals'
import { powerSection } from '../../bin/stats/power.ts'
import { toText } from '../../bin/stats/section.ts'
import type { Phase } from '../../lib/core.ts'
import { type Analysis, analyze, type Input, type TraceEvent } from '../../lib/index.ts'
import { plainBytes } from '../line/support.ts'
import { input, inputEvent } from '../sched/schedule.ts'

/** Energy of calls by real and made readings, against figures that were computed by hand, in Python. */

type Call = readonly [phase: Phase, tokens: number, fromS: number, toS: number]

/** A log of calls, in s since its origin. */
const run = (calls: readonly Call[], clock: string, originNs: bigint) =>
  input(
    'run.ggtrace',
    () =>
      calls.map(
        ([phase, tokens, fromS, toS], call): TraceEvent => ({
          ...{ kind: 'token', call, phase, tokens, tid: 1, inferred: 0 },
          ...{ startNs: Math.round(fromS * 1e9), endNs: Math.round(toS * 1e9) },
        }),
      ),
    inputEvent({ clock, originNs }),
  )

const fixture = (name: string): Input => ({ name, source: plainBytes(`power/${name}`) })

const energyOf = ({ power }: Analysis, device: string) => {
  const { energy } = power!.devices.find((of) => of.device === device)!
  return Object.fromEntries(energy.map((row) => [row.phase, row]))
}

describe('means: real readings of turbostat, 5 s each', () => {
  const decodes = Array.from({ length: 6 }, (_, i): Call => ['decode', 1, 4.5 + 4.5 * i, 8.5 + 4.5 * i])
  const calls: Call[] = [['prefill', 64, 1, 4], ...decodes]

  test('energy by phase and token, and its error', async () => {
    const log = run(calls, 'REALTIME', 1737461761722216000n)
    const analysis = await analyze([log, fixture('turbostat.txt')])
    const { prefill, decode, all, ...others } = energyOf(analysis, 'CPU package')
    // Python: the mean of each interval times the time of the calls in it; the error, of each interval
    // that is cut, the smaller part times 1.59 W - 1.27 W.
    expect(prefill!.energy_j).toBeCloseTo(3.81, 9)
    expect(decode!.energy_j).toBeCloseTo(31.66240819, 8)
    expect(others['between calls']!.energy_j).toBeCloseTo(3.94, 9)
    expect(all!.energy_j).toBeCloseTo(39.41240819, 8)
    expect(decode!.error_j).toBeCloseTo(0.74885954, 8)
    expect(decode!.j_per_token).toBeCloseTo(31.66240819 / 6, 8)
    expect(decode!.j_per_token_error).toBeCloseTo(0.74885954 / 6, 8)
    expect(prefill!.j_per_token).toBeCloseTo(3.81 / 64, 9)
    expect([decode!.calls, decode!.tokens, decode!.time_ns, decode!.measured_ns]).toEqual([6, 6, 24e9, 24e9])
    const device = analysis.power!.devices[0]!
    expect(device).toMatchObject({ device: 'CPU package', meters: ['PkgWatt'], method: 'means', power_limit_w: 28 })
    expect(device.interval_ns).toBeCloseTo(5.0117e9, -6)
    // Cores are a part of the package; the memory is not, and adds nothing here.
    expect(analysis.power!.devices.map(({ device }) => device)).toEqual(['CPU package', 'DRAM'])
    expect(analysis.power!.energy.at(-1)!.energy_j).toBeCloseTo(39.41240819, 8)
    expect(analysis.run.recorded).toEqual(['calls', 'power'])
  })

  test('without calls it is that of the whole log', async () => {
    const { all } = energyOf(await analyze(fixture('turbostat.txt')), 'CPU package')
    // From the second reading on: the start of the first is not in the log.
    expect(all!.energy_j).toBeCloseTo(45.90601779, 6)
    expect([all!.error_j, all!.calls, all!.j_per_token]).toEqual([0, 0, null])
  })
})

describe('samples: nvidia-smi, means over the last second', () => {
  const calls: Call[] = [['decode', 30, 0.25, 1.75]]
  // 15:58:57.879 of UTC+2 is 13:58:57.879: 957.879 s after 13:43.
  const at = run(calls, 'REALTIME', 1745503137_879_000_000n)

  test('are integrated between readings', async () => {
    const options = { clocks: { 'nvidia-smi.csv': 'UTC+2' } }
    const analysis = await analyze([at, fixture('nvidia-smi.csv')], options)
    const { decode } = energyOf(analysis, 'GPU 0')
    expect(decode!.energy_j).toBeCloseTo(254.102024641, 5) // by 200 000 steps
    expect(decode!.error_j).toBeCloseTo(203.762024641, 5)
    expect(decode!.j_per_token).toBeCloseTo(8.470067488, 6)
    expect(analysis.power!.devices[0]).toMatchObject({ method: 'samples', window_ns: 1e9, max_clock_hz: 2.1e9 })
  })

  test('limits by power and by temperature are findings', async () => {
    const calls: Call[] = Array.from({ length: 20 }, (_, i) => ['decode', 1, 0.001 + 0.1 * i, 0.1 + 0.1 * i])
    const log = run(calls, 'REALTIME', 1745503137_879_000_000n)
    const { findings } = await analyze([log, fixture('nvidia-smi.csv')], { clocks: { 'nvidia-smi.csv': 'UTC+2' } })
    expect(findings.map(({ rule, sentence }) => [rule, sentence])).toEqual([
      [
        'power-cap',
        'GPU 0 is held down by its power limit of 200 W in 50 % of the time of calls: 1403 MHz instead of 1980 MHz',
      ],
      [
        'thermal-throttling',
        'GPU 0 is held down by its temperature (81 °C) in 25 % of the time of calls: 1395 MHz instead of 1980 MHz',
      ],
    ])
    // From 1.001 s to 2 s, ten calls of 99 ms; at most what the clock is lower by.
    expect(findings[0]!.evidence).toMatchObject({ capped_ns: 990_000_000, free_clock_hz: 1.98e9, power_limit_w: 200 })
    expect(findings[0]!.time_ns / 0.99e9).toBeCloseTo(1 - 1402.5 / 1980, 2)
  })
})

describe('totals: RAPL', () => {
  test('differences, over the end of the counter', async () => {
    const calls: Call[] = [
      ['prefill', 8, 0, 0.1],
      ['decode', 1, 0.1, 0.2],
      ['decode', 1, 0.2, 0.25],
    ]
    const analysis = await analyze([run(calls, 'MONOTONIC', 5_000_000_000n), fixture('power.csv')])
    const { prefill, decode, all } = energyOf(analysis, 'package-0')
    expect(prefill!.energy_j).toBeCloseTo(0.328, 6)
    expect(prefill!.error_j).toBeCloseTo(0, 6)
    expect(decode!.energy_j).toBeCloseTo(2.672 + 1.4, 6)
    // Of the last 0.1 s, half is of the call: 28 W - 3.28 W for 0.05 s.
    expect(decode!.error_j).toBeCloseTo(1.236, 6)
    expect(all!.energy_j).toBeCloseTo(4.4, 6)
    expect(analysis.power!.devices[0]!.thermal_capped!.time_ns).toBe(50_000_000)
    const lines = toText([powerSection(analysis)!], 200).join('\n')
    expect(lines).toContain('package-0: energy_uj, from totals of energy, every 100 ms')
    expect(lines).toMatch(/decode +2 +2 +150 ms +4.07 J +1.24 J +27.1 +2.04 +2.04 +0.618/)
    expect(lines).toMatch(/package-0 .* 28 .* 20\.0 %/)
  })

  test('calls without readings have no energy per token', async () => {
    const analysis = await analyze([
      run(
        [
          ['decode', 4, -1, -0.5],
          ['decode', 4, 0.1, 0.2],
        ],
        'MONOTONIC',
        5_000_000_000n,
      ),
      fixture('power.csv'),
    ])
    const { decode } = energyOf(analysis, 'package-0')
    expect([decode!.measured_ns, decode!.time_ns, decode!.j_per_token]).toEqual([100_000_000, 600_000_000, null])
  })
})

describe('several figures of the same power', () => {
  const log = (name: string, text: string): Input => ({ name, source: new TextEncoder().encode(text) })
  const rows = (row: (second: number) => string) => Array.from({ length: 5 }, (_, i) => row(i)).join('')

  test.each([
    [
      'nvidia-smi: the mean of before the version of the driver, and that of after it',
      'timestamp, index, power.draw.average [W], power.draw [W]\n' +
        rows((i) => `2025/04/24 15:58:1${i}.000, 0, 99.00 W, 100.00 W\n`),
      ['power.draw'],
      100,
    ],
    [
      'dcgmi: the mean of a second, and that of an instant (fields 155, 157)',
      '#Entity   POWER   POWINST   EPLMT\nID        W       W         W\n' +
        rows(() => 'GPU 0     99.000  100.000   300.000\n'),
      ['POWINST'],
      100,
    ],
    [
      'amd-smi: by which the GPU has',
      'timestamp,gpu,average_socket_power,current_socket_power,power_usage\n' +
        rows((i) => `178655385${i},0,100,N/A,98\n`),
      ['average_socket_power'],
      100,
    ],
    [
      // A line of an AGX Orin as it is in public notes: the rail VIN_SYS_5V0 has less than the CPU.
      'tegrastats: the rails of an AGX Orin, which has no input of the board',
      rows(
        (i) =>
          `10-01-2025 20:05:5${i} RAM 9274/30536MB (lfb 27x4MB) CPU [9%@2201] GR3D_FREQ 14%@[407,407] GPU@69.125C ` +
          'VDD_GPU_SOC 3150mW/2971mW VDD_CPU_CV 14312mW/12415mW VIN_SYS_5V0 4968mW/5048mW VDDQ_VDD2_1V8AO 1091mW/1091mW\n',
      ),
      ['VDD_GPU_SOC', 'VDD_CPU_CV', 'VIN_SYS_5V0'],
      22.43,
    ],
  ])('%s: counted once', async (_, text, meters, watts) => {
    const { power } = await analyze(log('meters.log', text))
    expect(power!.devices.map((of) => of.meters)).toEqual([meters])
    expect(power!.energy[0]!.mean_w).toBeCloseTo(watts, 6)
  })
})

describe('what held clocks down, without calls', () => {
  const log = () => fixture('cap-no-calls.csv')

  test('is of the readings: nothing is of the time of calls', async () => {
    const analysis = await analyze(log())
    expect(JSON.stringify(analysis)).toContain('GPU 0 is held down by its power limit in 100 % of the readings')
    expect(JSON.stringify(analysis)).not.toContain('of the time of calls')
    expect(toText([powerSection(analysis)!], 200).join('\n')).toContain('clocks and limits, of all readings')
  })

  test('with calls is of their time', async () => {
    const calls = run([['decode', 1, 0.2, 0.8]], 'REALTIME', BigInt(Date.UTC(2026, 8, 11, 10)) * 1_000_000n)
    const analysis = await analyze([calls, log()], { clocks: { 'cap-no-calls.csv': 'UTC' } })
    expect(toText([powerSection(analysis)!], 200).join('\n')).toContain('clocks and limits, during calls')
  })
})
