import { describe, expect, test } from '@jest/globals'
import { convert, type Input, summarize, type TraceEvent } from '../../lib/index.ts'
import { repack } from '../../scripts/repack-tensor-trace.mjs'
import { eventsIn, joined, plainBytes } from '../line/support.ts'
import { drawn } from '../printing-sink.ts'
import { alloc, dealloc, encode, input, json, line, rowsOf } from './companion-files.ts'

/** Companions of a TensorTrace log: what they define reaches the log's slices and tracks, whatever their order. */

const recorded = plainBytes('tensor-trace/moe-2threads.bin.gz')
const recordedEvents = await eventsIn(recorded)

/** The weights that the recorded run used: name → offset in the file, and size. */
const WEIGHTS = new Map(
  recordedEvents.events.flatMap((event) =>
    event.kind === 'tensor' && event.op === 0 && event.buffer >= 0 && event.sizeBytes > 0 && isWeight(event)
      ? [[recordedEvents.names.text(event.name), { offset: event.offset!, bytes: event.sizeBytes }] as const]
      : [],
  ),
)
function isWeight(event: TraceEvent & { kind: 'tensor' }): boolean {
  return recordedEvents.events.some(
    (other) => other.kind === 'buffer' && other.id === event.buffer && other.usage === 'weights',
  )
}

/** A map as the tools write it: experts one by one. */
function mapOf(weights: ReadonlyMap<string, { readonly offset: number; readonly bytes: number }>): Uint8Array {
  const tensors = [...weights].flatMap(([name, { offset, bytes }]) => {
    const slices = name.includes('_exps') ? 8 : 1
    return Array.from({ length: slices }, (_, i) => ({
      name: slices === 1 ? name : `${name}[${i}]`,
      offset_start: offset + (i * bytes) / slices,
      offset_end: offset + ((i + 1) * bytes) / slices,
      size_bytes: bytes / slices,
      shape: [512, bytes / slices / 512],
      category: 'ffn',
      layer_id: /^blk\.(\d+)/.exec(name) ? Number(/^blk\.(\d+)/.exec(name)![1]) : null,
      of_another_version: { nested: ['unknown'] },
    }))
  })
  return json({ model_name: 'moe', total_size_bytes: 1e6, metadata: { n_tensors: tensors.length }, tensors, more: 1 })
}
const MAP = mapOf(WEIGHTS)

/** The operators, with layer and first source. */
const operatorsOf = (...inputs: Input[]) => drawn(inputs, {}, { rows: /^worker/, args: ['layer', 'src0'] })

/** Two buffers of the recorded run, by their ids in it; one lies where its pointer says, the other's pointer is another. */
const BUFFERS = recordedEvents.events.flatMap((event) =>
  event.kind === 'buffer' && event.label.startsWith('0x') ? [event] : [],
)
const startNs = recordedEvents.events.flatMap((event) => (event.kind === 'input' ? [event.originNs] : []))[0]!
const msAt = (ns: number) => (Number(startNs / 1000n) + ns / 1000) / 1000
const idOf = (label: string) => `${BigInt(label)}`
const STATS = encode(
  alloc(msAt(-28e6), idOf(BUFFERS[0]!.label), 4096, 'CPU_Compute') +
    alloc(msAt(-20e6), '18446744073709551615', 1000, 'scratch') +
    alloc(msAt(-10e6), '77', 500, 'scratch') +
    dealloc(msAt(5e6), '18446744073709551615'),
)

