import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, symlinkSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { ROOT, whyNoDebian } from '../llama/debian.ts'
import { model } from '../llama/testbed.ts'
import { at, runProcess, start } from './helpers.ts'
import { script, useProgram } from './record-helpers.ts'

/** `doctor` with the real programs of Debian's llama.cpp, which the loader of their folder runs. */

const problem = whyNoDebian()
const debian = problem === undefined ? describe : describe.skip
/** Its vocabulary has no words: a prompt of 128 words has some 600 tokens. */
const SMALL = { layers: 2, width: 128, feedForward: 256, heads: 4, kvHeads: 2, vocabulary: 300, context: 2048 }
const LIBRARIES = `${ROOT}/usr/lib/x86_64-linux-gnu`

debian(`doctor with Debian's llama.cpp (${problem ?? 'here'})`, () => {
  useProgram()
  const path = () => at('home/models/tiny.gguf')

  beforeAll(async () => {
    for (const folder of ['tools', 'text', 'tmp', 'idle', 'failing', 'home/models'])
      mkdirSync(at(folder), { recursive: true })
    symlinkSync((await model(SMALL)).path, path())
    const loader = ['ld-linux-x86-64.so.2', 'x86_64-linux-gnu/ld-linux-x86-64.so.2']
      .flatMap((name) => [`${ROOT}/lib64/${name}`, `${ROOT}/usr/lib64/${name}`, `${ROOT}/usr/lib/${name}`])
      .find(existsSync)!
    const libraries = `${LIBRARIES}:${LIBRARIES}/llama:${LIBRARIES}/ggml`
    const placed = (name: string) =>
      `#!/bin/sh\nexport GGML_BACKEND_PATH=${LIBRARIES}/ggml/backends0/libggml-cpu-x64.so\n` +
      `exec ${loader} --library-path ${libraries} ${ROOT}/usr/bin/${name} "$@"\n`
    script('tools/llama-bench', placed('llama-bench'))
    script('text/llama-completion', placed('llama-completion'))
    script('idle/llama-bench', `#!/bin/sh\nexec ${at('tools')}/llama-bench -m "$2" -p 8 -n 0 -r 1\n`)
    script('failing/llama-bench', '#!/bin/sh\necho no such option >&2\nexit 3\n')
  })

  const env = () => ({ TMPDIR: at('tmp'), HOME: at('home'), PATH: `${at('tools')}:${process.env['PATH']}` })
  const doctor = (...args: string[]) => runProcess(['doctor', ...args], { env: env() })
  const running = () => spawnSync('pgrep', ['-f', '--', `-m ${path()}`], { encoding: 'utf8' }).stdout
  const leftOver = () => readdirSync(at('tmp'))

  test('finds llama-bench, and prints speeds by threads, peaks, placement, and advice; nothing remains', () => {
    const { code, stdout, stderr } = doctor('--rounds', '1')
    expect([code, stderr]).toEqual([0, expect.stringContaining(`program: ${at('tools')}/llama-bench\n`)])
    expect(stderr).toContain(`model: ${path()} (`)
    expect(stdout).toMatch(/^decode [\d., ]+ tok\/s/)
    for (const title of ['what was run', 'machine', 'peaks', 'runs', 'placement', 'ceiling'])
      expect(stdout).toContain(`\n${title}\n`)
    expect(stdout).toMatch(/^ {2}placement$|^ {2}all on the CPU: the program found no other device$/m)
    expect(stdout).toMatch(/^(?:1\. .*\n {3}to do: |no advice)/m)
    expect(leftOver()).toEqual([])
  })

  test('of a program that takes a text, as JSON: each number of threads with its speed', () => {
    const { code, stdout } = doctor(at('text'), '-m', path(), '--rounds', '1', '--json')
    expect(code).toBe(0)
    const document = JSON.parse(stdout)
    expect(document).toMatchObject({
      schema: 'ggml2perfetto.doctor/1',
      program: `${at('text')}/llama-completion`,
      model: { path: path(), architecture: 'llama', found: 1 },
      not_run: [],
      verdict: { subject: 'decode' },
    })
    expect(document.runs[0].threads).toBe(1)
    for (const { disturbed_by } of document.runs) expect(new Set(disturbed_by).size).toBe(disturbed_by.length)
    for (const { decode_tokens_per_s, prefill_tokens_per_s } of document.runs) {
      expect(decode_tokens_per_s).toBeGreaterThan(1)
      expect(prefill_tokens_per_s).toBeGreaterThan(1)
    }
    expect(document.peaks.read_bytes.all).toBeGreaterThan(0)
    expect(leftOver()).toEqual([])
  })

  test('a program that computes no token ends it', () => {
    const idle = doctor(at('idle'))
    expect([idle.code, idle.stderr]).toEqual([
      1,
      expect.stringMatching(/llama-bench: it decoded nothing: .*\nhint: another model \(-m\), or another program\n$/),
    ])
    expect(leftOver()).toEqual([])
  })

  test('a program that fails ends it, with its messages; too little time, with what to do', () => {
    const failing = doctor(at('failing'))
    expect([failing.code, failing.stderr]).toEqual([
      1,
      expect.stringMatching(/llama-bench: ended with exit code 3; its last messages:\nno such option\n$/),
    ])
    const short = doctor('--for', '1ms')
    expect([short.code, short.stderr]).toEqual([
      1,
      expect.stringMatching(/the first run, of .* did not end in .*\nhint: a smaller model \(-m\), or more time/),
    ])
    expect(leftOver()).toEqual([])
  })

  test('Ctrl-C leaves nothing', async () => {
    const child = start(['doctor'], env())
    let said = ''
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      said += text
    })
    const ended = new Promise<number | null>((resolve) => child.on('close', (code) => resolve(code)))
    while (!said.includes('run 2 of ') && child.exitCode === null) await sleep(20)
    child.kill('SIGINT')
    expect([await ended, said]).toEqual([130, expect.stringMatching(/\ninterrupted\n$/)])
    expect(leftOver()).toEqual([])
    // The program that ran ends, too.
    for (let tries = 0; tries < 50 && running() !== ''; tries++) await sleep(20)
    expect(running()).toBe('')
  })
})
