import { readFileSync } from 'node:fs'
import { beforeAll, describe, expect, test } from '@jest/globals'
import type { BlasEvent } from '../../lib/core.ts'
import { type Analysis, analyze, type Summary, summarize } from '../../lib/index.ts'
import { openTrace } from '../../lib/node.ts'
import { attempt, sameInPieces } from '../line/hostile.ts'
import { converted, eventsIn, pathOf, plainBytes, randomOf } from '../line/support.ts'

/** Logs of BLAS libraries and of oneDNN: counts and sums as another reader has them, forms, times, damage. */

interface Answers {
  readonly libraries: Readonly<Record<string, { readonly calls: number; readonly flop: number }>>
  readonly shapes: readonly string[]
  readonly others?: number
  readonly time_us?: number
}
const ANSWERS = JSON.parse(readFileSync(pathOf('blas-log/answers.json'), 'utf8')) as Record<string, Answers>
const FIXTURES = Object.keys(ANSWERS).map((name) => (name.startsWith('v') ? `onednn/${name}` : `blas-log/${name}`))

const bytesOf = (text: string) => new TextEncoder().encode(text)
const textOf = (fixture: string) => new TextDecoder().decode(plainBytes(fixture))
const blasOf = async (text: string) => {
  const { events } = await eventsIn(bytesOf(text))
  const [input] = events
  if (input?.kind !== 'input') throw new Error('expected an input event')
  const calls = events.filter((event): event is BlasEvent => event.kind === 'blas')
  const issues = events.flatMap((event) => (event.kind === 'issue' ? [event.code] : []))
  return { input, calls, issues }
}

describe.each(FIXTURES)('%s', (fixture) => {
  const answers = ANSWERS[fixture.split('/')[1]!]!
  let analysis: Analysis
  let summary: Summary
  beforeAll(async () => {
    const input = { name: 'log', source: plainBytes(fixture) }
    analysis = await analyze(input)
    summary = await summarize(input)
  })

  test('counts, sums and sizes are those that a Python script finds', () => {
    const { libraries, calls, other_calls } = analysis.blas!
    const found = libraries.map(({ library, products, flop }) => [library, { calls: products, flop }])
    expect(Object.fromEntries(found)).toEqual(answers.libraries)
    const shapes = calls.flatMap(({ m, n, k, batch }) => (m === null ? [] : [`${m}x${n}x${k}x${batch}`]))
    expect([...new Set(shapes)].sort()).toEqual(answers.shapes)
    expect(other_calls).toBeNull()
    const others = libraries.reduce((sum, { calls, products }) => sum + calls - products, 0)
    expect(others).toBe(answers.others ?? 0)
    if (answers.time_us !== undefined) expect(Math.round(libraries[0]!.time_ns! / 1e3)).toBe(answers.time_us)
    else expect(libraries.every(({ time_ns }) => time_ns === null)).toBe(true)
    expect(summary.format).toBe(fixture.split('/')[0])
  })

  test('damaged, it ends in a sound trace or in a message', async () => {
    const bytes = plainBytes(fixture)
    const random = randomOf(bytes.length)
    for (let i = 0; i < 60; i++) {
      const at = Math.floor(random() * bytes.length)
      const damaged = i % 3 === 0 ? bytes.slice(0, at) : bytes.slice()
      if (i % 3 > 0) damaged[at]! ^= i % 3 === 1 ? 0xff : 1 << (i % 8)
      const outcome = await attempt(damaged, `${fixture}, ${i}: byte ${at}`)
      if (i % 12 === 0) await sameInPieces(damaged, 1 + (at % 200), outcome, `${fixture}, ${i}`)
    }
  })
})

