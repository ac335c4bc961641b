import { spawnSync } from 'node:child_process'
import { copyFileSync } from 'node:fs'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { type Analysis, analyze } from '../../lib/index.ts'
import { inputOf } from '../../lib/node.ts'
import { expectChecks } from '../analyze/findings/made-run.ts'
import { bundledServer, PREPARE_MS, startServer } from '../llama/server.ts'
import { inFolder, RECORDER, useRecorder } from '../native/recording.ts'
import { sameRequests, traceOf } from '../query/same-figures.ts'
import { longPrompt, MISSED_AT, missedPrefix, type Scene, slowGrammar } from './scenes.ts'
import '../live.ts'

/** Real llama-servers whose answers are slow on purpose: the reason is the first finding. */

/** Before all other programs: what else runs takes none of its CPUs. */
const isFirst = process.getuid?.() === 0 && spawnSync('chrt', ['-f', '1', 'true']).status === 0
const SOURCE = { ...bundledServer, before: isFirst ? ['chrt', '-f', '1'] : [] }

const real = bundledServer.problem === undefined ? describe : describe.skip

real(`the first finding of a server (${bundledServer.problem ?? 'real'})`, () => {
  beforeAll(bundledServer.prepare, PREPARE_MS)
  useRecorder()

  async function played(name: string, { server: options, play }: Scene): Promise<Analysis> {
    const server = await startServer(SOURCE, { ...options, recorder: RECORDER })
    const log = inFolder(`${name}.ggtrace`)
    try {
      await play(server)
      expect(await server.stop()).toBe(0)
      copyFileSync(server.log, log)
    } finally {
      await server.remove()
    }
    const analysis = await analyze(inputOf(log), { series: ['requests'] })
    await expectChecks(analysis, inputOf(log))
    const trace = await traceOf(inputOf(log))
    sameRequests(analysis, trace)
    trace.close()
    return analysis
  }

  test('a prompt of 2 000 tokens beside answers: who stalls whom', async () => {
    const { findings, requests } = await played('stalled', longPrompt)
    const { prefill_tokens, share } = requests!.stalls.pairs[0]!
    expect(prefill_tokens).toBe(2000)
    expect(findings[0]).toMatchObject({ rule: 'request-stalled' })
    expect(findings[0]!.sentence).toMatch(
      /^task \d+ waited .* of its latency\) while 2 000 tokens of the prompt of task \d+ were processed$/,
    )
    expect(share).toBeGreaterThan(0.3)
  })

  test('a prompt that differs in one token from the one before', async () => {
    const { findings } = await played('again', missedPrefix)
    expect(findings[0]).toMatchObject({
      rule: 'prompt-processed-again',
      evidence: { position: MISSED_AT, prompt_tokens: 2001, processed_again: 2001 - MISSED_AT },
    })
  })

  test('a slow grammar', async () => {
    const { findings } = await played('grammar', slowGrammar)
    expect(findings[0]).toMatchObject({ rule: 'slow-grammar' })
  })
})
