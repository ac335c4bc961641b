import { writeFileSync } from 'node:fs'
import { beforeAll, describe, expect, test } from '@jest/globals'
import {
  type Analysis,
  analyze,
  type Changes,
  type KernelTimes,
  peaksOfMachine,
  type WhatIf,
  type WhatIfPart,
  whatIf,
} from '../../lib/analysis.ts'
import type { Input } from '../../lib/index.ts'
import { inputOf } from '../../lib/node.ts'
import { at, run, useFolder } from '../cli/helpers.ts'
import { madeRun } from './findings/made-run.ts'
import { factorOf, factorsOf, kernelsOf, ownNs } from './made-kernels.ts'

/** Real runs: 32 decode calls on two workers, and nothing else; a prompt of 64 tokens and 40 decode calls on one. All weights are q4_0. */
const AFTER = 'test/printed/logs/after.ggtrace.gz'
const PROMPT = 'test/recorded/prompt.ggtrace.gz'
const HERE = { cwd: process.cwd() }

let [after, prompt] = [undefined as unknown as Analysis, undefined as unknown as Analysis]
beforeAll(async () => {
  const analysisOf = async (path: string) => analyze(await inputOf(path), { series: ['calls', 'steps'] })
  ;[after, prompt] = [await analysisOf(AFTER), await analysisOf(PROMPT)]
})

const isProduct = ({ type }: WhatIfPart) => type !== ''

describe('threads, by other runs', () => {
  /** 24 decode calls of so many ns on so many workers. */
  const decoded = (workers: number, ns: number): Input =>
    madeRun({
      calls: Array.from({ length: 24 }, () => ({
        phase: 'decode' as const,
        steps: [{ name: 'ffn_out-0', op: 'MUL_MAT', ns: Array.from({ length: workers }, () => ns) }],
      })),
    })
  /** By Amdahl's law. */
  const nsOf = (threads: number) => 400_000 + 1_600_000 / threads

  test('as in the run with them', async () => {
    const { tpot_ns, basis } = await whatIf(decoded(1, nsOf(1)), { threads: 2 }, { others: [decoded(2, nsOf(2))] })
    expect(tpot_ns.expected! / tpot_ns.now!).toBeCloseTo((nsOf(2) + 1000) / (nsOf(1) + 1000), 4)
    expect(basis.join()).toContain('decode, 2 threads: as in the run with them (1, 2 threads were measured)')
  })

  test('by the law through the runs, with an interval that is wider beyond them', async () => {
    const others = [decoded(2, nsOf(2)), decoded(4, nsOf(4))]
    const at = async (threads: number) => (await whatIf(decoded(1, nsOf(1)), { threads }, { others })).tpot_ns
    const [between, beyond] = [await at(3), await at(8)]
    expect(between.expected! / nsOf(3)).toBeCloseTo(1, 2)
    expect(beyond.expected! / nsOf(8)).toBeCloseTo(1, 2)
    // More threads may bring nothing.
    expect(beyond.high).toBeGreaterThan(nsOf(4) * 0.99)
    const width = ({ low, high, expected }: typeof between) => (high! - low!) / expected!
    expect(width(beyond)).toBeGreaterThan(width(between))
  })

  test('of four numbers of threads, by the Universal Scalability Law', async () => {
    const law = (n: number) => (2_000_000 * (1 + 0.1 * (n - 1) + 0.01 * n * (n - 1))) / n
    const others = [2, 4, 8].map((n) => decoded(n, law(n)))
    const { tpot_ns, basis } = await whatIf(decoded(1, law(1)), { threads: 6 }, { others })
    expect(tpot_ns.expected! / law(6)).toBeCloseTo(1, 2)
    expect(basis.join()).toContain('by the Universal Scalability Law through the runs')
  })

  test.each<[what: string, why: RegExp, others: () => Input[]]>([
    ['the same threads', /all runs have 1 threads?: one with others is necessary/, () => [decoded(1, nsOf(1))]],
    ['far beyond', /16 threads are more than 2 times the most of the runs, 2/, () => [decoded(2, nsOf(2))]],
    [
      'another program',
      /not comparable: decode calls 24 and 30/,
      () => [madeRun({ calls: Array.from({ length: 30 }, () => ({ phase: 'decode' as const, steps: [] })) })],
    ],
  ])('cannot say: %s', async (_, why, others) => {
    const { tpot_ns } = await whatIf(decoded(1, nsOf(1)), { threads: 16 }, { others: others() })
    expect(tpot_ns).toMatchObject({ expected: null, why: expect.stringMatching(why) })
  })
})

