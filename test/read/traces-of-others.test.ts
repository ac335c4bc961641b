import { describe, expect, test } from '@jest/globals'
import { openTrace, sniffFormat, summarize } from '../../lib/index.ts'
import { attempt, spread } from '../line/hostile.ts'
import { converted, cut, formatOf, OTHER_FIXTURES, plainBytes } from '../line/support.ts'
import { drawn } from '../printing-sink.ts'

/** Formats of other profilers without operators of ggml: what their files contain is in the trace, damaged or not. */

/** Places of each file at which it is cut, and at which a byte is changed. */
const PLACES = 60

const linesOf = (fixture: string, args: readonly string[] = []) =>
  drawn({ name: 'log', source: plainBytes(fixture) }, {}, { args })
const summaryOf = (fixture: string) => summarize({ name: 'log', source: plainBytes(fixture) })
const rowsOf = async (fixture: string, query: string) => {
  const trace = await openTrace(await converted(plainBytes(fixture)))
  try {
    expect(trace.problems()).toEqual([])
    return trace.query(query).rows
  } finally {
    trace.close()
  }
}

describe.each(OTHER_FIXTURES)('%s', (fixture) => {
  const bytes = plainBytes(fixture)

  test('is of the format that its folder names; the same in pieces', async () => {
    expect(sniffFormat(bytes.subarray(0, 4096))?.name).toBe(formatOf(fixture))
    const whole = await converted(bytes)
    expect(Buffer.from(await converted(cut(bytes, 7))).equals(whole)).toBe(true)
  })

  test('damaged, it ends in a sound trace or in a message', async () => {
    const places = spread(
      Array.from(bytes, (_, place) => place),
      PLACES,
    )
    for (const at of places) {
      await attempt(bytes.subarray(0, at), `${fixture}, cut to ${at} bytes`)
      const changed = bytes.slice()
      changed[at]! ^= at % 2 === 0 ? 0xff : 1 << (at % 8)
      await attempt(changed, `${fixture}, byte ${at} changed`)
    }
  })
})

describe('rocprofv3', () => {
  test('each dispatch is a piece of work with the times that the file has', async () => {
    const fixture = 'rocprofv3/mi350x.json'
    const document = JSON.parse(new TextDecoder().decode(plainBytes(fixture)))['rocprofiler-sdk-tool'][0]
    const names = new Map(
      document.kernel_symbols.map((kernel: Record<string, unknown>) => [
        kernel['kernel_id'],
        kernel['truncated_kernel_name'],
      ]),
    )
    type Dispatch = {
      start_timestamp: number
      end_timestamp: number
      dispatch_info: { kernel_id: number }
      stream_id: { handle: number }
    }
    const wanted = (document.buffer_records.kernel_dispatch as Dispatch[]).map((dispatch) =>
      [
        dispatch.start_timestamp,
        dispatch.end_timestamp - dispatch.start_timestamp,
        names.get(dispatch.dispatch_info.kernel_id),
        `stream ${dispatch.stream_id.handle}, process 908`,
      ].join(' '),
    )
    const found = await rowsOf(
      fixture,
      'select s.ts, s.dur, s.name, t.name from gpu_slice s join track t on t.id = s.track_id',
    )
    expect(found.map((row) => row.join(' ')).sort()).toEqual(wanted.sort())
    expect((await summaryOf(fixture)).issues).toEqual([])
  })

  test('calls, copies and ranges; what is missing is reported', async () => {
    const fixture = 'rocprofv3/calls.json'
    expect(await linesOf(fixture, ['bytes', 'grid', 'block', 'from', 'to', 'gpu_work'])).toMatchInlineSnapshot(`
[
  "GPU/GPU 0: queue 2 | 400000–500000 mul_mat_q {grid: 128x1x1, block: 64x4x1}",
  "GPU/GPU 0: queue 2 | 550000–560000 kernel 77 {grid: 1x1x1, block: 64x1x1}",
  "Issues | 200000 damaged record",
  "Issues | 550000 event without a time",
  "GPU/GPU 0: copies | 200000–240000 MEMORY_COPY_HOST_TO_DEVICE {bytes: 1048576, from: host, to: device}",
  "HIP API/thread 701 | 100000–150000 hipMemcpyAsync {gpu_work: 1}",
  "HIP API/thread 701 | 300000–320000 hipLaunchKernel {gpu_work: 1}",
  "HIP API/thread 701 | 570000–600000 hipStreamSynchronize",
  "ROCTx ranges of thread 701 | 50000–650000 decode token 7",
  "ROCTx ranges of thread 701 | 330000 mark {"}",
]
`)
    const { issues, leftOut } = await summaryOf(fixture)
    expect(issues.map(({ title, count }) => [title, count])).toEqual([
      ['event without a time', 1],
      ['damaged record', 1],
    ])
    expect(leftOut.map(({ what, count }) => [what, count])).toEqual([
      ['records of counter_collection', 1],
      ['records of memory_allocation', 1],
    ])
  })
})
