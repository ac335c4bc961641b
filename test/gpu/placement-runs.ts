import { spawnSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { expect } from '@jest/globals'
import { flashAttentionOff, layersOnCpu, movedOperators } from '../../lib/analyze/findings/placement.ts'
import { type Analysis, analyze } from '../../lib/index.ts'
import { askDevices } from '../../lib/node/record/ask.ts'
import { inputOf } from '../../lib/node.ts'
import type { ModelSpec } from '../llama/gguf.mjs'
import { cudaEnvironment, LIB, model, plantedProgram, run, vulkanEnvironment } from '../llama/testbed.ts'
import { newLog, RECORDER } from '../native/recording.ts'
import { BED, type Environment } from './recording.ts'
import { computedGraphs, KIB, type PrintedGraph, printedGraphs } from './scheduler-debug.ts'

/** Runs of which the Analysis is compared with what ggml's scheduler prints of the same run. */

const ARGS = ['--threads', '1', '--prompt', '8', '--decode', '6', '--times']
export type Where = 'CUDA0' | 'Vulkan0' | 'CPU'

export interface Ran {
  readonly analysis: Analysis
  /** Graphs that the scheduler printed of a run without the recorder; those that were computed: of the prompt, then of a token. */
  readonly printed: readonly PrintedGraph[]
  readonly computed: readonly PrintedGraph[]
  /** Time of the program's decode calls, as it measured them. */
  readonly decodeNs: number
}

function environmentOf(where: Where): Environment {
  if (where === 'CPU') return {}
  return where === 'CUDA0' ? cudaEnvironment(BED) : (vulkanEnvironment as Environment)
}

/** Runs a model twice: the scheduler prints its graphs, then it is recorded, with the same result. */
export async function recorded(
  spec: ModelSpec,
  where: Where,
  args: readonly string[],
  more: Environment = {},
): Promise<Ran> {
  const log = newLog()
  mkdirSync(dirname(log), { recursive: true })
  const { path } = await model(spec)
  const env = { ...environmentOf(where), ...more }
  const plain = await run(path, [...ARGS, ...args, '--verbose'], { env: { ...env, GGML_SCHED_DEBUG: '2' } })
  const traced = await run(path, [...ARGS, ...args], { preload: RECORDER, env: { ...env, GGML2PERFETTO_OUT: log } })
  expect([traced.code, traced.result?.hash]).toEqual([0, plain.result?.hash])
  await askDevices(log, RECORDER, { ...process.env, ...env })
  const decodes = traced.calls.filter(({ kind }) => kind === 'decode')
  const decodeNs = decodes.reduce((sum, { start, end }) => sum + end - start, 0)
  const [printed, computed] = [printedGraphs(plain.stderr), computedGraphs(plain.stderr)]
  return { analysis: await analyze(inputOf(log)), printed, computed, decodeNs }
}

/** Runs planted.c's program twice, in the same way. */
export async function recordedPlant(plant: string): Promise<Ran> {
  const log = newLog()
  mkdirSync(dirname(log), { recursive: true })
  const env = { ...process.env, ...vulkanEnvironment }
  const program = await plantedProgram()
  const start = (more: Environment) =>
    spawnSync(program, [LIB, plant, '2'], { env: { ...env, ...more }, encoding: 'utf8', timeout: 240_000 })
  const plain = start({ GGML_SCHED_DEBUG: '2' })
  const traced = start({ LD_PRELOAD: RECORDER, GGML2PERFETTO_OUT: log })
  expect([traced.status, traced.stdout]).toEqual([0, plain.stdout])
  await askDevices(log, RECORDER, env)
  const printed = printedGraphs(plain.stderr)
  return { analysis: await analyze(inputOf(log)), printed, computed: printed, decodeNs: Infinity }
}

/** What the rules of placement say, also of what takes too little time to be shown. */
export const said = (analysis: Analysis) =>
  [movedOperators, layersOnCpu, flashAttentionOff].flatMap((rule) =>
    rule.look(analysis).flatMap(({ finding }) => (finding ? [[rule.id, finding.sentence] as const] : [])),
  )

export const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0)

/** Are these the bytes that are copied to splits? They are printed in whole KiB. */
export function expectBytes(bytes: number, splits: PrintedGraph): void {
  const printed = splits.flatMap(({ inputs }) => inputs)
  const least = KIB * sum(printed)
  expect(bytes).toBeGreaterThanOrEqual(least)
  expect(bytes).toBeLessThanOrEqual(least + KIB * printed.length)
}

/** Splits, their nodes and inputs, and what computes them, are those that the scheduler printed. */
export function expectAsPrinted({ analysis, computed }: Ran): void {
  const { phases } = analysis.placement!
  for (const [i, graph] of [computed[0]!, computed.at(-1)!].entries()) {
    const row = phases.find(({ phase }) => phase === ['prefill', 'decode'][i]) ?? phases[0]!
    const backends = [...new Set(graph.map(({ backend }) => backend))]
    const parts = backends.map((backend) => {
      const own = graph.filter((split) => split.backend === backend)
      return [backend, row.calls * own.length, row.calls * sum(own.map(({ nodes }) => nodes.length))]
    })
    expect(row.by_backend.map(({ backend, splits, nodes }) => [backend, splits, nodes])).toEqual(parts)
    expect(row.inputs).toBe(row.calls * sum(graph.map(({ inputs }) => inputs.length)))
    expectBytes(row.input_bytes / row.calls, graph)
  }
}

/** All nodes of layers are where their layer is. */
export function expectNothing(ran: Ran): void {
  expectAsPrinted(ran)
  expect([said(ran.analysis), ran.analysis.placement!.moved]).toEqual([[], []])
}
