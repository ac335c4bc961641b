import { expect, test } from '@jest/globals'
import type { AccessEvent } from '../../lib/core.ts'
import { eventsIn } from '../line/support.ts'
import { type PerfEventSpec, pair, perfFile, type Record, TYPE } from './perf-file.ts'

/** The layout of perf mem's samples, on records whose values are known (include/uapi/linux/perf_event.h). */

const BASE = TYPE.identifier | TYPE.ip | TYPE.tid | TYPE.time | TYPE.addr | TYPE.cpu | TYPE.period | TYPE.dataSource
const LOADS = { name: 'cpu/mem-loads,ldlat=30/P', type: 4, config: 0x1cd, sampleType: BASE | TYPE.weightStruct }
const STORES = { name: 'cpu/mem-stores/P', type: 4, config: 0x82d0, sampleType: BASE | TYPE.weight }
const FULL = TYPE.branchStack | TYPE.userRegisters | TYPE.weight
const FULL_LOADS = { name: 'ibs_op//', type: 9, config: 0, sampleType: BASE | FULL }
const FAULTS = { name: 'major-faults', type: 1, config: 6, sampleType: (BASE & ~TYPE.period) | TYPE.weight, period: 10 }
const EVENTS: readonly PerfEventSpec[] = [LOADS, STORES, FULL_LOADS, FAULTS]

/** `union perf_mem_data_src`: bits from the fields' places. */
const source = (
  fields: Readonly<{ op?: number; lvl?: number; dtlb?: number; num?: number; remote?: number; hops?: number }>,
) => {
  const { op = 2, lvl = 0, dtlb = 0, num = 0, remote = 0, hops = 0 } = fields
  const at = (value: number, bit: number) => BigInt(value) << BigInt(bit)
  return at(op, 0) | at(lvl, 5) | at(dtlb, 26) | at(num, 33) | at(remote, 37) | at(hops, 43)
}

const ADDRESS = 0x7f44_ea72_5040n
let time = 0n
const sample = (
  id: number,
  weight: bigint,
  dataSource: bigint,
  { address = ADDRESS, between = [] as bigint[] } = {},
): Record => {
  time += 100n
  const period = id === 4 ? [] : [7n]
  const head = [BigInt(id), 0x400000n, pair(10, 11), 5_000_000_000n + time, address, pair(3, 0), ...period]
  return [9, ...head, ...between, weight, dataSource]
}

const samplesOf = async (...records: readonly Record[]) => {
  const { events, names } = await eventsIn(perfFile(EVENTS, records, ['0-1', '2-3']))
  const issues = events.flatMap((event) => (event.kind === 'issue' ? [`${event.title}: ${event.detail}`] : []))
  return { events, names, issues, samples: events.filter((event): event is AccessEvent => event.kind === 'access') }
}

test.each([
  ['L1', 'L1', source({ lvl: 0x8 | 2, dtlb: 2 | 8, num: 1 })],
  ['LFB', 'hit', source({ lvl: 0x10 | 2, dtlb: 2 | 8 | 0x10, num: 12 })],
  ['L2', 'L2', source({ lvl: 0x20 | 2, dtlb: 2 | 0x10 })],
  ['L3', 'walk', source({ lvl: 0x40 | 2, dtlb: 4 | 0x20, num: 3 })],
  ['DRAM', 'miss', source({ lvl: 0x80 | 2, dtlb: 4, num: 13 })],
  ['remote DRAM', '', source({ lvl: 0x100 | 2, dtlb: 1 })],
  ['remote DRAM', 'fault', source({ num: 13, remote: 1, hops: 3, dtlb: 0x40 })],
  ['remote cache', '', source({ num: 3, remote: 1 })],
  ['L2', '', source({ num: 2, remote: 1, hops: 1 })], // another core of the same node
  ['L3 miss', '', source({ lvl: 0x40 | 4 })],
  ['CXL', '', source({ num: 9 })],
  ['', '', source({ lvl: 1, num: 15, dtlb: 1 })],
  ['other', '', source({ num: 7 })],
] as const)('a load from %s, its translation: %s', async (level, tlb, bits) => {
  const { samples, issues, names } = await samplesOf(sample(1, pair(213, 0xffff), bits))
  expect(issues).toEqual([])
  expect(samples).toMatchObject([
    {
      ...{ what: 'load', pid: 10, tid: 11, cpu: 3, node: 1, address: Number(ADDRESS), count: 7 },
      source: { level, tlb, latency: 213 },
    },
  ])
  expect(names.text(samples[0]!.event)).toBe('cpu/mem-loads,ldlat=30/P')
})

test('stores, samples with branches and registers, faults with a fixed period', async () => {
  const branches = [2n, 1n, 2n, 3n, 4n, 5n, 6n]
  const registers = [2n, 7n, 8n, 9n]
  const { samples, issues } = await samplesOf(
    sample(2, 5_000_000_000n, source({ op: 4, lvl: 0x8 | 4 })),
    sample(3, 40n, source({ num: 13 }), { between: [...branches, ...registers] }),
    sample(3, 41n, source({ num: 1 }), { between: [0n, 0n] }),
    sample(4, 0n, source({ op: 1, lvl: 1, dtlb: 1, num: 15 })),
  )
  expect(issues).toEqual([])
  expect(samples.map(({ what, count, source: of }) => [what, count, of?.level, of?.latency])).toEqual([
    ['store', 7, 'L1 miss', 2 ** 31 - 1],
    ['load', 7, 'DRAM', 40],
    ['load', 7, 'L1', 41],
    ['major-fault', 10, '', 0],
  ])
})

