import { expect, test } from '@jest/globals'
import { describeLog, missingParts } from '../../bin/summary.ts'
import { GgtraceWriter } from '../../lib/core.ts'
import { type Input, type Summary, summarize } from '../../lib/index.ts'

/** What a log lacks, for each of the reasons that it may have: a sentence names the reason that is so. */

const MS = 1e6
const NO_CALL = 0xffffffff

interface Content {
  readonly facts?: Readonly<Record<string, string>>
  /** Backend of a graph that was recorded. */
  readonly backend?: string
  /** The graph is a call, as the recorder makes it where it sees no other. */
  readonly isCall?: boolean
  readonly hasOperator?: boolean
  readonly calls?: number
  /** A function that returned. */
  readonly loaded?: 'load-model' | 'synchronize'
  readonly isKilled?: boolean
}

async function summaryOf(content: Content): Promise<Summary> {
  const { facts = {}, backend, isCall, hasOperator, calls = 0, loaded, isKilled } = content
  const writer = new GgtraceWriter({ originNs: 1n, blockBytes: 4096 })
  writer.type(0, 'f32')
  writer.run({ level: 'op', ...facts })
  const host = writer.thread(700)
  const tensor = writer.tensor({ name: 'x-0' })
  if (loaded) host.function({ what: loaded, startNs: 1, endNs: 2 * MS + 1 })
  if (backend !== undefined) {
    const graph = writer.graph(backend, [tensor])
    host.graph({ startNs: MS, endNs: 2 * MS, graph, call: isCall ? 0 : NO_CALL })
  }
  if (isCall) host.token({ startNs: MS, endNs: 2 * MS, call: 0, tokens: 1, kind: 'compute', isByGraph: true })
  if (hasOperator) writer.thread(701, 0).operator({ tensor, startNs: MS, endNs: 1.5 * MS, waitEndNs: 2 * MS })
  for (let call = 0; call < calls; call++)
    host.token({ startNs: (3 + call) * MS, endNs: (4 + call) * MS, call, tokens: 1 })
  if (!isKilled) writer.end(20 * MS)
  const input: Input = { name: 'run.ggtrace', source: isKilled ? writer.takeKilled() : writer.take() }
  return summarize(input)
}

const missingOf = async (content: Content) => missingParts(await summaryOf(content))

test('no calls', async () => {
  const ALONE = /^no calls of llama\.cpp were seen: the program uses ggml alone, or libllama is built into it/
  const graphs = { backend: 'CPU', hasOperator: true }
  const seen = (what: string, rest: Content = {}) =>
    missingOf({ facts: { [`llama.${what}`]: 'begun' }, isKilled: true, ...rest })
  // ggml alone, or what looks so.
  expect(await missingOf(graphs)).toEqual([expect.stringMatching(ALONE)])
  expect((await missingOf({ ...graphs, loaded: 'synchronize' }))[0]).toMatch(ALONE)
  expect((await missingOf(graphs))[0]).not.toMatch(/log ends/)
  // Logs of a killed run that do not contain what had begun.
  expect((await missingOf({ ...graphs, isKilled: true }))[0]).toMatch(
    /, or the log ends before the first one was complete$/,
  )
  // Killed at each stage.
  expect(await seen('functions')).toEqual(['no calls of llama.cpp: the log ends while the program loads a model'])
  expect(await seen('functions', { loaded: 'load-model' })).toEqual([
    'no calls of llama.cpp: the log ends before the first one',
  ])
  expect(
    await seen('functions', { facts: { 'llama.functions': 'begun', 'functions.missing': 'all: not requested' } }),
  ).toEqual(['no calls of llama.cpp: the log ends before the first one'])
  const within =
    'no call of llama.cpp is complete in the log: the log ends before the first one, other than a warm-up, was complete'
  expect(await seen('calls', graphs)).toEqual([within])
  expect(await seen('calls', { loaded: 'load-model' })).toEqual([within])
  // The program ended by itself.
  const ended = { isKilled: false }
  expect(await seen('functions', ended)).toEqual(['no calls of llama.cpp: the program ended before the first one'])
  expect(await seen('calls', { ...graphs, ...ended })).toEqual([
    'no call of llama.cpp is complete in the log: the program ended within it',
  ])
  expect((await seen('functions', { ...graphs, ...ended }))[0]).toMatch(
    /were seen, though it loaded a model: they are bound/,
  )
  // There are some.
  expect(await seen('calls', { ...graphs, calls: 1 })).toEqual([])
})

test('no operators', async () => {
  const calls = { calls: 2 }
  expect(await missingOf({ ...calls, backend: 'CPU', hasOperator: true })).toEqual([])
  const bound = { 'operators.missing': 'calls are bound inside its library', 'operators.library': 'libggml-cpu.so' }
  expect(await missingOf({ ...calls, backend: 'CPU', facts: bound })).toEqual([
    expect.stringMatching(/^no operators were seen: calls are bound inside its library \(libggml-cpu\.so\)/),
  ])
  expect(await missingOf({ ...calls, backend: 'CPU', isKilled: true })).toEqual([
    'no operators: the log ends before the first one was complete',
  ])
  expect(await missingOf({ ...calls, backend: 'CPU' })).toEqual([
    'no operators: none passed a hook, and the log does not contain why',
  ])
  const hook = /^operators of (\w+) were not seen: there is no operator hook/
  expect(await missingOf({ ...calls, backend: 'SYCL0' })).toEqual([expect.stringMatching(hook)])
  const unlabelled = { 'gpu.missing': 'operators: not labelled' }
  expect((await missingOf({ ...calls, backend: 'SYCL0', facts: unlabelled }))[0]).toMatch(hook)
  for (const backend of ['CUDA0', 'Vulkan0']) {
    expect((await missingOf({ ...calls, backend, facts: unlabelled }))[0]).toMatch(/: operators: not labelled; /)
  }
  // No graphs either.
  expect((await missingOf(calls))[0]).toMatch(/^no graphs: none was computed while recording was on, or none was seen/)
  expect(await missingOf({ ...calls, facts: { level: 'token' } })).toEqual([])
})

test('a log whose only times are those of a load has its duration, one without times none', async () => {
  const linesOf = async (content: Content) => describeLog('run', await summaryOf(content)).join('\n')
  expect(await linesOf({ loaded: 'load-model' })).toMatch(/\n {2}duration 2 ms\n/)
  expect(await linesOf({ isKilled: true })).toMatch(/\n {2}duration not known: /)
})
