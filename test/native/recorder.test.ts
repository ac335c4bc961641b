import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { convert, type TraceEvent } from '../../lib/index.ts'
import { inputOf, openTrace } from '../../lib/node.ts'
import { ensureLlama, hasLlama, LIB, model, type Run, run, runNode } from '../llama/testbed.ts'
import { inLong, inParts, isLong, someOf } from '../long.ts'
import { canBpftrace } from '../machine.ts'
import { buildRecorder, NANO, RECORDER, readLog as read } from './recording.ts'

/** The recorder in front of real llama.cpp: what the log says, beside what the program and an observer say. */
const folder = mkdtempSync(join(tmpdir(), 'ggml2perfetto-recorder-'))
const llama = hasLlama() ? describe : describe.skip

let logs = 0

async function record(path: string, args: readonly string[], env: Record<string, string> = {}, host = run) {
  const log = join(folder, `${logs++}.ggtrace`)
  const result = await host(path, args, { preload: RECORDER, env: { GGML2PERFETTO_OUT: log, ...env } })
  expect(result.stderr).toBe('')
  expect([result.code, result.signal]).toEqual([0, null])
  return { log, result }
}

/** The recorder's clock is computed from the processor's counter. */
const CLOCK_ERROR_NS = 1000

/** Number of calls of which the Graphs row covers all but 2 %. */
const COVERED = `select count(*) from slice c where category = 'token' and dur * 0.98 <
  (select sum(dur) from slice where category in ('graph', 'outside') and ts >= c.ts and ts + dur <= c.ts + c.dur)`

/** The calls that the program says it made, and those in the log: same number, size and place in time. */
function expectSameCalls(result: Run, tokens: readonly Extract<TraceEvent, { kind: 'token' }>[], originNs: bigint) {
  const recorded = [...tokens].sort((a, b) => a.startNs - b.startNs)
  expect(recorded.map(({ tokens }) => tokens)).toEqual(result.calls.map(({ tokens }) => tokens))
  for (const [i, call] of result.calls.entries()) {
    const { startNs, endNs } = recorded[i]!
    expect(Number(originNs) + startNs).toBeGreaterThanOrEqual(call.start - CLOCK_ERROR_NS)
    expect(Number(originNs) + endNs).toBeLessThanOrEqual(call.end + CLOCK_ERROR_NS)
  }
}

