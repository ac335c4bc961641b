import { createReadStream, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from '@jest/globals'
import type { Progress, Summary } from '../../lib/index.ts'
import { fileSource } from '../../lib/node.ts'
import type * as Entry from '../../lib/worker.ts'
import { converted, joined, plainBytes } from '../line/support.ts'
import { ROOT } from '../root.ts'

/** Conversions in a worker, by the package as it is built: what it makes is compared, byte by byte, with what this thread makes. */

const LOG = plainBytes('tensor-trace/moe-2threads.bin.gz')
const PATH = join(ROOT, 'test/fixtures/tensor-trace/moe-2threads.bin.gz')
const log = (source: Entry.LogInput['source']) => ({ name: 'log', source })

let worker: typeof Entry
let expected: Uint8Array
beforeAll(async () => {
  worker = await import(join(ROOT, 'dist/worker.js'))
  expected = await converted(LOG)
})

const errorOf = (running: Promise<unknown>) =>
  running.then(
    () => undefined,
    (error: unknown) => error as Error,
  )

/** Bytes in pieces; `seen` counts those that were read, and whether the stream was ended. */
async function* pieces(seen: { read: number; isEnded: boolean }, most = Infinity): AsyncGenerator<Uint8Array, void> {
  try {
    for (let at = 0; at < LOG.length && seen.read < most; at += 10_000) {
      seen.read++
      yield LOG.subarray(at, at + 10_000)
    }
    if (most < Infinity) await new Promise(() => {})
  } finally {
    seen.isEnded = true
  }
}

describe('in a worker', () => {
  test.each<[string, () => Entry.LogInput['source']]>([
    ['bytes', () => LOG],
    ['a Blob', () => new Blob([LOG as Uint8Array<ArrayBuffer>])],
    ['a stream of Node', () => createReadStream(PATH)],
    ['a file, of which any part can be read', () => fileSource(PATH)],
    ['pieces', () => pieces({ read: 0, isEnded: false })],
  ])('%s become the same trace', async (_, source) => {
    const trace = worker.convertInWorker(log(source()))
    const all: Uint8Array[] = []
    let next = await trace.next()
    for (; !next.done; next = await trace.next()) all.push(next.value)
    expect(Buffer.concat(all).equals(expected)).toBe(true)
    expect((next.value as Summary[]).map(({ format, operators }) => [format, operators > 0])).toEqual([
      ['tensor-trace', true],
    ])
    expect(LOG.length).toBeGreaterThan(100_000) // it is still here
  })

  test('progress is reported, and options hold', async () => {
    const steps: Progress[] = []
    const options = { to: 'json', onProgress: (step: Progress) => steps.push(step) } as const
    const trace = await joined(worker.convertInWorker(log(LOG), options))
    expect(Buffer.from(trace).equals(Buffer.from(await converted(LOG, { to: 'json' })))).toBe(true)
    expect(steps.at(-1)).toMatchObject({ read: LOG.length, total: LOG.length })
  })

  test('errors have their fields; those of a source are the source’s', async () => {
    const wrong = await errorOf(joined(worker.convertInWorker(log(new Uint8Array([1, 2, 3])), { from: 'ggtrace' })))
    expect(wrong).toMatchObject({
      name: 'FormatError',
      format: 'ggtrace',
      input: 'log',
      at: { byte: expect.any(Number) },
    })
    const broken = (async function* () {
      yield LOG.subarray(0, 50_000)
      throw new Error('the disk is gone')
    })()
    expect(await errorOf(joined(worker.convertInWorker(log(broken))))).toMatchObject({ message: 'the disk is gone' })
    const option = worker.convertInWorker.bind(undefined, log(LOG), { formats: [] } as Entry.WorkerOptions)
    expect(option).toThrow(/no option is called "formats"/)
    const events = { name: 'own', events: () => [] } as unknown as Entry.LogInput
    expect(await errorOf(joined(worker.convertInWorker(events)))).toMatchObject({
      message: expect.stringMatching(/events of programs cannot be posted/),
    })
    const missing = () => {
      throw new Error('no file')
    }
    expect(await errorOf(joined(worker.convertInWorker(log(LOG), { worker: missing })))).toMatchObject({
      message: 'no file',
    })
  })

  test('a signal ends it while its source gives nothing', async () => {
    const seen = { read: 0, isEnded: false }
    const controller = new AbortController()
    const running = joined(worker.convertInWorker(log(pieces(seen, 3)), { signal: controller.signal }))
    while (seen.read < 3) await new Promise((resolve) => setTimeout(resolve, 5))
    controller.abort(new Error('enough'))
    expect(await errorOf(running)).toMatchObject({ message: 'enough' })
  })

  test('where nobody takes the trace, the source is not read on, and is ended', async () => {
    const seen = { read: 0, isEnded: false }
    const endless = (async function* () {
      try {
        const rows = readFileSync(join(ROOT, 'examples/moe.csv'))
        yield rows
        for (; ; seen.read++) yield rows.subarray(rows.indexOf('\n') + 1)
      } finally {
        seen.isEnded = true
      }
    })()
    const trace = worker.convertInWorker(log(endless))
    await trace.next()
    for (let before = -1; before !== seen.read; await new Promise((resolve) => setTimeout(resolve, 300)))
      before = seen.read
    await trace.return([])
    while (!seen.isEnded) await new Promise((resolve) => setTimeout(resolve, 5)) // or the test's limit ends it
  })
})