test('addresses: of the kernel, tagged ones, none; mappings; a short sample', async () => {
  const path = Buffer.alloc(16)
  path.write('/m/model.gguf')
  const tail = [pair(10, 11), 5_000_000_000n + time + 50n, pair(3, 0), 1n]
  const { samples, events, names, issues } = await samplesOf(
    [10, pair(10, 11), 0x7f0000000000n, 0x1000n, 0x2000n, 0n, 0n, 0n, 0n, path, ...tail],
    sample(1, 1n, source({}), { address: 0xffff_8888_0000_1000n }),
    sample(1, 1n, source({}), { address: 0xb400_7f44_ea72_5040n }),
    sample(1, 1n, source({}), { address: 0n }),
    [9, 1n, 0x400000n, pair(10, 11), 5_000_000_000n + time + 1000n, ADDRESS, pair(3, 0), 1n],
  )
  expect(samples.map(({ address }) => address)).toEqual([-1, Number(ADDRESS), -1])
  const [mapping] = events.filter((event) => event.kind === 'mapping')
  expect(mapping).toMatchObject({ pid: 10, address: 0x7f0000000000, bytes: 0x1000, fileOffset: 0x2000 })
  expect(names.text(mapping!.name)).toBe('/m/model.gguf')
  expect(issues).toEqual([expect.stringMatching(/^short record: expected the fields of a sample of/)])
  expect(events.at(-1)).toMatchObject({ attributes: { 'addresses.tagged': expect.stringMatching(/^1: /) } })
})

test("perf mem's samples as the text of perf script", async () => {
  const lines = [
    'llama 10/11 [003]  5.000000100:          7 cpu/mem-loads,ldlat=30/P:     7f44ea725040       68100142 |OP LOAD|LVL L1 hit|SNP None|TLB L1 or L2 hit|LCK No|BLK  N/A              213',
    'llama 10/11 [003]  5.000000200:          1 cpu/mem-stores/P:     7f44ea725048        5080184 |OP STORE|LVL L1 miss|SNP N/A|TLB N/A|LCK N/A|BLK  N/A                0',
    'llama 10/11 [003]  5.000000300:         10 page-faults:u:  ffff888000001000 ',
    'llama 10/11 [003]  5.000000400:          1 page-faults:     7f44ea725040 main+0x3 (/usr/bin/llama)',
    'llama 10/11 [003]  5.000000500: PERF_RECORD_MMAP2 10/11: [0x7f0000000000(0x1000) @ 0x2000 fe:00 1 2]: r--p /m/my model.gguf',
  ]
  const { events, names } = await eventsIn(
    new TextEncoder().encode(`${lines.map((line) => line.padStart(9)).join('\n')}\n`),
  )
  const samples = events.filter((event): event is AccessEvent => event.kind === 'access')
  expect(samples.map(({ what, count, source: of, address }) => [what, count, of?.level, of?.latency, address])).toEqual(
    [
      ['load', 7, 'L1', 213, Number(ADDRESS)],
      ['store', 1, 'L1 miss', 0, Number(ADDRESS) + 8],
      ['fault', 10, undefined, undefined, -1],
    ],
  )
  expect(samples.map(({ event }) => names.text(event))).toEqual([
    'cpu/mem-loads,ldlat=30/P',
    'cpu/mem-stores/P',
    'page-faults:u',
  ])
  const mapping = events.find((event) => event.kind === 'mapping')!
  expect([mapping.fileOffset, names.text(mapping.name)]).toEqual([0x2000, '/m/my model.gguf'])
  expect(events.filter((event) => event.kind === 'left-out')).toMatchObject([{ what: 'page-faults', count: 1 }])
  expect(events[0]).toMatchObject({ format: 'perf-script', capabilities: { accesses: true, switches: false } })
})

test('a file that perf did not complete, as it was killed, gives its samples, and states the loss', async () => {
  const whole = perfFile(EVENTS, [sample(1, pair(213, 0xffff), source({})), sample(4, 1n, source({}))], ['0-1'])
  const view = new DataView(whole.buffer, whole.byteOffset)
  const end = Number(view.getBigUint64(40, true) + view.getBigUint64(48, true))
  // perf writes the size of the records, and the features after them, when it ends.
  const killed = new Uint8Array(whole.subarray(0, end))
  new DataView(killed.buffer).setBigUint64(48, 0n, true)
  const titles = async (bytes: Uint8Array) => {
    const { events } = await eventsIn(bytes)
    const issues = events.flatMap((event) => (event.kind === 'issue' ? [event.title] : []))
    return [events.filter(({ kind }) => kind === 'access').length, issues]
  }
  expect(await titles(killed)).toEqual([2, ['torn file']])
  expect(await titles(killed.subarray(0, end - 5))).toEqual([1, ['torn file', 'torn record']])
  await expect(titles(killed.subarray(0, Number(view.getBigUint64(40, true))))).rejects.toThrow(/perf was killed/)
})
