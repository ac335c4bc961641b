/** What the built commands print about logs, what agents get, and the library's types: for scripts/same-output.mjs. */
import { spawn } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { commandFolder, printer } from './printed.mjs'

const BY = ['op', 'role', 'layer', 'block', 'type', 'backend', 'phase', 'shape', 'worker', 'request', 'slot']
const ABOUT = {
  stats: ['stats'],
  full: ['stats', '--full', '--calls'],
  csv: ['stats', '--csv'],
  markdown: ['stats', '--markdown'],
  contents: ['stats', '--contents'],
  ...Object.fromEntries(BY.map((key) => [`by ${key}`, ['stats', '--by', key]])),
  why: ['why'],
  'what-if': ['what-if', '--without', 'preempted', '--context', '200'],
  dag: ['dag'],
  'dag dot': ['dag', '-o', '-'],
  'dag json': ['dag', '--call', '0', '--json'],
}
const COMMANDS = [
  'record',
  'convert',
  'open',
  'stats',
  'why',
  'what-if',
  'compare',
  'report',
  'dag',
  'query',
  'export',
  'doctor',
  'peaks',
  'fleet',
  'serve',
]

/** Names of chunks contain a hash of what they contain. */
const withoutHashes = (text) => text.replace(/-[\w-]{8}(?=\.(?:d\.)?(?:ts|cts|js)\b|['"])/g, '')

/** Asks an MCP server one thing after the other. */
function agent(dist) {
  const child = spawn(process.execPath, [join(dist, 'ggml2perfetto-mcp.js')], { stdio: ['pipe', 'pipe', 'ignore'] })
  const waiting = new Map()
  createInterface({ input: child.stdout }).on('line', (line) => {
    const answer = JSON.parse(line)
    waiting.get(answer.id)?.(answer.result ?? answer.error)
  })
  let id = 0
  const ask = (method, params) =>
    new Promise((resolve) => {
      waiting.set(++id, resolve)
      child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`)
    })
  return { ask, end: () => child.kill() }
}

const TOOLS = ['summary', 'why', 'stats', 'dag', 'query']

/** Yields each output with its name: of the logs at `paths`, alone and each compared with the one before it, and of the program itself. */
export async function* printedOutputs(dist, paths) {
  const folder = commandFolder()
  const print = await printer(dist, folder)
  for (const command of COMMANDS) yield [`${command} --help text`, () => print([command, '--help'])]
  yield ['help text', () => print(['help'])]
  yield [
    'types text',
    () =>
      readdirSync(dist)
        .filter((name) => name.endsWith('.d.ts'))
        .map((name) => withoutHashes(`${name}\n${readFileSync(join(dist, name), 'utf8')}`))
        .sort()
        .join('\n'),
  ]
  const { ask, end } = agent(dist)
  const client = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'same-output', version: '1' } }
  await ask('initialize', client)
  yield ['agents tools text', async () => JSON.stringify(await ask('tools/list', {}), null, 1)]
  let before
  for (const path of paths) {
    for (const [kind, [command, ...options]] of Object.entries(ABOUT))
      yield [`${path} ${kind} text`, () => print([command, path, ...options])]
    const page = join(folder, 'report.html')
    const report = async (args) => {
      rmSync(page, { force: true })
      const said = await print([...args, page])
      return existsSync(page) ? `${said}\n${readFileSync(page, 'utf8')}` : said
    }
    yield [`${path} report text`, () => report(['report', path, '-o'])]
    if (before !== undefined) {
      const [a, b] = [before, path]
      yield [`${a} ${b} compare text`, () => print(['compare', a, b])]
      yield [`${a} ${b} compare report text`, () => report(['compare', a, b, '--report'])]
    }
    for (const name of TOOLS) {
      const given = { logs: [path], ...(name === 'query' && { finding: 1 }) }
      yield [
        `${path} agents ${name} text`,
        async () => JSON.stringify(await ask('tools/call', { name, arguments: given }), null, 1),
      ]
    }
    before = path
  }
  end()
}
