import { beforeAll, describe, expect, test } from '@jest/globals'
import { findings } from '../../lib/analysis.ts'
import type { KernelProfileEvent } from '../../lib/core.ts'
import { type Analysis, analyze, convert, type Input, type Names, summarize, type TraceEvent } from '../../lib/index.ts'
import { openTrace } from '../../lib/node.ts'
import { figuresOf, metricOf } from '../../lib/read/gpu/ncu/metrics.ts'
import { cut, eventsIn, joined, plainBytes, randomOf } from '../line/support.ts'

/** Nsight Compute's CSV: what is read of it, how it is joined with the kernels of a report, and what follows from it. */

const fixture = (name: string): Input => ({ name, source: plainBytes(name) })
const [RAW, DETAILS, REPORT] = ['ncu/raw.csv', 'ncu/details.csv', 'nsys/two-processes.sqlite.gz']
const textOf = (name: string) => new TextDecoder().decode(plainBytes(name))
const bytesOf = (text: string) => new TextEncoder().encode(text)

const profilesIn = async (bytes: Uint8Array) => {
  const { events, names } = await eventsIn(bytes)
  const profiles = events.filter((event): event is KernelProfileEvent => event.kind === 'kernel-profile')
  const issues = events.flatMap((event) => (event.kind === 'issue' ? [event.code] : []))
  return { profiles, issues, names }
}

/** Rows of a CSV without quotes in cells, by other means than the reader. */
const rowsOf = (text: string) => {
  const lines = text.trimEnd().split('\n')
  const rows = lines
    .slice(lines.findIndex((line) => line.startsWith('"ID"')))
    .map((line) => line.slice(1, -1).split('","'))
  const [header, ...rest] = rows as [string[], ...string[][]]
  return rest.map((row) => Object.fromEntries(header.map((column, i) => [column, row[i] ?? ''])))
}
const numberIn = (text: string | undefined) => Number(text?.replaceAll(',', ''))

