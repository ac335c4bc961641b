import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from '@jest/globals'
import { findings } from '../../lib/analysis.ts'
import { analyze, eventsOf, Names, type TraceEvent } from '../../lib/index.ts'
import { inputOf } from '../../lib/node.ts'
import { reportHtml } from '../../lib/report.ts'
import { begun } from '../read/ggtrace-logs.ts'
import { expectedOf, type Found } from './expected.ts'

/** The analysis of NUMA nodes, of a log from the guest of guest.long.test.ts, and of made ones. */

const pathOf = (name: string) => fileURLToPath(new URL(name, import.meta.url))

test('PAGES: the buffer, the moment, each run of pages and its node; AFFINITY: the policy of the thread', async () => {
  const writer = begun()
  const buffer = writer.buffer({ name: 'CPU', base: 0x10000, sizeBytes: 0x9000 })
  const runs = [
    [2, 0],
    [5, 1],
    [1, -1],
    [1, -2],
  ] as const
  writer.pages({ buffer, moment: 'last', atNs: 1500, address: 0x10000, stride: 7, policy: 'bind:1', runs })
  writer.thread(701, 3).affinity(1000, 11, 0, writer.name('interleave:0-1'))
  writer.end(3000)
  const names = new Names()
  const events: TraceEvent[] = []
  for await (const batch of eventsOf({ name: 'log', source: writer.take() }, names)) events.push(...batch)
  const [pages] = events.filter((event) => event.kind === 'pages')
  expect(pages).toEqual({
    ...{ kind: 'pages', buffer: names.id('CPU'), moment: 'last', askedNs: pages!.askedNs, address: 0x10000 },
    ...{ pageBytes: 4096, stride: 7, policy: names.id('bind:1'), kernelPageBytes: 4096 },
    runs: Int32Array.of(2, 0, 5, 1, 1, -1, 1, -2),
  })
  const [affinity] = events.filter((event) => event.kind === 'affinity')
  expect(names.text(affinity!.policy!)).toBe('interleave:0-1')
})

test('of a guest with two nodes: tensors by node, and local reads as the faults of each worker count them', async () => {
  const found = JSON.parse(readFileSync(pathOf('distribute.json'), 'utf8')) as Found
  const analysis = await analyze(inputOf(pathOf('distribute.ggtrace.gz')))
  const numa = analysis.numa!
  const expected = expectedOf(found)
  expect(numa).toMatchObject({ mode: 'distribute', balancing: true, estimated_share: 0, other_tensors: 0 })
  expect(numa.nodes.map(({ node, cpus }) => [node, cpus])).toEqual([
    [0, '0-1'],
    [1, '2-3'],
  ])
  expect(numa.tensors.map(({ tensor, by_node }) => [tensor, by_node]).sort()).toEqual(expected.tensors)
  expect(numa.workers.map(({ local_share }) => local_share)).toEqual(expected.shares)
  expect(numa.local_share).toBeCloseTo(expected.share, 12)
  const html = reportHtml(analysis)
  expect(html).toContain('Tensors by node')
  expect(html).toContain('blk.0.ffn_up.weight, node 1')
})

/** Two workers, on a node each, compute products of a weight; each page of it is a row. */
function made(runs: readonly (readonly [number, number])[], facts: Record<string, string> = {}, rows = 64): Uint8Array {
  const writer = begun({ 'topology.nodes': '0:0|1:1', 'topology.online': '0-1', ...facts })
  writer.type(0, 'f32')
  writer.op(29, 'MUL_MAT')
  const buffer = writer.buffer({ name: 'CPU', usage: 'weights', base: 0x100000, sizeBytes: rows * 4096 })
  const of = { type: 0, ne: [1024, rows], address: 0x100000, sizeBytes: rows * 4096, buffer }
  const weight = writer.tensor({ name: 'blk.0.ffn_up.weight', ...of })
  const input = writer.tensor({ name: 'inp', ne: [1024, 1], address: 0x10, sizeBytes: 4096 })
  const node = writer.tensor({ name: 'ffn_up-0', op: 29, ne: [rows, 1], sources: [weight, input] })
  const graph = writer.graph('CPU', [node])
  writer.pages({ buffer, moment: 'first', atNs: 10, address: 0x100000, runs })
  const threads = [0, 1].map((worker) => writer.thread(500 + worker, worker))
  const host = writer.thread(500)
  for (let call = 0; call < 10; call++) {
    const start = 1000 + call * 100_000
    for (const [worker, thread] of threads.entries()) {
      if (call === 0) thread.affinity(start, worker, 0)
      thread.call = call
      thread.operator({ tensor: node, startNs: start + 100, endNs: start + 90_100, waitEndNs: start + 90_200 })
    }
    host.graph({ startNs: start + 50, endNs: start + 90_300, graph, call })
    host.token({ startNs: start, endNs: start + 90_400, call, tokens: 1 })
  }
  writer.end(2_000_000)
  return writer.take()
}

