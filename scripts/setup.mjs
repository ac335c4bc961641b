/**
 * Sets up a new clone: installs the packages of package-lock.json, fetches trace_processor, and with --build compiles
 * dist/, or with --cli the part of it that the CLI runs. Does nothing if everything is up to date, so every command can start with it.
 */
import { execFileSync } from 'node:child_process'
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))

const timeOf = (path) => statSync(join(root, path), { throwIfNoEntry: false })?.mtimeMs ?? 0

const newestIn = (folder) =>
  Math.max(...readdirSync(join(root, folder), { recursive: true }).map((name) => timeOf(join(folder, name))))

const run = (command, ...args) => {
  console.error(`> ${command} ${args.join(' ')}`)
  execFileSync(command, args, { cwd: root, stdio: ['ignore', 2, 2] })
}

const install = () => run('npm', 'ci', '--no-audit', '--no-fund')

try {
  if (timeOf('node_modules/.package-lock.json') < timeOf('package-lock.json')) install()
  execFileSync(process.execPath, ['scripts/vendor-trace-processor.mjs'], { cwd: root, stdio: ['ignore', 2, 2] })
  const sources = Math.max(newestIn('lib'), newestIn('bin'), timeOf('tsup.config.ts'), timeOf('package.json'))
  const isBuilt = (files) => files.every((file) => timeOf(`dist/${file}`) >= sources)
  const cli = ['index.js', 'cli.js', 'ggml2perfetto.js', 'ggml2perfetto-mcp.js', 'cli/main.js']
  const all = [...cli, 'index.cjs', 'index.d.ts']
  if (process.argv.includes('--build') && !isBuilt(all)) run('npx', 'tsup', '--silent')
  if (process.argv.includes('--cli') && !isBuilt(cli)) run('npx', 'tsup', '--silent', '--no-dts')
} catch (error) {
  console.error(`error: setting up failed: ${error.message}`)
  process.exit(1)
}
