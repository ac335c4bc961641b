import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect } from '@jest/globals'
import type { FunctionEvent, TensorEvent } from '../../lib/core.ts'
import { convert, eventsOf, Names, type TraceEvent } from '../../lib/index.ts'
import { inputOf, openTrace } from '../../lib/node.ts'
import { plainPath, plainTmpdir } from '../cache.cjs'
import type { Model, ModelSpec } from '../llama/gguf.mjs'
import { type Call, ensureLlama, type Run, type RunOptions, runHosts } from '../llama/testbed.ts'

/** Records hosts.c's program, and holds the log against what the program itself says. */

const NATIVE = fileURLToPath(new URL('../../native', import.meta.url))
const BUILD = 'build/tests'
/** LD_PRELOAD takes no path with blanks. */
export const RECORDER = join(plainPath(NATIVE), BUILD, 'libggml2perfetto.so')

/** As small as llama.cpp takes them. */
export const NANO: ModelSpec = {
  layers: 1,
  width: 64,
  feedForward: 96,
  heads: 2,
  kvHeads: 1,
  vocabulary: 260,
  context: 128,
}
export const NANO_MOE: ModelSpec = { ...NANO, layers: 2, feedForward: 128, vocabulary: 300, experts: 4, expertsUsed: 2 }

/** The recorder's clock is computed from the processor's counter. */
const CLOCK_ERROR_NS = 1000

let folder = ''
let logs = 0

/** A path for a log that is not there yet. */
export const newLog = () => join(folder, `${logs++}`, 'run.ggtrace')
/** A path in the test's own folder. */
export const inFolder = (name: string) => join(folder, name)

/** Makes targets of native/ for tests: what several test files need, once for all of them. */
export function makeNative(...targets: readonly string[]): void {
  mkdirSync(join(NATIVE, 'build'), { recursive: true })
  writeFileSync(join(NATIVE, 'build/.gitignore'), '*\n') // as make does
  const make = ['make', '-s', '-j', `${availableParallelism()}`, '-C', NATIVE, `BUILD=${BUILD}`]
  execFileSync('flock', [join(NATIVE, 'build/tests.lock'), ...make, ...targets])
}

let isBuilt = false

/** Builds {@link RECORDER}, and the NVTX listener beside it; once for a test file. */
export function buildRecorder(): void {
  if (!isBuilt) makeNative(...['libggml2perfetto.so', 'libggml2perfetto-nvtx.so'].map((name) => `${BUILD}/${name}`))
  isBuilt = true
}

/** Call in a describe of tests that are run: llama.cpp and the recorder are there then, and a folder. */
export function useRecorder(): void {
  beforeAll(async () => {
    folder = mkdtempSync(join(plainTmpdir(), 'ggml2perfetto-hosts-'))
    await ensureLlama()
    buildRecorder()
  })
  afterAll(() => rmSync(folder, { recursive: true }))
}

export type Steps = readonly (string | number)[]

/** What a run must leave alone: its exit, its errors, the logits of each of its processes, what it says of children. */
const outcome = ({ code, signal, stderr, results, children }: Run) => ({
  code,
  signal,
  stderr,
  hashes: results.map(({ hash }) => hash),
  children: children.map(({ code, signal }) => ({ code, signal })),
})

interface Recorded extends RunOptions {
  /** The untraced run's steps, where others give the same result sooner. */
  readonly plainSteps?: Steps
  readonly log?: string
}

const plainRuns = new Map<string, Promise<Run>>()

/** Runs the steps untraced, once for those that differ in variables of the recorder only. */
function runPlain(steps: Steps, { env = {}, ...options }: RunOptions): Promise<Run> {
  const seen = Object.entries(env).filter(([name]) => !name.startsWith('GGML2PERFETTO_'))
  const key = JSON.stringify([steps, options, seen])
  const run = plainRuns.get(key) ?? runHosts(steps, { ...options, env })
  plainRuns.set(key, run)
  return run
}