llama('the recorder, in front of real llama.cpp', () => {
  beforeAll(async () => {
    await ensureLlama()
    buildRecorder()
  })
  afterAll(() => rmSync(folder, { recursive: true }))

  const runs: [preset: 'tinyDense' | 'tinyMoe', args: string[]][] = [
    ['tinyDense', ['--threads', '1']],
    ['tinyDense', ['--threads', '2']],
    ['tinyMoe', ['--threads', '2']],
    ['tinyMoe', ['--threads', '2', '--threadpool']],
    ['tinyMoe', ['--threads', '2', '--dlsym']],
    ['tinyMoe', ['--threads', '2', '--change-threads', '--warmup']],
    ['tinyMoe', ['--threads', '1', '--no-repack', '--ubatch', '4']],
  ]

  inParts(test).each(someOf(runs, 7, 2))(
    '%s %j: tokens, graphs, operators per worker; the same output, nothing lost',
    async (preset, args) => {
      const { path } = await model(preset)
      const all = ['--prompt', '12', '--decode', '5', '--times', ...args]
      const plain = await run(path, all)
      const { log, result } = await record(path, all)
      expect(result.result!.hash).toBe(plain.result!.hash)
      expect(result.result!.tokens).toEqual(plain.result!.tokens)
      const { of, tensors, text, issues } = await read(log)
      expect(issues).toEqual([])
      const [input] = of('input')
      expectSameCalls(result, of('token'), input!.originNs)
      const workers = Number(args[1])
      for (const graph of of('graph')) {
        // A worker may leave the last barrier after the graph's caller did.
        const inside = of('operator').filter(({ startNs }) => startNs >= graph.startNs && startNs <= graph.endNs)
        for (let worker = 0; worker < workers; worker++) {
          const mine = inside.filter((operator) => operator.worker === worker)
          const nodes = mine.reduce((sum, { fusedTo }) => sum + (fusedTo === undefined ? 1 : 2), 0)
          expect(nodes).toBe(graph.nodes)
          for (const [i, { startNs }] of mine.entries())
            if (i > 0) expect(startNs).toBeGreaterThanOrEqual(mine[i - 1]!.waitEndNs)
        }
        expect(text(graph.backend)).toBe('CPU')
      }
      const fused = of('operator').filter(({ fusedTo }) => fusedTo !== undefined)
      expect(
        new Set(fused.map(({ tensor, fusedTo }) => `${text(tensors[tensor]!.op)}+${text(tensors[fusedTo!]!.op)}`)),
      ).toEqual(new Set(['RMS_NORM+MUL']))
    },
  )

  test.each([
    ['mapped', ['--no-repack']],
    ['repacked', []],
  ])('names, types, shapes, sizes and GGUF offsets of the weights are the file’s: %s', async (_name, more) => {
    const { path, tensors: file } = await model('tinyMoe')
    const { log } = await record(path, ['--prompt', '4', '--decode', '1', ...more])
    const { of, text } = await read(log)
    const recorded = new Map(of('tensor').map((tensor) => [text(tensor.name), tensor]))
    const buffers = new Map(of('buffer').map((buffer) => [buffer.id, buffer.usage]))
    let compared = 0
    for (const { name, type, shape, offset, size } of file) {
      const tensor = recorded.get(name)
      if (!tensor) continue
      compared++
      expect([name, text(tensor.type).toUpperCase(), tensor.ne]).toEqual([name, type, [...shape, 1, 1, 1].slice(0, 4)])
      expect([name, tensor.sizeBytes, tensor.offset, buffers.get(tensor.buffer)]).toEqual([
        name,
        size,
        offset,
        'weights',
      ])
    }
    expect(compared).toBe(file.length)
  })

  test('buffers are there from when they were allocated, before the first call', async () => {
    const { path } = await model('tinyDense')
    const args = ['--prompt', '4', '--decode', '1']
    const { log } = await record(path, args)
    const { of, text } = await read(log)
    const first = Math.min(...of('token').map(({ startNs }) => startNs))
    const made = of('allocation').filter(({ bytes }) => bytes > 0)
    expect(made.filter(({ atNs }) => atNs >= first)).toEqual([])
    // By the names in llama.cpp's own log: which buffers there are depends on the CPU (CPU_REPACK, AMX, neither).
    const { stderr } = await run(path, [...args, '--verbose'])
    const named = stderr.matchAll(/^\S+: +(\S+) +(?:model|output|KV|compute) buffer size =/gm)
    // A mapped file is no allocation, although llama.cpp frees an empty buffer before, at whose address its buffer may be.
    const allocated = [...named].map(([, name]) => name!).filter((name) => name !== 'CPU_Mapped')
    expect(new Set(made.map(({ buffer }) => text(buffer)))).toEqual(new Set(allocated))
    expect(made.length).toBeGreaterThan(1)
    const left = of('allocation').reduce((sum, { bytes }) => sum + bytes, 0)
    expect([of('allocation').length, left]).toEqual([2 * made.length, 0])
  })

  test('sequences and positions are those of the batches', async () => {
    const { path } = await model('tinyDense')
    const { log } = await record(path, ['--prompt', '4', '--decode', '2', '--parallel', '3'])
    const { of } = await read(log)
    const each = (position: number, tokens: number) => [0, 1, 2].map((sequence) => ({ sequence, position, tokens }))
    expect(of('token').map(({ phase, tokens, batch }) => [phase, tokens, batch?.spans])).toEqual([
      ['prefill', 12, each(0, 4)],
      ['decode', 3, each(4, 1)],
      ['decode', 3, each(5, 1)],
    ])
    expect(of('graph').map(({ split }) => split)).toEqual([0, 0, 0])
  })

  test('expert ids are those that the program reads from the router', async () => {
    const { path } = await model('tinyMoe')
    const args = ['--threads', '2', '--prompt', '9', '--decode', '4']
    const told = await run(path, [...args, '--topk'])
    const { log, result } = await record(path, args)
    expect(result.result!.hash).toBe(told.result!.hash)
    const { of, tensors } = await read(log)
    const recorded = of('experts').map(({ call, tensor, ids, k }) => {
      const rows = Array.from({ length: ids.length / k }, (_, i) => [...ids.subarray(i * k, (i + 1) * k)])
      return { call, layer: tensors[tensor]!.layer, ids: rows }
    })
    expect(recorded.length).toBeGreaterThan(0)
    expect(recorded).toEqual(told.topk.map(({ call, layer, ids }) => ({ call, layer, ids })))
  })

  test('what lies between graphs is recorded: each new graph is allocated, and described by the recorder', async () => {
    const { path } = await model('tinyMoe')
    const { log } = await record(path, ['--threads', '2', '--prompt', '12', '--decode', '5'])
    const trace = await openTrace(convert(inputOf(log)))
    try {
      const call = "extract_arg(arg_set_id, 'debug.call')"
      const rows = trace.query(`select ${call}, group_concat(name, ' > ') from
        (select ts, name, arg_set_id from slice where category in ('graph', 'outside') and name <> 'copy' order by ts)
        where name <> 'outside graphs' group by 1`).rows
      // llama.cpp computes a decode's graph again as long as it fits. On a busy machine, little work of the recorder takes long too.
      const [work, more] = ['( > recorder: describe graph)+', '( > recorder: describe graph)*']
      const described = expect.stringMatching(`^build graph > allocate${work} > CPU graph${more}$`)
      const again = expect.stringMatching(`^(recorder: describe graph > )*CPU graph${more}$`)
      expect(rows).toEqual([[0, described], [1, described], ...[2, 3, 4, 5].map((call) => [call, again])])
      expect(trace.query(COVERED).rows).toEqual([[6]])
      const [[cost, parts]] = trace.query(`select sum(extract_arg(arg_set_id, 'debug.recorder_ns')),
        sum(iif(name glob 'recorder:*', dur, 0)) from slice where category in ('token', 'outside')`).rows as [
        [number, number],
      ]
      expect([cost, cost > 20_000]).toEqual([parts, true])
      const overlaps = `select count(*) from (select ts, lag(ts + dur) over (order by ts) as ended from slice
        where category in ('graph', 'outside')) where ts < ended`
      expect(trace.query(overlaps).rows).toEqual([[0]])
    } finally {
      trace.close()
    }
  })

  test('levels record as much as they say', async () => {
    const { path } = await model('tinyDense')
    const count = async (level: string) => {
      const { log } = await record(path, ['--prompt', '4', '--decode', '3'], { GGML2PERFETTO_LEVEL: level })
      const { of, issues } = await read(log)
      return {
        tokens: of('token').length,
        graphs: of('graph').length,
        operators: of('operator').length > 0,
        issues,
      }
    }
    expect(await count('token')).toEqual({ tokens: 4, graphs: 0, operators: false, issues: [] })
    expect(await count('graph')).toEqual({ tokens: 4, graphs: 4, operators: false, issues: [] })
    expect(await count('op')).toEqual({ tokens: 4, graphs: 4, operators: true, issues: [] })
  })

  test('the log names the boot that its clocks count from', async () => {
    const { path } = await model('tinyDense')
    const { log } = await record(path, ['--prompt', '2', '--decode', '1'], { GGML2PERFETTO_LEVEL: 'token' })
    const id = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
    expect(id).toHaveLength(36)
    expect((await read(log)).of('input')[0]!.attributes['boot_id']).toBe(id)
  })

  test('backends without an operator hook: nodes one by one, if asked for', async () => {
    const { path } = await model('tinyDense')
    const args = ['--prompt', '4', '--decode', '2']
    const plain = await run(path, args)
    const { log, result } = await record(path, args, { GGML2PERFETTO_LEVEL: 'graph', GGML2PERFETTO_SYNC: '1' })
    expect(result.result!.hash).toBe(plain.result!.hash)
    const { of } = await read(log)
    const hooked = await read((await record(path, args)).log)
    const nodes = hooked.of('operator').reduce((sum, { fusedTo }) => sum + (fusedTo === undefined ? 1 : 2), 0)
    expect(of('operator').length).toBe(nodes)
    expect(of('input')[0]!.attributes['note']).toMatch(/one by one/)
  })

  inLong(test)('two contexts that decode at the same time stay apart, and the trace has no import errors', async () => {
    const { path } = await model('tinyMoe')
    const args = ['--threads', '2', '--prompt', '2', '--decode', '2', '--contexts', '2']
    const plain = await run(path, args)
    const { log, result } = await record(path, args)
    expect(result.result!.hash).toBe(plain.result!.hash)
    const trace = await openTrace(convert(inputOf(log), { detail: 'full' }))
    expect(trace.problems()).toEqual([])
    const calls =
      "select count(*), count(distinct extract_arg(arg_set_id, 'debug.context')) from slice where category = 'token'"
    expect(trace.query(calls).rows).toEqual([[6, 2]])
    expect(trace.query("select count(*) from slice where category = 'graph'").rows).toEqual([[6]])
    trace.close()
  })

  test('a Node program is recorded like a C program', async () => {
    const { path } = await model('tinyDense')
    const args = ['--prompt', '5', '--decode', '4', '--times']
    const plain = await runNode(path, args)
    const { log, result } = await record(path, args, {}, runNode)
    expect(result.result!.tokens).toEqual(plain.result!.tokens)
    const { of, issues } = await read(log)
    expect(issues).toEqual([])
    // Its threads write to blocks of their own.
    const calls = of('token').sort((a, b) => a.startNs - b.startNs)
    expect(calls.map(({ tokens }) => tokens)).toEqual(result.calls.map(({ tokens }) => tokens))
    expect(of('operator').length).toBeGreaterThan(500)
  })

  inParts(test)('kill -9 at any moment leaves a log that opens', async () => {
    const { path } = await model({ ...NANO, layers: 8 })
    const { runner } = await import('../llama/testbed.ts')
    const program = await runner()
    for (let i = 0; i < (isLong ? 10 : 3); i++) {
      const log = join(folder, `killed-${i}.ggtrace`)
      const args = ['--lib', LIB, '--model', path, '--threads', '2', '--prompt', '8', '--decode', '2000', '--times']
      const child = spawn(program, args, {
        env: { ...process.env, LD_PRELOAD: RECORDER, GGML2PERFETTO_OUT: log },
        stdio: ['ignore', 'pipe', 'ignore'],
      })
      // In the middle of what follows so many calls, at a moment that nobody knows.
      const calls = 1 + (i % 5)
      let lines = 0
      for await (const text of child.stdout.setEncoding('utf8').iterator({ destroyOnReturn: false })) {
        lines += text.split('\n').length - 1
        if (lines >= 1 + calls) break // the first line is of the model
      }
      child.kill('SIGKILL')
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
      expect(child.signalCode).toBe('SIGKILL')
      const { of, issues } = await read(log)
      expect(issues.filter((issue) => /checksum|damage|lost/.test(issue))).toEqual([])
      expect(of('token').length).toBeGreaterThanOrEqual(calls)
      expect(of('operator').length).toBeGreaterThan(100 * calls)
    }
  })

  const asRoot = process.getuid?.() === 0 && spawnSync('unshare', ['-m', 'true']).status === 0 ? test : test.skip
  inLong(asRoot)(
    'a full disk costs records, not the run, and the log says so (needs root, to mount a small disk)',
    async () => {
      const { path } = await model('tinyMoe')
      const args = ['--threads', '2', '--threadpool', '--prompt', '8', '--decode', '20']
      const plain = await run(path, args)
      const disk = join(folder, 'disk')
      execFileSync('mkdir', ['-p', disk])
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=200k', 'tmpfs', disk])
      try {
        const log = join(disk, 'full.ggtrace')
        const result = await run(path, args, { preload: RECORDER, env: { GGML2PERFETTO_OUT: log } })
        expect([result.code, result.stderr, result.result!.hash]).toEqual([0, '', plain.result!.hash])
        const { of } = await read(log)
        expect(of('operator').length).toBeGreaterThan(1000)
        const issues = of('issue').map(({ title, detail }) => `${title}: ${detail}`)
        expect(issues.join('\n')).toMatch(/dropped|no room|lost/)
      } finally {
        execFileSync('umount', [disk])
      }
    },
  )

  test('a log that cannot be made costs nothing but the log', async () => {
    const { path } = await model('tinyDense')
    const args = ['--prompt', '4', '--decode', '2']
    const plain = await run(path, args)
    const env = { GGML2PERFETTO_OUT: join(folder, 'nowhere', 'x.ggtrace') }
    const result = await run(path, args, { preload: RECORDER, env })
    expect([result.code, result.stderr, result.result!.hash]).toEqual([0, '', plain.result!.hash])
  })

  const observed = isLong && hasLlama() && canBpftrace() ? test : test.skip
  inLong(observed)(
    'an independent observer counts the same calls, graphs, hooks and barriers (needs root and bpftrace)',
    async () => {
      const { path } = await model('tinyDense')
      const args = ['--threads', '2', '--prompt', '6', '--decode', '3']
      const { log } = await record(path, args)
      const { of } = await read(log)
      const counts = await observe(path, args)
      expect(counts['decode']).toBe(of('token').length)
      expect(counts['graph']).toBe(of('graph').length)
      const fused = of('operator').filter(({ fusedTo }) => fusedTo !== undefined).length
      expect(counts['node']).toBe(of('operator').length - fused)
    },
  )
})

