import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { GgtraceWriter, Inferred } from '../../lib/core.ts'
import { convert, FORMATS, Names, summarize, UsageError } from '../../lib/index.ts'
import { openTrace } from '../../lib/node.ts'
import { sniffFormat } from '../../lib/read/index.ts'
import type { Cell, OpenTrace } from '../../lib/sql.ts'
import { ORIGIN_TS } from '../origin.ts'
import { begun, everyRecord, FIXTURES, joined, killed, ORIGIN_NS, read, tiny } from './ggtrace-logs.ts'

const FOLDER = fileURLToPath(new URL('../fixtures/ggtrace/', import.meta.url))

async function converted(bytes: Uint8Array): Promise<Uint8Array> {
  const pieces: Uint8Array[] = []
  for await (const piece of convert({ name: 'log', source: bytes }, { detail: 'full' })) pieces.push(piece)
  return joined(pieces)
}

async function* cut(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.slice(at, at + size)
}

/** Eight lanes, as docs/reference/ggtrace-format.md has it, in the plainest way. */
function checksum(bytes: Uint8Array): number {
  const view = new DataView(bytes.buffer, bytes.byteOffset)
  const lanes = Array.from({ length: 8 }, (_, lane) => BigInt(0x811c9dc5 + lane))
  for (let i = 0; i < bytes.length / 4; i++) {
    lanes[i % 8] = ((lanes[i % 8]! ^ BigInt(view.getUint32(4 * i, true))) * 0x01000193n) & 0xffffffffn
  }
  const rotated = lanes.map((lane, n) => ((lane << BigInt(4 * n)) | (lane >> BigInt(32 - 4 * n))) & 0xffffffffn)
  return Number(rotated.reduce((sum, lane) => sum ^ lane, 0n))
}

test('the fixtures are what their script makes', () => {
  for (const [name, make] of Object.entries(FIXTURES)) {
    if (process.env['UPDATE_FIXTURES']) {
      mkdirSync(FOLDER, { recursive: true })
      writeFileSync(FOLDER + name, make())
    }
    expect(Buffer.compare(readFileSync(FOLDER + name), make())).toBe(0)
    expect(sniffFormat(make())?.name).toBe('ggtrace')
  }
})

describe('the format', () => {
  const words = (text: string) => Buffer.from(text.replaceAll(/\s/g, ''), 'hex')

  /** A block put together by hand: header fields from `kind` on, then records. */
  const block = (rest: string) => {
    const body = words(rest)
    const head = Buffer.alloc(12)
    head.write('GGT0')
    head.writeUInt32LE(12 + body.length, 4)
    head.writeUInt32LE(checksum(body), 8)
    return Buffer.concat([head, body])
  }

  test('is read from bytes written by hand', async () => {
    const definitions = block(`0200 0000 00000000 bc020000 00e40b5402000000 00000000 00000000 ffffffff ffffffff
      1000 1000 01000000 03000000 4d554c00
      1100 0c00 07000000 01000000
      1500 7400 01000000 01000000 0700 0000 0000 0000
        0200000000000000 0100000000000000 0100000000000000 0100000000000000
        0400000000000000 0800000000000000 0800000000000000 0800000000000000
        0010000000000000 0800000000000000 00000000 00000000 0000000000000000`)
    const events = block(`0300 0100 00000000 bd020000 e8e70b5402000000 03000000 00000000 01000000 09000000
      2000 1400 01000000 0a000000 64000000 05000000
      2300 1000 d0e70c5402000000 0a000000
      2100 1800 01000000 01000000 02000000 03000000 01000000 00000000`)
    const { events: found, names, issues } = await read(Buffer.concat([definitions, Buffer.alloc(16), events]))
    expect(found[0]).toMatchObject({ kind: 'input', clock: 'MONOTONIC', originNs: 10_000_000_000n })
    const [tensor, first, second] = found.slice(2)
    expect(found[1]).toMatchObject({ kind: 'issue', title: 'id without a definition' })
    expect(tensor).toMatchObject({ kind: 'tensor', ne: [2, 1, 1, 1], address: 4096, sizeBytes: 8 })
    expect(tensor?.kind === 'tensor' && names.text(tensor.op)).toBe('MUL')
    expect(first).toMatchObject({ worker: 1, tid: 701, call: 9, startNs: 1010, endNs: 1110, waitEndNs: 1115 })
    expect(second).toMatchObject({ call: 10, startNs: 66_513, endNs: 66_515, waitEndNs: 66_518, innerWaitNs: 1 })
    expect(issues.at(-1)).toBe('run did not end: no END record: the process was killed, or the file was cut')
  })
})