test('in the trace: a slice for each call, on rows of its library, with sizes, types and what was chosen', async () => {
  const trace = await openTrace(await converted(plainBytes('onednn/v3.7.log')))
  try {
    const arg = (key: string) => `extract_arg(s.arg_set_id, 'debug.${key}')`
    const { rows } = trace.query(
      `select s.name, t.name, count(*), sum(s.dur), ${arg('m')}, ${arg('n')}, ${arg('k')}, ${arg('transposes')},
       ${arg('types')}, ${arg('algorithm')}, ${arg('flop')} from slice s join track t on t.id = s.track_id
       where s.category = 'blas' group by 1, 2 order by sum(s.dur) desc limit 1`,
    )
    const [name, track, count, dur, ...args] = rows[0]!
    expect([name, track, Number(count)]).toEqual(['matmul 32×1536×512', 'oneDNN: calls', 3])
    expect(Number(dur)).toBe(10_710_900 + 11_906_000 + 5_874_020)
    const [m, n, k, ...words] = args
    expect([m, n, k].map(Number)).toEqual([32, 1536, 512])
    expect(words.slice(0, 3)).toEqual(['NT', 'f32 f32 f32', 'brg_matmul:avx512_core'])
    expect(Number(words[3])).toBe(2 * 32 * 1536 * 512)
  } finally {
    trace.close()
  }
})

describe('times', () => {
  test('oneDNN writes the start of each primitive on CLOCK_REALTIME, exactly', async () => {
    const { input, calls } = await blasOf(textOf('onednn/v3.7.log'))
    expect([input.clock, input.originNs]).toEqual(['REALTIME', 1_795_446_170_796_875_000n])
    expect(calls.slice(0, 2).map(({ startNs, endNs, inferred }) => [startNs, endNs, inferred])).toEqual([
      [0, 10_710_900, 0],
      [10_788_086, 10_788_086 + 11_906_000, 0],
    ])
  })

  test('without its times each primitive begins at the end of the one before, marked and with an issue', async () => {
    const text = textOf('onednn/v3.7.log').replace(/,\d{13}\.\d{6}/g, '')
    const { input, calls, issues } = await blasOf(text)
    expect([input.clock, issues]).toEqual(['unknown', ['calls-without-time']])
    expect(calls.map(({ startNs }) => startNs)).toEqual([0, ...calls.slice(0, -1).map(({ endNs }) => endNs)])
    expect(calls.every(({ inferred }) => inferred > 0)).toBe(true)
  })

  test('others write local time to 1 s: the clock is not known, and the order within a second is inferred', async () => {
    const { input, calls, issues } = await blasOf(textOf('blas-log/cublaslt.log'))
    const originNs = BigInt(Date.UTC(2026, 4, 4, 15, 8, 47)) * 1_000_000n
    expect([input.clock, input.originNs, issues]).toEqual(['unknown', originNs, []])
    expect(calls.map(({ startNs }) => startNs)).toEqual([0, 1000, 2000, 1e9, 1e9 + 1000])
    expect(calls.every(({ startNs, endNs, inferred }) => startNs === endNs && inferred > 0)).toBe(true)
  })

  test('the clock may be given: two logs on one timeline', async () => {
    const inputs = ['onednn/v3.7.log', 'blas-log/hipblaslt.log'].map((name) => ({ name, source: plainBytes(name) }))
    await expect(analyze(inputs)).rejects.toThrow('has local times, and does not record their time zone')
    const zone = { 'blas-log/hipblaslt.log': 'UTC+2' }
    await expect(analyze(inputs, { clocks: zone })).rejects.toThrow(/begins \d+ days away/) // of another run
    const given = await analyze(inputs, { clocks: { 'blas-log/hipblaslt.log': '@1795446170s' } })
    expect(given.inputs.map(({ clock }) => clock)).toEqual(['REALTIME', 'unknown'])
    expect(given.blas!.libraries.map(({ library }) => library)).toEqual(['onednn', 'hipblaslt'])
  })
})

