import { describe, expect, it, test } from '@jest/globals'
import { type ConvertOptions, convert, type Input, type TraceEvent } from '../../lib/index.ts'
import { openTrace } from '../../lib/node.ts'
import { sniffFormat } from '../../lib/read/index.ts'
import { pathsOf } from '../line/comparer.ts'
import { tryDamaged } from '../line/hostile.ts'
import { converted, eventsIn, joined, plainBytes } from '../line/support.ts'
import { input, inputEvent, ORIGIN_NS } from '../sched/schedule.ts'

/** Logs of power, clocks and utilization: readers, the counters of the trace, and the clocks of local times. */

const bytesOf = (text: string) => new TextEncoder().encode(text)
const textOf = (name: string) => new TextDecoder().decode(plainBytes(`power/${name}`))

/** Readings by device and name of their meter: `[start, end, value]`, in s; and what else the log contains. */
async function read(source: Uint8Array) {
  const { events, names } = await eventsIn(source)
  const meters = new Map<number, string>()
  const what = new Map<string, string>()
  const readings = new Map<string, [number, number, number][]>()
  for (const event of events) {
    if (event.kind === 'meter') {
      const key = `${names.text(event.device)}: ${names.text(event.name)}`
      meters.set(event.id, key)
      what.set(key, [event.what, event.unit, event.windowNs / 1e9, ...(event.isPart ? ['part'] : [])].join(' '))
    } else if (event.kind === 'reading') {
      const key = meters.get(event.meter)!
      readings.set(key, [...(readings.get(key) ?? []), [event.startNs / 1e9, event.endNs / 1e9, event.value]])
    }
  }
  const first = events[0] as TraceEvent & { kind: 'input' }
  const issues = events.flatMap((event) => (event.kind === 'issue' ? [event.code] : []))
  const facts = Object.assign({}, ...events.map((event) => (event.kind === 'facts' ? event.attributes : {})))
  return { first, what, readings, issues, facts }
}

const readFixture = (name: string) => read(plainBytes(`power/${name}`))

describe('formats', () => {
  test.each([
    ['nvidia-smi.csv', 'nvidia-smi', 'unknown', '129 readings, 26 meters, 2 devices'],
    ['nvidia-dmon.txt', 'nvidia-dmon', 'unknown', '78 readings, 26 meters, 2 devices'],
    ['nvidia-dmon-no-times.txt', 'nvidia-dmon', 'unknown', '40 readings, 20 meters, 2 devices'],
    ['dcgm.txt', 'dcgm', 'REALTIME', '27 readings, 9 meters, 2 devices'],
    ['amd-smi.csv', 'amd-smi', 'REALTIME', '52 readings, 18 meters, 2 devices'],
    ['amd-smi.json', 'amd-smi', 'REALTIME', '10 readings, 7 meters, 1 device'],
    ['turbostat.txt', 'turbostat', 'REALTIME', '352 readings, 44 meters, 2 devices'],
    ['tegrastats.txt', 'tegrastats', 'unknown', '63 readings, 21 meters, 1 device'],
    ['tegrastats-old.txt', 'tegrastats', 'unknown', '42 readings, 21 meters, 1 device'],
    ['tegrastats-thor.txt', 'tegrastats', 'unknown', '36 readings, 18 meters, 1 device'],
    ['power.csv', 'power', 'MONOTONIC', '19 readings, 5 meters, 2 devices'],
    ['real-nvidia-dmon.txt', 'nvidia-dmon', 'unknown', '78 readings, 13 meters, 1 device'],
    ['amd-smi-watch.csv', 'amd-smi', 'REALTIME', '8 readings, 2 meters, 2 devices'],
    ['dcgm-parts.txt', 'dcgm', 'unknown', '28 readings, 28 meters, 7 devices'],
    ['dcgm-not-available.txt', 'dcgm', 'unknown', '6 readings, 6 meters, 2 devices'],
  ])('%s is %s, and all of it is read', async (name, format, clock, contents) => {
    expect(sniffFormat(plainBytes(`power/${name}`).subarray(0, 4096))?.name).toBe(format)
    const { first, facts } = await readFixture(name)
    expect([first.format, first.clock, facts.holds]).toEqual([format, clock, contents])
  })
})

