import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { Inferred } from '../../lib/core.ts'
import { analyze, summarize } from '../../lib/index.ts'
import { inputOf } from '../../lib/node.ts'
import { IN_ROOT, inRoot, ROOT, whyNoDebian } from '../llama/debian.ts'
import { model } from '../llama/testbed.ts'
import { canBpftrace } from '../machine.ts'
import { byStart, expectSameTimes, RECORDER, readLog, useRecorder } from './recording.ts'
import '../live.ts'

/**
 * The newest llama.cpp that Debian has (0.7.0 when this was written), its own tools, in a folder made of Debian's packages. They call
 * llama_process where older ones called llama_decode.
 */

const WHISPER = fileURLToPath(new URL('../llama/whisper-model.mjs', import.meta.url))
const TOKEN_BT = fileURLToPath(new URL('../../native/ebpf/token.bt', import.meta.url))

const problem = whyNoDebian()
const debian = problem === undefined ? describe : describe.skip
const observed = problem === undefined && canBpftrace() ? test : test.skip

debian(`llama.cpp of Debian sid (${problem ?? 'as root'})`, () => {
  useRecorder()
  let folder = ''

  beforeAll(async () => {
    folder = mkdtempSync(join(ROOT, 'tmp/run-'))
    copyFileSync(RECORDER, join(folder, 'recorder.so'))
    copyFileSync((await model('tinyMoe')).path, join(folder, 'moe.gguf'))
    copyFileSync((await model('tinyDense')).path, join(folder, 'dense.gguf'))
    copyFileSync((await model('tinyT5')).path, join(folder, 't5.gguf'))
  })
  afterAll(() => rmSync(folder, { recursive: true }))

  const preloaded = (log: string) => [
    'env',
    `LD_PRELOAD=${inRoot(folder)}/recorder.so`,
    `GGML2PERFETTO_OUT=${inRoot(log)}`,
  ]
  const toolOf = (line: string) =>
    line
      .replaceAll('MODEL', `${inRoot(folder)}/moe.gguf`)
      .replaceAll('DRAFT', `${inRoot(folder)}/dense.gguf`)
      .split(' ')
  /** For a shell that bpftrace starts: newer versions trace that process alone, so it becomes the program. */
  const traceable = (words: readonly string[]) => `exec ${words.map((word) => `'${word}'`).join(' ')}`
  let logs = 0
  const newLog = () => join(folder, `${logs++}.ggtrace`)

  function run(line: string, log?: string) {
    const [first, ...rest] = [...IN_ROOT, ...(log === undefined ? [] : preloaded(log)), ...toolOf(line)]
    const { status, stdout, stderr } = spawnSync(first!, rest, { encoding: 'utf8', timeout: 240_000 })
    return { status, stdout, stderr }
  }

  /** Recorded, with the same output as without. llama.cpp's output is cut off at times, with and without us: tried again. */
  async function record(line: string) {
    let log = newLog()
    let [plain, recorded] = [run(line), run(line, log)]
    for (let tries = 1; tries < 3 && plain.stdout !== recorded.stdout; tries++) {
      log = newLog()
      plain = run(line)
      recorded = run(line, log)
    }
    expect([plain.status, recorded.status]).toEqual([0, 0])
    return { plain, recorded, log, recording: await readLog(log) }
  }

  /** Of each call, what it is and how many tokens it has. */
  const callsOf = ({ of }: Awaited<ReturnType<typeof readLog>>) =>
    of('token').map(({ phase, tokens }) => [phase, tokens])

  const COMPLETION = 'llama-completion -m MODEL -p abcdefgh -n 6 -no-cnv -t 2 --seed 1 --temp 0'

  test('llama-completion: the calls that llama.cpp itself counts, and the same text', async () => {
    const { plain, recorded, recording } = await record(COMPLETION)
    expect(recorded.stdout).toBe(plain.stdout)
    const [, prompt, decoded] = /prompt eval time =.*\/ +(\d+) tokens[\s\S]*?eval time =.*\/ +(\d+) runs/.exec(
      recorded.stderr,
    )!
    expect(callsOf(recording)).toEqual([
      ['warm-up', 2],
      ['prefill', Number(prompt)],
      ...Array.from({ length: Number(decoded) }, () => ['decode', 1]),
    ])
    expect(
      recording
        .of('token')
        .slice(1)
        .map(({ batch }) => batch?.spans.map(({ position }) => position)),
    ).toEqual([[0], ...Array.from({ length: Number(decoded) }, (_, i) => [Number(prompt) + i])])
    expect(recording.issues).toEqual([])
    expect(recording.of('graph').filter(({ call }) => call >= 0)).toHaveLength(1 + Number(decoded))
    expect(recording.of('operator').length).toBeGreaterThan(100)
  })

  test('without a warm-up, its first call is a prompt', async () => {
    const { recording } = await record(`${COMPLETION} --no-warmup`)
    expect(callsOf(recording)[0]![0]).toBe('prefill')
    expect(recording.of('graph').map(({ call }) => call)).toEqual([0, 1, 2, 3, 4, 5])
  })

  test('warm-ups of benchmarks, of any number of tokens and calls, and none where there is none', async () => {
    const phasesOf = async (line: string) => {
      const log = newLog()
      expect(run(line, log).status).toBe(0)
      const recording = await readLog(log)
      const calls = recording.of('token').sort((a, b) => a.startNs - b.startNs)
      for (const { phase, inferred } of calls) if (phase === 'warm-up') expect(inferred & Inferred.Phase).not.toBe(0)
      return calls.map(({ phase, tokens }) => `${phase === 'warm-up' ? 'w' : ''}${tokens}`).join(' ')
    }
    const bench = 'llama-bench -m MODEL -t 2 -r 2'
    expect(await phasesOf(`${bench} -p 16 -n 3`)).toBe('w16 16 16 w1 1 1 1 1 1 1')
    expect(await phasesOf(`${bench} -p 16 -n 3 --no-warmup`)).toBe('16 16 1 1 1 1 1 1')
    expect(await phasesOf(`${bench} -p 0 -n 1`)).toBe('w1 1 1')
    expect(await phasesOf(`${bench} -p 0 -n 0 -pg 600,2 -b 512`)).toBe(`w512 w88 w1${' 512 88 1 1'.repeat(2)}`)
    expect(await phasesOf('llama-batched-bench -m MODEL -c 256 -npp 8 -ntg 2 -npl 1,2 -t 2')).toBe('w16 8 1 1 16 2 2')
  })

  test('llama-bench: each repetition of each test is a run, as fast as it says itself', async () => {
    interface Test {
      readonly n_prompt: number
      readonly n_gen: number
      readonly n_depth: number
      readonly avg_ts: number
      readonly samples_ns: readonly number[]
    }
    const line = 'llama-bench -m MODEL -t 1 -p 128 -n 32 -pg 64,16 -r 2 -d 0,64 -o json'
    // Its own times also contain what it does between calls, where it may have no CPU: tried again, until each test agreed once.
    const closest = Array.from({ length: 6 }, () => Infinity)
    for (let tries = 0; tries < 8 && closest.some((ratio) => Math.abs(ratio - 1) > 0.01); tries++) {
      const log = newLog()
      const tests: Test[] = JSON.parse(run(line, log).stdout)
      const { calls } = await analyze(inputOf(log))
      const own = tests.map(({ n_depth, n_prompt, n_gen, samples_ns }) => [n_depth, n_prompt, n_gen, samples_ns.length])
      expect(own).toHaveLength(6)
      expect(calls.runs.map((of) => [of.depth, of.prompt_tokens, of.generated_tokens, of.runs])).toEqual(own)
      expect(calls.ttft_runs).toBe(8) // of tests with a prompt
      // The first token of a test has its operators, although it might have been a test of the memory.
      const { of } = await readLog(log)
      const computed = new Set(of('operator').map(({ call }) => call))
      expect(of('token').every(({ call, phase }) => phase === 'warm-up' || computed.has(call))).toBe(true)
      for (const [i, { tokens_per_s }] of calls.runs.entries()) {
        const ratio = tokens_per_s! / tests[i]!.avg_ts
        if (Math.abs(ratio - 1) < Math.abs(closest[i]! - 1)) closest[i] = ratio
      }
    }
    for (const ratio of closest) expect(ratio).toBeCloseTo(1, 1)
  })

  /** The samplers that were applied, in their order: a chain, then its members. */
  const samplersOf = ({ of }: Awaited<ReturnType<typeof readLog>>) =>
    of('function')
      .filter(({ what }) => what === 'sample')
      .sort(byStart)

  test('llama-completion: the chain of samplers that it prints, for each token', async () => {
    const { recorded, recording } = await record(COMPLETION)
    const [, printed] = /sampler chain: logits (.*)/.exec(recorded.stderr)!
    const chain = ['chain', ...printed!.split('-> ').flatMap((name) => name.trim() || [])]
    expect(chain.length).toBeGreaterThan(5)
    const samplers = samplersOf(recording)
    expect(samplers.map(({ name }) => recording.text(name))).toEqual(Array.from({ length: 6 }, () => chain).flat())
    // Each token is sampled from the last output of the call before it.
    const calls = recording.of('token').filter(({ phase }) => phase !== 'warm-up')
    for (const { output, startNs, context } of samplers) {
      const { batch, tokens } = calls.findLast(({ endNs }) => endNs <= startNs)!
      expect([context, output]).toEqual([batch!.context, tokens - 1])
    }
  })

  observed('llama-completion with a grammar: as many samplers as bpftrace counts (needs bpftrace)', async () => {
    const library = execFileSync('sh', ['-c', 'ls "$0"/usr/lib/*/libllama.so.0', ROOT], { encoding: 'utf8' }).trim()
    const log = newLog()
    const script = `uprobe:${library}:llama_sampler_apply /pid == cpid && arg0 != 0/ { @samplers = count(); }`
    const command = traceable([...IN_ROOT, ...preloaded(log), ...toolOf(COMPLETION), '--grammar', 'root ::= [a-z ]+'])
    const { stdout, stderr } = spawnSync('bpftrace', ['-e', script, '-c', '/bin/sh'], {
      input: command,
      encoding: 'utf8',
    })
    const [, counted] = /@samplers: (\d+)/.exec(stdout) ?? [stderr, 'nothing']
    const recording = await readLog(log)
    const samplers = samplersOf(recording)
    expect(`${samplers.length}`).toBe(counted)
    expect(samplers.filter(({ name }) => recording.text(name) === 'grammar').length).toBeGreaterThan(0)
  })

  observed('llama-bench, llama-batched-bench: as many calls as bpftrace counts (needs bpftrace)', async () => {
    const library = join(
      ROOT,
      execFileSync('sh', ['-c', 'cd "$0"; ls usr/lib/*/libllama.so.0', ROOT], { encoding: 'utf8' }).trim(),
    )
    for (const line of [
      'llama-bench -m MODEL -p 16 -n 4 -r 2 -t 2',
      'llama-batched-bench -m MODEL -c 256 -npp 8 -ntg 4 -npl 1,2 -t 2',
      COMPLETION,
      'llama-speculative-simple -m MODEL -md MODEL --spec-type draft-simple -p abcdefgh -n 20 -t 2 --temp 0',
    ]) {
      const log = newLog()
      const script = `uprobe:${library}:llama_process { @calls = count(); } uprobe:${library}:llama_decode { @calls = count(); }`
      const command = traceable([...IN_ROOT, ...preloaded(log), ...toolOf(line)])
      const { stdout, stderr } = spawnSync('bpftrace', ['-e', script, '-c', '/bin/sh'], {
        input: command,
        encoding: 'utf8',
      })
      const [, counted] = /@calls: (\d+)/.exec(stdout) ?? [stderr, 'nothing']
      expect(`${line}: ${(await readLog(log)).of('token').length}`).toBe(`${line}: ${counted}`)
    }
  })

  observed('token.bt: the calls, and their tokens, that the recorder has (needs bpftrace)', async () => {
    const library = execFileSync('sh', ['-c', 'ls "$0"/usr/lib/*/libllama.so.0', ROOT], { encoding: 'utf8' }).trim()
    for (const line of [COMPLETION, 'llama-batched-bench -m MODEL -c 256 -npp 8 -ntg 4 -npl 1,2 -t 2']) {
      const [log, output] = [newLog(), join(folder, `${logs++}.g2p`)]
      const command = traceable([...IN_ROOT, ...preloaded(log), ...toolOf(line)])
      const { status } = spawnSync('bpftrace', ['-o', output, '-c', '/bin/sh', TOKEN_BT, library], { input: command })
      const recorded = (await readLog(log)).of('token').map(({ tokens, batch }) => [tokens, batch?.result])
      const traced = (await readLog(output)).of('token').map(({ tokens, batch }) => [tokens, batch?.result])
      expect(recorded.length).toBeGreaterThan(5)
      expect([status, traced]).toEqual([0, recorded])
    }
  })

  test('llama-completion with a T5: encoder and decoder each warm up', async () => {
    const { recording } = await record(COMPLETION.replace('MODEL', `${inRoot(folder)}/t5.gguf`))
    const [encode, ...decode] = callsOf(recording).filter(([phase]) => phase !== 'warm-up')
    expect(callsOf(recording).slice(0, 2)).toEqual([
      ['warm-up', 2],
      ['warm-up', 1],
    ])
    expect([encode![0], ...decode]).toEqual([
      'encode',
      ['prefill', 1],
      ...Array.from({ length: 5 }, () => ['decode', 1]),
    ])
  })

  test('llama-embedding: calls that encode, and the same vectors', async () => {
    const { plain, recorded, recording } = await record('llama-embedding -m MODEL -p hello --pooling mean -t 2')
    expect(recorded.stdout).toBe(plain.stdout)
    expect(callsOf(recording).filter(([phase]) => phase !== 'warm-up')).toEqual([['encode', expect.any(Number)]])
  })

  test('llama-speculative-simple: target and draft apart, with its own times', async () => {
    const { plain, recorded, log } = await record(
      'llama-speculative-simple -m MODEL -md MODEL --spec-type draft-simple -p abcdefgh,abcdefgh,abcdefgh -n 200 -t 2 --temp 0 --seed 1',
    )
    expect(recorded.stdout).toBe(plain.stdout)
    const { contexts, decoding, calls } = await summarize(inputOf(log))
    const own = (pattern: RegExp) => pattern.exec(recorded.stderr)!.slice(1).map(Number)
    const [, encodedS] = own(/encoded +(\d+) tokens in +([\d.]+) s/)
    const [tokens, decodedS] = own(/decoded +(\d+) tokens in +([\d.]+) s/)
    expect(contexts.map(({ role }) => role)).toEqual(['target', 'draft'])
    // The last call is that of a draft, which is not in our TPOT.
    expect(decoding!.tokens).toBe(tokens)
    expect(calls.tpot_ns! / 1e9 / (decodedS! / tokens!)).toBeGreaterThan(0.96)
    expect(calls.tpot_ns! / 1e9 / (decodedS! / tokens!)).toBeLessThan(1.02)
    // A busy machine may pause the program between its reading of the clock and ours; the draft's prompt would be as much again.
    expect(Math.abs(calls.ttft_ns! / 1e9 - encodedS!)).toBeLessThan(0.02 + 0.02 * encodedS!)
    expect(contexts[0]!.decoding).toEqual(decoding)
  })

  test('llama-speculative-simple: calls of both contexts last as long as it says, within 2 %', async () => {
    const line = 'llama-speculative-simple -m MODEL -md MODEL --spec-type draft-simple -p abcdefgh -n 200 -t 2 --temp 0'
    // It prints milliseconds. Its time also contains what it does between calls, where it may have no CPU: tried again.
    for (let tries = 1; ; tries++) {
      const { recorded, recording } = await record(line)
      const decodedS = Number(/decoded +\d+ tokens in +([\d.]+) s/.exec(recorded.stderr)![1])
      const calls = recording.of('token')
      const prompt = calls.find(({ phase }) => phase === 'prefill')!
      const oursS = (Math.max(...calls.map(({ endNs }) => endNs)) - prompt.endNs) / 1e9
      const isClose = Math.abs(oursS - decodedS) < 0.001 + 0.02 * decodedS
      if (!isClose && tries < 5) continue
      expect({ oursS, decodedS, isClose }).toMatchObject({ isClose: true })
      break
    }
  })

  test('llama-speculative-simple: as many accepted tokens as it prints, and the draft’s calls in its drafts', async () => {
    const line = 'llama-speculative-simple -m MODEL -md MODEL --spec-type draft-simple -p abcdefgh -n 40 -t 2 --temp 0'
    const { recorded, recording } = await record(line)
    const [, accepted] = /n_accept += (\d+)/.exec(recorded.stderr)!
    const { of } = recording
    const functions = (purpose: string) => of('function').filter(({ what }) => what === purpose)
    expect(functions('accept-draft').reduce((sum, { value }) => sum + value, 0)).toBe(Number(accepted))
    const target = of('token').find(({ phase }) => phase === 'prefill')!.batch!.context
    const drafting = of('token').filter(({ phase, batch }) => phase !== 'warm-up' && batch!.context !== target)
    expect(drafting.length).toBeGreaterThan(10)
    const around = [...functions('draft'), ...functions('verify')]
    for (const call of drafting.slice(1))
      expect(around.some(({ startNs, endNs }) => call.startNs >= startNs && call.endNs <= endNs)).toBe(true)
  })

  test('llama-speculative-simple with another model as draft: rejected tokens are none, its repeated batches no prompts', async () => {
    const line = 'llama-speculative-simple -m MODEL -md DRAFT --spec-type draft-simple -p abcdefgh -n 30 -t 2 --temp 0'
    const { recorded, log } = await record(line)
    const own = (name: string) => Number(new RegExp(`${name} += +(\\d+)`).exec(recorded.stderr)![1])
    const { calls, speculation } = await analyze(inputOf(log))
    const counted = { drafted_tokens: own('n_drafted'), accepted_tokens: own('n_accept') }
    expect(counted.accepted_tokens).toBeLessThan(counted.drafted_tokens)
    expect(calls.drafts).toMatchObject(counted)
    expect(speculation).toMatchObject(counted)
    expect(calls.tpot!.count).toBe(own('n_predict'))
    expect(calls.by_phase.prefill!.calls).toBe(2)
  })

  test('whisper-cli: encodes and decodes as often as it says, its graphs by name', async () => {
    execFileSync(process.execPath, [WHISPER, join(folder, 'whisper.bin'), join(folder, 'noise.wav')])
    const at = inRoot(folder)
    const line = `whisper-cli -m ${at}/whisper.bin -f ${at}/noise.wav -t 2 -bs 1 -bo 1 -nf -l en`
    const { plain, recorded, recording } = await record(line)
    expect(recorded.stdout).toBe(plain.stdout)
    const [, encodes, decodes, batched, prompts] =
      /encode time = .*\/ +(\d+) runs[\s\S]*decode time = .*\/ +(\d+) runs[\s\S]*batchd time = .*\/ +(\d+) runs[\s\S]*prompt time = .*\/ +(\d+) runs/.exec(
        recorded.stderr,
      )!
    const calls = recording.of('token').map(({ phase }) => phase)
    expect(calls.filter((phase) => phase === 'encode')).toHaveLength(3 * Number(encodes)) // graphs of an encoder
    expect([`${decodes}`, Number(batched), Number(prompts)]).toEqual([`${calls.length - 3}`, 1, 1]) // 1: of none (whisper.cpp)
    const parts = recording.of('range').filter(({ edge }) => edge === 'begin')
    expect(parts.slice(0, 4).map(({ name }) => recording.text(name))).toEqual([
      'whisper: convolution',
      'whisper: encoder',
      'whisper: cross-attention',
      'whisper: decoder',
    ])
    expect(recording.of('graph').map(({ call }) => call)).toEqual(calls.map((_, i) => i))
    const ops = new Set(recording.of('operator').map(({ tensor }) => recording.text(recording.tensor(tensor).op)))
    expect([...ops]).toEqual(expect.arrayContaining(['IM2COL', 'GELU', 'FLASH_ATTN_EXT', 'MUL_MAT']))
  })

  test('whisper-cli: its encoder takes as long as it says, from the allocation of its first graph on', async () => {
    execFileSync(process.execPath, [WHISPER, join(folder, 'whisper.bin'), join(folder, 'noise.wav')])
    const at = inRoot(folder)
    const line = `whisper-cli -m ${at}/whisper.bin -f ${at}/noise.wav -t 1 -bs 1 -bo 1 -nf -l en`
    await expectSameTimes(async () => {
      const log = newLog()
      const [, encodeMs] = /encode time = +([\d.]+) ms/.exec(run(line, log).stderr)!
      return [(await summarize(inputOf(log))).calls.ttft_ns! / 1e6 / Number(encodeMs)]
    }, 0.01)
  })

  const freePort = () =>
    new Promise<number>((resolve) => {
      const server = createServer().listen(0, '127.0.0.1', () => {
        const { port } = server.address() as { port: number }
        server.close(() => resolve(port))
      })
    })

  test('llama-server with four requests at once: each token in one call', async () => {
    const [port, log] = [await freePort(), newLog()]
    const line = `llama-server -m MODEL -t 2 -c 1024 -np 4 --port ${port} --no-webui`
    const [first, ...rest] = [...IN_ROOT, ...preloaded(log), ...toolOf(line)]
    const server = spawn(first!, rest, { stdio: 'ignore' })
    const ended = new Promise((resolve) => server.on('close', resolve))
    try {
      const url = `http://127.0.0.1:${port}`
      const isUp = () =>
        fetch(`${url}/health`).then(
          ({ ok }) => ok,
          () => false,
        )
      while (!(await isUp())) await sleep(100)
      const ask = async (prompt: string) => {
        const body = JSON.stringify({ prompt, n_predict: 8, temperature: 0, ignore_eos: true, cache_prompt: false })
        const answer = await fetch(`${url}/completion`, { method: 'POST', body })
        return ((await answer.json()) as { timings: { prompt_n: number; predicted_n: number } }).timings
      }
      const timings = await Promise.all(['a b c', 'd e f g', 'h', 'i j'].map(ask))
      server.kill('SIGINT')
      await ended
      const { of, issues } = await readLog(log)
      expect(issues).toEqual([])
      const calls = of('token').filter(({ phase }) => phase !== 'warm-up')
      const tokens = calls.reduce((sum, call) => sum + call.tokens, 0)
      // The last token of each answer is sampled and not decoded.
      expect(tokens).toBe(timings.reduce((sum, { prompt_n, predicted_n }) => sum + prompt_n + predicted_n - 1, 0))
      const sequences = new Set(calls.flatMap(({ batch }) => batch?.spans.map(({ sequence }) => sequence) ?? []))
      expect([...sequences].sort()).toEqual([0, 1, 2, 3])
    } finally {
      server.kill('SIGKILL')
    }
  })
})