describe('a log with every type of record', () => {
  test('is read as it was written', async () => {
    const { of, names, issues } = await read(everyRecord())
    const text = (id: number) => names.text(id)
    expect(of('input')).toMatchObject([{ originNs: ORIGIN_NS, attributes: { pid: '700', note: 'by hand' } }])
    expect(of('facts').at(-1)).toEqual({ kind: 'facts', attributes: { note: 'by hand; written at the end' } })
    expect(of('clocks')[0]?.readings.map(({ clock }) => clock)).toEqual(['MONOTONIC', 'BOOTTIME', 'REALTIME'])
    expect(of('buffer').map(({ usage, label }) => `${usage}: ${label}`)).toEqual([
      'weights: /models/tiny.gguf',
      'kv-cache: CPU, 65536 bytes at 0x7f0001000000',
      'compute: CPU, 65536 bytes at 0x7f0002000000',
    ])
    const tensors = of('tensor')
    const places = tensors.map(({ name, op, type, layer, buffer, offset }) =>
      [text(name), text(op), text(type), layer, buffer, offset].join(' '),
    )
    expect(places).toEqual([
      'blk.0.attn_q.weight  q4_0 0 0 12288',
      'blk.0.ffn_up_exps.weight  q4_0 0 0 69632',
      'cache_k_l0  f32 0 1 1024',
      'inp_embd  f32 -1 2 0',
      'norm-0 RMS_NORM f32 0 2 256',
      'attn_norm-0 MUL f32 0 2 512',
      'Qcur-0 MUL_MAT f32 0 2 768',
      'cache_k_l0 (view) VIEW f32 0 1 1536',
      'ffn_moe_topk-0 ARGSORT f32 0 2 1024',
      'ffn_moe_up-0 MUL_MAT_ID f32 0 2 1280',
    ])
    expect(tensors.at(-1)?.sources).toEqual([1, 7, 8])
    const ran = of('operator').map(({ worker, tensor, call, startNs, endNs, waitEndNs, innerWaitNs, fusedTo }) =>
      [worker, text(tensors[tensor]!.name), call, startNs, endNs, waitEndNs, innerWaitNs, fusedTo].join(' '),
    )
    expect(ran).toEqual([
      '0 norm-0 0 3000 3400 3500  5',
      '0 Qcur-0 0 3600 4600 4700 300 ',
      '0 ffn_moe_up-0 0 4900 5900 6000  ',
      '1 norm-0 0 3010 3500 3500  5',
      '1 Qcur-0 0 3500 4700 4700  ',
      '1 ffn_moe_up-0 0 4900 5000000000 5000000000 40 ',
      '1 norm-0 1 5000001000 5000001100 5000001100 30 ',
    ])
    expect(
      of('operator').flatMap(({ worker, startNs, counts, inferred }) =>
        counts ? [[worker, startNs, counts, inferred]] : [],
      ),
    ).toEqual([
      [0, 4900, [0, 0, 0, 800], Inferred.Counts],
      [1, 3500, [3, 1, 4096], 0],
      [1, 4900, [0, 0, 0, 4_500_000_000], 0],
    ])
    expect(of('counted').map(({ index, name, unit }) => [index, names.text(name), unit])).toEqual([
      [0, 'minor-faults', 'count'],
      [1, 'major-faults', 'count'],
      [2, 'bytes-read', 'bytes'],
      [3, 'task-clock', 'ns'],
    ])
    expect(of('state').map(({ tid, cpu, state, atNs }) => [tid, cpu, state, atNs])).toEqual([
      [700, 3, 'running', 5_000_001_600],
      [700, 3, 'runnable', 5_000_001_700],
    ])
    expect(of('token')).toMatchObject([
      { call: -1, phase: 'warm-up', tokens: 2, inferred: 0 },
      { call: 0, phase: 'mixed', tokens: 3, batch: { function: 'llama_decode', context: 0x7fff_1234_5678 } },
      { call: 1, phase: 'encode', tokens: 1, batch: { function: 'llama_encode', result: -2 } },
    ])
    expect(of('token').map(({ batch }) => batch?.spans.map(Object.values))).toEqual([
      [],
      [
        [1, 0, 2],
        [4, 17, 1],
      ],
      [[0, 3, 1]],
    ])
    expect(of('graph')).toMatchObject([
      { nodes: 5, call: 0, status: -1, split: 2, startNs: 2900, endNs: 5_000_000_100 },
    ])
    expect(of('experts')).toMatchObject([{ tensor: 8, call: 0, atNs: 4800, tokens: 3, k: 2 }])
    expect([...of('experts')[0]!.ids]).toEqual([5, 1, 5, 7, 0, 5])
    const copied = of('copy').map(({ what, from, to, bytes }) => `${what} ${text(from)}>${text(to)} ${bytes}`)
    expect(copied).toEqual(['set >CPU 4096', 'copy CPU>CPU 64', 'get CPU> 256'])
    expect(of('part')).toEqual([{ kind: 'part', what: 'allocate', startNs: 2850, endNs: 2890, call: 0 }])
    expect(of('allocation').map(({ atNs, bytes }) => [atNs, bytes])).toEqual([
      [500, 65536],
      [700, 65536],
      [5_000_004_000, -65536],
    ])
    expect(of('counter')).toMatchObject([{ atNs: 5_000_003_000, value: 12.5 }])
    expect(of('range').map(({ edge, tid, name }) => [edge, tid, text(name)])).toEqual([
      ['begin', 700, 'sampling'],
      ['end', 700, ''],
    ])
    expect(issues).toEqual([
      'dropped records: writer 2 had no space for 7 records, 7 so far',
      'failed call: llama_encode returned -2: error (call 1)',
      'lost records: 3 records were lost: the disk was full',
      "recorded less: decode took 1.300 ms a call when recorded, 1.000 ms when not: 30 % more, above the guard's 10 %; from here on only graphs",
    ])
  })

  test.each([1, 7, 4096])('is read the same in pieces of %i bytes', async (size) => {
    for (const log of [everyRecord(), killed()]) {
      const whole = await read(log)
      expect((await read(cut(log, size))).events).toEqual(whole.events)
    }
  })

  test('is summarized', async () => {
    const summary = await summarize({ name: 'log', source: everyRecord() })
    expect(summary).toMatchObject({ operators: 7, workers: 2, graphs: 1, with_experts: 1, format: 'ggtrace' })
    const { by_phase, failed } = summary.calls
    expect([by_phase['warm-up']?.calls, by_phase.mixed, failed]).toEqual([1, { calls: 1, tokens: 3 }, 1])
    expect(summary.attributes['note']).toBe('by hand; written at the end')
  })
})

