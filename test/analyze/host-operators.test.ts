import { beforeAll, describe, expect, test } from '@jest/globals'
import { type Analysis, analyze, summarize } from '../../lib/index.ts'
import { plainBytes } from '../line/support.ts'

/** Traces of PyTorch's profiler without GPU work: what is in them, and where the time of their operators goes. */

interface Slice {
  readonly ph: string
  readonly cat?: string
  readonly name: string
  readonly tid: number
  readonly ts: number
  readonly dur: number
}

const OF_GPU = /^(?:kernel|gpu_|cuda_|ac2g)/
const document = JSON.parse(new TextDecoder().decode(plainBytes('chrome-json/h100.json.gz')))
const events: readonly Slice[] = document.traceEvents
const ofCpu = events.filter(({ cat = '' }) => !OF_GPU.test(cat))
const operators = ofCpu.filter(({ ph, cat }) => ph === 'X' && cat === 'cpu_op')
const inputOf = (traceEvents: readonly Slice[]) => ({
  name: 'trace',
  source: new TextEncoder().encode(JSON.stringify({ ...document, traceEvents })),
})

/** In ns. The innermost operator around each one is searched among all. */
function selfTimes(): Map<string, { count: number; self: number; time: number }> {
  const ns = (us: number) => Math.round(us * 1000)
  const spans = operators.map(({ name, tid, ts, dur }) => ({ name, tid, from: ns(ts), to: ns(ts) + ns(dur), inner: 0 }))
  for (const of of spans) {
    const around = spans.filter((other) => {
      const isLonger = other.to - other.from > of.to - of.from
      return other.tid === of.tid && isLonger && other.from <= of.from && other.to >= of.to
    })
    const [innermost] = around.sort((a, b) => a.to - a.from - (b.to - b.from))
    if (innermost) innermost.inner += of.to - of.from
  }
  const sums = new Map<string, { count: number; self: number; time: number }>()
  for (const { name, from, to, inner } of spans) {
    const { count, self, time } = sums.get(name) ?? { count: 0, self: 0, time: 0 }
    sums.set(name, { count: count + 1, self: self + to - from - inner, time: time + to - from })
  }
  return sums
}

describe('a trace of the CPU only', () => {
  let analysis: Analysis
  beforeAll(async () => {
    analysis = await analyze(inputOf(ofCpu))
  })

  test('each operator has its count, its time, and its time outside of others', () => {
    const wanted = selfTimes()
    const { rows, count, self_ns, other_rows } = analysis.host_operators!
    expect([rows.length, count, other_rows]).toEqual([wanted.size, operators.length, null])
    let all = 0
    for (const row of rows) {
      const { count, self, time } = wanted.get(row.name)!
      expect([row.name, row.count]).toEqual([row.name, count])
      // Times of a file are rounded to nanoseconds at both ends.
      expect(Math.abs(row.self_ns - self)).toBeLessThanOrEqual(4 * operators.length)
      expect(Math.abs(row.time_ns - time)).toBeLessThanOrEqual(2 * count)
      all += row.self_ns
    }
    expect(self_ns).toBe(all)
    expect(rows.map((row) => row.self_ns)).toEqual(rows.map((row) => row.self_ns).sort((a, b) => b - a))
  })

  test('the summary says what is in it', async () => {
    const { contents } = await summarize(inputOf(ofCpu))
    const python = ofCpu.filter(({ ph, cat }) => ph === 'X' && cat === 'python_function').length
    expect(contents).toContain(`${operators.length} operators`)
    if (python > 0) expect(contents).toMatch(/\d Python functions?/)
    const one = { ph: 'C', pid: 1, tid: 1, name: 'x', ts: 5, dur: 0, args: { a: 1 } }
    expect(await summarize(inputOf([one, { ...one, ph: 'i' }]))).toMatchObject({
      contents: '1 instant, 1 counter value',
    })
  })
})

test('with GPU work its figures are those of GPUs', async () => {
  expect(await analyze(inputOf(events))).toMatchObject({ host_operators: null, gpu: { devices: [{}] } })
})
