import { gzipSync } from 'node:zlib'
import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { analyze, modelOf, readAnalysis } from '../../lib/analysis.ts'
import { summarize } from '../../lib/index.ts'
import { ggufFile } from '../analyze/model/gguf-file.ts'
import { plainBytes } from '../line/support.ts'
import { inLong } from '../long.ts'
import { fields, type Member, member, zip } from '../read/packed.ts'

/** Logs, models and Analyses in archives, also in each other: all of them, or a statement of what was read, in little memory and time. */

const LOG = plainBytes('ggtrace/tiny.ggtrace')
const utf8 = new TextEncoder()

const gzip = (content: Uint8Array) => new Uint8Array(gzipSync(content))
const log = (source: Uint8Array | AsyncIterable<Uint8Array>, name = 'x') => ({ name, source })

/** What the log is, and its issues. */
async function read(source: Uint8Array) {
  const { issues, inputs: _, ...summary } = (await summarize(log(source))) as unknown as Record<string, unknown>
  const codes = (issues as { code: string; first: { detail: string } }[]).map(({ code, first }) => [code, first.detail])
  return { codes, summary }
}

const { codes: none, summary: whole } = await read(LOG)

/** Ways to pack, of which each contains all of the content. */
const WAYS: Readonly<Record<string, (content: Uint8Array) => Uint8Array>> = {
  gzip,
  zip: (content) => zip({ content }),
  stored: (content) => zip({ content, method: 0 }),
  streamed: (content) => zip({ content, isStreamed: true }),
  'streamed and stored': (content) => zip({ content, isStreamed: true, method: 0 }),
  zip64: (content) => zip({ content, isLarge: true }),
  'zip64, streamed': (content) => zip({ content, isLarge: true, isStreamed: true }),
  'in a folder': (content) => zip({ name: 'a/', content: new Uint8Array(0), method: 0 }, { name: 'a/run', content }),
  'of macOS': (content) =>
    zip(
      { name: '__MACOSX/._run', content: utf8.encode('x'.repeat(300)) },
      { content },
      { name: '__MACOSX/b', content },
    ),
  'with odd names': (content) => zip({ name: '../../etc/\0pass\u202ewd\nerror: x', content }),
  'with a long name': (content) => zip({ name: 'n'.repeat(0xffff), content }),
}
const anyWays = (max: number) => fc.array(fc.constantFrom(...Object.keys(WAYS)), { minLength: 1, maxLength: max })
const packedBy = (ways: readonly string[], content: Uint8Array) =>
  ways.reduce((packed, way) => WAYS[way]!(packed), content)

/** Bytes in pieces that end at these places. */
async function* pieces(bytes: Uint8Array, cuts: readonly number[]) {
  let from = 0
  for (const end of [...new Set([...cuts.map((at) => at % bytes.length), bytes.length])].sort((a, b) => a - b)) {
    yield bytes.slice(from, end)
    from = end
  }
}

test.each(Object.keys(WAYS))('packed once is read: %s', async (way) => {
  expect(await read(packedBy([way], LOG))).toEqual({ codes: none, summary: whole })
})

test('packed up to four times, in any ways and pieces, is read', () =>
  fc.assert(
    fc.asyncProperty(anyWays(4), fc.array(fc.nat(1 << 20), { maxLength: 8 }), async (ways, cuts) => {
      const { issues } = await summarize(log(pieces(packedBy(ways, LOG), cuts)))
      expect([ways, issues]).toEqual([ways, []])
    }),
    { numRuns: 30 },
  ))

test('packed more often is refused with the reason', async () => {
  await expect(read(packedBy(Array(5).fill('gzip'), LOG))).rejects.toThrow(
    /^x: gzip: .*found it is packed more than 4 times\nhint: unpack it$/,
  )
})

