#!/usr/bin/env node
import { serveStdio } from '@modelcontextprotocol/server/stdio'
import { isOwnError } from '../lib/cli.ts'
import { HELP, optionsOf } from './mcp/options.ts'
import { serverOf } from './mcp/server.ts'
import { LineTransport } from './mcp/transport.ts'
import { note } from './terminal.ts'
import { version } from './version.ts'

/** Serves until standard input ends; then the commands that still run are ended after a second. */
async function start(): Promise<void> {
  const options = optionsOf(process.argv.slice(2))
  if (options === 'help') return console.log(HELP)
  if (options === 'version') return console.log(version)
  const make = await serverOf(options)
  const transport = new LineTransport(process.stdin, process.stdout)
  serveStdio(make, { transport, onerror: ({ message }) => void note(`error: ${message}`) })
  const { onclose } = transport
  transport.onclose = () => {
    onclose?.()
    process.exit()
  }
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => process.exit())
}

await start().catch(async (error: unknown) => {
  await note(`error: ${isOwnError(error) ? error.message : (error as Error).stack}`)
  process.exitCode = 1
})
