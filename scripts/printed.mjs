/** What the built commands print, in an environment that has nothing of the user: neither the width of a terminal, nor peaks, colours, settings. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable, Writable } from 'node:stream'
import { pathToFileURL } from 'node:url'

/** A folder for what commands write, which ends with the process; the environment of this process becomes that of the commands. */
export function commandFolder() {
  const folder = mkdtempSync(join(tmpdir(), 'texts-'))
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
  for (const name of Object.keys(process.env)) if (name !== 'PATH') delete process.env[name]
  Object.assign(process.env, { HOME: folder, XDG_CACHE_HOME: folder, TMPDIR: folder, TZ: 'UTC', LANG: 'C.UTF-8' })
  return folder
}

/** Returns a function: what a command of `dist` prints, to both streams in its order. Paths in the folder are without it. */
export async function printer(dist, folder) {
  const { main } = await import(pathToFileURL(join(dist, 'cli/main.js')))
  return async (args, input = '') => {
    const pieces = []
    const write = (piece, _, next) => {
      pieces.push(Buffer.from(piece))
      next()
    }
    const stream = () => new Writable({ write })
    const stdin = Readable.from(input === '' ? [] : [Buffer.from(input)], { objectMode: false })
    const stdout = Object.assign(stream(), { columns: 110 })
    const io = { argv: ['node', 'ggml2perfetto', ...args], env: process.env, stdin, stdout, stderr: stream() }
    await main(args, io)
    const text = Buffer.concat(pieces).toString().replaceAll(`${folder}/`, '')
    return io.exitCode ? `${text.trimEnd()}\n(exit code ${io.exitCode})` : text.trimEnd()
  }
}
