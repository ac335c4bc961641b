import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { missingParts } from '../../bin/summary.ts'
import { summarizeFile } from '../../lib/node.ts'
import { hasLlama, model, runHosts } from '../llama/testbed.ts'
import { NANO, newLog, RECORDER, type Steps, useRecorder } from './recording.ts'

/** Runs that end early: what is missing in their logs is missing for that reason. */

const llama = hasLlama() ? describe : describe.skip
const [SIGABRT, SIGKILL, SIGTERM] = [6, 9, 15]

llama('a log without a call', () => {
  useRecorder()

  async function missingAfter(...steps: Steps): Promise<readonly string[]> {
    const log = newLog()
    mkdirSync(dirname(log), { recursive: true })
    const { path } = await model(NANO)
    await runHosts(['load', 0, path, ...steps], { preload: RECORDER, env: { GGML2PERFETTO_OUT: log } })
    return missingParts(await summarizeFile(log))
  }

  const within = [
    expect.stringMatching(/^no call of llama\.cpp is complete in the log: the log ends before the first one,/),
  ]
  const before = ['no calls of llama.cpp: the log ends before the first one']

  test.each([SIGKILL, SIGTERM, SIGABRT])('signal %i: after loading, within a graph, within a call', async (signal) => {
    expect(await missingAfter('raise', signal)).toEqual(before)
    expect(await missingAfter('open', 0, 1, 'raise', signal)).toEqual(before)
    expect(await missingAfter('open', 0, 2, 'while', 0, 'attn_out-0', 'raise', signal, 'end')).toEqual(within)
    expect(await missingAfter('open', 0, 1, 'decode', 0, 2, 'while', 0, 'attn_out-0', 'raise', signal, 'end')).toEqual(
      [],
    )
  })

  test('the program loads, makes no call, and ends', async () => {
    expect(await missingAfter('open', 0, 1)).toEqual(['no calls of llama.cpp: the program ended before the first one'])
  })
})
