import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { expect, test } from '@jest/globals'
import { EXACT, fullLoad, type LoadKind, planLoad, runLoad } from '../llama/load.ts'
import { bundledServer, debianServer, startServer } from '../llama/server.ts'
import { fixture, readAnswers, recordedOf, writeAnswers } from './answers.ts'

/** The logs of servers in test/fixtures/server/, and their making: UPDATE_FIXTURES=1 records them again. */

const FEW: LoadKind[] = ['completion', 'closed', 'grammar', 'oversize', 'choices', 'embedding']
/** With -lv 5 a server logs several lines for each token. */
const few = () => planLoad({ requests: 6, kinds: FEW, slotTokens: 512, generated: 4 })
const LOGS = [
  { name: 'lv3.log', args: ['-lv', 3], load: () => fullLoad() },
  { name: 'lv4.log', args: ['-lv', 4], load: () => fullLoad(20) },
  { name: 'lv5.log', args: ['-lv', 5], load: few },
  { name: 'lv4.jsonl', args: ['-lv', 4, '--log-jsonl'], load: () => fullLoad(20) },
]
const SERVERS = { 'v0.5.0': () => bundledServer, 'v0.7.0': debianServer }

/** The recorded files, without the names of temporary folders. */
async function record(name: string, version: keyof typeof SERVERS, { args, load: plan }: (typeof LOGS)[number]) {
  const server = await startServer(SERVERS[version](), { ...EXACT, args: [...EXACT.args, ...args] })
  try {
    const load = plan()
    const answers = recordedOf(load, await runLoad(server, load))
    await server.stop()
    mkdirSync(fixture(''), { recursive: true })
    writeFileSync(fixture(name), server.output().replaceAll(/[\w/]*\/ggml2perfetto-server-\w+/g, '/models'))
    writeAnswers(name, answers)
  } finally {
    await server.remove()
  }
}

for (const version of Object.keys(SERVERS) as (keyof typeof SERVERS)[])
  for (const log of LOGS) {
    const name = `${version}-${log.name}`
    test(`${name}: has the figures of its answers`, async () => {
      if (process.env['UPDATE_FIXTURES']) await record(name, version, log)
      const text = readFileSync(fixture(name), 'utf8')
      const answers = readAnswers(name)
      expect(answers.map(({ kind, promptTokens }) => [kind, promptTokens])).toEqual(
        log.load().map(({ kind, promptTokens }) => [kind, promptTokens]),
      )
      const statuses = answers.map(({ kind, status }) => [kind, status])
      expect(statuses).toEqual(
        answers.map(({ kind }) => [kind, kind === 'oversize' ? 400 : kind === 'abandoned' ? -1 : 200]),
      )
      const complete = answers.filter(({ status, isClosed }) => status === 200 && !isClosed)
      const logged = [...text.matchAll(/ (prompt eval|eval) time = +([\d.]+) ms \/ +(\d+) tokens/g)]
      const has = (what: string, ms: number, tokens: number) =>
        logged.some(
          (found) => found[1] === what && Math.abs(Number(found[2]) - ms) < 0.006 && Number(found[3]) === tokens,
        )
      for (const { prompt_ms, prompt_n, predicted_ms, predicted_n } of complete.flatMap(({ timings }) => timings)) {
        const found = [has('prompt eval', prompt_ms, prompt_n), has('eval', predicted_ms, predicted_n)]
        expect([prompt_ms, predicted_ms, ...found]).toEqual([prompt_ms, predicted_ms, true, true])
      }
    })
  }