/** Runs the steps untraced, then traced, and wants the same of both. */
export async function recordHosts(
  steps: Steps,
  { env, plainSteps = steps, log = newLog(), ...options }: Recorded = {},
) {
  const plain = await runPlain(plainSteps, { ...options, env: { ...env } })
  mkdirSync(dirname(log), { recursive: true })
  const preload = options.preload === undefined ? RECORDER : `${options.preload}:${RECORDER}`
  const traced = { ...options, preload, env: { GGML2PERFETTO_OUT: log, ...env } }
  const result = await runHosts(steps, traced)
  expect(outcome(result)).toEqual(outcome(plain))
  expect(result.results.length).toBeGreaterThan(0)
  return { log, result, plain }
}

/** On a busy machine, workers that yield to each other may switch faster than the recorder gets to read it. */
const LOST_STATES = /^lost records: \d+ records were lost: thread states$/

export type Recording = Awaited<ReturnType<typeof readLog>>

/** The compiler copies functions for some of their calls, which may or may not be made: a loss, as nothing shows it, where all calls are seen, too. */
const COPIED = /: the compiler made copies of these functions$/
/** The issues of a program that contains ggml, without these. */
export const issuesOf = ({ issues }: Pick<Recording, 'issues'>) => issues.filter((issue) => !COPIED.test(issue))

export async function readLog(log: string) {
  const names = new Names()
  const events: TraceEvent[] = []
  for await (const batch of eventsOf(inputOf(log), names)) events.push(...batch)
  const of = <K extends TraceEvent['kind']>(kind: K) =>
    events.filter((event): event is Extract<TraceEvent, { kind: K }> => event.kind === kind)
  const tensors: TensorEvent[] = []
  for (const tensor of of('tensor')) tensors[tensor.id] = tensor
  const buffers = new Map(of('buffer').map((buffer) => [buffer.id, buffer]))
  const tensor = (id: number): TensorEvent => tensors[id]!
  const all = of('issue').map(({ title, detail }) => `${title}: ${detail}`)
  const issues = all.filter((issue) => !LOST_STATES.test(issue))
  const hasAllStates = issues.length === all.length
  const facts = events.flatMap((event) => (event.kind === 'input' || event.kind === 'facts' ? [event.attributes] : []))
  const attributes: Readonly<Record<string, string | number>> = Object.assign({}, ...facts)
  return { of, tensor, tensors, buffers, issues, attributes, hasAllStates, text: (id: number) => names.text(id) }
}

/** In the order of their starts, outer ones first. */
export const byStart = (a: FunctionEvent, b: FunctionEvent) => a.startNs - b.startNs || b.endNs - a.endNs

/** The call in the log that is this one of the program's: by its thread and time. */
export function callNumber({ of }: Recording, call: Call): number {
  const origin = Number(of('input')[0]!.originNs)
  const inside = of('token').filter(
    ({ tid, startNs, endNs }) =>
      tid === call.tid &&
      origin + startNs >= call.start - CLOCK_ERROR_NS &&
      origin + endNs <= call.end + CLOCK_ERROR_NS,
  )
  expect(inside.map(({ tokens }) => tokens)).toEqual([call.tokens])
  return inside[0]!.call
}

type Nodes = Readonly<Record<number, number>>

/** Nodes computed by each worker while a graph ran. */
function nodesByWorker({ of }: Recording, graph: Extract<TraceEvent, { kind: 'graph' }>): Nodes {
  const nodes: Record<number, number> = {}
  for (const { call, worker, startNs, fusedTo } of of('operator')) {
    // A worker may leave the last barrier after the graph's caller did.
    if (call !== graph.call || startNs < graph.startNs || startNs > graph.endNs) continue
    nodes[worker] = (nodes[worker] ?? 0) + (fusedTo === undefined ? 1 : 2)
  }
  return nodes
}

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0)
const times = (count: number, nodes: number): Nodes =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [i, nodes]))

