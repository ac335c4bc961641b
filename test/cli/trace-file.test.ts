import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { afterAll, expect, test } from '@jest/globals'
import { keptTrace } from '../../bin/trace-file.ts'

const folder = mkdtempSync(join(tmpdir(), 'ggml2perfetto-kept-'))

afterAll(() => rmSync(folder, { recursive: true }))

async function* pieces() {
  for (const byte of [1, 2, 3]) yield new Uint8Array(100_000).fill(byte)
  return 'made'
}

test('a trace that open keeps has a name in no turn of the event loop: a signal ends the process between two', async () => {
  const seen: string[] = []
  for (let i = 0; i < 20; i++) {
    let isDone = false
    const kept = keptTrace('run', pieces(), folder).finally(() => {
      isDone = true
    })
    while (!isDone) {
      seen.push(...readdirSync(folder))
      await turn()
    }
    const { trace, result } = await kept
    expect([trace.bytes, result]).toEqual([300_000, 'made'])
    const read: Buffer[] = []
    for await (const piece of trace.read()) read.push(piece as Buffer)
    expect([0, 150_000, 299_999].map((at) => Buffer.concat(read)[at])).toEqual([1, 2, 3])
  }
  expect(seen).toEqual([])
})
