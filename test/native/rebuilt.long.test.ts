import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { cc } from '../compile.ts'
import { hasLlama, model } from '../llama/testbed.ts'
import { inFolder, RECORDER, type Recording, readLog, useRecorder } from './recording.ts'

/**
 * llama.cpp b4980 builds its graph anew for each call, at the same addresses. Only some nodes differ then: the views of the KV cache that
 * the call writes to.
 */

const VERSION = '3.7.0'
const RUNS = pathToFileURL(fileURLToPath(new URL('../../scripts/compatibility/runs.mjs', import.meta.url))).href
const HOST = fileURLToPath(new URL('../llama/any-version.c', import.meta.url))
const [PROMPT, DECODE] = [8, 70]

/** The folder of its libraries; undefined where it cannot be fetched. */
function librariesOf(version: string): string | undefined {
  const script = `import { install } from '${RUNS}'; console.log(await install('${version}'))`
  const { status, stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' })
  return status === 0 ? join(stdout.trim(), 'node_modules/@node-llama-cpp/linux-x64/bins/linux-x64') : undefined
}

const libraries = hasLlama() ? librariesOf(VERSION) : undefined
const llama = libraries ? describe : describe.skip

llama(`graphs that are built for each call (needs linux-x64, cc, and node-llama-cpp ${VERSION} from npm)`, () => {
  useRecorder()
  let recording: Recording
  let hashed: Recording

  function record(log: string, env: Record<string, string> = {}, every = 0, before: readonly string[] = []) {
    const host = [inFolder('any-version'), join(libraries!, 'libllama.so'), libraries!, path]
    const numbers = [2, PROMPT, DECODE, every].map(String)
    const [command, ...args] = [...before, 'env', `LD_PRELOAD=${RECORDER}`, ...host, ...numbers]
    const { status, stdout, stderr } = spawnSync(command!, args, {
      env: { ...process.env, GGML2PERFETTO_OUT: log, ...env },
      input: '\n'.repeat(1 + DECODE),
      encoding: 'utf8',
    })
    expect([status, stderr]).toEqual([0, ''])
    expect(stdout.trim().split('\n')).toHaveLength(1 + DECODE)
    return readLog(log)
  }
  let path = ''

  beforeAll(async () => {
    path = (await model('tinyMoe')).path
    cc('-O2', HOST, '-o', inFolder('any-version'), '-ldl')
    recording = await record(inFolder('renewed.ggtrace'))
    // With a list of ops, each graph is hashed as a whole.
    hashed = await record(inFolder('hashed.ggtrace'), { GGML2PERFETTO_OPS: opsOf(recording).join(',') })
  })

  const opsOf = (log: Recording) => [
    ...new Set(log.of('operator').map(({ tensor }) => log.text(log.tensor(tensor).op))),
  ]

  const textOf = (log: Recording, id: number) => {
    const { name, op, ne, offset } = log.tensor(id)
    return `${log.text(name)} ${log.text(op)} ${ne} ${offset}`
  }

  /** Each operator of a worker, as what it is and what it reads, in order of time. */
  const stepsOf = (log: Recording, worker: number) =>
    log
      .of('operator')
      .filter((operator) => operator.worker === worker)
      .sort((a, b) => a.startNs - b.startNs)
      .map(({ call, tensor }) => {
        const { sources } = log.tensor(tensor)
        return [`${call}`, ...[tensor, ...sources].map((id) => textOf(log, id))].join(' ')
      })

  test('one graph run for each call, no issue', () => {
    expect(recording.issues).toEqual([])
    expect(recording.of('graph').map(({ call }) => call)).toEqual(Array.from({ length: 1 + DECODE }, (_, i) => i))
  })

  test('each call writes to the place of its token in the KV cache, on each worker', () => {
    for (const worker of [0, 1]) {
      const written = recording
        .of('operator')
        .filter((operator) => operator.worker === worker && operator.call > 0)
        .map(({ call, tensor }) => ({ call, ...recording.tensor(tensor) }))
        .filter(({ name, op }) => recording.text(op) === 'CPY' && recording.text(name).startsWith('cache_k_l3'))
        .sort((a, b) => a.call - b.call)
      expect(written).toHaveLength(DECODE)
      const from = recording.tensor(written[0]!.viewOf!).offset!
      const row = written[1]!.offset! - written[0]!.offset!
      expect(row).toBeGreaterThan(0)
      expect(written.map(({ offset }) => offset! - from)).toEqual(written.map(({ call }) => (PROMPT + call - 1) * row))
    }
  })

  test('the same operators, with the same sources, as if each graph were hashed as a whole', () => {
    for (const worker of [0, 1]) {
      const steps = stepsOf(recording, worker)
      expect(steps.length).toBeGreaterThan(DECODE * 200)
      expect(steps).toEqual(stepsOf(hashed, worker))
    }
  })

  test('also if graphs of several tokens are built at the same addresses in between', async () => {
    const mixed = await record(inFolder('mixed.ggtrace'), {}, 5)
    const whole = await record(inFolder('whole.ggtrace'), { GGML2PERFETTO_OPS: opsOf(mixed).join(',') }, 5)
    expect(mixed.of('token').filter(({ tokens }) => tokens === PROMPT)).toHaveLength(1 + DECODE / 5)
    for (const worker of [0, 1]) expect(stepsOf(mixed, worker)).toEqual(stepsOf(whole, worker))
    // No tensor is defined twice: a graph's operators read each other's results.
    expect(mixed.tensors.filter(Boolean).length).toBe(whole.tensors.filter(Boolean).length)
  })

  const withoutSys = ['unshare', '-m', 'sh', '-c', 'mount -t tmpfs none /sys && exec "$@"', 'sh']
  const asRoot = process.getuid?.() === 0 && spawnSync(withoutSys[0]!, [...withoutSys.slice(1), 'true']).status === 0
  const rooted = asRoot ? test : test.skip
  rooted('the same where /sys is missing, by the clock of the kernel (needs root, to hide /sys)', async () => {
    const file = inFolder('no-sys.ggtrace')
    const log = await record(file, {}, 0, withoutSys)
    expect([readFileSync(file).includes('clock.error_ns'), log.issues]).toEqual([false, []])
    for (const worker of [0, 1]) expect(stepsOf(log, worker)).toEqual(stepsOf(recording, worker))
    const of = (worker: number) => log.of('operator').filter((operator) => operator.worker === worker)
    for (const worker of [0, 1]) {
      const sorted = of(worker).sort((a, b) => a.startNs - b.startNs)
      for (const [i, { startNs }] of sorted.slice(1).entries()) expect(startNs).toBeGreaterThanOrEqual(sorted[i]!.endNs)
    }
  })

  test('--ops leaves views out, too', async () => {
    const log = await record(inFolder('some.ggtrace'), { GGML2PERFETTO_OPS: 'MUL_MAT' })
    const ops = log.of('operator').map(({ tensor }) => log.text(log.tensor(tensor).op))
    expect([...new Set(ops)]).toEqual(['MUL_MAT'])
    const all = recording
      .of('operator')
      .filter(({ tensor }) => recording.text(recording.tensor(tensor).op) === 'MUL_MAT')
    expect(ops).toHaveLength(all.length)
  })

  test('both workers compute the same nodes, views included', () => {
    expect(stepsOf(recording, 1)).toEqual(stepsOf(recording, 0))
    expect(stepsOf(recording, 0).filter((step) => / RESHAPE /.test(step)).length).toBeGreaterThan(DECODE * 10)
  })
})
