import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { summarize } from '../../lib/index.ts'
import { openTrace } from '../../lib/node.ts'
import { converted, plainBytes } from '../line/support.ts'
import { inParts, isLong } from '../long.ts'
import { ZERO_NS } from '../origin.ts'
import { stepsOf } from './chrome-json/figures.ts'

/** Steps of vLLM and SGLang last to the end of the GPU work that they launched, not to the end of the launch. */

/** Folder of whole traces (`*.json.gz`), for those who have some. */
const TRACES = process.env['KINETO_TRACES']

const arg = (key: string) => `extract_arg(s.arg_set_id, 'debug.${key}')`
const TOKENS = "from slice s where category = 'token' order by ts"

async function rowsOf(bytes: Uint8Array, sql: string) {
  const trace = await openTrace(await converted(bytes))
  try {
    expect(trace.problems()).toEqual([])
    return trace.query(sql).rows
  } finally {
    trace.close()
  }
}

async function expectSteps(bytes: Uint8Array): Promise<void> {
  const found = await rowsOf(bytes, `select ts + ${ZERO_NS}, ts + dur + ${ZERO_NS} ${TOKENS}`)
  expect(found.map((times) => times.map((time) => BigInt(time as number)))).toEqual(
    stepsOf(new TextDecoder().decode(bytes)),
  )
}

interface Made {
  readonly cat: string
  readonly name: string
  readonly ts: number
  readonly dur: number
  readonly tid?: number
  readonly args?: Readonly<Record<string, unknown>>
}

const traceOf = (events: readonly Made[]): Uint8Array => {
  const all = events.map((event) => ({ ph: 'X', pid: 1, tid: 2, ...event }))
  return new TextEncoder().encode(JSON.stringify({ schemaVersion: 1, baseTimeNanoseconds: 1000, traceEvents: all }))
}

const step = (ts: number, dur: number, requests = 4, id = 0): Made => {
  const name = `execute_${requests}_context_0(sq0sk0)_generation_${requests}(sq${requests}sk900)`
  return { cat: 'user_annotation', name, ts, dur, ...(id > 0 && { args: { 'External id': id } }) }
}
const launch = (ts: number, correlation: number, more: Partial<Made> = {}): Made => {
  return { cat: 'cuda_runtime', name: 'cudaLaunchKernel', ts, dur: 1, args: { correlation }, ...more }
}
const kernel = (ts: number, dur: number, correlation: number): Made => {
  return { cat: 'kernel', name: 'gemm', ts, dur, tid: 7, args: { device: 0, stream: 7, correlation } }
}

describe('the end of a step is that of the last work whose launch began in it', () => {
  test.each(['vllm.json.gz', 'sglang.json.gz'])('%s', (name) => expectSteps(plainBytes(`chrome-json/${name}`)))

  for (const name of TRACES === undefined ? [] : readdirSync(TRACES).filter((file) => file.endsWith('.json.gz'))) {
    test(name, () => expectSteps(new Uint8Array(gunzipSync(readFileSync(join(TRACES!, name))))))
  }

  inParts(test)('whatever the order of the events, and however steps overlap', async () => {
    const work = fc.record({
      at: fc.nat(90),
      wait: fc.nat(300),
      took: fc.nat(50),
      pieces: fc.integer({ min: 0, max: 3 }),
    })
    const steps = fc.array(
      fc.record({ dur: fc.integer({ min: 10, max: 90 }), work: fc.array(work, { maxLength: 5 }) }),
      {
        minLength: 1,
        maxLength: 6,
      },
    )
    let correlation = 0
    const made = steps.map((list) =>
      list.flatMap(({ dur, work }, i) => [
        step(100 * i, dur, 4 + i),
        ...work.flatMap(({ at, wait, took, pieces }) => {
          const id = ++correlation
          const kernels = Array.from({ length: pieces }, (_, k) => kernel(100 * i + at + wait + 60 * k, took, id))
          return [launch(100 * i + at, id), ...kernels]
        }),
      ]),
    )
    const shuffled = made.chain((events) => fc.shuffledSubarray(events, { minLength: events.length }))
    await fc.assert(
      fc.asyncProperty(shuffled, (events) => expectSteps(traceOf(events))),
      { numRuns: isLong ? 15 : 5 },
    )
  })
})

