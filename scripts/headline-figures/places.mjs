/** Where the programs run: Debian's in a root folder of their own, hosts from npm here; each recorded, with the models that they take. */
import { execFile } from 'node:child_process'
import { copyFile, mkdtemp, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { cachedModel } from '../../test/llama/gguf.mjs'
import { fetchDebian, IN_ROOT, ROOT } from '../compatibility/runs.mjs'
import { askServer, freePort } from '../servers.mjs'

const execute = promisify(execFile)
const at = (path) => fileURLToPath(new URL(`../../${path}`, import.meta.url))
const RECORDER = at('native/build/libggml2perfetto.so')
const RUN = { timeout: 180_000, killSignal: 'SIGKILL', maxBuffer: 1 << 26 }

/** Its calls take some ms, so that what the recorder and the program do around them is small. */
const MODEL = {
  ...{ layers: 12, width: 1024, feedForward: 2816, heads: 16, kvHeads: 4, vocabulary: 2048, context: 2048 },
  name: 'headline',
}
const T5 = {
  ...{ architecture: 't5', layers: 8, width: 1024, feedForward: 2816, heads: 16, kvHeads: 16, vocabulary: 2048 },
  ...{ context: 2048, name: 't5' },
}

/** Makes the models, and the folder in Debian's root. */
export async function makePlaces(folder) {
  const models = { MODEL, T5 }
  const paths = {}
  for (const [name, spec] of Object.entries(models)) paths[name] = (await cachedModel(spec)).path
  let root
  const inRoot = async () => {
    if (root) return root
    await fetchDebian()
    root = await mkdtemp(join(ROOT, 'tmp/headline-'))
    await copyFile(RECORDER, join(root, 'recorder.so'))
    for (const name of Object.keys(models)) await copyFile(paths[name], join(root, `${name}.gguf`))
    await execute(process.execPath, [
      at('test/llama/whisper-model.mjs'),
      join(root, 'WHISPER.bin'),
      join(root, 'NOISE.wav'),
    ])
    return root
  }
  /** The arguments that run a command line in Debian's root; names of models in it become paths. */
  const wordsOf = async (line) => {
    const inside = (await inRoot()).slice(ROOT.length)
    const environment = [`LD_PRELOAD=${inside}/recorder.so`, `GGML2PERFETTO_OUT=${inside}/run.ggtrace`]
    const files = {
      MODEL: 'MODEL.gguf',
      T5: 'T5.gguf',
      WHISPER: 'WHISPER.bin',
      NOISE: 'NOISE.wav',
    }
    const words = line.split(' ').map((word) => (files[word] ? `${inside}/${files[word]}` : word))
    return [...IN_ROOT, 'env', ...environment, ...words]
  }
  const keepLog = (log) => rename(join(root, 'run.ggtrace'), log)
  return {
    folder,
    model: paths.MODEL,
    /** Runs a command line there; returns what it prints. */
    async debian(line, log) {
      const { stdout, stderr } = await execute('unshare', await wordsOf(line), RUN)
      await keepLog(log)
      return `${stdout}\n${stderr}`
    },
    /** Runs a server there and sends it a request; returns the answer. */
    async debianServer(line, request, log) {
      const port = await freePort()
      const answer = await askServer('unshare', await wordsOf(`${line} --port ${port}`), port, request, RUN)
      await keepLog(log)
      return answer
    },
    /** Runs a program of Node here, in a folder; returns what it prints. */
    async node(script, args, log) {
      const record = [at('dist/ggml2perfetto.js'), 'record', '-o', log, '--', process.execPath, script, ...args]
      const { stdout, stderr } = await execute(process.execPath, record, RUN)
      return `${stdout}\n${stderr}`
    },
    clean: () => (root ? rm(root, { recursive: true }) : undefined),
  }
}
