import { describe, expect, test } from '@jest/globals'
import { convert, FORMATS } from '../../lib/index.ts'
import { sniffFormat } from '../../lib/read/index.ts'
import { joined, plainBytes } from '../line/support.ts'
import { alloc, encode, input, json, rowsOf } from './companion-files.ts'

/** A log with its companions, as one conversion. */

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
      'memory-map.holds': '1 weight',
      'memory-map.issues': 0,
    })
  })

  test('without a log there is nothing to draw', async () => {
    await expect(joined(convert(input('map', map)))).rejects.toThrow(
      /^map: contains nothing to draw: memory-map adds to a log\nhint: give the log of the same run, too$/,
    )
  })

  test('strict stops at an issue of a companion', async () => {
    const inputs = [input('log', log), input('stats', encode(`${alloc(1, '1', 1, 'a')}{\n`))]
    await expect(joined(convert(inputs, { strict: true }))).rejects.toThrow(
      /^stats: buffer-stats: line 2, .*no issues \(strict\), found unusable entry of a companion/,
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
    // Nsight Compute's CSV has tests of its own.
    const isOurs = ({ isCompanion, name }: (typeof FORMATS)[number]) => isCompanion && name !== 'ncu'
    const companions = FORMATS.filter(isOurs).map(({ name }) => name)
    expect(companions).toEqual(['buffer-stats', 'buffer-timeline', 'memory-map', 'ggml-graph'])
    expect(
      [
        stats,
        json({ metadata: { peak_occupancy_bytes: 1 }, buffers: [] }),
        map,
        json({ metadata: { total_nodes: 1, total_edges: 0 }, nodes: [], edges: [] }),
      ].map((head) => sniffFormat(head)?.name),
    ).toEqual(companions)
    for (const text of ['{}', '{"tensors": 1}', '[]']) expect(sniffFormat(encode(text))).toBeUndefined()
    expect(sniffFormat(encode('{"traceEvents": [{"name": "alloc"}]}'))?.name).toBe('chrome-json')
  })
})