describe('made logs', () => {
  const analysed = (log: Uint8Array) => analyze({ name: 'log', source: log })

  test.each([
    [
      'each worker reads its node',
      [
        [32, 0],
        [32, 1],
      ],
      [1, 1],
    ],
    [
      'each reads the other one',
      [
        [32, 1],
        [32, 0],
      ],
      [0, 0],
    ],
    ['all is on one node', [[64, 0]], [1, 0]],
    [
      'pages that are not present are in no share',
      [
        [8, -1],
        [24, 0],
        [16, 0],
        [16, 1],
      ],
      [1, 0.5],
    ],
  ] as [string, [number, number][], number[]][])('%s', async (_, runs, shares) => {
    const { numa } = await analysed(made(runs))
    expect(numa!.workers.map(({ local_share }) => local_share)).toEqual(shares)
    expect(numa!.estimated_share).toBe(0)
  })

  test('where workers take the next piece of many: an equal part of all, marked as an estimate', async () => {
    const runs = [
      [512, 0],
      [512, 1],
    ] as const
    const { numa } = await analysed(made(runs, {}, 1024))
    expect(numa).toMatchObject({ local_share: 0.5, estimated_share: 1 })
    expect((await analysed(made(runs, { 'numa.ggml': '1' }, 1024))).numa).toMatchObject({
      local_share: 1,
      estimated_share: 0,
    })
  })

  test('a finding: a node serves more than its part, to workers of another one', async () => {
    const analysis = await analysed(
      made([
        [60, 0],
        [4, 1],
      ]),
    )
    const [first] = findings(analysis).filter(({ rule }) => rule === 'remote-memory')
    expect(first!.sentence).toBe("88 % of the bytes of weights and caches that node 1's workers read lie on node 0")
    expect(first!.evidence).toMatchObject({ remote_share: 28 / 64, node: 1, from_node: 0, largest_part: 120 / 64 })
    expect(first!.confidence).toBe('medium')
    const without = made(
      [
        [60, 0],
        [4, 1],
      ],
      { 'numa.missing': 'pages: move_pages(2) is not permitted' },
    )
    expect(findings(await analysed(without)).map(({ rule, confidence }) => [rule, confidence])).toContainEqual([
      ...['remote-memory', 'low'],
    ])
    const others = [
      made([
        [32, 0],
        [32, 1],
      ]),
      made([
        [16, 0],
        [16, 1],
        [16, 0],
        [16, 1],
      ]),
    ]
    for (const log of others)
      expect(findings(await analysed(log)).map(({ rule }) => rule)).not.toContain('remote-memory')
  })

  /** A weight of four experts, of which the first two are on node 0; each call chooses two. */
  function experts(choices: readonly (readonly number[] | undefined)[] | undefined, tokens = 1): Uint8Array {
    const [rows, count, calls] = [8, 4, 10]
    const writer = begun({ 'topology.nodes': '0:0|1:1', 'topology.online': '0-1' })
    for (const [type, name] of ['f32', 'i32'].entries()) writer.type(type, name)
    writer.op(30, 'MUL_MAT_ID')
    const sizeBytes = count * rows * 4096
    const buffer = writer.buffer({ name: 'CPU', usage: 'weights', base: 0x100000, sizeBytes })
    const of = { type: 0, ne: [1024, rows, count], address: 0x100000, sizeBytes, buffer }
    const weight = writer.tensor({ name: 'blk.0.ffn_up_exps.weight', ...of })
    const input = writer.tensor({ name: 'inp', ne: [1024, 1, tokens], address: 0x10, sizeBytes: 4096 })
    const ids = writer.tensor({ name: 'ffn_moe_topk-0', type: 1, ne: [2, tokens], address: 0x20, sizeBytes: 8 })
    const node = writer.tensor({ name: 'ffn_moe_up-0', op: 30, ne: [rows, 2, tokens], sources: [weight, input, ids] })
    const graph = writer.graph('CPU', [node])
    const runs = [
      [2 * rows, 0],
      [2 * rows, 1],
    ] as const
    writer.pages({ buffer, moment: 'first', atNs: 10, address: 0x100000, runs })
    const threads = [0, 1].map((worker) => writer.thread(500 + worker, worker))
    for (let call = 0; call < calls; call++) {
      const [start, chosen] = [1000 + call * 100_000, choices?.[call % choices.length]]
      for (const [worker, thread] of threads.entries()) {
        if (call === 0) thread.affinity(start, worker, 0)
        thread.call = call
        thread.operator({ tensor: node, startNs: start + 100, endNs: start + 90_100, waitEndNs: start + 90_200 })
      }
      const [host] = threads
      if (chosen) host!.experts({ atNs: start + 90, tensor: ids, call, k: 2, ids: chosen })
      host!.graph({ startNs: start + 50, endNs: start + 90_300, graph, call })
      host!.token({ startNs: start, endNs: start + 90_400, call, tokens })
    }
    writer.end(2_000_000)
    return writer.take()
  }

  test('of experts, each worker reads its rows of those that were chosen', async () => {
    const half = 4 * 4096 // rows of an expert that a worker reads
    // Four fifths of what calls choose are experts 0 and 1.
    const choices = [
      [0, 1],
      [0, 3],
      [1, 0],
      [1, 2],
      [1, 0],
    ]
    const { numa } = await analysed(experts(choices))
    expect(numa).toMatchObject({ estimated_share: 0, read_bytes: 10 * 2 * 2 * half, local_share: 0.5 })
    expect(numa!.workers.map(({ by_node }) => by_node)).toEqual(Array(2).fill([16 * half, 4 * half]))
    expect(numa!.workers.map(({ local_share }) => local_share)).toEqual([0.8, 0.2])
    // Without choices, experts are equal; with some missing, too; of several tokens, the parts are those of the choices, and an estimate.
    const assumed = Array(2).fill([10 * half, 10 * half])
    for (const log of [experts(undefined), experts([[0, 1], undefined])]) {
      const { numa } = await analysed(log)
      expect(numa!.workers.map(({ by_node }) => by_node)).toEqual(assumed)
      expect(numa!.estimated_share).toBe(1)
    }
    const prefill = (await analysed(experts([[0, 1, 0, 1]], 2))).numa!
    expect(prefill.workers.map(({ by_node }) => by_node)).toEqual(Array(2).fill([20 * half, 0]))
    expect(prefill.estimated_share).toBe(1)
  })

  test('one node: nothing', async () => {
    expect((await analysed(made([[64, 0]], { 'topology.nodes': '0:0-1' }))).numa).toBeNull()
  })
})