describe('forms', () => {
  const one = async (text: string) => {
    const { calls, issues } = await blasOf(text)
    expect(issues.filter((code) => code !== 'calls-without-time')).toEqual([])
    return calls.map(({ of }) => [of.name, of.product ?? of.problem, of.types, of.algorithm])
  }
  const product = (m: number, n: number, k: number, transposes = '', batch = 1) => ({ m, n, k, batch, transposes })

  test('a trace and a command of one call are one call, with the solution of the command', async () => {
    const [first] = await one(textOf('blas-log/hipblaslt.log'))
    expect(first).toEqual(['rocblaslt_matmul', product(48, 176, 1024, 'NT'), 'bf16 bf16 bf16', 'solution 218160'])
    const commands = textOf('blas-log/hipblaslt.log').replace(/^\[.*\n/gm, '')
    expect((await one(commands))[0]![0]).toBe('hipblasLtMatmul')
  })

  test('oneDNN 1, inner products, primitives that are no products', async () => {
    const line = (what: string, memory: string, problem: string) =>
      `dnnl_verbose,exec,cpu,${what},jit:x,forward_inference,${memory},attr:a,b,,${problem},0.5\n`
    const text =
      line(
        'inner_product',
        'src_f32::blocked:ab:f0 wei_f32::blocked:ab:f0 dst_f32::blocked:ab:f0',
        'mb8ic16ih2iw3oc32',
      ) +
      line('eltwise', 'data_f32::blocked:ab:f0', '2x3') +
      line('matmul', 'src_bf16::blocked:abcd:f0 wei_bf16::blocked:abdc:f0 dst_bf16::blocked:abcd:f0', '2x1x4x8:2x3x8x5')
    expect(await one(text)).toEqual([
      ['inner_product', product(8, 32, 96), 'f32 f32 f32', 'jit:x'],
      ['eltwise', '2x3', '', 'jit:x'],
      ['matmul', product(4, 5, 8, 'NT', 6), 'bf16 bf16 bf16', 'jit:x'],
    ])
  })

  test('oneDNN 1 and 2 with sizes by letter; groups of rows, of which only the weights have a third dimension', async () => {
    expect(await one(textOf('onednn/v2.3-old-form.log'))).toEqual([
      ['matmul', product(52, 64, 52, '', 1408), 'bf16 bf16 bf16', 'gemm:jit'],
      ['inner_product', product(6, 1536, 1536), 'f32 u8 f32', 'brgemm:avx2'],
      ['convolution', expect.stringMatching(/^mb1_ic3oc16/), 'f32 f32 f32', 'jit:avx2'],
    ])
    const [grouped] = await one(textOf('onednn/v3.12-grouped.log'))
    expect(grouped).toEqual(['matmul', product(16, 24, 32), 'f32 f32 f32', 'zen:grouped_matmul'])
  })

  test('a product of oneDNN with its sizes in an unknown form is drawn, and counted', async () => {
    const text = textOf('onednn/v3.12-grouped.log').replace('128x3584:3584x37888', 'M128K3584')
    const { calls } = await blasOf(text)
    expect(calls.map(({ of }) => of.product === undefined)).toEqual([false, true, false, false])
    const { left_out } = await summarize({ name: 'log', source: bytesOf(text) })
    expect(left_out.map(({ what, count }) => [what, count])).toEqual([
      ['sizes of problems of matmul and inner_product', 1],
    ])
  })

  test('cuBLAS on Windows, matrix · vector, and functions that are no products', async () => {
    const record = (name: string, ...of: readonly string[]) =>
      [`I! cuBLAS (v12.1) function cublasStatus_t __cdecl ${name}(int) called:`, ...of.map((p) => `i!  ${p}`), ''].join(
        '\r\n',
      )
    const int = (key: string, value: number) => `${key}: type=int; val=${value}`
    const text =
      record('cublasSetStream_v2', int('streamId', 7)) +
      record('cublasDgemv_v2', 'trans: type=cublasOperation_t; val=CUBLAS_OP_T(1)', int('m', 30), int('n', 20)) +
      record('cublasHgemm', int('m', 1), int('n', 2), int('k', 3))
    expect(await one(text)).toEqual([
      ['cublasDgemv_v2', product(30, 1, 20), 'f64 f64 f64', ''],
      ['cublasHgemm', product(1, 2, 3), 'f16 f16 f16', ''],
    ])
  })

  test('a call without its sizes is an issue, as is a duration that is none', async () => {
    const cublas = textOf('blas-log/cublas.log').replace('m: type=int; val=2', 'm: type=int; val=-2')
    expect((await blasOf(cublas)).issues).toEqual(['unreadable-call'])
    const onednn = textOf('onednn/v2.6.log').replace(',7.65894', ',long')
    expect((await blasOf(onednn)).issues).toEqual(['unreadable-call'])
  })
})