describe('memory-map', () => {
  test('names what 64-byte records do not: the same slices of weights as from 128 bytes', async () => {
    const ofWeights = async (...inputs: Input[]) =>
      (await operatorsOf(...inputs)).filter((line) => line.includes('.weight'))
    const named = await ofWeights(input('log', repack(recorded, 128)))
    const bare = input('log', repack(recorded, 64))
    expect(await ofWeights(bare)).toEqual([])
    const mapped = await ofWeights(bare, input('map', MAP))
    expect(mapped.map((line) => line.replace(/ \d+(×\d+)*}$/, '}'))).toEqual(named)
    expect(named.length).toBeGreaterThan(250)
    expect(mapped[0]).toMatch(/src0: \S+ 512×\d+}$/)
  })

  test('gives the cut sources of 256-byte records their names; experts are one tensor again', async () => {
    const args = Array.from({ length: 10 }, (_, i) => `src${i}`)
    const sourcesOf = async (...inputs: Input[]) => {
      const lines = await drawn(inputs, {}, { args })
      return [...new Set(lines.join('\n').match(/(?<=src\d: )blk\.[^,}]+/g))]
    }
    const named = (sources: readonly string[]) => new Set(sources.map((source) => source.replace(/ .*/, '')))
    const whole = await sourcesOf(input('log', recorded))
    const found = await sourcesOf(input('map', MAP), input('log', repack(recorded, 256)))
    expect(named(found)).toEqual(named(whole))
    const experts = found.filter((name) => name.includes('_exps'))
    expect(experts.length).toBe(18)
    for (const name of experts) expect(name).toMatch(/ 512×\d+×8$/)
  })

  test('of another model: the names of the log stay, and issues say so', async () => {
    const [first, ...others] = [...WEIGHTS]
    const other = new Map([['other.weight', first![1]], ...others])
    const inputs = [input('log', recorded), input('map', mapOf(other))]
    const [issue] = await drawn(inputs, {}, { rows: /Issues/, args: ['detail'] })
    const { offset } = first![1]
    expect(issue?.replace(/.* \| \d+ /, '')).toBe(
      `other weight in the memory map {detail: expected "other.weight" at offset ${offset} of the model file, found "${first![0]}"}`,
    )
    expect(await operatorsOf(...inputs)).toHaveLength(1332)
  })

  test('sizes beyond 4 GiB, which the log wraps', async () => {
    const [name, { offset, bytes }] = [...WEIGHTS].find(([key]) => key === 'output.weight')!
    const map = mapOf(new Map([[name, { offset, bytes: bytes + 2 ** 32 }]]))
    const shown = { rows: /^worker/, args: ['src0', 'src0_bytes'] }
    const lines = await drawn([input('log', recorded), input('map', map)], { detail: 'full' }, shown)
    const sizes = lines
      .filter((line) => line.includes('src0: output.weight'))
      .map((line) => /src0_bytes: (\d+)/.exec(line)![1])
    expect(new Set(sizes)).toEqual(new Set([`${bytes + 2 ** 32}`]))
  })

  test('tensors that do not tell enough are told of, and the others taken', async () => {
    const tensors = [
      { name: 'a', offset_start: 5, offset_end: 3 },
      { offset_start: 1, offset_end: 2 },
      7,
      { name: 'b', offset_start: 8, offset_end: 9 },
    ]
    const { issues, attributes } = await summarize(input('map', json({ total_size_bytes: 1, tensors })))
    expect(issues.map(({ title, count, first }) => [title, count, first.detail])).toEqual([
      ['unusable entry of a companion', 3, 'tensor 0: expected name, offset_start and offset_end'],
    ])
    expect(attributes).toEqual({ holds: '1 weight' })
  })
})

