import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import {
  type Cell,
  convert,
  FORMATS,
  type Input,
  openTrace,
  sniffFormat,
  summarize,
  type TraceEvent,
} from '../../lib/index.ts'
import { repack } from '../../scripts/repack-tensor-trace.mjs'
import { faultsOf } from '../line/hostile.ts'
import { eventsIn, joined, plainBytes } from '../line/support.ts'

/** Companions of a TensorTrace log: what they define reaches the log's slices and tracks, whatever their order. */

const encode = (text: string) => new TextEncoder().encode(text)
const json = (value: unknown) => encode(JSON.stringify(value))
const input = (name: string, source: Uint8Array): Input => ({ name, source })

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

async function rowsOf(
  inputs: readonly Input[],
  sql: string,
  detail: 'shapes' | 'full' = 'shapes',
): Promise<(Cell | undefined)[][]> {
  const open = await openTrace(convert(inputs, { detail }))
  try {
    expect(open.problems()).toEqual([])
    return open.query(sql).rows
  } finally {
    open.close()
  }
}

const SLICES = `SELECT ts, name, extract_arg(arg_set_id, 'debug.layer'), extract_arg(arg_set_id, 'debug.src0')
  FROM slice WHERE category = 'operator' ORDER BY ts, slice.id`

/** Two buffers of the recorded run, by their ids in it; one lies where its pointer says, the other's pointer is another. */
const BUFFERS = recordedEvents.events.flatMap((event) =>
  event.kind === 'buffer' && event.label.startsWith('0x') ? [event] : [],
)
const startNs = recordedEvents.events.flatMap((event) => (event.kind === 'input' ? [event.originNs] : []))[0]!
const msAt = (ns: number) => (Number(startNs / 1000n) + ns / 1000) / 1000
const line = (fields: string) => `${fields}\n`
const alloc = (ms: number, id: string, size: number, name: string, pointer = '0') =>
  line(
    `{"timestamp_ms":${ms.toFixed(3)},"event":"alloc","buffer_id":${id},"buffer_ptr":${pointer},"size":${size},` +
      `"name":"${name}","backend":"CPU","usage":2,"layer":65535}`,
  )
const dealloc = (ms: number, id: string) =>
  line(`{"timestamp_ms":${ms.toFixed(3)},"event":"dealloc","buffer_id":${id}}`)
const idOf = (label: string) => `${BigInt(label)}`
const STATS = encode(
  alloc(msAt(-28e6), idOf(BUFFERS[0]!.label), 4096, 'CPU_Compute') +
    alloc(msAt(-20e6), '18446744073709551615', 1000, 'scratch') +
    alloc(msAt(-10e6), '77', 500, 'scratch') +
    dealloc(msAt(5e6), '18446744073709551615'),
)

describe('memory-map', () => {
  test('names what 64-byte records do not: the same slices of weights as from 128 bytes', async () => {
    const ofWeights = (rows: (Cell | undefined)[][]) =>
      rows.filter(([, , , source]) => String(source).includes('.weight'))
    const named = ofWeights(await rowsOf([input('log', repack(recorded, 128))], SLICES))
    const bare = await rowsOf([input('log', repack(recorded, 64))], SLICES)
    expect(ofWeights(bare)).toEqual([])
    const mapped = ofWeights(await rowsOf([input('log', repack(recorded, 64)), input('map', MAP)], SLICES))
    const plain = mapped.map((row) => row.map((cell) => String(cell).replace(/ \d+(×\d+)*$/, '')))
    expect(plain).toEqual(named.map((row) => row.map(String)))
    expect(named.length).toBeGreaterThan(250)
    expect(mapped[0]![3]).toMatch(/^\S+ 512×\d+$/)
  })

  test('gives the cut sources of 256-byte records their names; experts are one tensor again', async () => {
    const sql = `SELECT DISTINCT display_value FROM args WHERE key GLOB 'debug.src?' AND display_value GLOB 'blk.*'`
    const named = (rows: (Cell | undefined)[][]) => new Set(rows.map(([name]) => String(name).replace(/ .*/, '')))
    const inputs = [input('map', MAP), input('log', repack(recorded, 256))]
    const [whole, found] = [await rowsOf([input('log', recorded)], sql), await rowsOf(inputs, sql)]
    expect(named(found)).toEqual(named(whole))
    const experts = found.map(([name]) => String(name)).filter((name) => name.includes('_exps'))
    expect(experts.length).toBe(18)
    for (const name of experts) expect(name).toMatch(/ 512×\d+×8$/)
  })

  test('of another model: the names of the log stay, and issues say so', async () => {
    const [first, ...others] = [...WEIGHTS]
    const other = new Map([['other.weight', first![1]], ...others])
    const inputs = [input('log', recorded), input('map', mapOf(other))]
    const found = await rowsOf(
      inputs,
      `SELECT name, extract_arg(arg_set_id, 'debug.detail') FROM slice WHERE category = 'issue'`,
    )
    expect(found[0]![0]).toBe('other weight in the memory map')
    expect(found[0]![1]).toBe(
      `expected "other.weight" at offset ${first![1].offset} of the model file, found "${first![0]}"`,
    )
    expect(await rowsOf(inputs, SLICES)).toHaveLength(1332)
  })

  test('sizes beyond 4 GiB, which the log wraps', async () => {
    const [name, { offset, bytes }] = [...WEIGHTS].find(([key]) => key === 'output.weight')!
    const map = mapOf(new Map([[name, { offset, bytes: bytes + 2 ** 32 }]]))
    const sql = `SELECT DISTINCT extract_arg(arg_set_id, 'debug.src0_bytes') FROM slice
      WHERE category = 'operator' AND extract_arg(arg_set_id, 'debug.src0') GLOB 'output.weight*'`
    expect(await rowsOf([input('log', recorded), input('map', map)], sql, 'full')).toEqual([[bytes + 2 ** 32]])
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
      ['bad tensor', 3, 'tensor 0: expected name, offset_start and offset_end'],
    ])
    expect(attributes).toEqual({ holds: '1 weights' })
  })
})

