import { readdir, stat } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import type { ModelFigures } from '../../analyze/analysis.ts'
import { isOwnError, UsageError } from '../../errors.ts'
import { modelOf } from '../../pipeline/models.ts'
import { inputOf } from '../api.ts'
import { isOwn } from '../own-files.ts'
import type { Environment } from '../record/program.ts'

/** A GGUF file. */
export interface ModelFile {
  readonly path: string
  /** With its other parts, where the model is divided into several files. */
  readonly bytes: number
}

/** A model that can be run. */
export interface FoundModel extends ModelFile {
  readonly figures: ModelFigures
}

/** A folder of models, and how many folders below it are searched. */
type Place = readonly [folder: string, depth: number]

/** Folders that are read at most: homes can be large. */
const FOLDERS_MAX = 2000
/** GGUF files that are no model to run: vocabularies, projectors of images, matrices of importance, adapters. */
const NO_MODEL = /vocab|mmproj|imatrix|\blora\b/i
/** The part of a divided model. */
const PART = /-(\d{5})-of-\d{5}\.gguf$/
/** Architectures that make no tokens. */
const NO_TEXT = /bert|clip|^t5encoder$/

/** Where models usually are, the nearest first: this folder, then the caches of llama.cpp and Hugging Face, then folders of the user. */
function placesOf(env: Environment): Place[] {
  const home = env['HOME'] || homedir()
  const cache = env['XDG_CACHE_HOME'] || join(home, '.cache')
  const ofHub = env['HF_HUB_CACHE'] || join(env['HF_HOME'] || join(cache, 'huggingface'), 'hub')
  return [
    [resolve('.'), 0],
    [resolve('models'), 2],
    ...(env['LLAMA_CACHE'] ? [[env['LLAMA_CACHE'], 2] as const] : []),
    [join(cache, 'llama.cpp'), 2],
    [ofHub, 4],
    [join(home, 'models'), 3],
    [join(home, 'llama.cpp/models'), 1],
    [join(home, '.lmstudio/models'), 3],
  ]
}

/** The GGUF files of the usual places: of a nearer place first, then the larger ones first. Throws UsageError if there are none. */
export async function findModels(env: Environment): Promise<ModelFile[]> {
  const found: ModelFile[] = []
  const seen = new Set<string>()
  const left = { folders: FOLDERS_MAX }
  for (const [folder, depth] of placesOf(env)) {
    const files = (await filesIn(folder, depth, left)).filter(({ path }) => !seen.has(path))
    for (const { path } of files) seen.add(path)
    found.push(...files.toSorted((a, b) => b.bytes - a.bytes))
  }
  if (found.length > 0) return found
  throw new UsageError(
    'doctor: no model (*.gguf) in this folder, ./models, ~/models, or the caches of llama.cpp and Hugging Face\n' +
      'hint: ggml2perfetto doctor -m model.gguf',
  )
}

async function filesIn(folder: string, depth: number, left: { folders: number }): Promise<ModelFile[]> {
  if (left.folders-- <= 0) return []
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => [])
  const files: ModelFile[] = []
  for (const entry of entries) {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) {
      if (depth > 0) files.push(...(await filesIn(path, depth - 1, left)))
      continue
    }
    const part = PART.exec(entry.name)?.[1]
    if (!entry.name.endsWith('.gguf') || NO_MODEL.test(entry.name) || (part !== undefined && part !== '00001')) continue
    const bytes = await bytesOf(path)
    if (bytes > 0) files.push({ path, bytes })
  }
  return files
}

/** Of a file and its other parts; 0 where it cannot be read. In Hugging Face's cache, files are links. */
async function bytesOf(path: string): Promise<number> {
  const sizeOf = async (path: string) => {
    const stats = await stat(path).catch(() => undefined)
    return stats?.isFile() ? stats.size : 0
  }
  const [, count] = /-00001-of-(\d{5})\.gguf$/.exec(path) ?? []
  if (count === undefined) return sizeOf(path)
  let bytes = 0
  for (let part = 1; part <= Number(count); part++)
    bytes += await sizeOf(path.replace(/-00001(?=-of-)/, `-${`${part}`.padStart(5, '0')}`))
  return bytes
}

/** The model of a GGUF file. Throws UsageError or FormatError if it is none that makes tokens. */
export async function modelAt(path: string): Promise<FoundModel> {
  const { model: figures } = await modelOf(inputOf(path))
  if (figures.source !== 'gguf') throw new UsageError(`${path}: expected a GGUF file, found a config.json`)
  if (!figures.layers || NO_TEXT.test(figures.architecture ?? ''))
    throw new UsageError(
      `${path}: expected a model that makes tokens, found the architecture ${figures.architecture ?? 'unknown'}`,
    )
  return { path, bytes: await bytesOf(path), figures }
}

/**
 * Of models that were found: the first one of at most so many bytes, else the smallest one. Files that are no models, or that another user can have put there, are left out. Throws what is wrong
 * with the first file if all of them are left out.
 */
export async function chooseModel(found: readonly ModelFile[], bytesMax: number): Promise<FoundModel> {
  const fitting = found.filter(({ bytes }) => bytes <= bytesMax)
  const others = found.filter(({ bytes }) => bytes > bytesMax).toSorted((a, b) => a.bytes - b.bytes)
  let wrong: Error | undefined
  for (const { path } of [...fitting, ...others]) {
    try {
      await isOwn(path, { hint: `doctor -m ${path} if you trust this file` })
      return await modelAt(path)
    } catch (error) {
      if (!isOwnError(error)) throw error
      wrong ??= error
    }
  }
  throw wrong
}