/** What the tools wrote, or the same with other numbers: each number of the text is a reading, at its device and column. */
describe('real outputs', () => {
  /** Rows of a table: the columns of the line before, without those of `id`, and their texts. */
  const tableOf = (name: string, columns: readonly string[], row: RegExp, separator: RegExp) =>
    textOf(name)
      .split('\n')
      .filter((line) => row.test(line))
      .map((line) => line.trim().split(separator))
      .map((cells) => new Map(columns.map((column, i) => [column, cells[i]!])))

  test.each([
    [
      'real-nvidia-dmon.txt',
      'gpu pwr gtemp mtemp sm mem enc dec jpg ofa mclk pclk fb bar1 ccpm',
      /^ +\d/,
      'gpu',
      'GPU ',
    ],
    ['dcgm-parts.txt', 'gpu GRACT SMACT SMOCC TENSO', /^GPU/, 'gpu', ''],
    ['dcgm-not-available.txt', 'gpu GRACT SMACT SMOCC TENSO DRAMA FP64A FP32A FP16A', /^GPU/, 'gpu', ''],
    ['amd-smi-watch.csv', 'timestamp gpu total_energy_consumption', /^\d/, 'gpu', 'GPU '],
  ])('%s', async (name, columns, row, key, prefix) => {
    const rows = tableOf(name, columns.split(' '), row, name.endsWith('.csv') ? /,/ : / {2,}/)
    const factors: Readonly<Record<string, number>> = {
      mclk: 1e6,
      pclk: 1e6,
      fb: 2 ** 20,
      bar1: 2 ** 20,
      ccpm: 2 ** 20,
    }
    const wanted = new Map<string, number[]>()
    for (const cells of rows) {
      for (const [column, text] of cells) {
        if (column === key || column === 'timestamp' || Number.isNaN(Number(text))) continue
        const meter = `${prefix}${cells.get(key)}: ${column}`
        wanted.set(meter, [...(wanted.get(meter) ?? []), Number(text) * (factors[column] ?? 1)])
      }
    }
    const { readings, facts, issues } = await readFixture(name)
    expect(new Map([...readings].map(([meter, of]) => [meter, of.map(([, , value]) => value)]))).toEqual(wanted)
    const notThere = rows.flatMap((cells) => [...cells.values()]).filter((text) => text === '-' || text === 'N/A')
    expect(facts.values_not_available ?? 0).toBe(notThere.length)
    expect(issues).toEqual(name.endsWith('.csv') ? [] : ['readings-without-time'])
  })
})