describe('without another run and without calibration', () => {
  test('threads: products between perfect scaling and none, one row on one thread; marked', async () => {
    const result = await whatIf(after, { threads: 1 })
    for (const factor of factorsOf(result, isProduct)) expect(factor).toBeCloseTo(Math.SQRT2, 6)
    for (const factor of factorsOf(result, ({ op }) => op.startsWith('RMS_NORM'))) expect(factor).toBe(1)
    expect(factorsOf(result, ({ op }) => op === 'FLASH_ATTN_EXT')).toEqual([2])
    expect(result.basis.join('\n')).toMatch(/without calibration, 1 thread from 2: between perfect scaling and none\n/)
    expect(result.basis.join('\n')).toContain('ggml2perfetto peaks <log> --types q4_0 --threads 1')
  })

  test('more threads: down to what the bandwidth permits', async () => {
    const changes: Changes = { threads: 2, without: ['preempted'] }
    const { groups, calls } = prompt.series!.steps!
    const sumOf = (list: 'steps' | 'undisturbed_ns', i: number) =>
      calls.slice(1).reduce((sum, call) => sum + (call[list][i] ?? 0), 0)
    // Bytes of weights that a product reads per second.
    const rates = groups.flatMap(({ type, weight_elements }, i) =>
      type === '' ? [] : [((weight_elements * 18) / 32 / sumOf('undisturbed_ns', i)) * sumOf('steps', i) * 1e9],
    )
    const peaksOf = (bytesPerS: number) => {
      const rate = { one: bytesPerS, all: bytesPerS }
      return peaksOfMachine({ cpu: prompt.run.cpu!, read_bytes: rate, fp32_flops: rate, int8_ops: rate })
    }
    const sumWith = async (peaks: ReturnType<typeof peaksOf> | undefined) => {
      const result = await whatIf(prompt, changes, { peaks })
      return factorsOf(result, isProduct).reduce((sum, factor) => sum + factor, 0)
    }
    const unlimited = await sumWith(undefined)
    expect(await sumWith(peaksOf(1.1 * Math.max(...rates)))).toBeGreaterThan(unlimited)
    // Faster than this memory: the weights are in caches, and its bandwidth limits nothing.
    expect(await sumWith(peaksOf(0.1 * Math.min(...rates)))).toBeCloseTo(unlimited, 9)
    const { basis } = await whatIf(prompt, changes, { peaks: peaksOf(1e12) })
    expect(basis.join()).toContain('down to what the bandwidth of the memory permits')
  })

  test('type: between proportional to bytes and the slowest type of the run', async () => {
    const { tpot_ns, basis, parts } = await whatIf(after, { type: 'q8_0' })
    expect(tpot_ns.expected).toBeGreaterThan(tpot_ns.now!)
    for (const { what, type, now_ns, then_ns } of parts) {
      if (what !== 'operators' || type === '') expect(then_ns).toBe(now_ns)
      else expect([then_ns / now_ns > 1, then_ns / now_ns < 34 / 18 + 2]).toEqual([true, true])
    }
    expect(basis.join()).toContain('without calibration, q8_0: between proportional to bytes')
  })

  test('batch: tok/s of all sequences, attention for each; no prompt', async () => {
    const result = await whatIf(after, { batch: 4 })
    const { tpot_ns, decode_tokens_per_s } = result
    expect((decode_tokens_per_s.expected! * tpot_ns.expected!) / 4e9).toBeCloseTo(1, 6)
    expect((decode_tokens_per_s.low! * tpot_ns.high!) / 4e9).toBeCloseTo(1, 6)
    for (const factor of factorsOf(result, ({ op }) => op === 'FLASH_ATTN_EXT')) expect(factor).toBeGreaterThan(4)
    // A program samples for each sequence; a call copies the outputs of each, and makes one graph.
    for (const [where, times] of [
      ['between', 4],
      ['outside', Math.SQRT2],
    ] as const) {
      const { now_ns, then_ns } = result.parts.find(({ phase, what }) => phase === 'decode' && what === where)!
      expect(then_ns / now_ns).toBeCloseTo(times, 6)
    }
    const { ttft_ns } = await whatIf(prompt, { batch: 4 })
    expect(ttft_ns.why).toBe('the prompts of 4 sequences are not predicted')
  })
})

