import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { CLI } from '../cli/helpers.ts'

/** 100 000 requests that do not end, or overlap: V8 has this much for what is not garbage, MB. */
const LIVE_MAX = 80
const COUNT = 100_000

const timeAt = (line: number) => {
  const us = line * 50
  const part = (value: number) => String(Math.floor(value) % 1000).padStart(3, '0')
  return `${Math.floor(us / 60e6)}.${String(Math.floor(us / 1e6) % 60).padStart(2, '0')}.${part(us / 1000)}.${part(us)}`
}

const launch = (i: number) => `${timeAt(i)} I slot launch_slot_: id ${i} | task ${i} | processing task`

const post = (i: number) =>
  [
    `${timeAt(i)} D que          post: new task, id = ${i}, front = 0`,
    `${timeAt(i)} D srv  process_sing: no slot is available, defer task, id_task = ${i}`,
  ].join('\n')

const span = (i: number) => {
  const start = 1_780_000_000_000_000_000n + BigInt(i) * 1000n
  return JSON.stringify({
    ...{ traceId: String(i), spanId: String(i), name: 'llm_request', kind: 2 },
    ...{ startTimeUnixNano: String(start), endTimeUnixNano: String(start + 10n ** 12n) },
    attributes: [
      { key: 'gen_ai.usage.prompt_tokens', value: { intValue: '8' } },
      { key: 'gen_ai.latency.time_to_first_token', value: { doubleValue: 0.5 } },
    ],
  })
}

const many = (make: (i: number) => string, by: string) => Array.from({ length: COUNT }, (_, i) => make(i)).join(by)

const INPUTS: readonly (readonly [string, () => string])[] = [
  ['launches', () => `${many(launch, '\n')}\n`],
  ['tasks that wait', () => `${many(post, '\n')}\n`],
  ['spans', () => `{"resourceSpans":[{"scopeSpans":[{"spans":[${many(span, ',\n')}]}]}]}\n`],
]

describe.each(INPUTS)('100 000 open requests: %s', (_, make) => {
  let folder: string
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'open-requests-'))
    writeFileSync(join(folder, 'log'), make())
  })
  afterAll(() => rmSync(folder, { recursive: true }))

  test.each([
    ['stats', ['stats', 'log']],
    ['convert', ['log', '-o', 'trace.pftrace']],
  ])(`%s: no more than ${LIVE_MAX} MB are held`, (_, args) => {
    const run = spawnSync(process.execPath, [`--max-old-space-size=${LIVE_MAX}`, CLI, ...args], { cwd: folder })
    expect(run.status).toBe(0)
  })
})
