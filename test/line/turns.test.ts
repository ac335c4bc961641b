import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, test } from '@jest/globals'
import {
  analyze,
  convert,
  type Input,
  inspect,
  type LogInput,
  type Progress,
  summarize,
  type TraceEvent,
} from '../../lib/index.ts'
import { plainBytes } from './support.ts'

/** Events between two turns of the event loop, at most: those of a batch come on top. */
const EVENTS_MAX = 1 << 14
const BATCH = 1000

/** Collects garbage: what nothing refers to is gone. */
setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

const LOG = plainBytes('tensor-trace/moe-2threads.bin.gz')

/** Events that a program makes; `made` counts them. */
function source(batches: number, made: { events: number }): Input {
  return {
    name: 'own',
    *events(names): Generator<TraceEvent[]> {
      yield [{ kind: 'input', format: 'own', clock: 'MONOTONIC', originNs: 1n, attributes: {} }]
      const name = names.id('work')
      for (let i = 0; i < batches; i++) {
        made.events += BATCH
        yield Array.from({ length: BATCH }, (_, j): TraceEvent => {
          const edge = j % 2 === 0 ? 'begin' : 'end'
          return { kind: 'range', edge, tid: 1, name: j % 2 === 0 ? name : 0, atNs: (i * BATCH + j) * 10 }
        })
      }
    },
  }
}

/** What runs, with the most events between two turns, and the number of turns. */
async function watched(run: (input: Input) => Promise<unknown>): Promise<{ most: number; turns: number }> {
  const made = { events: 0 }
  let [before, most, turns, isOver] = [0, 0, 0, false]
  const tick = () => {
    most = Math.max(most, made.events - before)
    before = made.events
    turns++
    if (!isOver) setImmediate(tick)
  }
  setImmediate(tick)
  await run(source(200, made))
  isOver = true
  return { most: Math.max(most, made.events - before), turns }
}

async function drained(input: Input, options = {}): Promise<void> {
  for await (const _ of convert(input, options));
}

/** Bytes in pieces, of which one never comes. */
const stalled = (): LogInput => ({
  name: 'stalled',
  source: (async function* () {
    yield LOG.subarray(0, 100_000)
    await new Promise(() => {})
  })(),
})

describe('turns of the event loop', () => {
  test.each([
    ['convert', (input: Input) => drained(input)],
    ['summarize', (input: Input) => summarize(input)],
    ['analyze', (input: Input) => analyze(input)],
  ])('%s: between two of them is a bounded number of events', async (_, run) => {
    const { most, turns } = await watched(run)
    expect(most).toBeLessThanOrEqual(EVENTS_MAX + BATCH)
    expect(turns).toBeGreaterThan((200 * BATCH) / (EVENTS_MAX + BATCH) - 1)
  })
})

describe('a signal', () => {
  test('stops what waits for bytes that do not come, with its reason', async () => {
    const controller = new AbortController()
    const running = drained(stalled(), { signal: controller.signal })
    setTimeout(() => controller.abort(new Error('enough')), 20)
    await expect(running).rejects.toThrow('enough')
    const summary = summarize(stalled(), { signal: AbortSignal.timeout(20) })
    await expect(summary).rejects.toMatchObject({ name: 'TimeoutError' })
  })

  test('stops what inspects, also after the first bytes are known', async () => {
    const none = (async function* (): AsyncGenerator<Uint8Array> {
      await new Promise(() => {})
    })()
    await expect(inspect(none, { signal: AbortSignal.timeout(20) })).rejects.toMatchObject({ name: 'TimeoutError' })
    const controller = new AbortController()
    const { source } = await inspect(stalled().source, { signal: controller.signal })
    controller.abort()
    const read = async () => {
      for await (const _ of source);
    }
    await expect(read()).rejects.toMatchObject({ name: 'AbortError' })
  })

  test('that is aborted before: nothing is read', async () => {
    const made = { events: 0 }
    const signal = AbortSignal.abort()
    await expect(drained(source(5, made), { signal })).rejects.toMatchObject({ name: 'AbortError' })
    expect(made.events).toBe(0)
  })

  test('stops long work', async () => {
    const made = { events: 0 }
    const controller = new AbortController()
    const running = drained(source(1000, made), { signal: controller.signal })
    setImmediate(() => controller.abort())
    await expect(running).rejects.toMatchObject({ name: 'AbortError' })
    expect(made.events).toBeLessThan(1000 * BATCH)
  })

  test('return() ends the step that runs', async () => {
    const trace = convert(stalled())
    const pending = trace.next()
    await expect(trace.return([])).resolves.toMatchObject({ done: true })
    await expect(pending).resolves.toMatchObject({ done: true })
  })
})

describe('progress', () => {
  test.each([
    ['once', {}, LOG.length],
    ['twice', { budget: 60_000 }, 2 * LOG.length],
  ])('of a log that is read %s only grows, up to all bytes', async (_, options, all) => {
    const steps: Progress[] = []
    await drained({ name: 'log', source: LOG }, { ...options, onProgress: (step: Progress) => steps.push(step) })
    const read = steps.map((step) => step.read)
    expect(read).toEqual([...read].sort((a, b) => a - b))
    expect(steps.at(-1)).toEqual({ phase: 'reading', read: all, total: all })
    expect(steps.some(({ phase }) => phase === 'first-reading')).toBe(all > LOG.length)
  })
})

test('progress of an inspected input counts what is read of it afterwards', async () => {
  const steps: Progress[] = []
  const { kind, source } = await inspect([LOG.subarray(0, 90_000), LOG.subarray(90_000)], {
    onProgress: (step) => steps.push(step),
  })
  expect([kind, steps.at(-1)]).toEqual(['log', { phase: 'reading', read: 90_000, total: undefined }])
  let bytes = 0
  for await (const chunk of source) bytes += chunk.length
  expect(steps.at(-1)!.read).toBe(bytes)
  expect((await inspect(new Blob([LOG as Uint8Array<ArrayBuffer>]))).kind).toBe('log')
})

describe('memory', () => {
  test.each([
    ['without a signal', undefined],
    ['with a signal', new AbortController().signal],
  ])('chunks that were read are not held, %s', async (_, signal) => {
    const chunks: WeakRef<Uint8Array>[] = []
    let most = 0
    const held = () => chunks.filter((chunk) => chunk.deref() !== undefined).length
    const source = (async function* () {
      yield new TextEncoder().encode('{"traceEvents":[{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":1}')
      for (let i = 0; i < 200; i++) {
        const chunk = new Uint8Array(1 << 16).fill(0x20)
        chunks.push(new WeakRef(chunk))
        yield chunk
        if (i % 50 !== 49) continue
        await new Promise((resolve) => setTimeout(resolve))
        collect()
        most = Math.max(most, held())
      }
      yield new TextEncoder().encode(']}')
    })()
    await drained({ name: 'padded', source }, { signal })
    expect(most).toBeGreaterThan(0)
    expect(most).toBeLessThan(20)
  })
})
