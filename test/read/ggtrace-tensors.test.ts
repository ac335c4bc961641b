import { describe, expect, test } from '@jest/globals'
import { begun, read } from './ggtrace-logs.ts'

describe('tensors', () => {
  test('a tensor that names itself as a source, as ggml_cast does, has the other sources', async () => {
    const writer = begun()
    writer.type(0, 'f32')
    const input = writer.tensor({ name: 'k' })
    const own = input + 1
    expect(writer.tensor({ name: 'k (copy)', sources: [input, own] })).toBe(own)
    writer.thread(1, 0).operator({ tensor: own, startNs: 1, endNs: 2 })
    writer.end(10)
    const { issues, of, names } = await read(writer.take())
    expect(issues).toEqual([])
    expect(of('tensor').map(({ name, sources }) => [names.text(name), sources])).toEqual([
      ['k', []],
      ['k (copy)', [0]],
    ])
  })

  test('weights that were copied have their place in the file, in the buffer that they were copied to', async () => {
    const writer = begun()
    writer.type(0, 'f32')
    const [mine, other] = ['GPU0', 'GPU1'].map((name) => writer.buffer({ name, base: 0x1000, sizeBytes: 4096 }))
    writer.mapping({ file: 'm.gguf', buffer: mine!, address: 0x1100, sizeBytes: 64, fileOffset: 7000 })
    for (const buffer of [mine!, other!]) {
      writer.tensor({ name: 'blk.0.ffn_up.weight', address: 0x1100, sizeBytes: 64, buffer })
    }
    writer.end(100)
    const { of, issues } = await read(writer.take())
    expect(issues).toEqual([])
    const labels = new Map(of('buffer').map(({ id, label }) => [id, label]))
    expect(of('tensor').map(({ buffer, offset }) => [labels.get(buffer), offset])).toEqual([
      ['GPU0, 4096 bytes at 0x1000, copied from m.gguf', 7000],
      ['GPU1, 4096 bytes at 0x1000', 0x100],
    ])
  })
})
