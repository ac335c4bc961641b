import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, expect } from '@jest/globals'
import type { ModelSpec, Preset } from '../llama/gguf.mjs'
import { cudaEnvironment, ensureLlama, type GraphNodeLine, model, run } from '../llama/testbed.ts'
import { newLog, RECORDER, readLog, useRecorder } from '../native/recording.ts'
import { type BedWork, shortName } from './bed-list.ts'

/** Records llama.cpp's real CUDA backend on the GPU of README.md. */

export const ARGS = ['--threads', '1', '--prompt', '8', '--decode', '6', '--gpu-layers', '99']
/** One of prefill, and of decode. */
export const CALLS = 7
/** Without them, a launch is of one node, and made when the node is computed. */
export const PLAIN = { GGML_CUDA_DISABLE_GRAPHS: '1', GGML_CUDA_DISABLE_FUSION: '1' }

export type Environment = Readonly<Record<string, string>>

const SOURCES = fileURLToPath(new URL('.', import.meta.url))
export const BED = fileURLToPath(new URL('../../native/build/bed', import.meta.url))

/** Builds {@link BED}, once for all test files, beside the recorder. */
export function buildBed(): void {
  execFileSync('flock', [`${BED}.lock`, 'make', '-s', '-C', SOURCES, `BUILD=${BED}`])
}

/** What was run, by its model, arguments and environment: once in a test file. */
const runs = new Map<string, unknown>()

function once<R>(key: readonly unknown[], run: () => Promise<R>): Promise<R> {
  const text = JSON.stringify(key)
  const known = runs.get(text) as Promise<R> | undefined
  const made = known ?? run()
  runs.set(text, made)
  return made
}

/** Runs the model as it is. With BED_LOG on its own output, what the bed runs is between the nodes that the program prints. */
const plainRun = (preset: Preset | ModelSpec, args: readonly string[], env: Environment) =>
  once([preset, args, env], async () => {
    const outcome = await run((await model(preset)).path, args, { env: { ...cudaEnvironment(BED), ...env } })
    expect([outcome.code, outcome.signal]).toEqual([0, null])
    return outcome
  })

/** Runs it with the recorder, to the same result, and reads the log. */
export const record = (
  preset: Preset | ModelSpec,
  env: Environment = {},
  args: readonly string[] = ARGS,
  preload = RECORDER,
) => once([preset, args, env, preload], () => recordOnce(preset, env, args, preload))

async function recordOnce(preset: Preset | ModelSpec, env: Environment, args: readonly string[], preload: string) {
  const log = newLog()
  mkdirSync(dirname(log), { recursive: true })
  const list = join(dirname(log), 'list.jsonl')
  const plain = await plainRun(preset, args, env)
  const recorded = await run((await model(preset)).path, args, {
    preload,
    env: { ...cudaEnvironment(BED), GGML2PERFETTO_OUT: log, BED_LOG: list, ...env },
  })
  expect([recorded.code, recorded.stderr, recorded.result?.hash]).toEqual([0, plain.stderr, plain.result?.hash])
  const recording = await readLog(log)
  if (env['BED_FAULT'] !== 'zero-times') expect(recording.issues).toEqual([])
  const { of, text, tensor } = recording
  const nodeName = (id: number) => `${text(tensor(id).op)} ${text(tensor(id).name)}`
  const works = of('gpu').toSorted((a, b) => a.startNs - b.startNs)
  const fact = (key: string) => recording.attributes[key]
  const listed = readFileSync(list, 'utf8').trimEnd().split('\n')
  return { ...recording, log, works, nodeName, fact, listed: listed.map((line) => JSON.parse(line) as BedWork) }
}

export type Recorded = Awaited<ReturnType<typeof record>>

/** Kernels of a call, by device, in the order in which it began them: what they computed, from the first to the last node. */
export const kernelsOf = ({ works, nodeName, text }: Recorded, call: number) =>
  works
    .filter((work) => work.call === call && work.what === 'kernel')
    .toSorted((a, b) => a.device - b.device)
    .map(({ name, node }) => {
      const range = node && [node.tensor, ...(node.fusedTo === undefined ? [] : [node.fusedTo])].map(nodeName)
      return `${text(name)}: ${range?.join(' … ')}`
    })

/** What the program computes of each call, node by node, and what each launches, by device. */
export async function truth(
  preset: Preset | ModelSpec,
  more: readonly string[],
  env: Environment,
): Promise<string[][]> {
  const { lines } = await plainRun(preset, [...ARGS, ...more, '--each-node'], { ...PLAIN, BED_LOG: '-', ...env })
  const calls: { device: number; kernel: string }[][] = []
  let at: GraphNodeLine | undefined
  for (const line of lines as readonly (GraphNodeLine | BedWork)[]) {
    if (line.event === 'node') at = line
    else if (line.event === 'work' && line.kind === 'kernel' && at) {
      calls[at.call] ??= []
      calls[at.call]!.push({ device: line.device, kernel: `${shortName(line.name)}: ${at.node.op} ${at.node.name}` })
    }
  }
  return calls.map((call) => call.toSorted((a, b) => a.device - b.device).map(({ kernel }) => kernel))
}

/** Call in a describe of tests that are run: the recorder and the bed are there then. */
export function useBed(): void {
  useRecorder()
  beforeAll(async () => {
    await ensureLlama({ cuda: true })
    buildBed()
  })
}
