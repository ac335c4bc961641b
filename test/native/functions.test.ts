import { spawnSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from '@jest/globals'
import type { FunctionEvent } from '../../lib/core.ts'
import type { Model } from '../llama/gguf.mjs'
import { functionsProgram, hasLlama, LIB, model, run, runFunctions, runPython } from '../llama/testbed.ts'
import { inLong, isLong } from '../long.ts'
import { canBpftrace, HAS_AMX } from '../machine.ts'
import { byStart, inFolder, RECORDER, type Recording, readLog, useRecorder } from './recording.ts'

/** What functions.c does, and prints, against what the recorder sees of it. */

const llama = hasLlama() ? describe : describe.skip
const observed = isLong && hasLlama() && canBpftrace() ? test : test.skip

const LOADING = ['load-model', 'read-header', 'map', 'copy-weights', 'create-context', 'reserve', 'synchronize']

let tiny: Model

/** Functions and changes of sequences in the order of their starts, as functions.c prints them. */
function done({ of, text }: Recording) {
  const functions = of('function')
    .filter(({ what }) => !LOADING.includes(what) && what !== 'write-log')
    .map((event) => {
      const { what, sequence, output, value, startNs } = event
      return {
        startNs,
        endNs: event.endNs,
        line: { event: 'function', what, name: text(event.name), sequence, output, value },
      }
    })
  const changes = of('sequence').map(({ what, sequence, to, from, end, delta, isDone, atNs }) => ({
    startNs: atNs,
    endNs: atNs,
    line: { event: 'change', what, sequence, to, from, end, delta, isDone },
  }))
  return [...functions, ...changes].sort((a, b) => a.startNs - b.startNs || b.endNs - a.endNs).map(({ line }) => line)
}

let paths = 0
const newPath = (name: string) => inFolder(`${paths++}-${name}`)

async function record(env: Readonly<Record<string, string>> = {}, { path }: Pick<Model, 'path'> = tiny) {
  const [log, folder] = [newPath('run.ggtrace'), newPath('state')]
  mkdirSync(folder)
  const program = await runFunctions([LIB, path, folder], {
    preload: RECORDER,
    env: { GGML2PERFETTO_OUT: log, ...env },
  })
  expect([program.code, program.stderr]).toEqual([0, ''])
  return { program, log, recording: await readLog(log) }
}

llama('functions around calls', () => {
  useRecorder()
  beforeAll(async () => {
    tiny = await model('tinyMoe')
  })

  test('are those that the program calls, with their fields, and change nothing', async () => {
    const { program, recording } = await record()
    const folder = newPath('plain')
    mkdirSync(folder)
    const plain = await runFunctions([LIB, tiny.path, folder])
    expect(program.result?.tokens).toEqual(plain.result?.tokens)
    const printed = program.lines.filter(({ event }) => event === 'function' || event === 'change')
    expect(printed.length).toBeGreaterThan(1050)
    expect(done(recording)).toEqual(printed)
    expect(recording.issues).toEqual([expect.stringMatching(/: 76 conversions of a token to text/)])
    const [context] = recording.of('token').map(({ batch }) => batch!.context)
    for (const { what, context: of } of recording.of('function').filter(({ what }) => what === 'sample'))
      expect([what, of]).toEqual(['sample', context])
    for (const change of recording.of('sequence')) expect(change.context).toBe(context)
    expect(recording.attributes['functions.missing']).toMatch(/^speculation, images and sound: no library/)
  })

  const isIn = (inner: FunctionEvent, outer: FunctionEvent) =>
    inner.tid === outer.tid && inner.startNs >= outer.startNs && inner.endNs <= outer.endNs

  test('nest: a chain contains its members, one after the other', async () => {
    const { of, text } = (await record()).recording
    const samples = of('function')
      .filter(({ what }) => what === 'sample')
      .sort(byStart)
    const chains = samples.filter(({ name }) => text(name) === 'chain')
    expect(chains).toHaveLength(4)
    for (const chain of chains) {
      const members = samples.filter((sample) => sample !== chain && isIn(sample, chain))
      expect(members.map(({ name }) => text(name))).toEqual(['top-k', 'temp', 'dist'])
      for (const [i, member] of members.slice(1).entries())
        expect(member.startNs).toBeGreaterThanOrEqual(members[i]!.endNs)
    }
  })

  inLong(test)('take messages for the log: all of them, and the program gets each', async () => {
    const slow = ['--decode', '3', '--slow-log', '--verbose']
    const env = { GGML_SCHED_DEBUG: '2', LLAMA_GRAPH_REUSE_DISABLE: '1' }
    const log = newPath('slow-log.ggtrace')
    const { code, stderr } = await run(tiny.path, slow, { preload: RECORDER, env: { GGML2PERFETTO_OUT: log, ...env } })
    // Some contain times.
    const lines = (text: string) => text.split('\n')
    expect([code, lines((await run(tiny.path, slow, { env })).stderr).length]).toEqual([0, lines(stderr).length])
    const messages = (await readLog(log)).of('function').filter(({ what }) => what === 'write-log')
    for (const { startNs, endNs } of messages) expect(endNs - startNs).toBeGreaterThanOrEqual(100_000)
    // Those before the model is loaded are not in the log.
    const after = stderr.slice(stderr.indexOf('llama_model_loader'))
    expect(messages.reduce((sum, { value }) => sum + value, 0)).toBe(after.length)
  })

  test('load a model in stages, in the time that the program measures', async () => {
    const { program, recording } = await record()
    const { of, text } = recording
    const loads = of('function').filter(({ what }) => what === 'load-model')
    expect(loads.map(({ name }) => text(name))).toEqual([tiny.path.split('/').at(-1)])
    const [load] = loads
    const measured = program.lines.find((line) => line.event === 'load')!
    const origin = Number(of('input')[0]!.originNs)
    expect(origin + load!.startNs).toBeGreaterThan(measured.start - 1000)
    expect(origin + load!.endNs).toBeLessThan(measured.end + 1000)
    const stages = of('function').filter((stage) => stage !== load && isIn(stage, load!))
    expect(stages.map(({ what }) => what)).toEqual(expect.arrayContaining(['read-header', 'map', 'copy-weights']))
    const others = of('function').filter(({ what }) => ['read-header', 'map', 'copy-weights'].includes(what))
    expect(stages.filter(({ what }) => what !== 'synchronize' && what !== 'write-log')).toEqual(others)
    const contexts = of('function').filter(({ what }) => what === 'create-context')
    expect(contexts.map(({ context }) => context)).toEqual([of('token')[0]!.batch!.context])
    const reserved = of('function').filter(({ what }) => what === 'reserve')
    expect(reserved.length).toBeGreaterThan(0)
    for (const stage of reserved) expect(isIn(stage, contexts[0]!)).toBe(true)
  })

  test('copy the weights that the CPU backend repacks: all matrices but the embeddings', async () => {
    const { tensors } = await run(tiny.path, ['--tensors'])
    const repacked = tensors.filter(({ name, type }) => type === 'q4_0' && name !== 'token_embd.weight')
    const { of } = (await record()).recording
    const values = of('function').flatMap(({ what, value }) => (what === 'copy-weights' && value > 0 ? [value] : []))
    // With AMX two buffers: those of which AMX computes the type and shape, and the others.
    expect(values).toHaveLength(HAS_AMX ? 2 : 1)
    expect(values.reduce((sum, bytes) => sum + bytes, 0)).toBe(repacked.reduce((sum, { size }) => sum + size, 0))
  })

  const kindsOf = (recording: Recording) => new Set(done(recording).map(({ event }) => event))

  test('are not recorded where that was not asked for; while paused, only sequences are', async () => {
    const off = await record({ GGML2PERFETTO_FUNCTIONS: '0' })
    expect(off.recording.of('function')).toEqual([])
    expect(off.recording.of('sequence')).toEqual([])
    expect(off.recording.of('token')).toHaveLength(2)
    expect(off.recording.attributes['functions.missing']).toBe('all: not requested')
    const paused = await record({ GGML2PERFETTO_PAUSED: 'paused' })
    expect([...kindsOf(paused.recording)]).toEqual(['change'])
    expect(paused.recording.of('sequence')).toHaveLength(6)
  })

  inLong(test)('belong to the call before them: --tokens chooses them, --every does not', async () => {
    const sampled = async (env: Readonly<Record<string, string>>) => {
      const { of, text } = (await record({ GGML2PERFETTO_LEVEL: 'token', ...env })).recording
      return of('function').filter(({ what, name }) => what === 'sample' && text(name) === 'chain').length
    }
    expect(await sampled({ GGML2PERFETTO_TOKENS: '0..0' })).toBe(1)
    expect(await sampled({ GGML2PERFETTO_TOKENS: '1..' })).toBe(3)
    expect(await sampled({ GGML2PERFETTO_EVERY: '5' })).toBe(4)
  })

  test('by a program that finds them by dlsym are missing, and the log says so', async () => {
    const log = newPath('run.ggtrace')
    const { path } = tiny
    const { code } = await runPython(path, 1, 2, { preload: RECORDER, env: { GGML2PERFETTO_OUT: log } })
    expect(code).toBe(0)
    const { of, attributes } = await readLog(log)
    expect(of('token').length).toBeGreaterThan(0)
    expect(attributes['functions.missing']).toMatch(/; all C functions of llama.cpp: .*dlsym/)
  })

  inLong(observed)('are as many samplers as bpftrace counts (needs bpftrace)', async () => {
    const [log, folder] = [newPath('run.ggtrace'), newPath('state')]
    mkdirSync(folder)
    const library = join(LIB, 'libllama.so')
    // A sampler that is not there (NULL) returns at once, and is not recorded.
    const script = `uprobe:${library}:llama_sampler_apply /pid == cpid && arg0 != 0/ { @samplers = count(); } uprobe:${library}:llama_memory_seq_rm /pid == cpid/ { @removed = count(); }`
    const words = [
      'env',
      `LD_PRELOAD=${RECORDER}`,
      `GGML2PERFETTO_OUT=${log}`,
      await functionsProgram(),
      LIB,
      tiny.path,
      folder,
    ]
    const command = `exec ${words.map((word) => `'${word}'`).join(' ')}`
    const { stdout, stderr } = spawnSync('bpftrace', ['-e', script, '-c', '/bin/sh'], {
      input: command,
      encoding: 'utf8',
    })
    const counted = ['samplers', 'removed'].map((name) => new RegExp(`@${name}: (\\d+)`).exec(stdout)?.[1] ?? stderr)
    const { of } = await readLog(log)
    const recorded = [
      of('function').filter(({ what }) => what === 'sample').length,
      of('sequence').filter(({ what }) => what === 'remove').length,
    ]
    expect(recorded.map(String)).toEqual(counted)
    expect(recorded).toEqual([17, 1])
  })
})
