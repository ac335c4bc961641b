/** What a coding agent gets of a log by the MCP server (docs/reference/mcp.md), compared with what the commands print. */
import { basename } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { at, CLI } from './bench-folder.mjs'
import { run } from './look.mjs'

const ANSWER_BYTES = 4096
const CALLS_MAX = 3
const TIMEOUT_MS = 120_000

/** Starts the server with a client; `end` ends both. */
export async function startAgent(folder) {
  const client = new Client({ name: 'diagnosis', version: '1' })
  const args = [at('dist/ggml2perfetto-mcp.js'), '--folder', folder]
  await client.connect(new StdioClientTransport({ command: process.execPath, args, cwd: folder }))
  const ask = async (name, given) => {
    const { isError, content } = await client.callTool({ name, arguments: given }, { timeout: TIMEOUT_MS })
    const { text } = content[0]
    if (isError) throw new Error(`${name}: ${text}`)
    if (Buffer.byteLength(text) > ANSWER_BYTES) throw new Error(`${name}: ${Buffer.byteLength(text)} bytes`)
    return JSON.parse(text)
  }
  return { ask, end: () => client.close() }
}

/** From `summary` on, the first call that each answer names, to a finding with its evidence; the number of calls. */
async function callsToFinding({ ask }, logs) {
  let answer = await ask('summary', { logs })
  for (let calls = 1; calls <= CALLS_MAX; calls++) {
    if (answer.evidence.findings?.[0]?.evidence) return calls
    const { tool, arguments: named, same = [] } = answer.next[0]
    answer = await ask(tool, { ...named, ...(same.includes('logs') && { logs }) })
  }
  throw new Error(`no finding in ${CALLS_MAX} calls`)
}

/** All findings, in as many answers as they need. */
async function findingsOf({ ask }, logs) {
  const findings = []
  for (let from = 0; from !== undefined; ) {
    const { evidence, left } = await ask('why', { logs, from })
    findings.push(...evidence.findings)
    from = left && evidence.findings.length > 0 ? findings.length : undefined
  }
  return findings
}

/** Why the answers are not those of `stats --json`, or the first finding takes too many calls; undefined where all is right. */
export const wrongAnswers = (agent, log) => checkAnswers(agent, log).catch(({ message }) => message)

async function checkAnswers(agent, log) {
  const logs = [basename(log)]
  const { code, stdout, stderr } = await run([process.execPath, CLI, 'stats', log, '--json'])
  if (code !== 0) throw new Error(`${log}: exit code ${code}\n${stderr}`)
  const { verdict, findings } = JSON.parse(stdout)
  const summary = await agent.ask('summary', { logs })
  if (summary.verdict !== verdict.sentence || !isDeepStrictEqual(summary.evidence.verdict, verdict))
    throw new Error(`${log}: another verdict: ${summary.verdict}`)
  if (!isDeepStrictEqual(await findingsOf(agent, logs), findings)) throw new Error(`${log}: other findings`)
  if (findings.length > 0) await callsToFinding(agent, logs)
}
