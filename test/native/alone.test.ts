import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { Inferred } from '../../lib/core.ts'
import { aloneProgram, hasLlama, LIB, model, run } from '../llama/testbed.ts'
import { inLong, inParts, someOf } from '../long.ts'
import { NANO, newLog, RECORDER, readLog, useRecorder } from './recording.ts'

/** Programs that use ggml without llama.cpp, and libraries whose functions are bound inside them. */

const describeLlama = hasLlama() ? describe : describe.skip
const COUNT = 5
/** Of alone.c's graph: GET_ROWS, MUL_MAT, SWIGLU, GELU. */
const NODES = 4

/**
 * The library with these functions protected: its own calls of them do not pass the dynamic linker then, as when it is linked with
 * -Bsymbolic (ELF: st_other of the dynamic symbol table).
 */
function bindInside(path: string, functions: readonly string[]): void {
  const bytes = readFileSync(path)
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  const [sections, size, count] = [
    Number(view.getBigUint64(40, true)),
    view.getUint16(58, true),
    view.getUint16(60, true),
  ]
  const sectionAt = (i: number) => {
    const at = sections + i * size
    const [offset, bytes] = [Number(view.getBigUint64(at + 24, true)), Number(view.getBigUint64(at + 32, true))]
    return { type: view.getUint32(at + 4, true), link: view.getUint32(at + 40, true), offset, bytes }
  }
  const symbols = Array.from({ length: count }, (_, i) => sectionAt(i)).find(({ type }) => type === 11)! // SHT_DYNSYM
  const names = sectionAt(symbols.link)
  let bound = 0
  for (let at = symbols.offset; at < symbols.offset + symbols.bytes; at += 24) {
    const name = names.offset + view.getUint32(at, true)
    if (!functions.includes(bytes.toString('latin1', name, bytes.indexOf(0, name)))) continue
    bytes[at + 5] = 3 // STV_PROTECTED
    bound++
  }
  expect(bound).toBe(functions.length)
  writeFileSync(path, bytes)
}

