import type { ModelFigures, Undetermined } from '../analyze/analysis.ts'
import { checkCacheTypes, modelFigures, type StaticOptions } from '../analyze/model/static.ts'
import { checkNames, isFormatError, UsageError } from '../errors.ts'
import { MODEL_OF_OPTIONS } from '../generated/option-names.ts'
import { type ByteSource, besideOf, chunksOf, rangeOf } from '../input/byte-source.ts'
import { peek } from '../input/gunzip.ts'
import { unpack, unpackedHead } from '../input/unpack.ts'
import { type Damage, Unpacked } from '../input/unpacked.ts'
import type { ModelShape } from '../model/model-shape.ts'
import { size } from '../model/units.ts'
import { HEAD_BYTES } from '../read/format.ts'
import { isGguf, readGguf } from '../read/gguf/gguf.ts'
import { shapeOfGguf } from '../read/gguf/shape.ts'
import { isHfConfig, shapeOfConfig } from '../read/hf-config/hf-config.ts'
import type { Input, LogInput } from './inputs.ts'

/** A config.json has some KB. */
const CONFIG_BYTES_MAX = 1 << 24

/** What a description of a model says, and what it does not. */
export interface ModelAnalysis {
  readonly model: ModelFigures
  readonly undetermined: readonly Undetermined[]
}

/** Is this the start of a description of a model: a GGUF file, or a `config.json` of Hugging Face? */
export function isModel(head: Uint8Array): boolean {
  return isGguf(head) || isHfConfig(new TextDecoder('latin1').decode(head))
}

/**
 * Computes what a model contains and what a token of decode costs, from a GGUF file (its header only) or a `config.json` of Hugging Face, packed or not.
 * Throws UsageError for anything else and for an unknown model type of a config.json, FormatError for a damaged GGUF.
 */
export async function modelOf({ name, source }: LogInput, options: StaticOptions = {}): Promise<ModelAnalysis> {
  checkNames('modelOf', options, MODEL_OF_OPTIONS)
  checkCacheTypes(options)
  return modelFigures(await shapeOf(name, chunksOf(source, name)), options)
}

/** Separates descriptions of models from logs. The sources of all are readable once afterwards. */
export async function splitModels(
  inputs: readonly Input[],
): Promise<{ readonly logs: Input[]; readonly models: ModelShape[] }> {
  const logs: Input[] = []
  const models: ModelShape[] = []
  for (const input of inputs) {
    if ('events' in input) {
      logs.push(input)
      continue
    }
    const { head, rest } = await peek(chunksOf(input.source, input.name), HEAD_BYTES)
    if (isModel(await unpackedHead(head, HEAD_BYTES))) models.push(await shapeOf(input.name, rest))
    else logs.push({ name: input.name, source: sourceOf(input.source, rest) })
  }
  return { logs, models }
}

/** The chunks, with the random access that the source has. */
function sourceOf(source: ByteSource, rest: AsyncIterable<Uint8Array>): ByteSource {
  const range = rangeOf(source)
  const beside = besideOf(source)
  return range ? Object.assign(rest, { range, ...(beside && { beside }) }) : rest
}

/** Of a description, packed or not. */
async function shapeOf(name: string, chunks: AsyncIterable<Uint8Array>): Promise<ModelShape> {
  const found = new Unpacked()
  const { head, rest } = await peek(unpack(chunks, found), HEAD_BYTES)
  try {
    if (isGguf(head)) return shapeOfGguf(await readGguf(rest))
    const text = await textOf(rest, name)
    if (isHfConfig(text)) return shapeOfConfig(text, name)
  } catch (error) {
    const wrong = isFormatError(error) && error.input === undefined ? error.inInput(name) : error
    throw found.broken ? broken(name, found.broken) : wrong
  } finally {
    await rest.return()
  }
  if (found.broken) throw broken(name, found.broken)
  throw new UsageError(`${name}: expected a model: a GGUF file or a config.json of Hugging Face`)
}

const broken = (name: string, { detail }: Damage) => new UsageError(`${name}: cannot be decompressed: ${detail}`)

async function textOf(chunks: AsyncIterable<Uint8Array>, name: string): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  for await (const chunk of chunks) {
    text += decoder.decode(chunk, { stream: true })
    if (text.length > CONFIG_BYTES_MAX)
      throw new UsageError(`${name}: expected a config.json of at most ${size(CONFIG_BYTES_MAX)}, found more`)
  }
  return text
}