describe('buffer-stats', () => {
  const at = (ns: number) => Number((startNs / 1000n) * 1000n) + ns
  const ALLOCATED = [
    `Memory/Sizes/CPU_Compute: allocated | ${at(-28e6)} = 4096`,
    `Memory/Sizes/scratch: allocated | ${at(-20e6)} = 1000`,
    `Memory/Sizes/scratch: allocated | ${at(-10e6)} = 1500`,
    `Memory/Sizes/scratch: allocated | ${at(5e6)} = 500`,
  ]
  const allocatedIn = (...inputs: Input[]) => drawn(inputs, {}, { rows: /allocated$/, isAbsolute: true })

  test('buffers are counted from their allocation on, in the Memory group of the log', async () => {
    const inputs = [input('log', recorded), input('stats', STATS)]
    expect(await allocatedIn(...inputs)).toEqual(ALLOCATED)
    const roots = await rowsOf(inputs, `SELECT name FROM track WHERE parent_id IS NULL`)
    expect(roots).toEqual([['LLM run']])
    expect(await operatorsOf(...inputs)).toEqual(await operatorsOf(input('log', recorded)))
  })

  test('by themselves they are drawn, too', async () => {
    expect(await allocatedIn(input('stats', STATS))).toEqual(ALLOCATED)
  })

  test('a buffer of the log gets its name; and its base, where what is read in it lies behind the pointer', async () => {
    const small = plainBytes('tensor-trace/tiny-v4.bin')
    const stats =
      alloc(600604880, `${0x5567_0000_1000}`, 1 << 20, 'CPU_Compute', `${0x7e0f_ffff_f000}`) +
      alloc(600604881, `${0x5567_0000_2000}`, 1 << 20, 'KVCache_CPU', `${0x5567_0000_2000}`)
    const offsets = `SELECT track.name, max(value) FROM counter JOIN track ON counter.track_id = track.id
      WHERE track.name GLOB '*offset read' GROUP BY 1 ORDER BY 1`
    const alone = new Map((await rowsOf([input('log', small)], offsets)).map(([name, value]) => [name, value]))
    const known = new Map(
      (await rowsOf([input('log', small), input('stats', encode(stats))], offsets)).map(([name, value]) => [
        name,
        value,
      ]),
    )
    expect(known.get('compute buffer: offset read')).toBe(Number(alone.get('compute buffer: offset read')) + 4096)
    expect(known.get('KV cache: offset read')).toBe(alone.get('KV cache: offset read'))
    const { rows } = await descriptions([input('log', small), input('stats', encode(stats))])
    expect(rows.find((text) => text.includes('CPU_Compute 0x'))).toMatch(
      /\(CPU_Compute 0x556700001000\), in bytes from 0x7e0ffffff000, its base;/,
    )
    expect(rows.find((text) => text.includes('KVCache_CPU 0x'))).toMatch(
      /the lowest address first seen in it \(inferred\);/,
    )
  })

  async function descriptions(inputs: readonly Input[]): Promise<{ rows: string[] }> {
    const rows = await rowsOf(inputs, `SELECT string_value FROM args WHERE key = 'description'`)
    return { rows: rows.map(([text]) => String(text)) }
  }

  test('names are not escaped; bad lines are told with their place, and the others read', async () => {
    const [first, second] = [alloc(1, '1', 10, 'a "quoted" \\ name'), alloc(2, '2', 20, 'b')]
    const text = `${first}{"timestamp_ms":1.5,\n${second}${dealloc(3, '9')}{"timestamp_ms":4,"event":"grow","buffer_id":1}\n${dealloc(5, '1')}{"timestamp_ms":6`
    const { names, events } = await eventsIn(encode(text))
    const allocations = events.flatMap((event) =>
      event.kind === 'allocation' ? [[names.text(event.buffer), event.atNs, event.bytes]] : [],
    )
    expect(allocations).toEqual([
      ['a "quoted" \\ name', 0, 10],
      ['b', 1e6, 20],
      ['a "quoted" \\ name', 4e6, -10],
    ])
    const issues = events.flatMap((event) =>
      event.kind === 'issue' ? [[event.title, event.at.line, event.detail]] : [],
    )
    expect(issues).toEqual([
      ['unusable entry of a companion', 2, `byte ${first.length + 20}: expected a key, found the end`],
      ['unusable entry of a companion', 4, 'no buffer 0x9 was allocated before'],
      ['unusable entry of a companion', 5, 'expected the event "alloc" or "dealloc", found "grow"'],
      [
        'unusable entry of a companion',
        7,
        `byte ${text.length}: expected a comma or the end of an object or list, found the end`,
      ],
    ])
  })

  test('a pointer that is in use again was freed in between', async () => {
    const { events } = await eventsIn(encode(alloc(1, '1', 10, 'a') + alloc(2, '1', 30, 'a')))
    expect(events.flatMap((event) => (event.kind === 'allocation' ? [event.bytes] : []))).toEqual([10, -10, 30])
  })

  test('a text without any sound line is refused', async () => {
    const lines = line('{"event":"alloc"}').repeat(2000)
    await expect(summarize(input('stats', encode(lines)))).rejects.toThrow(
      /^stats: buffer-stats: line 1001, .* expected a line that describes/,
    )
  })
})

