import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { beforeAll, expect, test } from '@jest/globals'
import { at, run, useFolder } from '../cli/helpers.ts'
import { ROOT } from '../root.ts'
import { Agent, type Answer, useAgents } from './helpers.ts'

/** Each log of the tests: the answers are those of the commands, within 4 KB, and the first finding is reached in three calls at most. */

useFolder()
useAgents()

const FIXTURES = ['examples', 'test/recorded', 'test/printed/logs', 'test/fixtures']
  .flatMap((room) =>
    readdirSync(join(ROOT, room), { recursive: true, encoding: 'utf8' }).map((name) => `${room}/${name}`),
  )
  .filter((path) => /\.(?:ggtrace|csv|json|jsonl|log|txt|bin|sqlite|ktrace|dat|data)(?:\.gz)?$/.test(path))
  .sort()

let agent: Agent

beforeAll(async () => {
  mkdirSync(at('logs'))
  for (const path of FIXTURES) {
    const name = at(`logs/${path.replaceAll('/', '_')}`)
    if (path.endsWith('.ggtrace.gz'))
      writeFileSync(name.replace(/\.gz$/, ''), gunzipSync(readFileSync(join(ROOT, path))))
    else copyFileSync(join(ROOT, path), name)
  }
  agent = await Agent.start('--folder', 'logs')
})

/** Follows the first call that each answer names, from `summary` on, to the first finding. */
async function callsToFinding(logs: readonly string[], first: Answer): Promise<number> {
  let answer = first
  for (let calls = 1; calls <= 3; calls++) {
    // A finding with its evidence, not only its name.
    if (answer.evidence.findings?.[0]?.evidence) return calls
    answer = await agent.follow(answer.next[0]!, { logs })
  }
  return Infinity
}

/** Logs that the commands refuse, or find nothing in, are asked about once in each folder: a command takes most of the time. */
const asked = new Set<string>()
const isFirst = (name: string) => {
  const folder = name.slice(0, name.lastIndexOf('_'))
  return !asked.has(folder) && asked.add(folder) !== undefined
}

test('the answers about each fixture are those of the commands', async () => {
  let [runs, withFindings] = [0, 0]
  for (const name of readdirSync(at('logs'))) {
    const logs = [name]
    const stats = run(['stats', name, '--json'], { cwd: at('logs') })
    const analysis = stats.code === 0 ? JSON.parse(stats.stdout) : undefined
    if (!analysis?.findings.length && !isFirst(name)) continue
    if (!analysis) {
      const error = stats.stderr.slice(stats.stderr.lastIndexOf('error: ')).trim()
      expect(await agent.error('summary', { logs })).toBe(error)
      continue
    }
    const summary = await agent.ask('summary', { logs })
    expect([name, summary.verdict, summary.evidence.verdict]).toEqual([
      name,
      analysis.verdict.sentence,
      analysis.verdict,
    ])
    const findings: unknown[] = []
    for (let from: number | undefined = 0; from !== undefined; ) {
      const why: Answer = await agent.ask('why', { logs, from })
      findings.push(...why.evidence.findings)
      from = why.evidence.findings.length > 0 && why.left ? findings.length : undefined
    }
    expect([name, findings]).toEqual([name, analysis.findings])
    const { evidence } = await agent.ask('stats', { logs })
    for (const [section, value] of Object.entries(evidence.value)) expect(value).toEqual(analysis[section])
    // Each answer takes a command: of each log one, in turn.
    const larger = evidence.larger as readonly { readonly section: string }[]
    const further = [{ by: ['role', 'op', 'phase'] }, ...larger.map(({ section }) => ({ section }))]
    await agent.ask('stats', { logs, ...further[runs % further.length] })
    runs++
    if (findings.length === 0) continue
    expect([name, await callsToFinding(logs, summary)]).toEqual([name, 2])
    withFindings++
  }
  expect([runs > 40, withFindings > 20]).toEqual([true, true])
})