test('without preemption, what products lose besides it is what they take more than measured alone', async () => {
  const changes: Changes = { without: ['preempted'] }
  const alone = await whatIf(prompt, changes)
  const own = ownNs(prompt)
  const kernels = kernelsOf(prompt, [['q4_0', 1, 1]], (_, __, ___, elements) => own(elements) / 2)
  const result = await whatIf(prompt, changes, { kernels })
  const [, ratio] = /decode: \d+ % of the time was lost to others; products take (\S+) times what was measured/.exec(
    result.basis.join('\n'),
  )!
  expect(result.tpot_ns.expected! / alone.tpot_ns.expected!).toBeCloseTo(Math.min(1.1 / Number(ratio), 1), 1)
  expect(result.tpot_ns.low).toBeLessThan(result.tpot_ns.expected!)
  expect(result.tpot_ns.high).toBeGreaterThan(alone.tpot_ns.expected!)
})

describe('by measured products', () => {
  /** `times`: what the products of the run take by what is measured, by 1.05. */
  const kernels = (times = 1) => {
    const own = ownNs(after)
    return kernelsOf(
      after,
      [
        ['q4_0', 1, 2],
        ['q8_0', 1, 2],
        ['q4_0', 1, 1],
        ['q4_0', 4, 2],
        ['q8_0', 4, 1],
      ],
      (type, tokens, threads, elements) =>
        (own(elements) / times) * (type === 'q8_0' ? 1.7 : 1) * (1 + (tokens - 1) / 4) * (threads === 1 ? 1.8 : 1),
    )
  }
  const width = ({ tpot_ns: { low, high, expected } }: WhatIf) => (high! - low!) / expected!

  test.each<[changes: Changes, factor: number]>([
    [{ type: 'q8_0' }, 1.7],
    [{ threads: 1 }, 1.8],
    [{ batch: 4 }, 1.75],
    [{ type: 'Q8_0', threads: 1, batch: 4 }, 1.7 * 1.8 * 1.75],
  ])('%j', async (changes, factor) => {
    const result = await whatIf(after, changes, { kernels: kernels() })
    // What they take beside what was measured remains as it is; of four sequences it is expected to be twice as much.
    const added = (Math.sqrt(changes.batch ?? 1) - 1) * (1 - 1 / 1.05)
    expect(factorOf(result, isProduct)).toBeCloseTo(1 + (factor - 1) / 1.05 + added, 1)
    expect(result.basis.join()).toMatch(/8 of 8 kinds of products by what ggml's own take with/)
    const bounded = await whatIf(after, changes)
    expect(width(result)).toBeLessThan(width(bounded))
  })

  test.each([1.5, 0.6])('what is unusual of products of the run, %d times, may remain or not', async (times) => {
    const [usual, unusual] = [
      await whatIf(after, { type: 'q8_0' }, { kernels: kernels() }),
      await whatIf(after, { type: 'q8_0' }, { kernels: kernels(times) }),
    ]
    const [, ratio] = /those of the run take (\S+) times the latter, and what is unusual/.exec(
      unusual.basis.join('\n'),
    )!
    expect(usual.basis.join('\n')).not.toContain('unusual')
    expect(Number(ratio) / times).toBeCloseTo(1.05, 1)
    const rest = Number(ratio) - 1
    const kept = rest > 0 ? 1.7 + rest * Math.sqrt(0.3 / rest) : 1.7 * Math.sqrt(1 + rest)
    expect(factorOf(unusual, isProduct)).toBeCloseTo(kept / (1 + rest), 1)
    expect(width(unusual)).toBeGreaterThan(width(usual))
    const { low, high } = unusual.tpot_ns
    const all = usual.tpot_ns.expected!
    expect([low! < all, all < high!]).toEqual([true, true])
  })

  test.each<[changes: Changes, isInBounds: boolean]>([
    [{}, true],
    [{ context: 64 }, true],
    [{ type: 'q8_0' }, false],
    [{ threads: 1 }, false],
  ])(
    'what products took too long may be lost to others, where %j does not replace them',
    async (changes, isInBounds) => {
      const steps = after.series!.steps!
      const calls = steps.calls.map((call, i) => (i === 9 ? { ...call, preempted_outside_ns: 1000 } : call))
      const little = { ...after, series: { ...after.series, steps: { ...steps, calls } } }
      const { basis } = await whatIf(little, { ...changes, without: ['preempted'] }, { kernels: kernels(1.5) })
      expect(/what is above may be lost to them, too/.test(basis.join())).toBe(isInBounds)
    },
  )

  test('rounds of a measurement that differ make the interval wider', async () => {
    const { products, ...facts } = kernels()
    const disturbed = { ...facts, products: products.map((product) => ({ ...product, second_ns: 1.3 * product.ns })) }
    const [quiet, wide] = [
      await whatIf(after, { type: 'q8_0' }, { kernels: kernels() }),
      await whatIf(after, { type: 'q8_0' }, { kernels: disturbed }),
    ]
    expect(wide.tpot_ns.expected).toBe(quiet.tpot_ns.expected)
    expect(width(wide)).toBeGreaterThan(1.05 * width(quiet))
    // Disturbed by far, the least is what is known.
    const far = { ...facts, products: products.map((product) => ({ ...product, second_ns: 50 * product.ns })) }
    expect(width(await whatIf(after, { type: 'q8_0' }, { kernels: far }))).toBeLessThan(3)
  })

  test('of weights in the memory that the run has them in: others are of other kernels', async () => {
    const row = { type: 'q4_0', op: 'MUL_MAT', detail: '', refused_by: [], tensors: 1, bytes: 1, roles: [] }
    const asInFile = { ...row, buffer: 'mapped file', reason: 'not-asked' as const }
    const repacked = { ...row, buffer: 'CPU_REPACK', reason: 'repacked' as const }
    const { products, ...facts } = kernels()
    const own = { ...facts, products: products.map((product) => ({ ...product, buffer: 'mapped file' })) }
    const faster = own.products.map((product) => ({ ...product, ns: product.ns / 4, buffer: 'CPU_REPACK' }))
    const both = { ...own, products: [...own.products, ...faster] }
    const ofRun = async (weight_memory: Analysis['weight_memory'], facts: KernelTimes = both) =>
      await whatIf({ ...after, weight_memory }, { threads: 1 }, { kernels: facts })
    const ratioOf = ({ basis }: WhatIf) => Number(/those of the run take (\S+) times/.exec(basis.join('\n'))?.[1])
    const plain = { repacking: [], rows: [asInFile] }
    expect(ratioOf(await ofRun(plain))).toBeCloseTo(1.05, 1)
    const quarter = await ofRun({ repacking: ['CPU_REPACK'], rows: [repacked] })
    expect(quarter.basis.join('\n')).toMatch(/products of the run take 4\.\d+ times what it measured/)
    const refused = await ofRun({ repacking: ['CPU_REPACK'], rows: [repacked] }, own)
    expect(refused.basis.join('\n')).toContain('it is of q4_0 in mapped file, the run has it in CPU_REPACK')
    expect(refused.tpot_ns).toEqual((await whatIf(after, { threads: 1 })).tpot_ns)
    // A program that asked for no memory that repacks has no type in it.
    const type = await whatIf({ ...after, weight_memory: plain }, { type: 'q8_0' }, { kernels: both })
    expect(factorsOf(type, isProduct)).toEqual(
      factorsOf(await whatIf(after, { type: 'q8_0' }, { kernels: kernels() }), isProduct),
    )
  })

  test.each<[what: string, why: RegExp, facts: () => KernelTimes]>([
    ['of another processor', /it is of Other 9, ggml 0\.27\.0/, () => ({ ...kernels(), cpu: 'Other 9' })],
    ['of another ggml', /ggml 0\.1; the run of .* ggml 0\.27\.0/, () => ({ ...kernels(), build: '0.1' })],
    [
      'of products that take another time',
      /products of the run take 0\.0\d times what it measured/,
      () => ({ ...kernels(), products: kernels().products.map((product) => ({ ...product, ns: 50 * product.ns })) }),
    ],
  ])('do not apply: %s', async (_, why, facts) => {
    const result = await whatIf(after, { type: 'q8_0' }, { kernels: facts() })
    expect(result.basis.join('\n')).toMatch(why)
    expect(result.tpot_ns).toEqual((await whatIf(after, { type: 'q8_0' })).tpot_ns)
  })
})

test('what is as in the run already changes nothing', async () => {
  for (const changes of [{ threads: 2 }, { type: 'q4_0' }, { batch: 1 }, { threads: 2, type: 'Q4_0', batch: 1 }])
    expect((await whatIf(after, changes)).is_unchanged).toBe(true)
})

test.each<[changes: Changes, why: RegExp]>([
  [{ threads: 4 }, /4 threads on 2 CPUs would take them from each other/],
  [{ type: 'q4_K' }, /q4_K has blocks of 256 elements, which do not divide the rows of ffn_out, 1408/],
  [{ batch: 65 }, /65 sequences are more than 64 times those of the run, 1/],
])('cannot say: %j', async (changes, why) => {
  const { tpot_ns, sentence } = await whatIf(after, changes)
  expect([tpot_ns.expected, tpot_ns.why]).toEqual([null, expect.stringMatching(why)])
  expect(sentence).toMatch(/^cannot say/)
})

test('cannot say without products of weights', async () => {
  const steps = [{ name: 'norm-0', op: 'RMS_NORM', ns: [300_000] }]
  const made = madeRun({ calls: Array.from({ length: 20 }, () => ({ phase: 'decode' as const, steps })) })
  const { tpot_ns } = await whatIf(made, { type: 'q8_0', threads: 2 })
  expect(tpot_ns.why).toBe('no product with weights was recorded on the CPU')
})

describe('the command', () => {
  useFolder()

  test('why prints what the run would be without what disturbed it; the same run was recorded without it, too', () => {
    const logs = ['test/printed/logs/before.ggtrace.gz', 'test/printed/logs/before.sched.dat.gz']
    const { stdout } = run(['why', ...logs], HERE)
    const [, ...figures] = /\n {3}without it: decode ([\d ]+) → ([\d ]+) \(([\d ]+) to ([\d ]+)\) tok\/s/.exec(stdout)!
    const [now, expected, low, high] = figures.map((text) => Number(text!.replaceAll(' ', '')))
    const truth = after.calls.decode_tokens_per_s!
    expect([now, low! < truth, truth < high!]).toEqual([185, true, true])
    expect(Math.abs(expected! / truth - 1)).toBeLessThan(0.2)
  })

  test('takes the options, and prints as JSON what the library returns', async () => {
    const { code, stdout } = run(['what-if', AFTER, '--threads', '1', '--type', 'q8_0', '--batch', '2', '--json'], HERE)
    expect(code).toBe(0)
    const expected = await whatIf(await inputOf(AFTER), { threads: 1, type: 'q8_0', batch: 2 })
    expect(JSON.parse(stdout)).toEqual(expected)
    const same = run(['what-if', AFTER, '--threads', '1', '--with', PROMPT], HERE)
    expect(same.stdout).toMatch(/^cannot say: the runs are not comparable: /)
  })

  test.each<[wrong: string[], message: RegExp]>([
    [['--threads', '0'], /--threads "0": expected a whole number from 1/],
    [['--batch', 'x'], /--batch "x": expected a whole number from 1/],
    [['--type', 'q9'], /type q9: no type of ggml\nhint: such as q4_0/],
    [['--context', '9', '--with', AFTER], /--with: only with --threads/],
    [['--type', 'q8_0', '--kernels', 'none.json'], /--kernels none\.json: cannot read: /],
    [['--type', 'q8_0', '--kernels', 'package.json'], /--kernels package\.json: not the JSON that/],
  ])('refuses %j', async (wrong, message) => {
    const { code, stderr } = run(['what-if', AFTER, ...wrong], HERE)
    expect([code, stderr]).toEqual([1, expect.stringMatching(message)])
  })

  test('reads measured products from a file', async () => {
    const own = ownNs(after)
    const products = kernelsOf(
      after,
      [
        ['q4_0', 1, 2],
        ['q8_0', 1, 2],
      ],
      (type, _, __, n) => own(n) * (type === 'q8_0' ? 1.5 : 1),
    )
    writeFileSync(at('kernels.json'), JSON.stringify(products))
    const { stdout } = run(['what-if', AFTER, '--type', 'q8_0', '--kernels', at('kernels.json'), '--json'], HERE)
    expect(factorOf(JSON.parse(stdout) as WhatIf, isProduct)).toBeCloseTo(1 + 0.5 / 1.05, 1)
  })

  test.each<[wrong: string[], message: RegExp]>([
    [['--threads', '2'], /--threads: only with --types/],
    [[AFTER], /a log is measured with --types only/],
    [['--types', 'q8_0'], /--types: no log is given/],
    [[AFTER, '--types', 'q8_0', '--fresh'], /--fresh: --types always measures/],
    [[AFTER, '--types', 'q8_0', '--threads', '1,x'], /--threads "x": expected a whole number/],
  ])('peaks refuses %j', async (wrong, message) => {
    const { code, stderr } = run(['peaks', ...wrong], HERE)
    expect([code, stderr]).toEqual([1, expect.stringMatching(message)])
  })
})