describe('nvidia-smi', () => {
  it('has power as a mean over 1 s, clocks in Hz, the reasons of low clocks as shares', async () => {
    const { what, readings, facts, first } = await readFixture('nvidia-smi.csv')
    expect(what.get('GPU 0: power.draw')).toBe('power W 1')
    expect(readings.get('GPU 0: power.draw')!.map(([, at, value]) => [at, value])).toEqual([
      [0, 21.76],
      [0.5, 121.5],
      [1.001, 199.12],
      [1.5, 200.31],
      [2.001, 198.87],
    ])
    expect(readings.get('GPU 1: power.draw')).toHaveLength(4) // and one [N/A]
    expect(facts).toMatchObject({ 'GPU 0': 'NVIDIA RTX A4500', values_not_available: 1 })
    expect(readings.get('GPU 0: clocks.current.sm')!.map(([, , Hz]) => Hz / 1e6)).toEqual([210, 1980, 1410, 1395, 1380])
    expect(readings.get('GPU 0: reasons: sw_power_cap')!.map(([, , value]) => value)).toEqual([0, 0, 1, 1, 1])
    expect(readings.get('GPU 0: reasons: sw_thermal_slowdown')!.map(([, , value]) => value)).toEqual([0, 0, 0, 1, 1])
    expect([first.clockSource, first.originNs]).toEqual(['local', 1745510337879000000n])
  })

  it('is read without units, with the columns of reasons, and by the power of an instant where it is there', async () => {
    const { what, readings } = await read(
      bytesOf(`timestamp, uuid, power.draw [W], power.draw.instant [W], clocks_throttle_reasons.hw_thermal_slowdown
2025/04/24 15:58:57.879, GPU-a, 21.76, 25.5, Active
2025/04/24 15:58:57.880, GPU-b, 11.76, 15.5, Not Active
2025/04/24 15:58:58.879, GPU-a, [Unknown Error], 26.5, Not Active
`),
    )
    expect(what.get('GPU 0: power.draw')).toBe('other W 1')
    expect(what.get('GPU 0: power.draw.instant')).toBe('power W 0')
    expect(readings.get('GPU 0: power.draw.instant')).toEqual([
      [0, 0, 25.5],
      [1, 1, 26.5],
    ])
    expect(readings.get('GPU 1: power.draw')).toEqual([[0.001, 0.001, 11.76]])
    expect(readings.get('GPU 0: clocks_throttle_reasons.hw_thermal_slowdown')!.map(([, , of]) => of)).toEqual([1, 0])
  })

  const rowsAt = (times: readonly string[]) =>
    bytesOf(['timestamp, power.draw [W]', ...times.map((at, i) => `2025/04/24 15:${at}, ${i}.5 W`), ''].join('\n'))

  it.each([
    ['the same time', ['58:57.879', '58:57.879', '58:58.879', '58:58.879']],
    ['some ms apart, which is how each GPU is asked', ['58:57.879', '58:57.883', '58:58.880', '58:58.885']],
    ['one reading', ['58:57.879', '58:57.879']],
  ])('GPUs without a number are in the order of rows, which is an issue: %s', async (_, times) => {
    const { readings, facts, issues } = await read(rowsAt(times))
    const values = (gpu: number) => readings.get(`GPU ${gpu}: power.draw`)!.map(([, , W]) => W)
    expect([values(0), values(1)]).toEqual(
      times.length === 2
        ? [[0.5], [1.5]]
        : [
            [0.5, 2.5],
            [1.5, 3.5],
          ],
    )
    expect([facts['gpus'], issues]).toEqual(['2, by the order of rows', ['gpus-by-order']])
  })

  it.each([
    ['every second', ['58:57.1', '58:58.1', '58:59.1', '59:00.1']],
    ['every 20 ms, with a pause', ['58:57.100', '58:57.120', '58:57.141', '58:57.960', '58:57.980']],
  ])('one GPU without a number is one: %s', async (_, times) => {
    const { readings, facts, issues } = await read(rowsAt(times.map((at) => at.padEnd(9, '0'))))
    expect([readings.get('GPU 0: power.draw')!.length, facts['gpus'], issues]).toEqual([times.length, undefined, []])
  })

  it('a reading in which a row of GPUs without a number is missing is left out', async () => {
    const readingAt = (second: number) => [0, 1, 2].map((ms) => `${second < 60 ? '58' : '59'}:${second % 60}.10${ms}`)
    const times = Array.from({ length: 12 }, (_, i) => readingAt(i + 40)).flat()
    times.splice(13, 1)
    const { readings, issues } = await read(rowsAt(times))
    expect([0, 1, 2].map((gpu) => readings.get(`GPU ${gpu}: power.draw`)!.length)).toEqual([11, 11, 11])
    expect(issues).toEqual(['unreadable-row', 'gpus-by-order'])
    expect(
      readings
        .get('GPU 2: power.draw')!
        .map(([, , W]) => W)
        .slice(3, 6),
    ).toEqual([11.5, 16.5, 19.5])
  })

  it('without a header, the first value in W is the power', async () => {
    const { what } = await read(bytesOf(textOf('nvidia-smi.csv').split('\n').slice(1).join('\n')))
    expect(what.get('GPU 0: power.draw')).toBe('power W 1')
    expect(what.get('GPU 0: column 6')).toBe('other Hz 0')
  })
})