describe('reading', () => {
  test('the details page: one launch, its figures from labels and units', async () => {
    const { profiles, issues, names } = await profilesIn(plainBytes(DETAILS))
    const [{ name, figures, ...of }] = profiles as [KernelProfileEvent]
    expect([profiles.length, issues]).toEqual([1, []])
    expect(names.text(name)).toMatch(/^copy_blocked\[v1,/)
    expect(of).toMatchObject({ id: 0, pid: 6153, context: 1, stream: 7, grid: '1024x1x1', block: '256x1x1' })
    expect(figures).toEqual({
      ...{ duration_ns: 21_058_944, sm_share: 0.013, memory_share: 0.6184, dram_share: 0.6184 },
      // The throughput of the memory by the duration.
      dram_bytes: Math.round((196_456_177_859.63 * 21_058_944) / 1e9),
      ...{ l2_hit_share: 0.0458, l1_hit_share: 0.0046, occupancy_share: 0.9626 },
    })
  })

  test('the raw page: sums and counts as another reader finds them', async () => {
    const rows = rowsOf(textOf(RAW)).slice(1)
    const { profiles } = await profilesIn(plainBytes(RAW))
    expect(profiles.length).toBe(rows.length)
    const total = (of: (profile: KernelProfileEvent) => number) =>
      profiles.reduce((sum, profile) => sum + of(profile), 0)
    const sum = (of: (row: Record<string, string>) => number) => rows.reduce((sum, row) => sum + of(row), 0)
    expect(total(({ figures }) => figures.duration_ns!)).toBeCloseTo(
      sum((row) => 1e3 * numberIn(row['gpu__time_duration.sum'])),
      -1,
    )
    expect(total(({ figures }) => figures.dram_bytes!)).toBeCloseTo(
      sum((row) => 1e6 * numberIn(row['dram__bytes.sum'])),
      0,
    )
    const op = (row: Record<string, string>, name: string) =>
      numberIn(row[`smsp__sass_thread_inst_executed_op_${name}_pred_on.sum`])
    expect(total(({ figures }) => figures.flop!)).toBe(
      sum((row) => op(row, 'fadd') + op(row, 'fmul') + 2 * op(row, 'ffma')),
    )
    expect(profiles[0]!.figures).toMatchObject({
      peak_bytes_per_s: 1280 * 2.62e9,
      peak_flop_per_s: 2 * 16_896 * 1.59e9,
    })
  })

  test('UTF-16, other separators, several headers, lines of the program', async () => {
    const bytes = Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from(textOf(RAW), 'utf16le')])
    const utf16 = await profilesIn(new Uint8Array(bytes))
    const plain = await profilesIn(plainBytes(RAW))
    expect(utf16.profiles.map(({ figures }) => figures)).toEqual(plain.profiles.map(({ figures }) => figures))
    const twice = await profilesIn(bytesOf(`${textOf(RAW)}loss 0.5\n${textOf(RAW)}`))
    expect(twice.profiles.length).toBe(2 * plain.profiles.length)
    expect((await profilesIn(bytesOf(textOf(RAW).replace('"0","5150"', '"x","5150"')))).issues).toEqual([
      'companion-entry',
    ])
  })

  test.each([
    ['12,319,469', 'cycle', 12_319_469],
    ['1.234.567,5', 'Gbyte/s', 1_234_567.5e9],
    ['1.5', 'Mbyte', 1.5e6],
    ['2.5', 'usecond', 2500],
    ['2', 's', 2e9],
    ['1.59', 'cycle/nsecond', 1.59e9],
    ['3', 'Ghz', 3e9],
    ['n/a', '%', undefined],
    ['(!) nan', '%', undefined],
    ['CachePreferNone', '', undefined],
  ])('%s %s', (text, unit, value) => expect(metricOf(text, unit)?.value).toBe(value))

  test('a file of a Windows whose decimals have a comma: a dot is of thousands in all of its numbers', async () => {
    const swapped = textOf(DETAILS).replace(/"(-?\d[\d,]*(?:\.\d+)?)"/g, (cell, number) =>
      /[.,]/.test(number) ? `"${number.replace(/[.,]/g, (sign: string) => (sign === ',' ? '.' : ','))}"` : cell,
    )
    const [plain, other] = await Promise.all([plainBytes(DETAILS), bytesOf(swapped)].map(profilesIn))
    expect(swapped).not.toBe(textOf(DETAILS))
    expect(other!.profiles.map(({ figures }) => figures)).toEqual(plain!.profiles.map(({ figures }) => figures))
    const row = (metric: string, unit: string, value: string) =>
      `"0","7","p","h","k","1","7","${metric}","${unit}","${value}"`
    const rows = [
      row('gpu__time_duration.sum', 'ns', '117.344'),
      row('sm__throughput.avg.pct_of_peak_sustained_elapsed', '%', '65,77'),
    ]
    const head =
      '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Metric Name","Metric Unit","Metric Value"'
    const { profiles } = await profilesIn(bytesOf([head, ...rows].join('\n')))
    expect(profiles[0]!.figures).toEqual({ duration_ns: 117_344, sm_share: 0.6577 })
  })

  test('operations are known where those of tensor cores are counted, or none ran', () => {
    const metrics = (of: Readonly<Record<string, number>>) =>
      new Map(Object.entries(of).map(([name, value]) => [name, { value, kind: 'other' as const }]))
    const FFMA = {
      'smsp__sass_thread_inst_executed_op_ffma_pred_on.sum.per_cycle_elapsed': 4,
      'smsp__cycles_elapsed.avg': 100,
    }
    const PIPE = 'sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_active'
    expect(figuresOf(metrics({ ...FFMA, [PIPE]: 0 }))).toMatchObject({ flop: 800, tensor_share: 0 })
    expect(figuresOf(metrics({ ...FFMA, [PIPE]: 40 })).flop).toBeUndefined()
    expect(figuresOf(metrics(FFMA)).flop).toBeUndefined()
    const OPS = {
      'sm__ops_path_tensor_src_bf16_dst_fp32.sum': 5000,
      'sm__ops_path_tensor_src_bf16_dst_fp32_sparsity_off.sum': 5000,
    }
    expect(figuresOf(metrics({ ...FFMA, ...OPS, [PIPE]: 40 }))).toMatchObject({ flop: 5800, tensor_share: 0.4 })
  })
})