describeLlama('ggml alone', () => {
  useRecorder()
  let folder = ''
  let program = ''
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'ggml2perfetto-alone-'))
    program = await aloneProgram()
  })
  afterAll(() => rmSync(folder, { recursive: true }))

  /** Its log; it does the same as without the recorder. */
  async function record(way: string, lib = LIB) {
    const log = newLog()
    execFileSync('mkdir', ['-p', join(log, '..')])
    const run = (env: Record<string, string>) => {
      const { status, stdout } = spawnSync(program, [lib, way, `${COUNT}`], {
        env: { ...process.env, LD_LIBRARY_PATH: lib, ...env },
        encoding: 'utf8',
      })
      return { status, stdout }
    }
    const plain = run({})
    expect(plain).toMatchObject({ status: 0, stdout: expect.stringMatching(`^-?[0-9.e-]+ ${COUNT * NODES}\n$`) })
    expect(run({ LD_PRELOAD: RECORDER, GGML2PERFETTO_OUT: log })).toEqual(plain)
    const recording = await readLog(log)
    expect(recording.issues).toEqual([])
    return recording
  }
  type Recording = Awaited<ReturnType<typeof record>>

  const attributesOf = ({ of }: Recording): Readonly<Record<string, string | number>> =>
    Object.assign({}, of('input')[0]!.attributes, ...of('facts').map(({ attributes }) => attributes))
  /** Operators of worker 0, in order, by op. */
  const opsOf = ({ of, tensor, text }: Recording) =>
    of('operator').flatMap(({ worker, tensor: id }) => (worker === 0 ? [text(tensor(id).op)] : []))
  const ALL = Array.from({ length: COUNT }, () => ['GET_ROWS', 'MUL_MAT', 'SWIGLU', 'GELU']).flat()

  const WAYS = ['backend', 'plan', 'fresh']
  inParts(test).each(someOf(WAYS, 3))(
    '%s: graphs and operators, unary and gated ones by their own names',
    async (way) => {
      const recording = await record(way)
      expect(recording.of('token')).toEqual([])
      expect(recording.of('graph').map(({ nodes, status, split }) => [nodes, status, split])).toEqual(
        Array.from({ length: COUNT }, () => [NODES, 0, -1]),
      )
      expect(opsOf(recording)).toEqual(ALL)
      expect(recording.of('graph').map(({ backend }) => recording.text(backend))).toEqual(
        ALL.slice(0, COUNT).fill('CPU'),
      )
    },
  )

  test.each([
    ['sched', 'compute', -1],
    ['named', 'prefill', 3],
  ])('%s: each graph of a scheduler is a call', async (way, phase, tokens) => {
    const recording = await record(way)
    expect(recording.of('token').map((call) => [call.call, call.phase, call.tokens, call.batch?.function])).toEqual(
      Array.from({ length: COUNT }, (_, i) => [i, phase, tokens, 'ggml_backend_sched_graph_compute']),
    )
    for (const { inferred } of recording.of('token')) expect(inferred & Inferred.Call).toBe(Inferred.Call)
    expect(recording.of('graph').map(({ call, nodes }) => [call, nodes])).toEqual(
      Array.from({ length: COUNT }, (_, i) => [i, NODES]),
    )
    expect(opsOf(recording)).toEqual(ALL)
  })

  /** Copies of the libraries, in which calls of these functions are bound inside them. */
  function boundCopy(name: string, functions: Readonly<Record<string, readonly string[]>>): string {
    const copy = join(folder, name)
    cpSync(LIB, copy, { recursive: true, verbatimSymlinks: true })
    for (const file of readdirSync(copy)) {
      const bound = Object.entries(functions).find(([prefix]) => file.startsWith(prefix))?.[1]
      if (!bound) continue
      chmodSync(join(copy, file), 0o755)
      bindInside(join(copy, file), bound)
    }
    return copy
  }

  test('barriers bound inside ggml-cpu: ends are inferred, and it is said', async () => {
    const recording = await record('backend', boundCopy('barriers', { 'libggml-cpu': ['ggml_barrier'] }))
    expect(attributesOf(recording)['operators.end']).toMatch(/^inferred: calls of ggml_barrier are bound/)
    expect(attributesOf(recording)['operators.library']).toMatch(/\/barriers\/libggml-cpu-\w+\.so$/)
    expect(opsOf(recording)).toEqual(ALL)
    const graphs = recording.of('graph')
    const operators = recording.of('operator').filter(({ worker }) => worker === 0)
    for (const [i, { startNs, endNs, inferred }] of operators.entries()) {
      expect(inferred).toBe(Inferred.End)
      const next = operators[i + 1]
      const graph = graphs[Math.floor(i / NODES)]!
      const isLast = i % NODES === NODES - 1
      expect(endNs).toBe(isLast ? graph.endNs : next!.startNs)
      expect(startNs).toBeGreaterThanOrEqual(graph.startNs)
    }
  })

  inLong(test)('starts of operators bound inside ggml-cpu: there are none, and it is said', async () => {
    const lib = boundCopy('starts', { 'libggml-cpu': ['ggml_barrier', 'ggml_cpu_extra_compute_forward'] })
    const recording = await record('backend', lib)
    expect(recording.of('graph')).toHaveLength(COUNT)
    expect(recording.of('operator')).toEqual([])
    expect(attributesOf(recording)['operators.missing']).toMatch(/ggml_cpu_extra_compute_forward are bound inside/)
  })

  test('all bound inside its library: graphs as wholes', async () => {
    const lib = boundCopy('all', {
      'libggml-cpu': ['ggml_barrier', 'ggml_cpu_extra_compute_forward', 'ggml_graph_compute'],
      'libggml-base': ['ggml_backend_graph_compute_async', 'ggml_backend_graph_compute'],
    })
    const recording = await record('sched', lib)
    expect(recording.of('token')).toHaveLength(COUNT)
    // The first one shows that they cannot be seen.
    expect(recording.of('graph').map(({ nodes }) => nodes)).toEqual(Array.from({ length: COUNT - 1 }, () => NODES))
    expect(attributesOf(recording)['graphs']).toMatch(/^whole: /)
  })

  test('all bound inside its library, with --sync: its nodes, by what the scheduler tells', async () => {
    const { path } = await model(NANO)
    const args = ['--prompt', '4', '--decode', '3']
    const record = async (args: readonly string[], env: Record<string, string>) => {
      const log = newLog()
      execFileSync('mkdir', ['-p', join(log, '..')])
      const result = await run(path, args, { preload: RECORDER, env: { GGML2PERFETTO_OUT: log, ...env } })
      expect([result.code, result.stderr]).toEqual([0, ''])
      const recording = await readLog(log)
      expect(recording.issues).toEqual([])
      return recording
    }
    const nodesOf = ({ of, tensor, text }: Recording) =>
      of('operator').flatMap(({ call, tensor: id, fusedTo }) =>
        [id, ...(fusedTo === undefined ? [] : [fusedTo])].map((node) => [call, text(tensor(node).name)]),
      )
    const functions = ['ggml_backend_graph_compute_async', 'ggml_backend_graph_compute']
    const lib = boundCopy('sync', {
      'libggml-cpu': ['ggml_barrier', 'ggml_cpu_extra_compute_forward', 'ggml_graph_compute'],
      'libggml-base': functions,
    })
    const env = { LD_LIBRARY_PATH: lib, GGML2PERFETTO_LEVEL: 'graph', GGML2PERFETTO_SYNC: '1' }
    const bound = await record(['--lib', lib, ...args], env)
    expect(nodesOf(bound)).toEqual(nodesOf(await record(args, {})))
    const ends = bound.of('operator').map(({ endNs }) => endNs)
    expect(
      bound.of('operator').filter(({ startNs, endNs }, i) => startNs < (ends[i - 1] ?? 0) || endNs <= startNs),
    ).toEqual([])
  })

  inLong(test)('graphs bound inside ggml-base: ggml-cpu’s own calls show them', async () => {
    const recording = await record('sched', boundCopy('base', { 'libggml-base': ['ggml_backend_graph_compute_async'] }))
    expect(recording.of('graph').map(({ call, split }) => [call, split])).toEqual(
      Array.from({ length: COUNT }, (_, i) => [i, 0]),
    )
    expect(opsOf(recording)).toEqual(ALL)
  })
})