/** Each call, and of each all nodes that llama.cpp had to compute, on all workers; none twice, none at the same time. */
export function expectCalls(recording: Recording, calls: readonly Call[], workers: (call: Call) => number): void {
  const { of } = recording
  expect(of('token')).toHaveLength(calls.length)
  const graphs = of('graph')
  let operators = 0
  for (const call of calls) {
    const number = callNumber(recording, call)
    const own = graphs.filter((graph) => graph.call === number)
    expect([call.call, sum(own.map(({ nodes }) => nodes))]).toEqual([call.call, call.nodes])
    const found = own.map((graph) => nodesByWorker(recording, graph))
    expect(found).toEqual(own.map(({ nodes }) => times(workers(call), nodes)))
    operators += sum(found.flatMap((nodes) => Object.values(nodes)))
  }
  expect(sum(of('operator').map(({ fusedTo }) => (fusedTo === undefined ? 1 : 2)))).toBe(operators)
  const ends = new Map<number, number>()
  for (const { tid, startNs, endNs, waitEndNs } of of('operator')) {
    expect([startNs >= (ends.get(tid) ?? 0), endNs >= startNs, waitEndNs >= endNs]).toEqual([true, true, true])
    ends.set(tid, waitEndNs)
  }
}

/** The weights that the operators of a call read are those of this file, each of them, and caches lie in the cache. */
export function expectWeights({ of, tensor, buffers, text }: Recording, call: number, { path, tensors }: Model): void {
  const file = new Map(tensors.map((written) => [written.name, written]))
  const seen = new Map<string, unknown>()
  const operators = of('operator').filter((operator) => operator.call === call)
  for (const operator of operators) {
    const nodes = [operator.tensor, operator.fusedTo].filter((id) => id !== undefined)
    for (const source of nodes.flatMap((id) => tensor(id).sources).map(tensor)) {
      const name = text(source.name)
      const buffer = buffers.get(source.buffer)
      if (/^cache_[kv]_l\d+( |$)/.test(name)) expect([name, buffer?.usage]).toEqual([name, 'kv-cache'])
      if (!name.endsWith('.weight')) continue
      const { ne, sizeBytes, offset } = source
      const found = { label: buffer?.label, type: text(source.type).toUpperCase(), ne, sizeBytes, offset }
      expect(seen.get(name) ?? found).toEqual(found)
      seen.set(name, found)
    }
  }
  expect(Object.fromEntries(seen)).toEqual(
    Object.fromEntries(
      [...file].map(([name, { type, shape, size, offset }]) => {
        const ne = [...shape, 1, 1, 1].slice(0, 4)
        return [name, { label: path, type, ne, sizeBytes: size, offset }]
      }),
    ),
  )
}

/** Converts the log: the trace has all operators, and no import errors. */
export async function expectTrace(log: string, { of }: Recording): Promise<void> {
  const trace = await openTrace(convert(inputOf(log), { detail: 'full' }))
  try {
    expect(trace.problems()).toEqual([])
    const count = (category: string) =>
      trace.query(`select count(*) from slice where category = '${category}'`).rows[0]![0]
    expect(['token', 'graph', 'operator'].map(count)).toEqual([
      of('token').length,
      of('graph').length,
      of('operator').length,
    ])
  } finally {
    trace.close()
  }
}

/** Runs of a program, of which one at least is near enough. */
const RUNS_MAX = 10

/**
 * The log has the times that a program measures itself: `run` returns their ratios. A program may be without a CPU between its clock and ours, in one run
 * more than in the next: the nearest of several counts.
 */
export async function expectSameTimes(run: () => Promise<readonly number[]>, apartMost: number): Promise<void> {
  const found: (readonly number[])[] = []
  const isNear = (ratios: readonly number[]) => ratios.every((ratio) => Math.abs(ratio - 1) <= apartMost)
  while (found.length < RUNS_MAX && !found.some(isNear)) found.push(await run())
  expect([found.some(isNear), found]).toEqual([true, found])
}