describe('times', () => {
  it('to the second are spread over it: three readings of the same second', async () => {
    const { readings, what } = await readFixture('tegrastats.txt')
    expect(what.get('Jetson: VDD_IN')).toBe('power W 1')
    expect(what.get('Jetson: VDD_SOC')).toBe('power W 1 part')
    expect(readings.get('Jetson: VDD_IN')).toEqual([
      [0, 0, 5.542],
      [0.5, 0.5, 7.542],
      [1, 1, 5.642],
    ])
    expect(readings.get('Jetson: GR3D_FREQ clock')!.map(([, , Hz]) => Hz / 1e6)).toEqual([305, 918, 305])
    expect(readings.has('Jetson: temperature tdiode')).toBe(false)
  })

  it('of several GPUs in one second are not', async () => {
    const { readings } = await readFixture('nvidia-dmon.txt')
    expect(readings.get('GPU 1: pwr')!.map(([, at, W]) => [at, W])).toEqual([
      [0, 267],
      [1, 299],
      [2, 300],
    ])
    // The share of the time since the reading before.
    expect(readings.get('GPU 1: pviol')).toEqual([
      [0, 0, 0],
      [0, 1, 0.43],
      [1, 2, 0.71],
    ])
  })

  it('where there are none, readings are at equal distances, which is an issue', async () => {
    const { readings, issues, first } = await readFixture('nvidia-dmon-no-times.txt')
    expect(readings.get('GPU 1: pwr')!.map(([, at]) => at)).toEqual([0, 1])
    expect(issues).toEqual(['readings-without-time'])
    expect(first.clockSource).toBeUndefined()
  })

  it('of dmon -o T continue at midnight', async () => {
    const row = (time: string) => ` ${time}   0   87   33\n`
    const { readings, first } = await read(
      bytesOf(`#Time        gpu    pwr  gtemp\n#HH:MM:SS    Idx      W      C\n${row('23:59:59')}${row('00:00:01')}`),
    )
    expect(readings.get('GPU 0: pwr')!.map(([, at]) => at)).toEqual([0, 2])
    expect([first.clock, first.originNs, first.clockSource]).toEqual(['unknown', 0n, undefined])
  })

  it('before those of the last reading, and damaged ones, are issues', async () => {
    const [head, a, , b] = textOf('nvidia-smi.csv').split('\n')
    const { issues, readings } = await read(
      bytesOf([head, b, a, b!.replace('58.379', '59.379'), a!.replace('2025', '2035'), ''].join('\n')),
    )
    expect(issues).toEqual(['late-record', 'impossible-time'])
    expect(readings.get('GPU 0: power.draw')).toHaveLength(2)
  })
})

describe('turbostat', () => {
  it('has means since the reading before, of the whole machine, and the limit of the package', async () => {
    const { readings, what } = await readFixture('turbostat.txt')
    expect(what.get('CPU package: PkgWatt')).toBe('power W 0')
    expect(what.get('CPU package: CorWatt')).toBe('power W 0 part')
    expect(what.get('CPU package: PKG Limit #1')).toBe('power-limit W 0')
    expect(readings.get('CPU package: PKG Limit #1')![0]![2]).toBe(28)
    const [first, second] = readings.get('CPU package: PkgWatt')!
    expect(first).toEqual([0, 0, 1.33])
    expect(second![0]).toBe(0)
    expect(second![1]).toBeCloseTo(5.010783, 9) // 1737461766.732999 - 1737461761.722216
  })
})

describe('dcgmi, amd-smi and our own log', () => {
  it('dcgmi: total energy in J', async () => {
    const { readings, what } = await readFixture('dcgm.txt')
    expect(what.get('GPU 0: TOTEC')).toBe('energy J 0')
    expect(readings.get('GPU 0: TOTEC')!.map(([, , J]) => J)).toEqual([153244, 153400, 153780])
  })

  it('amd-smi: the same names in CSV and in JSON', async () => {
    const { readings, what } = await readFixture('amd-smi.json')
    expect(what.get('GPU 0: gfx_0_clk')).toBe('clock Hz 1')
    expect(readings.get('GPU 0: total_energy_consumption')!.map(([, at, J]) => [at, J])).toEqual([
      [0, 120034.5],
      [1, 121225.5],
    ])
    const csv = await readFixture('amd-smi.csv')
    expect(csv.readings.get('GPU 0: throttle_status')!.map(([, , value]) => value)).toEqual([0, 1])
    expect(csv.readings.get('GPU 0: mem')!.map(([, , value]) => value)).toEqual([23, 60, 66])
  })

  it('amd-smi: a document that is cut is an issue', async () => {
    const reading = (at: number) => `[{"gpu": 0, "timestamp": ${at},\n "power": {"socket_power": {"value": 9}}}\n]\n`
    const { issues, readings } = await read(bytesOf(reading(1786553852) + reading(1786553853).slice(0, -2)))
    expect([issues, readings.get('GPU 0: socket_power')!.length]).toEqual([['torn-record'], 1])
  })

  it('our own: counters that wrap continue, and counts of events are shares', async () => {
    const { readings, facts } = await readFixture('power.csv')
    const J = readings.get('package-0: energy_uj')!.map(([, , value]) => value)
    expect(J[2]! - J[1]!).toBeCloseTo(2.672, 6) // 2671150 + 262143328850 - 262143328000 µJ
    expect(readings.get('package-0: package_throttle_count')!.map(([, , value]) => value)).toEqual([0, 0, 1, 0])
    expect(facts.not_read).toBe('dram: permission denied')
    const damaged = await read(bytesOf(textOf('power.csv').replace(/\d+$/m, 'x')))
    expect(damaged.facts.values_not_available).toBe(facts.values_not_available + 1)
  })
})

