import { describe, expect, test } from '@jest/globals'
import { analyze, convert, type Input, isOwnError } from '../../lib/index.ts'
import { sniffFormat } from '../../lib/read/index.ts'
import { tablesOf } from '../../lib/tables.ts'
import { inLong, inParts, isLong, someOf } from '../long.ts'
import { PROVOKED } from '../model/provoked.ts'
import { PROVOKED_BY_KERNEL } from '../model/provoked-kernel.ts'
import { alloc, encode, json } from '../read/companion-files.ts'
import { LOGS, NUMA_LOG } from '../tables/of-logs.ts'
import { plainBytes } from './support.ts'

/** Any two logs as one run, and logs with every issue: each is read to its end in every way, or refused with a message for a person. */

/**
 * Logs of each format, the smallest ones: what two readers do to each other does not depend on length. `npm run test:long` takes two; the second one
 * beside one of so many others.
 */
const OF_EACH_FORMAT = isLong ? 2 : 1
const SECOND_EVERY = 4
const BYTES_MAX = 64 << 10

interface Sample {
  readonly name: string
  readonly format: string
  readonly bytes: Uint8Array
}

const sampleOf = (name: string, bytes: Uint8Array): readonly Sample[] => {
  const format = sniffFormat(bytes.subarray(0, 4096))?.name
  return format === undefined ? [] : [{ name, format, bytes }]
}

/** Files that have no small fixtures. */
const WRITTEN: readonly Sample[] = [
  ...sampleOf('memory-map.json', json({ total_size_bytes: 9, tensors: [] })),
  ...sampleOf('buffer_stats.jsonl', encode(alloc(600604880, '1', 1 << 20, 'CPU_Compute'))),
  ...sampleOf('buffer-timeline.json', json({ metadata: { peak_occupancy_bytes: 30 }, buffers: [] })),
  ...sampleOf('token-00000.json', json({ metadata: { total_nodes: 1, total_edges: 0 }, nodes: [] })),
  ...sampleOf('perf.txt', encode('a 7/7 100.000301: sched:sched_switch: prev_comm=a prev_pid=7 prev_prio=120\n')),
]

const PLACE = 'test/fixtures/'
const SAMPLES: readonly Sample[] = (() => {
  const names = LOGS.filter((path) => path.startsWith(PLACE)).map((path) => path.slice(PLACE.length))
  const all = [...names.flatMap((name) => sampleOf(name, plainBytes(name))), ...WRITTEN]
    .filter(({ bytes }) => bytes.length <= BYTES_MAX)
    .sort((a, b) => a.bytes.length - b.bytes.length)
  const taken = new Map<string, number>()
  const smallest = all.filter(({ format }) => {
    const count = (taken.get(format) ?? 0) + 1
    taken.set(format, count)
    return count <= OF_EACH_FORMAT
  })
  // Machines with several nodes have figures of their own, also beside another log.
  return [...smallest, ...sampleOf(NUMA_LOG, plainBytes(`../../${NUMA_LOG}`))]
})()

/** The samples that are not the first ones of their formats. */
const SECONDS = new Set(SAMPLES.filter(({ format }, i) => SAMPLES.findIndex((other) => other.format === format) < i))

/** Any two of the first samples of formats, and others beside some, other ones for each way. */
const pairsOf = (nth: number) =>
  SAMPLES.flatMap((first, i) =>
    SAMPLES.slice(i).flatMap((second, j) => {
      const isLeft = (SECONDS.has(first) || SECONDS.has(second)) && (2 * i + j) % SECOND_EVERY !== nth
      return isLeft ? [] : [[first, second] as const]
    }),
  )

type Clocks = Readonly<Record<string, string>>
const traceId = '0'.repeat(32)
const WAYS: Readonly<Record<string, (inputs: readonly Input[], clocks: Clocks) => Promise<unknown>>> = {
  convert: (inputs, clocks) => drain(convert(inputs, { clocks, findings: true })),
  analyze: (inputs, clocks) => analyze(inputs, { clocks }),
  tables: (inputs, clocks) =>
    drain(tablesOf(inputs, { clocks, traceId, format: 'arrow' }, { name: 'test', version: '1' })),
}

async function drain(pieces: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of pieces);
}

/** Undefined where inputs are read or refused. Where they are refused, a clock may be missing: it is given. */
async function bugOf(way: string, inputs: readonly Input[], clocks: Clocks = {}): Promise<string | undefined> {
  try {
    await WAYS[way]!(inputs, clocks)
  } catch (error) {
    const [first, second] = inputs
    if (!isOwnError(error)) return `${first!.name} ${second?.name ?? ''}: ${(error as Error).stack?.slice(0, 300)}`
    if (second && Object.keys(clocks).length === 0) return bugOf(way, inputs, { [second.name!]: '@0s' })
  }
  return undefined
}

test('there are small logs of nearly all formats', () => {
  expect(new Set(SAMPLES.map(({ format }) => format)).size).toBeGreaterThanOrEqual(38)
})

describe.each(Object.keys(WAYS).map((way, nth) => [way, nth] as const))('%s', (way, nth) => {
  inParts(test)('of every two logs, and of each twice', async () => {
    const bugs: string[] = []
    const pairs = pairsOf(nth)
    for (const [first, second] of isLong ? pairs : someOf(pairs, 18, nth)) {
      const pair = [
        { name: first.name, source: first.bytes },
        { name: `second ${second.name}`, source: second.bytes },
      ]
      const bug = await bugOf(way, pair)
      if (bug !== undefined) bugs.push(bug)
    }
    expect(bugs).toEqual([])
  })

  inLong(test)('of logs with each issue', async () => {
    const bugs: string[] = []
    for (const [code, provoked] of Object.entries({ ...PROVOKED, ...PROVOKED_BY_KERNEL })) {
      const made = provoked()
      const inputs = Array.isArray(made) ? (made[0] as readonly Input[]) : [made as Input]
      const bug = await bugOf(way, inputs)
      if (bug !== undefined) bugs.push(`${code}: ${bug}`)
    }
    expect(bugs).toEqual([])
  })
})
