import { describe, expect, test } from '@jest/globals'
import { analyze } from '../../../lib/index.ts'
import { documentOf } from '../../read/chrome-json/documents.ts'
import { reportOf, rows } from '../../read/reports.ts'

/** Work within other work of its stream: one of the two has a wrong end. */

type Piece = readonly [startUs: number, endUs: number, stream?: number, correlation?: number]

const chrome = (pieces: readonly Piece[]) =>
  documentOf(
    pieces.map(([ts, endUs, stream = 7, correlation = ts], i) => ({
      ...{ ph: 'X', cat: 'kernel', name: `k${i}`, pid: 0, tid: stream, ts, dur: endUs - ts },
      args: { device: 0, stream, correlation },
    })),
  )
const nsys = (pieces: readonly Piece[]) =>
  reportOf({
    CUPTI_ACTIVITY_KIND_KERNEL: pieces.map(([start, end, stream = 7, correlation = start]) => ({
      ...rows.kernel(PID, start * 1000, end * 1000, correlation),
      streamId: stream,
    })),
  })

/** No other process of the report has it. */
const PID = 300

const OUTER: Piece = [0, 1000]
const INNER: readonly Piece[] = [
  [10, 20],
  [30, 50],
  [60, 100],
]

describe.each([
  ['chrome-json', chrome],
  ['nsys', nsys],
])('%s', (_, sourceOf) => {
  const analysed = async (pieces: readonly Piece[]) => {
    const { inputs, gpu } = await analyze({ name: 'work', source: sourceOf(pieces) })
    const device = gpu!.devices.find(({ pid }) => pid === PID || pid === null)
    return { issues: inputs[0]!.issues['overlapping-work'] ?? 0, device: device! }
  }

  test.each<[string, readonly Piece[]]>([
    ['in order of starts', [OUTER, ...INNER]],
    ['in order of ends', [...INNER, OUTER]],
  ])('a kernel that contains its successors is an issue, %s; times count it once', async (_, pieces) => {
    const { issues, device } = await analysed(pieces)
    expect(issues).toBe(1)
    expect(device.time).toMatchObject({ total_ns: 1e6, computation_ns: 1e6, busy_ns: 1e6 })
    expect(device.streams.map(({ work, time_ns }) => [work, time_ns])).toEqual([[4, 1e6]])
    expect(device.kinds).toMatchObject([{ kind: 'kernel', count: 4, time_ns: 1_070_000 }])
  })

  test.each<[string, readonly Piece[]]>([
    [
      'one after the other',
      [
        [0, 10],
        [10, 20],
        [25, 30],
      ],
    ],
    ['on another stream', [OUTER, [10, 20, 8]]],
    [
      'of one launch',
      [
        [0, 1000, 7, 5],
        [10, 20, 7, 5],
      ],
    ],
    [
      'that overlap in a part, as dependent launches do',
      [
        [0, 100],
        [90, 200],
      ],
    ],
  ])('pieces %s are none', async (_, pieces) => {
    expect((await analysed(pieces)).issues).toBe(0)
  })
})
