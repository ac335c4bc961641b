/**
 * Records programs that contain ggml and llama.cpp (`static-programs/build.mjs`), and compares: calls, graphs and operators with bpftrace's counts
 * of the functions' entries in a run without the recorder, and what the program prints. Prints the table of docs/reference/recorder.md.
 *   node scripts/static-programs.mjs [--folder FOLDER] [--only PATTERN] [--calls 100000]
 * --calls: also that many calls of llama-server, of the last variant. Needs root, bpftrace, cmake, ninja, gcc and clang; Go where there is
 * one. The builds take half an hour of CPU time and 1 GB in FOLDER, once. The exit code is 1 if something differs.
 */
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { eventsOf, Names } from '../dist/index.js'
import { inputOf } from '../dist/node.js'
import { cacheFolder } from '../test/cache.cjs'
import { cachedModel } from '../test/llama/gguf.mjs'
import { freePort, untilUp } from './servers.mjs'
import { build, variants } from './static-programs/build.mjs'

const RECORDER = fileURLToPath(new URL('../dist/native/linux-x64/libggml2perfetto.so', import.meta.url))
const SPEC = {
  layers: 2,
  width: 64,
  feedForward: 128,
  heads: 2,
  kvHeads: 1,
  vocabulary: 300,
  context: 512,
  experts: 4,
  expertsUsed: 2,
}
/** What is recorded of each entry, and the function that bpftrace counts. */
const COUNTED = {
  calls: 'llama_decode',
  graphs: 'ggml_graph_compute',
  operators: 'ggml_cpu_extra_compute_forward',
}

const { values } = parseArgs({
  options: {
    folder: { type: 'string', default: cacheFolder('static-programs') },
    only: { type: 'string', default: '' },
    calls: { type: 'string' },
  },
})

const answers = async (url, count, words) => {
  const hash = createHash('sha256')
  for (let i = 0; i < count; i++) {
    const body = {
      prompt: `w${1 + (i % 200)} w2`,
      n_predict: words,
      temperature: 0,
      ignore_eos: true,
      cache_prompt: false,
    }
    const answer = await fetch(`${url}/completion`, { method: 'POST', body: JSON.stringify(body) })
    if (!answer.ok) throw new Error(`llama-server answered ${answer.status}`)
    hash.update((await answer.json()).content)
  }
  return `${count} answers ${hash.digest('hex').slice(0, 16)}`
}

/** Programs: their arguments, and what is compared of their output. `work`: of a server, what is asked. */
const programsOf = (model, prompt) => ({
  'llama-cli': {
    args: [
      '-m',
      model,
      '-f',
      prompt,
      ...'-n 40 --temp 0 -st --no-show-timings --ignore-eos --simple-io -t 2 -c 256'.split(' '),
    ],
    compared: (text) => text.slice(text.indexOf('\n> ')),
  },
  'llama-server': {
    args: ['-m', model, ...'-t 2 -c 512 -np 1 --host 127.0.0.1 --port'.split(' ')],
    work: (url) => answers(url, 5, 20),
  },
  'host-go': { args: [model, '3', '50'], compared: (text) => text },
})