test('a model and an Analysis in archives are read, too', async () => {
  const model = ggufFile({ metadata: { 'general.architecture': 'llama', 'llama.block_count': 2 } })
  const config = utf8.encode(
    '{"model_type":"llama","hidden_size":64,"num_hidden_layers":2,"num_attention_heads":4,"vocab_size":300}',
  )
  const analysis = await analyze(log(LOG))
  const text = utf8.encode(JSON.stringify(analysis))
  await fc.assert(
    // It must be known from the first bytes that are stored.
    fc.asyncProperty(
      anyWays(3).filter((ways) => !ways.includes('with a long name')),
      async (ways) => {
        const [gguf, json] = [model, config].map((bytes) => log(packedBy(ways, bytes)))
        expect((await modelOf(gguf!)).model.layers).toBe(2)
        expect((await modelOf(json!)).model.layers).toBe(2)
        expect((await analyze([log(LOG), gguf!])).model!.source).toBe('gguf')
        expect(await readAnalysis(log(packedBy(ways, text)))).toEqual(JSON.parse(JSON.stringify(analysis)))
      },
    ),
    { numRuns: 10 },
  )
})

describe('what is not read is stated', () => {
  const other = { name: 'b.txt', content: utf8.encode('x'.repeat(1000)) }

  test.each([
    ['one other file', [{ content: LOG }, other], '"run.ggtrace" is read, 1 other file not'],
    ['three', [{ content: LOG, isStreamed: true }, other, other, other], '"run.ggtrace" is read, 3 other files not'],
    [
      'in an archive',
      [{ name: 'a.zip', content: zip({ content: LOG }, other) }],
      '"a.zip/run.ggtrace" is read, 1 other file not',
    ],
    [
      '100 000',
      [{ content: LOG }, ...Array<Member>(100_000).fill({ name: 'b', content: Uint8Array.of(1), method: 0 })],
      /is read, (65 534|99 999|100 000) other files not/,
    ],
  ] as [string, Member[], string | RegExp][])('%s', async (_, members, detail) => {
    const { codes, summary } = await read(zip(...members))
    expect(codes).toEqual([...none, ['other-files', expect.stringMatching(detail)]])
    expect(summary).toEqual(whole)
  })

  test('of 100 000 empty files before the log, none', async () => {
    const empty = Array<Member>(100_000).fill({ name: 'a/', content: new Uint8Array(0), method: 0 })
    expect((await read(zip(...empty, { content: LOG }))).codes).toEqual(none)
  })

  test.each([
    ['encrypted', { content: LOG, flags: 1 }, 'found the file "run.ggtrace" is encrypted\nhint: unpack the archive'],
    ['by another method', { content: LOG, method: 93 }, '"run.ggtrace" is packed by method 93 of ZIP, not by deflate'],
    [
      'no log',
      { name: 'README.md', content: utf8.encode('# x') },
      'x: not a known format; its first file "README.md" begins with 23',
    ],
    [
      'an odd name',
      { name: '../\0\u202ea\nerror: b', content: utf8.encode('# x') },
      String.raw`its first file "../\u0000${'\u202e'}a\nerror: b" begins`,
    ],
  ] as [string, Member, string][])('%s', async (_, of, message) => {
    await expect(read(zip(of))).rejects.toThrow(message)
  })

  test.each([
    ['tar', Buffer.concat([Buffer.alloc(257), Buffer.from('ustar\0'), Buffer.alloc(300)])],
    ['zstd', Uint8Array.of(0x28, 0xb5, 0x2f, 0xfd, 0, 0)],
    ['xz', Uint8Array.of(0xfd, 0x37, 0x7a, 0x58, 0x5a, 0)],
    ['bzip2', utf8.encode('BZh91AY')],
  ])('%s, also in gzip', async (tool, bytes) => {
    for (const source of [bytes, gzip(bytes)])
      await expect(read(new Uint8Array(source))).rejects.toThrow(`hint: it is packed by ${tool}: unpack it first`)
  })
})

