/**
 * node test/llama/make-model.mjs PRESET [OUT]: writes a model with random weights and prints its path. Without OUT it
 * goes into the cache in the temporary folder.
 */
import { cachedModel, presets, writeModel } from './gguf.mjs'

const [preset, out] = process.argv.slice(2)
if (!Object.hasOwn(presets, preset ?? '')) {
  console.error(`usage: make-model.mjs ${Object.keys(presets).join('|')} [OUT]`)
  process.exitCode = 2
} else {
  const { path } = out === undefined ? await cachedModel(preset) : await writeModel(preset, out)
  console.log(path)
}