/** The process itself, or the one that bpftrace has started. */
const programOf = async ({ pid }, isCounted) =>
  isCounted ? Number((await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')).split(' ')[0]) : pid

/** Runs a program to its end, or a server until its work is done. */
async function run(path, { args, compared, work }, { env = {}, probes } = {}) {
  const port = work && (await freePort())
  const own = [path, ...args, ...(work ? [port] : [])].map(String)
  const [command, ...rest] = probes ? ['bpftrace', '-e', probes, '-c', own.join(' ')] : own
  const child = spawn(command, rest, { env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] })
  let [stdout, stderr] = ['', '']
  child.stdout.setEncoding('utf8').on('data', (text) => (stdout += text))
  child.stderr.setEncoding('utf8').on('data', (text) => (stderr = (stderr + text).slice(-4000)))
  let isOver = false
  const ended = new Promise((resolve) => child.on('close', (code, signal) => resolve(signal ?? code)))
  void ended.then(() => (isOver = true))
  try {
    const url = `http://127.0.0.1:${port}`
    const isUp = work && (await untilUp(url, () => isOver))
    const done = isUp ? await work(url) : undefined
    if (isUp) process.kill(await programOf(child, probes), 'SIGINT')
    const code = await ended
    if (code !== 0) throw new Error(`${path}: ended by ${code}: ${stderr}`)
    return { output: done ?? compared(stdout), stdout }
  } finally {
    child.kill('SIGKILL')
  }
}

async function counts(path, program) {
  const probes = Object.values(COUNTED).map((name) => `uprobe:${path}:${name} { @["${name}"] = count(); }`)
  const { stdout } = await run(path, program, { probes: probes.join(' ') })
  const found = Object.fromEntries(
    [...stdout.matchAll(/^@\[(\w+)\]: (\d+)$/gm)].map(([, name, count]) => [name, Number(count)]),
  )
  return Object.fromEntries(Object.entries(COUNTED).map(([what, name]) => [what, found[name] ?? 0]))
}

async function contentOf(log) {
  const content = { calls: 0, graphs: 0, operators: 0, issues: new Set(), refused: [], copies: '', functions: 0 }
  const names = new Names()
  for await (const batch of eventsOf(inputOf(log), names))
    for (const event of batch) {
      if (event.kind === 'token') content.calls++
      else if (event.kind === 'graph') content.graphs++
      // Fused nodes pass no function; where ends are inferred, they are a part of the node before them.
      else if (event.kind === 'operator' && (event.fusedTo === undefined || event.inferred)) content.operators++
      else if (event.kind === 'issue') content.issues.add(event.title)
      else if (event.attributes) {
        const {
          'program.refused': refused,
          'program.functions': functions,
          'program.copies': copies,
        } = event.attributes
        if (refused) content.refused = refused.split('; ')
        if (functions) content.functions = Number(functions)
        if (copies) content.copies = copies
      }
    }
  return content
}

/** `refused`: names by reason and program, for the list below the table. */
async function tryProgram(path, program, log) {
  const plain = await run(path, program)
  const recorded = await run(path, program, { env: { LD_PRELOAD: RECORDER, GGML2PERFETTO_OUT: log } })
  const [content, expected] = [await contentOf(log), await counts(path, program)]
  const cell = (what) =>
    content[what] === expected[what] ? `${content[what]}` : `${content[what]} of ${expected[what]}`
  const isSame = plain.output === recorded.output && plain.output !== ''
  const cells = [
    content.functions,
    content.refused.length,
    ...Object.keys(COUNTED).map(cell),
    isSame ? 'the same' : 'differs',
  ]
  const isRight = isSame && Object.keys(COUNTED).every((what) => content[what] === expected[what] && content[what] > 0)
  return { cells: [...cells, [...content.issues].join(', ') || 'none'], isRight, ...content }
}

/** Many calls of a server: nothing differs from a run without the recorder. */
async function manyCalls(path, program, log, calls) {
  const words = 400
  const many = { ...program, work: (url) => answers(url, Math.ceil(calls / words), words) }
  const plain = await run(path, many)
  const began = performance.now()
  const recorded = await run(path, many, { env: { LD_PRELOAD: RECORDER, GGML2PERFETTO_OUT: log } })
  const [content, seconds] = [await contentOf(log), (performance.now() - began) / 1000]
  const same = plain.output === recorded.output ? 'the same answers' : 'DIFFERENT ANSWERS'
  const bytes = (await stat(log)).size
  console.log(
    `\n${content.calls} calls, ${content.graphs} graphs, ${content.operators} operators: ${same} (${plain.output})`,
  )
  console.log(
    `issues: ${[...content.issues].join(', ') || 'none'}; ${seconds.toFixed(0)} s, a log of ${(bytes / 1e6).toFixed(0)} MB`,
  )
  return plain.output === recorded.output && content.calls >= calls && content.issues.size === 0
}

const work = await mkdtemp(join(tmpdir(), 'ggml2perfetto-static-run-'))
try {
  const wanted = variants.filter(({ name }) => name.includes(values.only))
  await build(values.folder, wanted)
  const prompt = join(work, 'prompt.txt')
  await writeFile(prompt, 'w1 w2 w3')
  const programs = programsOf((await cachedModel(SPEC)).path, prompt)
  const line = (cells) => console.log(`| ${cells.join(' | ')} |`)
  line(['program', 'built by', 'redirected', 'refused', 'calls', 'graphs', 'operators', 'output', 'issues'])
  line(Array(9).fill('---'))
  const refused = new Map()
  for (const [name, program] of Object.entries(programs))
    for (const { name: variant, cc, level } of wanted) {
      const path = join(values.folder, variant, 'bin', name)
      if (!(await stat(path).catch(() => undefined))) continue
      const result = await tryProgram(path, program, join(work, `${name}-${variant}.ggtrace`))
      line([name, `${cc} ${level}`, ...result.cells])
      if (!result.isRight) process.exitCode = 1
      for (const text of result.refused) refused.set(text, [...(refused.get(text) ?? []), `${name} ${variant}`])
    }
  console.log('')
  for (const [text, where] of [...refused].sort()) console.log(`- ${text} (${where.join(', ')})`)
  const { name } = wanted.at(-1)
  const server = join(values.folder, name, 'bin/llama-server')
  const log = join(work, 'many.ggtrace')
  if (values.calls && !(await manyCalls(server, programs['llama-server'], log, Number(values.calls))))
    process.exitCode = 1
} finally {
  await rm(work, { recursive: true })
}