describe('joined with a report', () => {
  let analysis: Analysis
  let trace: Uint8Array
  beforeAll(async () => {
    const inputs = [RAW, REPORT].map(fixture)
    analysis = await analyze(inputs)
    trace = await joined(convert(inputs))
  })

  test('each of the first launches of both processes is the profiled one; further ones have its shape', async () => {
    const { joined: join, kernels, launches } = analysis.kernel_profiles!
    expect([launches, kernels.length]).toEqual([12, 10])
    const open = await openTrace(trace)
    try {
      const count = (how: string) =>
        Number(
          open.query(`select count(*) from gpu_slice where extract_arg(arg_set_id, 'ncu_match') glob '${how}*'`)
            .rows[0]![0],
        )
      expect(join).toMatchObject({ kernels: 158, same_launch: count('the same'), same_shape: count('another') })
      // 12 of process 111 by construction; process 112 ran the same program on another stream.
      expect(join!.same_launch).toBeGreaterThanOrEqual(12)
      const wrong = open.query(
        `select count(*) from gpu_slice where extract_arg(arg_set_id, 'ncu_flop') is not null and name glob '*gemm*'
         and (extract_arg(arg_set_id, 'grid') not in ('1x48x5', '1x48x2'))`,
      )
      expect(Number(wrong.rows[0]![0])).toBe(0)
    } finally {
      open.close()
    }
  })

  test('in the roofline, against the peaks in the profile', () => {
    const [first] = analysis.rooflines.filter(({ scope }) => scope === 'kernel')
    expect(first!.what).toMatch(/^sm80_xmma_gemm/)
    expect(first).toMatchObject({ bound: 'compute', peak_flop_per_s: 2 * 16_896 * 1.59e9, phase: null })
    expect(first!.mfu_share).toBeCloseTo(0.86, 2)
  })

  test('a product of 32-bit numbers without tensor cores is found, with the time of its kernels in the trace', async () => {
    const found = findings(analysis).find(({ rule }) => rule === 'unused-tensor-cores')!
    expect(found.sentence).toMatch(
      /^sm80_xmma_gemm\S+ and 1 more: the multiprocessors are 86 % busy, the tensor cores 0 %$/,
    )
    expect(found.confidence).toBe('high')
    const open = await openTrace(trace)
    try {
      const sql = "select sum(dur) from gpu_slice where extract_arg(arg_set_id, 'ncu_name') glob 'sm80_xmma_gemm*'"
      expect(Number(open.query(sql).rows[0]![0])).toBe(found.evidence['time_ns'])
    } finally {
      open.close()
    }
  })

  test('a product that misses the L2 and waits for the memory is found; a product with a vector is not', async () => {
    const of = async (name: string) => {
      const text = textOf(DETAILS).replaceAll(/copy_blocked\[[^"]*/g, name)
      const { findings } = await analyze({ name: 'profile', source: bytesOf(text) })
      return findings.map(({ rule, check }) => [rule, check.evidence])
    }
    expect(await of('mul_mat_q<2, 64>(float *)')).toEqual([['low-l2-hits', 'time_ns']])
    expect(await of('mul_mat_vec_q<2, 64>(float *)')).toEqual([])
  })

  test('names of other demanglers, and of functions alone, are the same kernel', async () => {
    const kernel = (names: Names, name: string): TraceEvent => ({
      ...{ kind: 'gpu', what: 'kernel', name: names.id(name), startNs: 0, endNs: 5, correlation: -1, signature: 0 },
      ...{ device: 0, context: 1, contextName: 0, stream: 3, streamName: 0, pid: 1 },
      facts: { grid: '1x2x1', block: '32x1x1' },
    })
    const joins = async (ours: string, theirs: string) => {
      const csv = `"ID","Process ID","Kernel Name","Stream","Block Size","Grid Size","Metric Name","Metric Unit","Metric Value"
"0","9","${ours}","7","(32, 1, 1)","(1, 2, 1)","Duration","ns","5"\n`
      const INPUT = { kind: 'input', format: 'own', clock: 'MONOTONIC', originNs: 0n, attributes: {} } as const
      const log: Input = { name: 'log', events: (names) => [[INPUT, kernel(names, theirs)]] }
      return (await analyze([log, { name: 'profile', source: bytesOf(csv) }])).kernel_profiles!.joined!.same_launch
    }
    expect(await joins('void f<(int)4, (bool)1>(int *)', 'f<4, true>(int*)')).toBe(1)
    expect(await joins('f', 'void f<4>(int*)')).toBe(1)
    expect(await joins('void f<4>(int*)', 'f')).toBe(1)
    expect(await joins('void f<4>(int*)', 'void f<5>(int*)')).toBe(0)
  })

  test('profiled kernels that the report does not contain are an issue', async () => {
    const source = bytesOf(textOf(RAW).replaceAll('reduce_kernel', 'other_kernel'))
    const conversion = convert([fixture(REPORT), { name: 'profile', source }])
    let next = await conversion.next()
    while (!next.done) next = await conversion.next()
    expect(next.value[0]!.issues.map(({ code }) => code)).toContain('profiles-without-kernel')
  })
})

test('without a log, there are statistics but no trace', async () => {
  const { kernel_profiles, inputs } = await analyze(fixture(DETAILS))
  expect(kernel_profiles).toMatchObject({ launches: 1, joined: null })
  expect(inputs.map(({ format }) => format)).toEqual(['ncu'])
  await expect(joined(convert(fixture(DETAILS)))).rejects.toThrow('adds to a log')
})

test('damaged in any way, it is read or refused, also in pieces', async () => {
  for (const name of [RAW, DETAILS]) {
    const bytes = plainBytes(name)
    const random = randomOf(bytes.length)
    for (let i = 0; i < 120; i++) {
      const at = Math.floor(random() * bytes.length)
      const damaged = i % 3 === 0 ? bytes.slice(0, at) : bytes.slice()
      if (i % 3 > 0) damaged[at]! ^= i % 3 === 1 ? 0xff : 1 << (i % 8)
      const readable = async (source: Uint8Array | AsyncIterable<Uint8Array>) => {
        try {
          return JSON.stringify(await summarize({ name: 'profile', source }), (_, value: unknown) =>
            typeof value === 'bigint' ? `${value}` : value,
          )
        } catch (error) {
          const { name, message } = error as Error
          expect(['FormatError', 'UsageError']).toContain(name)
          return message
        }
      }
      const whole = await readable(damaged)
      if (i % 10 === 0) expect(await readable(cut(damaged, 1 + (at % 300)))).toBe(whole)
    }
  }
})
