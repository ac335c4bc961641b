/**
 * Decodes a prompt with node-llama-cpp, which then prints llama.cpp's times of the context: node node-llama-cpp.mjs FOLDER MODEL; FOLDER is
 * where npm installed it.
 */
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

const [folder, modelPath] = process.argv.slice(2)
const { getLlama } = await import(pathToFileURL(join(folder, 'node_modules/node-llama-cpp/dist/index.js')))
const llama = await getLlama({ gpu: false, build: 'never', skipDownload: true, progressLogs: false, logLevel: 'info' })
const model = await llama.loadModel({ modelPath })
const context = await model.createContext({ contextSize: 512, threads: 1, performanceTracking: true })
const prompt = Array.from({ length: 150 }, (_, i) => (i === 0 ? 1 : 300 + i))
let count = 0
for await (const _ of context.getSequence().evaluate(prompt, { temperature: 0, yieldEogToken: true })) {
  if (++count === 60) break
}
await context.printTimings()
await llama.dispose()
