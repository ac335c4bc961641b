/**
 * Computes a prompt of eight tokens and seven more, greedily, with the JavaScript API of any version of node-llama-cpp; prints the
 * tokens: node scripts/compatibility/node-host.mjs FOLDER MODEL [cuda]; FOLDER is where npm installed it.
 */
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

const [folder, modelPath, gpu = false] = process.argv.slice(2)
const { getLlama } = await import(pathToFileURL(join(folder, 'node_modules/node-llama-cpp/dist/index.js')))
const llama = await getLlama({ gpu, build: 'never', skipDownload: true, progressLogs: false, logLevel: 'error' })
const model = await llama.loadModel({ modelPath })
const context = await model.createContext({ contextSize: 32, threads: 2 })
const prompt = [1, 300, 301, 302, 303, 304, 305, 306]
const tokens = []
for await (const token of context.getSequence().evaluate(prompt, { temperature: 0, yieldEogToken: true })) {
  tokens.push(token)
  if (tokens.length === 8) break
}
await llama.dispose()
console.log(JSON.stringify(tokens))
