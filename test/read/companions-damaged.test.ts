import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { convert, summarize } from '../../lib/index.ts'
import { faultsOf } from '../line/hostile.ts'
import { joined, plainBytes } from '../line/support.ts'
import { inLong } from '../long.ts'
import { alloc, dealloc, encode, input, json } from './companion-files.ts'

/** Companions that are no JSON, too long, cut anywhere, or have any byte changed. */

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
    ['{"a\0b": 1}', 'byte 1 (0x1): expected a key or }, found "\\"a\\u0000b\\": 1}"'],
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

  inLong(test).each(Object.entries(CASES))('%s: every prefix, every byte changed', async (_, companion) => {
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