describe('in the trace', () => {
  test('a group for each device; total energy is drawn as power', async () => {
    const trace = await openTrace(await converted(plainBytes('power/power.csv')))
    const paths = pathsOf(trace)
    const units = trace.query('select id, unit from counter_track').rows
    const samples = trace.query('select track_id, ts, round(value, 3) from counter order by track_id, ts').rows
    trace.close()
    const [zeroNs] = samples.map(([, ts]) => Number(ts)).sort((a, b) => a - b)
    const rows = samples.map(([track, ts, value]) => [
      paths.get(Number(track)),
      units.find(([id]) => id === track)![1],
      Number(ts) - zeroNs!,
      value,
    ])
    expect(rows.filter(([path]) => /energy_uj|scaling/.test(path as string) && !/core/.test(path as string))).toEqual([
      ['Power/CPU: scaling_cur_freq, mean', 'Hz', 0, 2.4e9],
      ['Power/CPU: scaling_cur_freq, mean', 'Hz', 100_000_000, 3.4e9],
      ['Power/CPU: scaling_cur_freq, mean', 'Hz', 200_000_000, 3.4e9],
      ['Power/package-0: power (from energy_uj)', 'W', 0, 3.28],
      ['Power/package-0: power (from energy_uj)', 'W', 100_000_000, 26.72],
      ['Power/package-0: power (from energy_uj)', 'W', 200_000_000, 28],
    ])
    // A share of time is drawn in percent.
    expect(rows).toContainEqual(['Power/package-0: package_throttle_count', '%', 200_000_000, 100])
  })
})

/** Local times are converted by a time zone that is given; else they are refused. */
describe('local times', () => {
  const UTC_NS = 1745502180_000_000_000n // 2025-04-24 13:43:00 UTC
  const log = input(
    'run.ggtrace',
    () => [
      {
        kind: 'clocks',
        readings: [
          { clock: 'MONOTONIC', ns: ORIGIN_NS },
          { clock: 'REALTIME', ns: UTC_NS },
        ],
      },
    ],
    inputEvent(),
  )
  const smi: Input = {
    name: 'logs/smi.csv',
    source: bytesOf('timestamp, power.draw [W]\n2025/04/24 15:43:01.500, 21.76 W\n2025/04/24 15:43:02.500, 22.76 W\n'),
  }
  const convertWith = (clock?: string) => {
    const options: ConvertOptions = clock === undefined ? {} : { clocks: { 'smi.csv': clock } }
    return joined(convert([log, smi], options))
  }

  test.each(['UTC+2', '+02:00', 'Europe/Berlin'])('%s', async (zone) => {
    const trace = await openTrace(await convertWith(zone))
    const [at] = trace.query(`select min(ts) - ${ORIGIN_NS} from counter`).rows[0]!
    trace.close()
    expect(at).toBe(1_500_000_000)
  })

  test.each([
    [undefined, 'has local times, and does not record their time zone'],
    ['Mars/Olympus', 'the time zone of local times (UTC+2, Europe/Berlin)'],
  ])('%s is refused', async (zone, message) => {
    await expect(convertWith(zone)).rejects.toThrow(message)
  })

  test('a time zone is refused for other times', async () => {
    const options = { clocks: { 'dcgm.txt': 'UTC+2' } }
    const inputs = [log, { name: 'dcgm.txt', source: plainBytes('power/dcgm.txt') }]
    await expect(joined(convert(inputs, options))).rejects.toThrow('found CLOCK_REALTIME, which it records')
  })
})

describe('damaged logs', () => {
  const FILES = [
    'nvidia-smi.csv',
    'nvidia-dmon.txt',
    'dcgm.txt',
    'amd-smi.csv',
    'amd-smi.json',
    'turbostat.txt',
    'tegrastats.txt',
    'power.csv',
    'amd-smi-watch.csv',
  ]

  test.each(FILES)('%s, cut and changed anywhere', (name) => tryDamaged(name, plainBytes(`power/${name}`), 24, 40))
})