describe('buffer-timeline and ggml-graph', () => {
  const TIMELINE = {
    metadata: { total_buffers: 2, peak_occupancy_bytes: 30 },
    buffers: [
      { id: 2, name: 'b', size: 20, usage: 2, alloc_time_ms: msAt(2e6), dealloc_time_ms: null },
      { id: 1, name: 'a', size: 10, usage: 0, alloc_time_ms: msAt(1e6), dealloc_time_ms: msAt(2e6) },
      { id: 1, name: 'a', size: 15, usage: 0, alloc_time_ms: msAt(2e6), dealloc_time_ms: 'late' },
      { id: 3, name: 'c', size: -1, usage: 0, alloc_time_ms: msAt(2e6), dealloc_time_ms: null },
    ],
    timeline: [],
  }

  test('a timeline tells of the buffers in the order of time', async () => {
    const { names, events } = await eventsIn(json(TIMELINE))
    const told = events.flatMap((event) =>
      event.kind === 'allocation' ? [[names.text(event.buffer), event.atNs, event.bytes]] : [],
    )
    expect(told).toEqual([
      ['a', 0, 10],
      ['a', 1e6, -10],
      ['b', 1e6, 20],
      ['a', 1e6, 15],
    ])
    const issues = events.flatMap((event) => (event.kind === 'issue' ? [event.detail] : []))
    expect(issues.sort()).toEqual(['buffer 2: expected a time in ms', 'buffer 3: expected id and size of a buffer'])
  })

  test('two that tell of the same buffers are one too many', async () => {
    const inputs = [input('log', recorded), input('stats', STATS), input('timeline', json(TIMELINE))]
    await expect(joined(convert(inputs))).rejects.toThrow(
      'timeline: contains buffers, and so does stats\nhint: give one of them',
    )
  })

  const node = (id: string, label: string, operation: string, layer: number | null) => ({
    id,
    label,
    operation,
    layer_id: layer,
    address: '0x5567',
    shape: [4, 2],
    dtype: 'f32',
  })
  const GRAPH = {
    metadata: { total_nodes: 4, total_edges: 3 },
    nodes: [
      node('n0', 'embd', 'get_rows(x)', null),
      node('n1', 'Qcur-0', 'X*Y', 3),
      node('n2', 'result_output', 'X*Y', 7),
      node('n3', 'attn', 'CONST', 9),
    ],
    edges: [
      { source: 'n2', target: 'n1', label: 'src 1' },
      { source: 'n3', target: 'n1', label: 'src 0' },
      { source: 'n0', target: 'n2', label: 'src 0' },
      { source: 'n3', target: 'n0', label: 'src 0' },
      { source: 'n0', target: 'n0', label: 'src 1' },
    ],
  }

  test('a graph: nodes after their sources, ops by their symbols', async () => {
    const { names, events } = await eventsIn(json(GRAPH))
    const tensors = events.flatMap((event) => (event.kind === 'tensor' ? [event] : []))
    const labels = tensors.map(({ name, op, sources }) => [
      names.text(name),
      names.text(op),
      sources.map((id) => names.text(tensors[id]!.name)).join(),
    ])
    expect(labels).toEqual([
      ['attn', '', ''],
      ['embd', 'GET_ROWS', 'attn'],
      ['result_output', 'MUL_MAT', 'embd'],
      ['Qcur-0', 'MUL_MAT', 'attn,result_output'],
    ])
    expect(events.filter(({ kind }) => kind === 'issue')).toEqual([])
  })

  test('a graph gives layers to nodes that have none of their own', async () => {
    const log = plainBytes('tensor-trace/tiny-v3.bin')
    const nodesOf = async (...inputs: Input[]) => {
      const lines = await drawn(inputs, {}, { rows: /^worker/, args: ['tensor', 'layer'] })
      return new Set(lines.map((line) => line.replace(/.*{(.*)}/, '$1')))
    }
    const [embd, query] = ['tensor: embd', 'tensor: Qcur-0, layer: 0']
    expect(await nodesOf(input('log', log))).toEqual(new Set([embd, query, 'tensor: result_output']))
    expect(await nodesOf(input('log', log), input('graph', json(GRAPH)))).toEqual(
      new Set([embd, query, 'tensor: result_output, layer: 7']),
    )
  })

  test('a graph that bites its tail, and edges to nowhere, are told of', async () => {
    const edges = [
      ...GRAPH.edges,
      { source: 'n1', target: 'n0', label: 'src 1' },
      { source: 'n9', target: 'n1', label: 'src 2' },
    ]
    const { issues } = await summarize(input('graph', json({ ...GRAPH, edges })))
    expect(issues.map(({ title, count }) => `${count} × ${title}`)).toEqual(['2 × edge from outside the graph'])
  })
})
