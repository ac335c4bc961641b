/** The folder in which the benchmark works, and what it must undo when it ends or is interrupted. */
import { execFileSync } from 'node:child_process'
import { linkSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { cachedModel } from '../../test/llama/gguf.mjs'

export const at = (path) => fileURLToPath(new URL(`../../${path}`, import.meta.url))
export const CLI = at('dist/ggml2perfetto.js')
export const LIBS = at('vendor/llama/lib')

/** What is to be undone, the latest first. Each is undone once, also after a signal. */
const undos = []

/** Registers what undoes something; returns a function that undoes it now. */
export function onEnd(undo) {
  undos.push(undo)
  return () => {
    const at = undos.indexOf(undo)
    if (at < 0) return
    undos.splice(at, 1)
    undo()
  }
}

export function undoAll() {
  while (undos.length > 0) {
    try {
      undos.pop()()
    } catch (error) {
      console.error(`not undone: ${error.message}`)
    }
  }
}

for (const [signal, number] of Object.entries({ SIGINT: 2, SIGTERM: 15, SIGHUP: 1 })) {
  process.once(signal, () => {
    undoAll()
    process.exit(128 + number)
  })
}
process.on('exit', undoAll)

const compile = (source, to, ...flags) =>
  execFileSync('cc', ['-std=gnu11', '-O2', at(source), '-o', to, ...flags], { stdio: ['ignore', 2, 2] })

/** The working folder, with the programs that are compiled for the benchmark, in the temporary folder; fetches llama.cpp. */
export function makeFolder() {
  execFileSync(process.execPath, [at('scripts/fetch-llama.mjs')], { stdio: ['ignore', 2, 2] })
  const folder = mkdtempSync(join(tmpdir(), 'ggml2perfetto-diagnosis-'))
  onEnd(() => rmSync(folder, { recursive: true, force: true }))
  mkdirSync(join(folder, 'cache'))
  const linked = [`-L${LIBS}`, `-Wl,-rpath,${LIBS}`, '-lllama', '-lggml', '-lggml-base', '-lpthread']
  const headers = `-I${at('vendor/llama/include')}`
  compile('test/llama/run.c', join(folder, 'run'), headers, ...linked)
  compile('scripts/diagnosis/witness.c', join(folder, 'witness.so'), headers, '-shared', '-fPIC', '-ldl')
  return folder
}

/** The path of a model in the working folder, where the programs of each build see it. The file is that of the models' cache. */
export async function modelIn(folder, preset) {
  const { path } = await cachedModel(preset)
  const to = join(folder, basename(path))
  try {
    linkSync(path, to)
  } catch (error) {
    if (error.code !== 'EEXIST') throw error
  }
  execFileSync('cat', [to], { stdio: 'ignore' }) // from here on it is in the page cache
  return to
}
