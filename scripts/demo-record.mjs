/**
 * Makes a trace of a real llama.cpp run in under a minute: fetches llama.cpp's libraries, synthesises a small MoE
 * model, builds a program that decodes with it, records that, and converts the log.
 *   npm run demo:record [-- folder, default the current one]
 */
import { execFileSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { cachedModel } from '../test/llama/gguf.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const folder = resolve(process.argv[2] ?? '.')
const libs = join(root, 'vendor/llama/lib')

const run = (command, ...args) => {
  console.error(`> ${command} ${args.join(' ')}`)
  execFileSync(command, args, { cwd: folder, stdio: ['ignore', 'inherit', 'inherit'] })
}

mkdirSync(folder, { recursive: true })
run(process.execPath, join(root, 'scripts/fetch-llama.mjs'))
const model = await cachedModel('tinyMoe')
const program = join(folder, 'decode')
const headers = `-I${join(root, 'vendor/llama/include')}`
const linked = [`-L${libs}`, `-Wl,-rpath,${libs}`, '-lllama', '-lggml', '-lggml-base', '-lpthread']
run('cc', '-std=gnu11', '-O2', headers, join(root, 'test/llama/run.c'), '-o', program, ...linked)

const cli = join(root, 'dist/ggml2perfetto.js')
const log = join(folder, 'moe.ggtrace')
const work = ['--lib', libs, '--model', model.path, '--threads', '2', '--threadpool', '--prompt', '16', '--decode', '8']
run(process.execPath, cli, 'record', '-o', log, '--', program, ...work)
run(process.execPath, cli, log)
