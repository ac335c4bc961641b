#!/usr/bin/env node
import { serveStdio } from '@modelcontextprotocol/server/stdio'
import { isOwnError } from '../lib/cli.ts'
import { endAll } from './mcp/child.ts'
import { HELP, optionsOf } from './mcp/options.ts'
import { serverOf } from './mcp/server.ts'
import { LineTransport } from './mcp/transport.ts'
import { whenSignalled } from './signals.ts'
import { note } from './terminal.ts'
import { version } from './version.ts'

let isEnding = false

/** Ends the commands that still run, and this process; at once if it is asked again. */
function end(): void {
  if (isEnding) process.exit()
  isEnding = true
  void endAll().finally(() => process.exit())
}

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
    end()
  }
  whenSignalled(end)
}

await start().catch(async (error: unknown) => {
  await note(`error: ${isOwnError(error) ? error.message : (error as Error).stack}`)
  process.exitCode = 1
})