/** Counts calls of the hooked functions in an untraced run, by uprobes; other tests' programs use the libraries, too. */
async function observe(path: string, args: readonly string[]): Promise<Record<string, number>> {
  const { runner } = await import('../llama/testbed.ts')
  const files = readdirSync(LIB)
  const llama = join(LIB, files.find((name) => name.startsWith('libllama.v'))!)
  const cpu = files.filter((name) => name.startsWith('libggml-cpu-')).map((name) => join(LIB, name))
  const program = join(folder, `observed${process.pid}`) // by its name: other tests run the same libraries
  symlinkSync(await runner(), program)
  const isOurs = `/comm == "observed${process.pid}"/`
  const probes = [
    `uprobe:${llama}:llama_decode ${isOurs} { @decode = count(); }`,
    `uprobe:${join(LIB, 'libggml-base.so')}:ggml_backend_graph_compute_async ${isOurs} { @graph = count(); }`,
    ...cpu.map((library) => `uprobe:${library}:ggml_cpu_extra_compute_forward ${isOurs} { @node = count(); }`),
  ]
  const command = [program, '--lib', LIB, '--model', path, ...args].join(' ')
  const output = join(folder, 'bpftrace.json')
  execFileSync('bpftrace', ['-f', 'json', '-o', output, '-e', probes.join('\n'), '-c', command], { stdio: 'ignore' })
  const counts: Record<string, number> = {}
  for (const line of readFileSync(output, 'utf8').trim().split('\n')) {
    const { type, data } = JSON.parse(line) as { type: string; data: Record<string, number> }
    if (type !== 'map') continue
    for (const [key, value] of Object.entries(data)) counts[key.slice(1)] = value
  }
  return counts
}