/** A step whose requests prefill 1 000 tokens, and others decode. */
const prompt = (ts: number, dur: number, decoding = 0): Made => {
  const name = `execute_${1000 + decoding}_context_1(sq1000sk1000)_generation_${decoding}(sq${decoding}sk${900 * decoding})`
  return { cat: 'user_annotation', name, ts, dur }
}

describe('a step that is launched while the GPU computes other work', () => {
  const other = [launch(0, 1, { tid: 9 }), kernel(1, 999, 1)]
  const callsOf = async (events: readonly Made[]) => (await summarize({ name: 'trace', source: traceOf(events) })).calls

  test('has the speed of its own work; when its requests came is not known', async () => {
    const calls = await callsOf([...other, prompt(10, 20), launch(11, 2), kernel(1000, 100, 2)])
    expect(calls).toMatchObject({ prefill_tokens_per_s: 1e7, ttft_ns: null })
    const rows = await rowsOf(
      traceOf([...other, prompt(10, 20), launch(11, 2), kernel(1000, 100, 2)]),
      `select dur, ${arg('work_ns')}, ${arg('tok_per_s')} ${TOKENS}`,
    )
    expect(rows).toEqual([[1_090_000, 100_000, 1e7]])
  })

  test('with requests of both kinds has no speed of prompts', async () => {
    const events = [...other, prompt(10, 20, 4), launch(11, 2), kernel(1000, 100, 2)]
    expect(await callsOf(events)).toMatchObject({ prefill_tokens_per_s: null, ttft_ns: null })
    expect(await rowsOf(traceOf(events), `select ${arg('phase')}, ${arg('decoding')} ${TOKENS}`)).toEqual([
      ['mixed', 4],
    ])
    const two = [...events, prompt(1110, 20, 4), launch(1111, 3), kernel(1140, 60, 3)]
    expect(await callsOf(two)).toMatchObject({ tpot_ns: 100_000, sequences: 4, decode_tokens_per_s: 40_000 })
  })

  test('whose work ends before its launch does, or is not in the log, has no speed', async () => {
    const early = [prompt(10, 2000), launch(11, 2), kernel(1000, 100, 2)]
    const missing = [prompt(10, 20), launch(11, 2), launch(12, 3), kernel(1000, 100, 2)]
    for (const events of [early, missing])
      expect(await callsOf(events)).toMatchObject({ prefill_tokens_per_s: null, ttft_ns: null })
    const { calls } = await summarize({ name: 'log', source: plainBytes('chrome-json/sglang.json.gz') })
    expect(calls).toMatchObject({ prefill_tokens_per_s: null, ttft_ns: null })
  })
})