describe('damage', () => {
  test.each([
    ['a checksum', { checksum: 7 }, 'the file has another checksum than the archive states'],
    ['a size', { bytes: 7 }, 'the file has another size than the archive states'],
    ['a checksum behind the content', { checksum: 7, isStreamed: true }, 'another checksum'],
    ['a size of ZIP64', { bytes: 2 ** 52, isLarge: true }, 'another size'],
  ])('%s that is another one is an issue, and all is read', async (_, stated, detail) => {
    for (const method of [0, 8]) {
      const { codes, summary } = await read(zip({ content: LOG, method, ...stated }))
      expect(codes).toEqual([...none, ['broken-archive', expect.stringContaining(detail)]])
      expect(summary).toEqual(whole)
    }
  })

  test('a cut archive of any way, cut anywhere, is stated as such', () =>
    fc.assert(
      fc.asyncProperty(fc.constantFrom(...Object.keys(WAYS)), fc.nat(1 << 20), async (way, at) => {
        const packed = packedBy([way], LOG)
        const content = packedBy([way], new Uint8Array(0)).length
        const part = packed.subarray(0, at % (packed.length - content))
        const found = await read(part).then(
          ({ codes }) => codes.slice(none.length),
          (error: Error) => error.message,
        )
        expect([way, part.length, JSON.stringify(found)]).toEqual([
          ...[way, part.length],
          expect.stringMatching(/broken-(archive|gzip)|log that can be decompressed|is empty|not a known format/),
        ])
      }),
      { numRuns: 60 },
    ))

  test('sizes that are none take no memory and no time', async () => {
    for (const packedBytes of [0, 1, 0xfffffffe, 2 ** 52])
      for (const isLarge of [false, true])
        await read(zip({ content: LOG, packedBytes, isLarge })).catch(({ name }) => expect(name).toBe('FormatError'))
  })
})

describe('bombs end, in little memory', () => {
  const grown = async (work: () => Promise<unknown>) => {
    const before = process.memoryUsage().rss
    const started = process.cpuUsage()
    const result = await work()
    const seconds = process.cpuUsage(started).user / 1e6
    return { result, seconds, bytes: process.memoryUsage().rss - before }
  }
  const zeros = gzip(new Uint8Array(256 << 20))

  test('a log with zeros behind it, packed three times', async () => {
    const once = Buffer.concat([gzip(LOG), ...Array<Uint8Array>(64).fill(zeros)]) // 16 GiB of zeros
    const bomb = zip({ content: gzip(new Uint8Array(once)) })
    expect(bomb.length).toBeLessThan(1 << 20)
    const { result, seconds, bytes } = await grown(() => read(bomb))
    expect((result as { codes: unknown[] }).codes).toContainEqual([
      'broken-archive',
      expect.stringMatching(/bytes come out of each byte/),
    ])
    expect([seconds < 60, bytes < 700 << 20]).toEqual([true, true])
  })

  inLong(test)('an Analysis with spaces', async () => {
    const text = Buffer.from(JSON.stringify(await analyze(log(LOG))))
    const spaces = gzip(new Uint8Array(64 << 20).fill(0x20))
    const bomb = new Uint8Array(Buffer.concat([gzip(text.subarray(0, -1)), ...Array<Uint8Array>(16).fill(spaces)]))
    await expect(readAnalysis(log(bomb))).rejects.toThrow('x: expected an Analysis of at most 256 MiB, found more')
  })

  test('archives in archives, all alike', async () => {
    let bomb = zip({ name: '0', content: new Uint8Array(64 << 20) })
    for (let depth = 0; depth < 5; depth++)
      bomb = zip(...Array.from({ length: 16 }, (_, i) => ({ name: `${i}.zip`, content: bomb })))
    const { seconds } = await grown(() => expect(read(bomb)).rejects.toThrow('packed more than 4 times'))
    expect(seconds).toBeLessThan(20)
  })

  test('files that contain each other', async () => {
    // Each file contains the heads of the next ones as blocks that are not packed.
    let rest = member({ name: 'k', content: new Uint8Array(64 << 20) })
    for (let i = 0; i < 40; i++) {
      const packed = Buffer.concat([Buffer.from([0]), fields([2, 31], [2, 31 ^ 0xffff]), rest])
      const head = fields(
        ...([
          [4, 0x04034b50],
          [2, 20],
          [2, 0],
          [2, 8],
          [4, 0x21],
          [4, 0],
        ] as const),
        ...([
          [4, packed.length],
          [4, 64 << 20],
          [2, 1],
          [2, 0],
        ] as const),
      )
      rest = Buffer.concat([head, Buffer.from('a'), packed])
    }
    const { seconds } = await grown(() => expect(read(new Uint8Array(rest))).rejects.toThrow('x: '))
    expect(seconds).toBeLessThan(20)
  })
})
