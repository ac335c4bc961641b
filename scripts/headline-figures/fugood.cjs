/** Decodes a prompt with @fugood/llama.node and prints its timings: node fugood.cjs FOLDER MODEL; FOLDER is where npm installed it. */
const { join } = require('node:path')

const [folder, model] = process.argv.slice(2)
const { loadModel } = require(join(folder, 'node_modules/@fugood/llama.node'))
const prompt = Array.from({ length: 100 }, (_, i) => `w${i}`).join(' ')

loadModel({ model, n_ctx: 1024, n_threads: 1, n_gpu_layers: 0 }).then(async (context) => {
  const { timings } = await context.completion({ prompt, n_predict: 60, temperature: 0, ignore_eos: true })
  console.log(`\n${JSON.stringify(timings)}`)
  await context.release()
})
