/** Installs hosts from npm, once, without their scripts. */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { cacheFolder } from '../../test/cache.cjs'
import { install, NotAvailable } from '../compatibility/runs.mjs'

const FUGOOD = '1.7.15'
const NODE_LLAMA_CPP = '3.22.1'

async function installFugood() {
  const folder = join(cacheFolder('compatibility'), `fugood-${FUGOOD}`)
  if (existsSync(join(folder, 'node_modules/@fugood/llama.node/lib/index.js'))) return folder
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, 'package.json'), '{ "private": true }\n')
  const flags = ['--ignore-scripts', '--omit=optional', '--no-audit', '--no-fund', '--loglevel=error']
  const names = ['llama.node', 'node-llama-linux-x64'].map((name) => `@fugood/${name}@${FUGOOD}`)
  await promisify(execFile)('npm', ['install', ...flags, ...names], { cwd: folder, timeout: 120_000 })
  return folder
}

/** The folder in which a host is installed. */
export async function installed(name) {
  if (process.platform !== 'linux' || process.arch !== 'x64') throw new NotAvailable('its binaries are for linux-x64')
  const installing = name === 'node-llama-cpp' ? install(NODE_LLAMA_CPP) : installFugood()
  return await installing.catch((error) => {
    throw new NotAvailable(`npm: ${`${error.stderr || error.message}`.trim().split('\n').at(-1)}`)
  })
}