describe('what a step says', () => {
  const overlapping = traceOf([
    step(0, 10),
    launch(1, 1, { name: 'cudaGraphLaunch' }),
    step(20, 10),
    launch(21, 2),
    launch(22, 3, { tid: 9 }),
    kernel(12, 40, 1),
    kernel(52, 60, 1),
    kernel(112, 50, 2),
    kernel(5000, 50, 3),
  ])

  test('its launch, its work, and what its end is that of; the track speaks of steps', async () => {
    const sql = `select s.name, dur, ${['launch_ns', 'gpu_work', 'end_of', 'requests', 'inferred'].map(arg)}`
    expect(await rowsOf(overlapping, `${sql} ${TOKENS}`)).toEqual([
      ['decode 1 (4 tokens) · 112 µs', 112_000, 10_000, 2, 'GPU work', 4, null],
      ['decode 2 (4 tokens) · 142 µs', 142_000, 10_000, 1, 'GPU work', 4, null],
    ])
    const trace = Buffer.from(await converted(overlapping)).toString('latin1')
    expect(trace).toContain('One slice per engine step (vLLM, SGLang)')
    expect(trace).not.toContain('llama_decode')
  })

  test('those that overlap have rows of their own, and TPOT is from end to end', async () => {
    const names = "select t.name from slice s join track t on s.track_id = t.id where category = 'token' order by ts"
    expect(await rowsOf(overlapping, names)).toEqual([['Tokens'], ['Tokens (2)']])
    const { calls, decoding } = await summarize({ name: 'trace', source: overlapping })
    expect(calls).toMatchObject({ tpot_ns: 50_000, sequences: 4, decode_tokens_per_s: 80_000 })
    expect(decoding).toMatchObject({ calls: 1, tokens: 4, is_assumed: false })
  })

  test('a step whose GPU work ends in its launch lasts as long as its launch', async () => {
    const bytes = traceOf([step(0, 100), launch(1, 1), kernel(5, 20, 1)])
    const rows = await rowsOf(bytes, `select dur, ${arg('end_of')}, ${arg('inferred')} ${TOKENS}`)
    expect(rows).toEqual([[100_000, 'launch', null]])
  })

  test('its annotations on the GPU say as much, where its calls are not in the trace', async () => {
    const onGpu = (ts: number, dur: number, id: number): Made => ({
      ...step(ts, dur, 4, id),
      cat: 'gpu_user_annotation',
    })
    const bytes = traceOf([
      step(0, 10, 4, 77),
      step(20, 10, 4, 78),
      onGpu(15, 35, 77),
      onGpu(17, 40, 77),
      onGpu(60, 20, 78),
    ])
    const rows = await rowsOf(bytes, `select dur, ${arg('end_of')}, ${arg('inferred')} ${TOKENS}`)
    expect(rows).toEqual([
      [57_000, 'GPU work', null],
      [60_000, 'GPU work', null],
    ])
  })

  test.each([
    ['no GPU work is known', [step(0, 10), step(20, 10), step(40, 10)], [10_000, 0, 'launch', null]],
    [
      'the work of a launch is not in the trace',
      [step(0, 10), launch(1, 1), launch(2, 2), kernel(12, 30, 1), step(60, 10)],
      [42_000, 1, 'GPU work', 1],
    ],
  ])(
    'where %s, its end is a lower bound: it is marked, and in no rate',
    async (_, events, [dur, work, end, unknown]) => {
      const bytes = traceOf(events)
      const sql = ['gpu_work', 'end_of', 'launches_without_work', 'inferred', 'tok_per_s'].map(arg)
      const rows = await rowsOf(bytes, `select dur, ${sql} ${TOKENS}`)
      expect(rows[0]).toEqual([dur, work, end, unknown, 'no end recorded', null])
      expect(await rowsOf(bytes, "select count(*) from track where name = 'tok/s'")).toEqual([[0]])
      expect((await summarize({ name: 'trace', source: bytes })).calls.tpot_ns).toBeNull()
    },
  )

  test('callbacks on the host are no GPU work', async () => {
    const bytes = traceOf([step(0, 10), launch(1, 1), launch(2, 2, { name: 'cudaLaunchHostFunc' }), kernel(12, 30, 1)])
    expect(await rowsOf(bytes, `select dur, ${arg('inferred')} ${TOKENS}`)).toEqual([[42_000, null]])
  })

  test('of requests only: one token of each is assumed', async () => {
    const fresh = (ts: number): Made => ({ ...step(ts, 10), name: 'execute_new_0_cached_30' })
    const bytes = traceOf([fresh(0), launch(1, 1), kernel(12, 30, 1), fresh(50), launch(51, 2), kernel(55, 37, 2)])
    const { calls, decoding } = await summarize({ name: 'trace', source: bytes })
    expect(calls).toMatchObject({ sequences: 30, tpot_ns: 50_000 })
    expect(decoding).toMatchObject({ calls: 1, tokens: 30, is_assumed: true })
  })
})
