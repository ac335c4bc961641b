/**
 * Packs all that verify.mjs needs into pieces, for a machine with a GPU that has neither a network nor Node: the package with what it depends on,
 * Node, llama.cpp's libraries with its CUDA backend, the programs. CUDA's own libraries are the machine's.
 *   node scripts/gpu/pack.mjs <folder> [--release 3.14.5] [--piece 44]
 * `--release`: that version of node-llama-cpp's packages, instead of the one of vendor/llama, whose kernels need the driver of CUDA 13.1. `--piece`:
 * largest size of a piece, MiB. There, with all pieces in one folder:
 *   mkdir kit && cat <folder>/piece-* | tar xz -C kit && cd kit && kit/node scripts/gpu/verify.mjs --libraries <folders of CUDA>
 */
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, statSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { compileObserver, compileProgram } from './programs.mjs'

const root = fileURLToPath(new URL('../..', import.meta.url))
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { release: { type: 'string' }, piece: { type: 'string', default: '44' } },
})
const [folder] = positionals
if (!folder) throw new Error('usage: node scripts/gpu/pack.mjs <folder> [--release 3.14.5] [--piece 44]')
const home = mkdtempSync(join(tmpdir(), 'ggml2perfetto-kit-'))
const work = mkdtempSync(join(tmpdir(), 'ggml2perfetto-packages-'))
const runIn = (cwd, command, ...args) => execFileSync(command, args, { cwd, encoding: 'utf8', maxBuffer: 1 << 26 })
const run = (...words) => runIn(root, ...words)

/** The contents of a package of npm, in a folder of its own. */
function unpacked(spec) {
  const at = mkdtempSync(join(work, 'package-'))
  runIn(at, 'npm', 'pack', spec, '--loglevel=error', '--ignore-scripts')
  runIn(at, 'tar', '-xzf', readdirSync(at)[0])
  return join(at, 'package')
}

/** Libraries with the CUDA backend, and headers, as in vendor/llama. */
function takeRelease(version, llama) {
  const binaries = join(unpacked(`@node-llama-cpp/linux-x64-cuda@${version}`), 'bins/linux-x64-cuda')
  const bundle = join(unpacked(`node-llama-cpp@${version}`), 'llama/gitRelease.bundle')
  const sources = join(work, 'llama.cpp')
  runIn(work, 'git', 'clone', '--quiet', '--depth=1', bundle, sources)
  for (const name of ['lib', 'cuda', 'include']) mkdirSync(join(llama, name), { recursive: true })
  for (const name of ['ggml/include', 'include'])
    cpSync(join(sources, name), join(llama, 'include'), { recursive: true })
  for (const name of readdirSync(binaries)) {
    if (name.includes('.so'))
      renameSync(join(binaries, name), join(llama, name === 'libggml-cuda.so' ? 'cuda' : 'lib', name))
  }
  for (const [, name, library] of readdirSync(join(llama, 'lib')).map(
    (file) => /^((libllama|libggml)\.cuda\..*\.so)$/.exec(file) ?? [],
  )) {
    if (library) symlinkSync(name, join(llama, 'lib', `${library}.so`))
  }
}

try {
  const production = run('npm', 'ls', '--all', '--omit=dev', '--parseable').trim().split('\n').slice(1)
  const own = ['package.json', 'dist', 'scripts/gpu', 'test/llama', 'native']
  for (const path of [...own, ...production.map((path) => relative(root, path))]) {
    const filter = (from) => from !== join(root, 'native/build')
    cpSync(join(root, path), join(home, path), { recursive: true, verbatimSymlinks: true, filter })
  }
  const llama = join(home, 'vendor/llama')
  if (values.release) takeRelease(values.release, llama)
  else {
    run(process.execPath, 'scripts/fetch-llama.mjs', '--cuda')
    for (const name of ['lib', 'cuda', 'include']) {
      cpSync(join(root, 'vendor/llama', name), join(llama, name), { recursive: true, verbatimSymlinks: true })
    }
  }
  mkdirSync(join(home, 'kit'))
  cpSync(process.execPath, join(home, 'kit/node'))
  run('strip', join(home, 'kit/node'))
  compileProgram(llama, join(home, 'kit/run'), '$ORIGIN/../vendor/llama/lib')
  compileObserver(join(home, 'kit/libobserver.so'))
  mkdirSync(folder, { recursive: true })
  for (const name of readdirSync(folder)) if (name.startsWith('piece-')) rmSync(join(folder, name))
  const command = 'tar cz -C "$1" . | split -b "$2"M -d - "$3/piece-"'
  run('sh', '-c', command, 'pack', home, values.piece, resolve(folder))
  for (const name of readdirSync(folder))
    console.log(`${name} ${(statSync(join(folder, name)).size / 2 ** 20).toFixed(1)} MiB`)
} finally {
  for (const path of [home, work]) rmSync(path, { recursive: true })
}