describe('buffer-stats', () => {
  const ALLOCATED = `SELECT track.name, ts, value FROM counter JOIN track ON counter.track_id = track.id
    WHERE track.name GLOB '*allocated' ORDER BY track.name, ts`
  const at = (ns: number) => Number((startNs / 1000n) * 1000n) + ns

  test('buffers are counted from their allocation on, in the Memory group of the log', async () => {
    const inputs = [input('log', recorded), input('stats', STATS)]
    expect(await rowsOf(inputs, ALLOCATED)).toEqual([
      ['CPU_Compute: allocated', at(-28e6), 4096],
      ['scratch: allocated', at(-20e6), 1000],
      ['scratch: allocated', at(-10e6), 1500],
      ['scratch: allocated', at(5e6), 500],
    ])
    const roots = await rowsOf(inputs, `SELECT name FROM track WHERE parent_id IS NULL`)
    expect(roots).toEqual([['LLM run']])
    expect(await rowsOf(inputs, SLICES)).toEqual(await rowsOf([input('log', recorded)], SLICES))
  })

  test('by themselves they are drawn, too', async () => {
    expect(await rowsOf([input('stats', STATS)], ALLOCATED)).toHaveLength(4)
  })

  test('a buffer of the log gets its name; and its base, where what is read in it lies behind the pointer', async () => {
    const small = plainBytes('tensor-trace/tiny-v4.bin')
    const stats =
      alloc(600604880, `${0x5567_0000_1000}`, 1 << 20, 'CPU_Compute', `${0x7e0f_ffff_f000}`) +
      alloc(600604881, `${0x5567_0000_2000}`, 1 << 20, 'KVCache_CPU', `${0x5567_0000_2000}`)
    const offsets = `SELECT track.name, min(value) FROM counter JOIN track ON counter.track_id = track.id
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
      /\(CPU_Compute 0x556700001000\), in bytes from 0x7e0ffffff000, its base\.$/,
    )
    expect(rows.find((text) => text.includes('KVCache_CPU 0x'))).toMatch(
      /the lowest address first seen in it \(inferred\)\.$/,
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
      ['bad line', 2, `byte ${first.length + 20}: expected a key, found the end`],
      ['bad line', 4, 'no buffer 0x9 was allocated before'],
      ['bad line', 5, 'expected the event "alloc" or "dealloc", found "grow"'],
      ['bad line', 7, `byte ${text.length}: expected a comma or the end of an object or list, found the end`],
    ])
  })

  test('a pointer that is in use again was freed in between', async () => {
    const { events } = await eventsIn(encode(alloc(1, '1', 10, 'a') + alloc(2, '1', 30, 'a')))
    expect(events.flatMap((event) => (event.kind === 'allocation' ? [event.bytes] : []))).toEqual([10, -10, 30])
  })

  test('a text without any sound line is refused', async () => {
    const lines = line('{"event":"alloc"}').repeat(2000)
    await expect(summarize(input('stats', encode(lines)))).rejects.toThrow(
      /^stats: buffer-stats: line 1001, .* expected a line that tells/,
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
      'timeline: tells of buffers, and so does stats\nhint: give one of them',
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
    const layers = async (inputs: Input[]) =>
      Object.fromEntries(
        await rowsOf(
          inputs,
          `SELECT DISTINCT extract_arg(arg_set_id, 'debug.tensor'), extract_arg(arg_set_id, 'debug.layer') FROM slice WHERE category = 'operator'`,
        ),
      )
    expect(await layers([input('log', log)])).toEqual({ embd: null, 'Qcur-0': 0, result_output: null })
    expect(await layers([input('log', log), input('graph', json(GRAPH))])).toEqual({
      embd: null,
      'Qcur-0': 0,
      result_output: 7,
    })
  })

  test('a graph that bites its tail, and edges to nowhere, are told of', async () => {
    const edges = [
      ...GRAPH.edges,
      { source: 'n1', target: 'n0', label: 'src 1' },
      { source: 'n9', target: 'n1', label: 'src 2' },
    ]
    const { issues } = await summarize(input('graph', json({ ...GRAPH, edges })))
    expect(issues.map(({ title, count }) => `${count} × ${title}`)).toEqual(['2 × bad edge'])
  })
})

describe('together', () => {
  const log = plainBytes('tensor-trace/tiny-256.bin')
  const map = json({
    total_size_bytes: 9,
    tensors: [{ name: 'blk.0.ffn_up_exps.weight', offset_start: 163840, offset_end: 180224, shape: [64], layer_id: 0 }],
  })
  const stats = encode(alloc(600604880, `${0x5567_0000_1000}`, 1 << 20, 'CPU_Compute'))

  test('the order of the inputs does not matter; summaries are in theirs', async () => {
    const inputs = [input('log', log), input('map', map), input('stats', stats)]
    const traces = []
    for (const order of [
      [0, 1, 2],
      [2, 1, 0],
      [1, 0, 2],
    ]) {
      const conversion = convert(
        order.map((i) => inputs[i]!),
        { from: 'tensor-trace' },
      )
      const pieces: Uint8Array[] = []
      let next = await conversion.next()
      for (; !next.done; next = await conversion.next()) pieces.push(next.value)
      const formats = ['tensor-trace', 'memory-map', 'buffer-stats']
      expect(next.value.map(({ format }) => format)).toEqual(order.map((i) => formats[i]))
      traces.push(Buffer.concat(pieces))
    }
    expect(Buffer.compare(traces[0]!, traces[2]!)).toBe(0)
    expect(traces[0]!.length).toBe(traces[1]!.length)
  })

  test('facts on them are attributes of the trace; those on the only log have no prefix', async () => {
    const rows = await rowsOf(
      [input('map', map), input('log', log)],
      `SELECT substr(name, 17), coalesce(str_value, int_value) FROM metadata WHERE name GLOB 'trace_attribute.*'`,
    )
    expect(Object.fromEntries(rows)).toMatchObject({
      format: 'tensor-trace',
      record_bytes: 256,
      operators: 12,
      'memory-map.holds': '1 weights',
      'memory-map.issues': 0,
    })
  })

  test('without a log there is nothing to draw', async () => {
    await expect(joined(convert(input('map', map)))).rejects.toThrow(
      /^map: has nothing to draw, memory-map goes with a log\nhint: give the log, too$/,
    )
  })

  test('strict stops at an issue of a companion', async () => {
    const inputs = [input('log', log), input('stats', encode(`${alloc(1, '1', 1, 'a')}{\n`))]
    await expect(joined(convert(inputs, { strict: true }))).rejects.toThrow(
      /^stats: buffer-stats: line 2, .*no issues \(strict\), found bad line/,
    )
  })

  test('sources of all inputs are closed when one is refused', async () => {
    const open = new Set<string>()
    async function* source(name: string, bytes: Uint8Array) {
      open.add(name)
      try {
        yield bytes
        yield new Uint8Array(0)
      } finally {
        open.delete(name)
      }
    }
    const inputs = ['a', 'b'].map((name) => ({ name, source: source(name, log) }))
    await expect(
      joined(convert([...inputs, input('map', encode('{"tensors": [], "total_size_bytes": 1'))])),
    ).rejects.toThrow(/^map: memory-map: byte 37/)
    expect([...open]).toEqual([])
  })

  test('each is known by its content', () => {
    const companions = FORMATS.filter(({ isCompanion }) => isCompanion).map(({ name }) => name)
    expect(companions).toEqual(['buffer-stats', 'buffer-timeline', 'memory-map', 'ggml-graph'])
    expect(
      [
        stats,
        json({ metadata: { peak_occupancy_bytes: 1 }, buffers: [] }),
        MAP,
        json({ metadata: { total_nodes: 1, total_edges: 0 }, nodes: [], edges: [] }),
      ].map((head) => sniffFormat(head)?.name),
    ).toEqual(companions)
    for (const text of ['{}', '{"tensors": 1}', '[]', '{"traceEvents": [{"name": "alloc"}]}'])
      expect(sniffFormat(encode(text))).toBeUndefined()
  })
})

describe('what is no JSON', () => {
  const DOCUMENT = '{"total_size_bytes": 1, "tensors": [{"name": "ü", "offset_start": 0, "offset_end": 1}]}'
  const refusal = async (text: string) =>
    summarize(input('map', encode(text)), { from: 'memory-map' }).then(
      () => 'read',
      ({ message }) => message,
    )

  test.each([
    [DOCUMENT.slice(0, -1), 'byte 87 (0x57): expected a comma or the end of an object or list, found the end'],
    [
      DOCUMENT.replace('"offset_start":', '"offset_start"'),
      'byte 66 (0x42): expected a colon, found "0, \\"offset_end\\": 1}]"',
    ],
    [DOCUMENT.replace('[{', '[,{'), 'byte 36 (0x24): expected a value or ], found ",{\\"name\\": \\"ü\\", \\"offs"'],
    [`${DOCUMENT} {`, 'byte 89 (0x59): expected the end, found "{"'],
    ['', 'byte 0 (0x0): expected a value, found the end'],
    ['[1]', 'byte 0 (0x0): expected a JSON object, found "[1]"'],
    ['{"tensors": {}}', 'byte 0 (0x0): expected a list called "tensors", found something else'],
    ['{"a\tb": 1}', 'byte 1 (0x1): expected a key or }, found "\\"a\\tb\\": 1}"'],
  ])('%s', async (text, message) => {
    expect(await refusal(text)).toBe(`map: memory-map: ${message}`)
  })

  test('any text: read, or refused with a place within it', async () => {
    const valid = fc.json().map((text) => `{"tensors": [], "x": ${text}}`)
    const damaged = fc.tuple(valid, fc.nat(), fc.string({ maxLength: 2 })).map(([text, at, put]) => {
      const cut = at % (text.length + 1)
      return text.slice(0, cut) + put + text.slice(cut + 1)
    })
    await fc.assert(
      fc.asyncProperty(fc.oneof(valid, damaged, fc.string()), async (text) => {
        const message = await refusal(text)
        let isJson = true
        try {
          JSON.parse(text)
        } catch {
          isJson = false
        }
        const byte = Number(/byte (\d+)/.exec(message)?.[1] ?? 0)
        expect(byte).toBeLessThanOrEqual(encode(text).length)
        if (!isJson) expect(message).toMatch(/^map: memory-map: byte \d+ .*: expected .*, found ./s)
        else expect(message).toMatch(/^read$|a list called "tensors"|a JSON object/)
      }),
      { numRuns: 500 },
    )
  })

  test('a document beyond the limit is refused', async () => {
    async function* endless() {
      yield encode('{"tensors": [')
      for (;;) yield new Uint8Array(1 << 20).fill(0x20)
    }
    await expect(summarize({ name: 'map', source: endless() }, { from: 'memory-map' })).rejects.toThrow(
      /expected at most 67108864 bytes, found a longer document$/,
    )
  })
})

describe('damaged companions beside a log', () => {
  const log = plainBytes('tensor-trace/tiny-64.bin')
  const graph = {
    nodes: [
      { id: 'a', label: 'x', operation: 'X*Y', layer_id: 0 },
      { id: 'b', label: 'y', operation: 'CONST', shape: [1] },
    ],
    edges: [{ source: 'b', target: 'a', label: 'src 0' }],
  }
  const timeline = {
    buffers: [{ id: 5, name: 'a', size: 3, alloc_time_ms: 600604883.1, dealloc_time_ms: 600604884.25 }],
  }
  const CASES: Record<string, Uint8Array> = {
    'buffer-stats': encode(alloc(600604880.5, '93', 4096, 'a') + dealloc(600604884, '93')),
    'buffer-timeline': json(timeline),
    'memory-map': json({
      tensors: [{ name: 'blk.0.attn_q.weight', offset_start: 131072, offset_end: 147456, shape: [128], layer_id: 0 }],
    }),
    'ggml-graph': json(graph),
  }

  test.each(Object.entries(CASES))('%s: every prefix, every byte changed', async (_, companion) => {
    let traces = 0
    const attempt = async (bytes: Uint8Array, what: string) => {
      try {
        const faults = faultsOf(await joined(convert([input('log', log), input('companion', bytes)])))
        if (faults.length > 0) throw new Error(`${what}: ${faults.join('; ')}`)
        traces++
      } catch (error) {
        const { name, message } = error as Error
        if (name !== 'FormatError' && name !== 'UsageError') throw new Error(`${what}: ${message}`, { cause: error })
        expect(message).toMatch(/^companion: (?!.*undefined)/)
      }
    }
    for (let at = 0; at < companion.length; at++) {
      await attempt(companion.subarray(0, at), `cut to ${at} bytes`)
      for (const bits of [0xff, 1, 2, 0x10]) {
        const damaged = companion.slice()
        damaged[at]! ^= bits
        await attempt(damaged, `byte ${at} xor ${bits}`)
      }
    }
    expect(traces).toBeGreaterThan(companion.length / 2)
  })
})
