/** Records a run by the command line, and takes what `record`, `convert` and `why` name first. Another tool needs only this file again. */
import { spawn } from 'node:child_process'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { summarizeFile } from 'ggml2perfetto/node'
import { CLI, onEnd } from './bench-folder.mjs'

const LIMIT_MS = 180_000

/** Runs a command; returns its exit code and what it wrote. `meanwhile` gets the child while it runs, and may end it. */
export function run(command, { env = {}, meanwhile } = {}) {
  const [file, ...args] = command
  const child = spawn(file, args, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...env } })
  const kill = onEnd(() => child.kill('SIGTERM'))
  const timer = setTimeout(() => child.kill('SIGTERM'), LIMIT_MS)
  const written = { stdout: '', stderr: '' }
  for (const stream of ['stdout', 'stderr'])
    child[stream].setEncoding('utf8').on('data', (text) => {
      written[stream] += text
    })
  const ended = new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code) => resolve({ code, ...written }))
  }).finally(() => {
    clearTimeout(timer)
    kill()
  })
  return meanwhile === undefined ? ended : Promise.all([ended, meanwhile(child)]).then(([result]) => result)
}

const cli = (...args) => [process.execPath, CLI, ...args]

/** The findings in the last lines of a command, as it prints them: at most three sentences. */
function sentencesOf(text) {
  const lines = text.split('\n')
  const start = lines.findIndex((line) => line.startsWith('why: '))
  if (start < 0) return []
  const end = lines.findIndex((line, i) => i > start && line.startsWith('     evidence and checks'))
  return lines.slice(start, end).map((line) => line.slice('why: '.length))
}

/**
 * Records `command`; returns its log, and the findings that each command prints, the first one first. `record` and `convert` print
 * sentences only, so their rules and evidence are looked up in the Summary and the Analysis of the log. A sentence that is in neither
 * has the rule 'unknown'. `spoil` damages the log before `convert` and `why` read it; `beside` returns files that they read together with it.
 */
export async function look(folder, name, { command, env, options = {}, meanwhile, spoil, beside }) {
  const log = join(folder, `${name}.ggtrace`)
  const trace = join(folder, `${name}.pftrace`)
  // The recorder that was built stays; peaks of the machine that a run's cause measures do not.
  const recorded = { XDG_CACHE_HOME: join(folder, 'cache'), ...env }
  const read = { env: { XDG_CACHE_HOME: join(folder, `cache-of-${name}`) } }
  const record = await run(cli('record', '-o', log, ...(options.record ?? []), '--', ...command), {
    env: recorded,
    meanwhile,
  })
  if (!record.stderr.includes(`wrote ${log}`)) throw new Error(`${command.join(' ')}: no log\n${record.stderr}`)
  await spoil?.(log)
  const logs = [log, ...((await beside?.(log)) ?? [])]
  const convert = await run(cli('convert', ...logs, '-o', trace), read)
  const why = await run(cli('why', ...logs, '--json', ...(options.why ?? [])), read)
  rmSync(trace, { force: true })
  for (const { code, stderr } of [convert, why]) if (code !== 0) throw new Error(`${log}: exit code ${code}\n${stderr}`)
  const all = JSON.parse(why.stdout)
  const sampled = (await summarizeFile(log, { findings: true })).findings ?? []
  const named = (sentence) =>
    [...sampled, ...all].find((finding) => finding.sentence === sentence) ?? { rule: 'unknown', sentence, evidence: {} }
  const lines = (text) => sentencesOf(text).map(named)
  return { log, findings: { record: lines(record.stderr), convert: lines(convert.stdout), why: all } }
}