describe('the trace of it', () => {
  let trace: OpenTrace
  beforeAll(async () => {
    trace = await openTrace(await converted(everyRecord()))
    expect(trace.problems()).toEqual([])
  })
  afterAll(() => trace.close())

  const rows = (sql: string): Cell[][] => trace.query(sql).rows
  const slices = (track: string, ...args: string[]) =>
    rows(`SELECT slice.name, ts - ${ORIGIN_TS}, dur ${args.map((arg) => `, extract_arg(arg_set_id, 'debug.${arg}')`).join('')}
      FROM slice JOIN track ON track_id = track.id WHERE track.name = '${track}' ORDER BY ts, dur`)

  test('is called by its command, and every row is there', () => {
    const names = rows(`SELECT track.name FROM track JOIN args ON arg_set_id = source_arg_set_id
      AND key = 'sibling_order_rank' ORDER BY track.id`).flat()
    expect(names).toContain('LLM tiny.gguf · 2 workers · CPU')
    expect(new Set(names)).toEqual(
      new Set([
        'LLM tiny.gguf · 2 workers · CPU',
        'at the top', // a counter that keeps a row there in the UI
        ...[
          'Phase',
          'Tokens',
          'Graphs',
          'Copies',
          'thread 700: Vulkan API',
          'GPU',
          'worker 0',
          'worker 0: state',
          'worker 1',
        ],
        'layer 0: experts',
        ...['Rates', ...[0, 1].map((worker) => `worker ${worker}: cpu_share`), 'Faults and I/O'],
        ...['minor-faults per ms', 'major-faults per ms', 'bytes-read in MB/s'].map((title) => `worker 1: ${title}`),
        ...['Memory', 'Sizes', 'CPU: allocated', 'bytes touched per operator', 'compute buffer: offset read'],
        ...['weights: offset read', 'KV cache: offset read', 'context switches'],
        ...['compute buffer: live', 'compute buffer: size', 'KV cache: cells used (inferred)'],
        ...['Rates', 'tok/s', 'GB/s', 'GFLOP/s'],
        ...['Requests', 'slot 0', 'slot 1', 'slots busy', 'thread 700: functions'],
        ...[1, 4].map((sequence) => `context 2, sequence ${sequence}: tokens in the KV cache`),
        ...['Ranges', 'thread 700', 'NVTX', 'io', 'main 700: NVTX io', 'Names', 'Issues'],
      ]),
    )
  })

  test('has the calls and graphs', () => {
    expect(slices('Tokens', 'position', 'sequence', 'sequences', 'result', 'function')).toEqual([
      ['warm-up (2 tokens) · 900 ns', 1000, 900, null, null, null, null, null],
      ['mixed (3 tokens) · 5 s', 2800, 4_999_997_400, 0, 1, '1@0-1 4@17', null, null],
      ['encode failed (-2: error)', 5_000_001_000, 500, 3, 0, null, -2, 'llama_encode'],
    ])
    const graph = ['CPU graph failed (-1: error)', 2900, 4_999_997_200, 5, 2, -1]
    expect(slices('Graphs', 'operators', 'split', 'status')).toEqual([graph])
  })

  test('has the operators, fused ones by what they result in', () => {
    expect(slices('worker 0', 'call', 'inner_wait_ns', 'fused_to')).toEqual([
      ['attn_norm RMS_NORM+MUL', 3000, 400, 0, null, 'attn_norm-0'],
      ['wait for worker 1', 3400, 100, null, null, null],
      ['Qcur MUL_MAT', 3600, 1000, 0, 300, null],
      ['wait for worker 1', 4600, 100, null, null, null],
      ['ffn_moe_up MUL_MAT_ID', 4900, 1000, 0, null, null],
      ['wait for worker 1', 5900, 100, null, null, null],
    ])
    expect(slices('worker 1', 'call').at(-1)).toEqual(['norm RMS_NORM', 5_000_001_000, 100, 1])
  })

  test('has the experts of every token, over the operators that used them', () => {
    expect(slices('layer 0: experts', 'experts', 'n_tokens', 'distinct', 'operators')).toEqual([
      ['experts of 3 tokens', 4800, 1100, '5,1;5,7;0,5', 3, 4, 1],
    ])
  })

  test('has the copies', () => {
    expect(slices('Copies', 'bytes', 'from', 'to')).toEqual([
      ['set cache_k_l0', 2000, 100, 4096, null, 'CPU'],
      ['copy', 2200, 100, 64, 'CPU', 'CPU'],
      ['get', 5_000_003_100, 100, 256, 'CPU', null],
    ])
  })

  test('has where operators read, and what was allocated', () => {
    const counter = (name: string) =>
      rows(`SELECT ts - ${ORIGIN_TS}, value FROM counter JOIN track ON track_id = track.id
        WHERE track.name = '${name}' ORDER BY ts, counter.id`)
    expect(counter('weights: offset read')).toEqual([
      [3600, 12288],
      [4900, 69632],
      [6000, 0],
    ])
    expect(counter('KV cache: offset read')).toEqual([
      [4900, 1536],
      [6000, 0],
    ])
    expect(counter('CPU: allocated')).toEqual([
      [500, 65536],
      [700, 131072],
      [5_000_004_000, 65536],
    ])
    expect(counter('context switches')).toEqual([[5_000_003_000, 12.5]])
  })

  test('joins its clock with the others', () => {
    const origins = rows(
      `SELECT substr(name, 17), int_value FROM metadata WHERE name GLOB 'trace_attribute.origin_*_ns'`,
    )
    expect(Object.fromEntries(origins)).toMatchObject({
      origin_monotonic_ns: Number(ORIGIN_NS),
      origin_realtime_ns: 1_763_000_000_000_000_789n,
    })
  })
})
describe('large logs', () => {
  test('64 workers, every one in its lane', async () => {
    const writer = begun({}, 1024)
    writer.type(0, 'f32')
    const tensor = writer.tensor({ name: 'x-0' })
    const threads = Array.from({ length: 64 }, (_, i) => writer.thread(1000 + i, i))
    for (let n = 0; n < 200; n++) {
      threads.forEach((thread, i) => {
        thread.call = n % 7
        thread.operator({ tensor, startNs: 1000 * n + i, endNs: 1000 * n + 500, waitEndNs: 1000 * n + 600 })
      })
    }
    writer.end(300_000)
    const { of, issues } = await read(writer.take())
    expect(issues.filter((issue) => !issue.startsWith('id without a definition'))).toEqual([])
    const operators = of('operator')
    expect(operators.length).toBe(64 * 200)
    for (let worker = 0; worker < 64; worker++) {
      const own = operators.filter((operator) => operator.worker === worker)
      expect(own.map(({ startNs }) => startNs)).toEqual(Array.from({ length: 200 }, (_, n) => 1000 * n + worker))
      expect(own.every(({ tid, call }, n) => tid === 1000 + worker && call === n % 7)).toBe(true)
    }
  })

  test('choices of many tokens go into several records, and one slice', async () => {
    const writer = begun({}, 1 << 16)
    writer.type(0, 'f32')
    const tensor = writer.tensor({ name: 'ffn_moe_topk-3' })
    const ids = Array.from({ length: 4096 * 8 }, (_, i) => i % 64)
    writer.thread(1, 0).experts({ atNs: 50, tensor, call: 0, k: 8, ids })
    writer.end(100)
    const log = writer.take()
    const { of, issues } = await read(log)
    expect(issues).toEqual([])
    expect(of('experts').map(({ tokens, k }) => [tokens, k])).toEqual([
      [2047, 8],
      [2047, 8],
      [2, 8],
    ])
    expect(of('experts').flatMap((event) => [...event.ids])).toEqual(ids)
    const trace = await openTrace(await converted(log))
    expect(trace.query("SELECT name FROM slice WHERE category = 'expert'").rows).toEqual([['experts of 4096 tokens']])
    trace.close()
  })

  test('a graph of more nodes than a record holds', async () => {
    const writer = begun({}, 1 << 16)
    writer.type(0, 'f32')
    const node = writer.tensor({ name: 'x' })
    const graph = writer.graph('CPU', new Array(40_000).fill(node))
    writer.thread(1).graph({ startNs: 1, endNs: 2, graph, call: 0 })
    writer.end(100)
    const { of, issues } = await read(writer.take())
    expect(issues).toEqual([])
    expect(of('graph')).toMatchObject([{ nodes: 40_000, call: 0 }])
  })

  test('batches stay small, however large the chunk is', async () => {
    const writer = begun({}, 1 << 16)
    writer.type(0, 'f32')
    const tensor = writer.tensor({ name: 'x' })
    const thread = writer.thread(1, 0)
    for (let n = 0; n < 100_000; n++) thread.operator({ tensor, startNs: 10 * n, endNs: 10 * n + 5 })
    writer.end(1_000_000)
    const sizes: number[] = []
    for await (const batch of FORMATS[0]!.read(cut(writer.take(), 1 << 24), { names: new Names() })) {
      sizes.push(batch.length)
    }
    expect(sizes.length).toBeGreaterThan(5)
    expect(Math.max(...sizes)).toBeLessThan(20_000)
  })
})

test('the writer refuses what the format cannot hold', () => {
  for (const blockBytes of [0, 48, 100, (1 << 20) + 8]) {
    expect(() => new GgtraceWriter({ originNs: 0n, blockBytes })).toThrow(UsageError)
  }
  expect(() => begun({ command: 'x'.repeat(70_000) })).toThrow('65532 bytes at most')
  expect(tiny().length % 8).toBe(0)
})
