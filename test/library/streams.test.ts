import { execFileSync, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  createReadStream,
  createWriteStream,
  mkdtempSync,
  openAsBlob,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGzip, gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { type ByteSource, convert, gzip, type Input, summarize, type TraceEvent, toWebStream } from '../../lib/index.ts'
import { checkTrace, convertFile, openTrace } from '../../lib/node.ts'
import { converted, cut, joined, pathOf, plainBytes } from '../line/support.ts'

/** Bytes in and out, in all the kinds of streams there are. */

const ZIPPED = pathOf('tensor-trace/moe-2threads.bin.gz')
const LOG = plainBytes('tensor-trace/moe-2threads.bin.gz')
const input = (source: ByteSource): Input => ({ name: 'log', source })

let expected: Uint8Array
let folder: string
beforeAll(async () => {
  expected = await converted(LOG)
  folder = mkdtempSync(join(tmpdir(), 'ggml2perfetto-streams-'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** A web stream as browsers without async iteration have it (Safari). */
function plainWebStream(bytes: Uint8Array) {
  const stream = new ReadableStream<Uint8Array>({
    start(controller) {
      for (let at = 0; at < bytes.length; at += 10_000) controller.enqueue(bytes.slice(at, at + 10_000))
      controller.close()
    },
  })
  return { getReader: () => stream.getReader() }
}

const SOURCES: Readonly<Record<string, () => ByteSource | Promise<ByteSource>>> = {
  'a Uint8Array': () => LOG,
  'an ArrayBuffer': () => LOG.slice().buffer as ArrayBuffer,
  'an array of pieces': () => [LOG.subarray(0, 3), LOG.subarray(3)],
  'an async generator': () => cut(LOG, 100_000),
  "Node's Readable": () => createReadStream(ZIPPED),
  "Node's transform": () => Readable.from([LOG]).pipe(createGzip()),
  'a web stream': () => new Blob([LOG as Uint8Array<ArrayBuffer>]).stream(),
  'a web stream that cannot be iterated': () => plainWebStream(LOG),
  'a Blob': () => new Blob([LOG as Uint8Array<ArrayBuffer>]),
  'a File': () => new File([LOG as Uint8Array<ArrayBuffer>], 'run.bin'),
  'a file as a Blob': () => openAsBlob(ZIPPED),
  'a Response': () => new Response(LOG as Uint8Array<ArrayBuffer>),
  'a Request': () => new Request('http://localhost', { method: 'POST', body: LOG as Uint8Array<ArrayBuffer> }),
}

describe('inputs', () => {
  test.each(Object.keys(SOURCES))('%s', async (kind) => {
    const trace = await converted(await SOURCES[kind]!())
    expect(Buffer.from(trace).equals(expected)).toBe(true)
  })

  test("a server's request, even where a framework put a body on it", async () => {
    const server = createServer(async (request, response) => {
      Object.assign(request, { body: {} })
      await pipeline(convert(input(request)), response)
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const body = readFileSync(ZIPPED)
    const response = await fetch(`http://127.0.0.1:${port}`, { method: 'POST', body })
    expect(Buffer.from(await response.arrayBuffer()).equals(expected)).toBe(true)
    server.close()
  })

  test('a stream is cancelled where reading stops early', async () => {
    let isCancelled = false
    const open = new ReadableStream<Uint8Array>({
      pull: (controller) => controller.enqueue(LOG.slice(0, 300_000)),
      cancel() {
        isCancelled = true
      },
    })
    for await (const _ of convert(input({ getReader: () => open.getReader() }))) break
    expect(isCancelled).toBe(true)
  })

  test.each<[string, unknown, string]>([
    ['a text', 'a,b\n', 'log: expected bytes, a stream, a Blob or a Response, found a string'],
    ['nothing', undefined, 'log: expected bytes, a stream, a Blob or a Response, found undefined'],
    ['null', null, 'found null'],
    ['an object', { path: 'x' }, 'found Object'],
    ['chunks of text', ['a,b\n'], 'log: expected chunks of bytes (Uint8Array), found a string'],
    ['a stream of text', createReadStream(ZIPPED, 'latin1'), '(Uint8Array), found a string'],
    ['other numbers', [new Float64Array(4)], 'log: expected chunks of bytes (Uint8Array), found Float64Array'],
    [
      'a failed request',
      new Response('no', { status: 404, statusText: 'Not Found' }),
      'log: the request failed: HTTP 404 Not Found',
    ],
    ['a response without body', new Response(null), 'log: the input is empty (0 bytes)'],
  ])('%s is refused in words', async (_, source, message) => {
    await expect(summarize(input(source as ByteSource))).rejects.toThrow(message)
  })
})

describe('outputs', () => {
  test("a file, through Node's pipeline", async () => {
    const path = join(folder, 'piped.pftrace')
    await pipeline(convert(input(createReadStream(ZIPPED))), createWriteStream(path))
    expect(readFileSync(path).equals(expected)).toBe(true)
  })

  test('a web stream, as the body of a Response', async () => {
    const response = new Response(toWebStream(convert(input(LOG))))
    expect(Buffer.from(await response.arrayBuffer()).equals(expected)).toBe(true)
  })

  test('a web stream has the summaries, too; none where it is cancelled', async () => {
    const stream = toWebStream(convert(input(LOG)))
    const response = new Response(stream)
    expect((await response.arrayBuffer()).byteLength).toBe(expected.length)
    expect((await stream.result)?.[0]).toEqual(await summarize(input(LOG)))
    const cancelled = toWebStream(convert(input(LOG)))
    await cancelled.cancel()
    await expect(cancelled.result).resolves.toBeUndefined()
  })

  test('a web stream fails with the error of the conversion, and ends it when cancelled', async () => {
    const failing = toWebStream(convert(input(new Uint8Array(20))))
    await expect(failing.getReader().read()).rejects.toMatchObject({ name: 'UsageError' })
    await expect(failing.result).rejects.toMatchObject({ name: 'UsageError' })
    let isCancelled = false
    const endless = new ReadableStream<Uint8Array>({
      pull: (controller) => controller.enqueue(LOG),
      cancel() {
        isCancelled = true
      },
    })
    const reader = toWebStream(convert(input(endless))).getReader()
    await reader.read()
    await reader.cancel()
    expect(isCancelled).toBe(true)
  })
})

describe('a conversion to a file that is aborted leaves nothing', () => {
  const lateSignal = () => {
    const controller = new AbortController()
    return { signal: controller.signal, onProgress: () => controller.abort() }
  }
  test.each([
    ['before it begins', 'run.pftrace', () => ({ signal: AbortSignal.abort() })],
    ['while it reads', 'run.pftrace', lateSignal],
    ['while it reads, compressed', 'run.pftrace.gz', lateSignal],
    ['while it reads a second time', 'run.json', () => ({ ...lateSignal(), budget: 60_000 })],
    ['while it reads, as an archive', 'run.zip', () => ({ ...lateSignal(), bundle: input(LOG) })],
  ])('%s (%s)', async (_, name, optionsOf) => {
    const own = mkdtempSync(join(folder, 'aborted-'))
    writeFileSync(join(own, name), 'older')
    const running = convertFile(ZIPPED, join(own, name), optionsOf())
    await expect(running).rejects.toMatchObject({ name: 'AbortError' })
    expect(readdirSync(own)).toEqual([name])
    expect(readFileSync(join(own, name), 'latin1')).toBe('older')
  })
})

describe('inputs that were begun', () => {
  /** Batches of an input, whose end is noted. */
  const begun = (clock: 'MONOTONIC' | 'unknown', ended: string[]) => ({
    name: clock,
    async *events(): AsyncGenerator<TraceEvent[]> {
      try {
        yield [{ kind: 'input', format: 'test', clock, originNs: 0n, attributes: {} }]
        for (let i = 0; ; i++) yield [{ kind: 'counter', name: 0, unit: 'count', atNs: i, value: i }]
      } finally {
        ended.push(clock)
      }
    },
  })

  test('are ended where another input cannot be joined with them', async () => {
    const ended: string[] = []
    const inputs = [begun('MONOTONIC', ended), { name: 'none.csv', source: new Uint8Array(20) }]
    await expect(joined(convert(inputs))).rejects.toMatchObject({ name: 'UsageError' })
    const clocks = { MONOTONIC: '+1ms' }
    await expect(joined(convert(begun('MONOTONIC', ended), { clocks }))).rejects.toMatchObject({ name: 'UsageError' })
    expect(ended).toEqual(['MONOTONIC'])
  })

  test('are ended where nobody reads the trace to its end', async () => {
    const ended: string[] = []
    for await (const _ of convert([begun('MONOTONIC', ended), { ...begun('MONOTONIC', ended), name: 'second' }])) break
    expect(ended).toEqual(['MONOTONIC', 'MONOTONIC'])
  })

  test('are as many as are given: Node warns of no listeners', () => {
    const program = `
      import { readFileSync } from 'node:fs'
      import { convert } from '${new URL('../../dist/index.js', import.meta.url)}'
      const source = new Blob([readFileSync('${pathOf('power/nvidia-smi.csv')}'), ' '.repeat(300_000)])
      const inputs = Array.from({ length: 12 }, (_, i) => ({ name: 'power-' + i + '.csv', source }))
      const clocks = Object.fromEntries(inputs.slice(1).map(({ name }) => [name, '+0s']))
      let bytes = 0
      for await (const piece of convert(inputs, { clocks })) bytes += piece.length
      console.log(bytes > 0)`
    const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', program], { encoding: 'utf8' })
    expect([stdout, stderr]).toEqual(['true\n', ''])
  })
})

test('work between two turns of the event loop is at most so many events', async () => {
  const [BATCH, TURN] = [1000, 1 << 14]
  let [sinceTurn, most, count] = [0, 0, 0]
  let isDone = false
  const turn = () => {
    sinceTurn = 0
    if (!isDone) setImmediate(turn)
  }
  setImmediate(turn)
  const instants: TraceEvent[] = Array.from({ length: BATCH }, (_, i) => ({
    kind: 'own-instant',
    track: 0,
    name: 1,
    atNs: i,
  }))
  const events = function* (): Generator<TraceEvent[]> {
    yield [
      { kind: 'input', format: 'mine', clock: 'MONOTONIC', originNs: 0n, attributes: {} },
      { kind: 'own-track', id: 0, name: 'instants', description: '' },
    ]
    for (; count < 300 * BATCH; count += BATCH) {
      sinceTurn += BATCH
      most = Math.max(most, sinceTurn)
      yield instants
    }
  }
  for await (const _ of convert({ name: 'instants', events }));
  isDone = true
  expect(count).toBe(300 * BATCH)
  expect(most).toBeLessThanOrEqual(TURN + BATCH)
})

describe('gzip', () => {
  test('gives the same trace, compressed, and the summaries', async () => {
    const pieces = gzip(convert(input(LOG)))
    const all: Uint8Array[] = []
    let next = await pieces.next()
    for (; !next.done; next = await pieces.next()) all.push(next.value)
    const zipped = Buffer.concat(all)
    expect(gunzipSync(zipped).equals(expected)).toBe(true)
    expect(zipped.length * 3).toBeLessThan(expected.length)
    expect(next.value[0]!.operators).toBeGreaterThan(1000)
  })

  test('throws what the conversion throws, and ends it where nobody reads on', async () => {
    await expect(joined(gzip(convert(input(new Uint8Array(20)))))).rejects.toMatchObject({ name: 'UsageError' })
    let isEnded = false
    async function* endless(): AsyncGenerator<Uint8Array, void> {
      try {
        for (;;) yield LOG
      } finally {
        isEnded = true
      }
    }
    for await (const _ of gzip(endless())) break
    expect(isEnded).toBe(true)
  })

  test('a file whose name ends in .gz is compressed; trace_processor and check read it as it is', async () => {
    const path = join(folder, 'run.pftrace.gz')
    const { bytes } = await convertFile(ZIPPED, path)
    expect(readFileSync(path).length).toBe(bytes)
    expect(gunzipSync(readFileSync(path)).equals(expected)).toBe(true)
    const checked = await checkTrace(path)
    expect({ ...checked.walk, problems: checked.problems }).toMatchObject({ bytes: expected.length, problems: [] })
    const [zipped, plain] = [await openTrace(path), await openTrace(expected)]
    const sql = 'select count(*), sum(dur) from slice'
    expect(zipped.query(sql).rows).toEqual(plain.query(sql).rows)
    zipped.close()
    plain.close()
    execFileSync('gzip', ['-t', path])
  })

  test('a log that was packed in several parts, one after the other, is read to its end', async () => {
    const parts = [LOG.subarray(0, 500_000), LOG.subarray(500_000)].map((part) => execFileSync('gzip', { input: part }))
    expect(Buffer.from(await converted(Buffer.concat(parts))).equals(expected)).toBe(true)
  })
})
