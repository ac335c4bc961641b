/**
 * The builds of llama.cpp that the benchmark runs: `pool`, npm's of vendor/llama, whose workers are threads of ggml; `openmp`, Debian's
 * newest, whose workers are those of libgomp; and `own`, npm's with a CPU backend that is built here for libgomp, and the same program as
 * `pool`, for causes that need a program with other options; `vulkan`, `cuda` and `rpc`, npm's with a second backend. Debian's programs run in a root folder of their own (scripts/fetch-debian.mjs),
 * in which the working folder of the benchmark has the same path as outside.
 */
import { execFileSync } from 'node:child_process'
import { mkdirSync, rmdirSync, writeFileSync } from 'node:fs'
import { register } from 'node:module'
import { join } from 'node:path'
import { fetchDebian, ROOT } from '../compatibility/runs.mjs'
import { at, LIBS, onEnd } from './bench-folder.mjs'

/** Mounts in a namespace of its own, which end with the program. */
const ENTER = `root=$1 folder=$2
shift 2
mount --bind "$folder" "$root$folder"
mount -t proc proc "$root/proc" 2>/dev/null
mkdir -p "$root/sys" && mount --rbind /sys "$root/sys" 2>/dev/null
exec chroot "$root" "$@"
`

function pool(folder) {
  execFileSync(process.execPath, [at('scripts/fetch-llama.mjs'), '--server'], { stdio: ['ignore', 2, 2] })
  return {
    name: 'pool',
    /** Options to read the model, not map it. */
    read: ['--no-mmap'],
    /** A command that decodes a prompt, then greedily. */
    decode: ({ hasPool = true, args = [], ...options }) =>
      decode(folder, LIBS, { ...options, args: [...(hasPool ? ['--threadpool'] : []), ...args] }),
    server: (args) => [at('vendor/llama/server/llama-server'), '--no-webui', ...args],
  }
}

/** The command of test/llama/run.c. */
const decode = (folder, lib, { model, threads, prompt = 16, tokens = 40, args }) => [
  ...[join(folder, 'run'), '--lib', lib, '--model', model, '--threads', `${threads}`],
  ...['--prompt', `${prompt}`, '--decode', `${tokens}`, ...args],
]

async function own(folder) {
  await testbed()
  const { OPENMP, ownCpu } = await import('../../test/llama/own-cpu.ts')
  const lib = await ownCpu(OPENMP)
  return { name: 'own', decode: ({ args = [], ...options }) => decode(folder, lib, { ...options, args }) }
}

async function openmp(folder) {
  await fetchDebian()
  const script = join(folder, 'enter.sh')
  writeFileSync(script, ENTER)
  mkdirSync(join(ROOT, folder), { recursive: true })
  onEnd(() => rmdirSync(join(ROOT, folder)))
  const enter = ['unshare', '-m', 'sh', script, ROOT, folder]
  const words = (count) => Array.from({ length: count }, (_, i) => `w${i % 700}`).join(' ')
  return {
    name: 'openmp',
    read: ['--load-mode', 'none'],
    decode: ({ model, threads, prompt = 16, tokens = 40, args = [], sampling = ['--temp', '0'] }) => [
      ...[...enter, 'llama-completion', '-m', model, '-t', `${threads}`, '-no-cnv', '--ignore-eos', '--no-warmup'],
      // BOS is the first token, and a word is one token or two.
      ...['-p', words((prompt - 1) >> 1), '-n', `${tokens}`, ...sampling, ...args],
    ],
    speculate: ({ model, draft, tokens }) => [
      ...[...enter, 'llama-speculative-simple', '-m', model, '-md', draft, '--spec-type', 'draft-simple'],
      ...['-t', '1', '-p', words(20), '-n', `${tokens}`, '--temp', '0', '--seed', '1'],
    ],
    server: (args) => [...enter, 'llama-server', '--no-webui', ...args],
  }
}

const testbed = () => {
  register('../typescript-hooks.mjs', import.meta.url)
  return import('../../test/llama/testbed.ts')
}

/** npm's build with a second backend; `env`: where it is. */
const withDevice = (name, env) => (folder) => ({
  name,
  env,
  decode: ({ args = [], ...options }) => decode(folder, LIBS, { ...options, args }),
})

async function vulkan(folder) {
  const { ensureLlama, vulkanEnvironment } = await testbed()
  await ensureLlama({ vulkan: true })
  if (!vulkanEnvironment) throw new Error('no lavapipe: mesa-vulkan-drivers is not installed')
  return withDevice('vulkan', vulkanEnvironment)(folder)
}

/** The real backend, on a driver that computes on the CPU: test/gpu/README.md. */
async function cuda(folder) {
  const { cudaEnvironment, ensureLlama } = await testbed()
  await ensureLlama({ cuda: true })
  const bed = at('native/build/bed')
  execFileSync('make', ['-s', '-C', at('test/gpu'), `BUILD=${bed}`], { stdio: ['ignore', 2, 2] })
  return withDevice('cuda', cudaEnvironment(bed))(folder)
}

/** npm's build with ggml-rpc, and a command that serves the CPU by it. */
async function rpc(folder) {
  const { ensureLlama, RPC_LIB } = await testbed()
  await ensureLlama({ rpc: true })
  return {
    name: 'rpc',
    decode: ({ args = [], ...options }) => decode(folder, RPC_LIB, { ...options, args }),
    serve: (address) => [join(folder, 'run'), '--lib', RPC_LIB, '--serve', address],
  }
}

/** The same, with a GPU next to the server. */
const rpcCuda = async (folder) => ({ ...(await rpc(folder)), name: 'rpc-cuda', env: (await cuda(folder)).env })

const BUILDS = { pool, openmp, own, vulkan, cuda, rpc, 'rpc-cuda': rpcCuda }

/** Returns a build by its name, fetched or built where it is missing. */
export function buildsIn(folder) {
  const made = new Map()
  return async (name) => {
    if (!made.has(name)) made.set(name, await BUILDS[name](folder))
    return made.get(name)
  }
}
