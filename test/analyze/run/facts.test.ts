import { describe, expect, test } from '@jest/globals'
import { UNKNOWN } from '../../../lib/core.ts'
import { type Analysis, analyze, type EventInput } from '../../../lib/index.ts'
import type { BufferEvent, TensorEvent, TraceEvent } from '../../../lib/model/events.ts'
import { issueOf } from '../../../lib/model/issues.ts'
import { inputOf } from '../../../lib/node.ts'

/** What ran, and what was recorded. */

type Made = Partial<Omit<TensorEvent, 'name' | 'type' | 'op'>> & { name: string; type?: string; op?: string }

/** A log with a buffer of each usage, these tensors, and further events. */
const logOf = (
  tensors: readonly Made[],
  attributes: Record<string, string | number> = {},
  more: readonly TraceEvent[] = [],
  name = 'made',
): EventInput => ({
  name,
  events: (names) => [
    [
      { kind: 'input', format: 'test', clock: 'MONOTONIC', originNs: 0n, attributes },
      ...BUFFERS.map(({ file, ...buffer }): BufferEvent => ({ ...buffer, file: names.id(file) })),
      ...tensors.map(({ name, type = '', op = '', ...fields }, id): TensorEvent => {
        return { ...UNKNOWN.tensor, id, ...fields, name: names.id(name), type: names.id(type), op: names.id(op) }
      }),
      ...more,
    ],
  ],
})

const BUFFERS: readonly (Omit<BufferEvent, 'file'> & { readonly file: string })[] = [
  { kind: 'buffer', id: 0, usage: 'weights', label: 'mapped', offsetsFrom: '', file: '/models/a, b.gguf' },
  {
    kind: 'buffer',
    id: 1,
    usage: 'weights',
    label: 'CPU_REPACK of CPU, 9 bytes, copied from a file',
    offsetsFrom: '',
    file: '/models/x, copied from Q4_0.gguf',
  },
  { kind: 'buffer', id: 2, usage: 'compute', label: '/models/scratch.gguf', offsetsFrom: '', file: '' },
]

const whys = ({ undetermined }: Analysis) => Object.fromEntries(undetermined.map(({ what, why }) => [what, why]))

describe('weights', () => {
  const q4 = { type: 'q4_0', buffer: 1 }

  test('are counted once, by type; results, views and inputs are none', async () => {
    const { run } = await analyze(
      logOf([
        { name: 'token_embd.weight', ...q4, ne: [32, 100, 1, 1], sizeBytes: 1800, offset: 0 },
        { name: 'blk.0.ffn_up_exps.weight', ...q4, ne: [32, 10, 4, 1], sizeBytes: 720, offset: 1800 },
        { name: 'token_embd.weight', ...q4, ne: [32, 100, 1, 1], sizeBytes: 1800, offset: 0 },
        { name: 'token_embd.weight (view)', ...q4, ne: [32, 1, 1, 1], sizeBytes: 18, offset: 0, viewOf: 0, op: 'VIEW' },
        { name: 'blk.0.attn_norm.weight', type: 'f32', buffer: -1, ne: [32, 1, 1, 1], sizeBytes: 128, address: 7 },
        { name: 'blk.0.attn_q.bias', type: 'f32', buffer: 0, ne: [8, 1, 1, 1], sizeBytes: 32, offset: 9, layer: 0 },
        { name: 'attn_norm-1', type: 'f32', buffer: 2, ne: [32, 7, 1, 1], op: 'RMS_NORM', layer: 1 },
        { name: 'inp_tokens', type: 'i32', buffer: 2, ne: [7, 1, 1, 1] },
      ]),
    )
    expect(run).toMatchObject({
      parameters: 3200 + 1280 + 32 + 8,
      weights: [
        { type: 'q4_0', tensors: 2, parameters: 4480, bytes: 2520 },
        { type: 'f32', tensors: 2, parameters: 40, bytes: 160 },
      ],
      layers: 2,
    })
  })

  test('without shapes or types: null, with the reason', async () => {
    const without = await analyze(logOf([{ name: 'output.weight', type: 'q4_0', sizeBytes: 10 }]))
    expect(without.run).toMatchObject({ parameters: null, weights: null })
    expect(whys(without)).toMatchObject({ 'run.parameters': 'the log has no shapes of weights' })
    const untyped = await analyze(logOf([{ name: 'output.weight', ne: [2, 3], sizeBytes: 10 }]))
    expect(untyped.run).toMatchObject({ parameters: 6, weights: null })
    expect(whys(untyped)).toMatchObject({ 'run.weights': 'the log has no types of weights' })
  })

  test('of some ops only: the document says that there are more', async () => {
    const some = await analyze(
      logOf([{ name: 'output.weight', ne: [2, 3], type: 'f32' }], {
        'recorded.ops': 'MUL_MAT',
        'recorded.tokens': '3-5',
      }),
    )
    expect(some.run.limited_to).toEqual({ ops: 'MUL_MAT', tokens: '3-5' })
    expect(whys(some)).toMatchObject({ 'run.parameters': 'only weights of the recorded ops are in the log' })
  })
})

describe('names', () => {
  test('of the model: from its file, else from the command', async () => {
    const weights = await analyze(logOf([{ name: 'output.weight', buffer: 0 }], { command: 'x -m y.gguf' }))
    expect(weights.run).toMatchObject({
      model: 'a, b',
      model_files: ['/models/a, b.gguf', '/models/x, copied from Q4_0.gguf'],
    })
    const argument = async (command: string) => {
      const input: EventInput = {
        name: 'log',
        events: () => [[{ kind: 'input', format: 'test', clock: 'MONOTONIC', originNs: 0n, attributes: { command } }]],
      }
      return (await analyze(input)).run.model
    }
    expect(await argument('llama-cli -m /models/qwen3-Q4_K_M.gguf -n 3')).toBe('qwen3-Q4_K_M')
    expect(await argument('llama-cli --model=C:\\m\\qwen.GGUF')).toBe('qwen')
    expect(await argument('python3 -m llama_cpp.server --model /m/tiny.gguf')).toBe('tiny')
    expect(await argument('python3 -m llama_cpp.server')).toBeNull()
    expect(await argument('llama-bench -m a.gguf -m b.gguf')).toBe('a, b')
    expect(await argument('llama-cli --model-url x.gguf -hf y')).toBeNull()
  })
})

test('several logs of one run: facts of the machine and kinds of data are those of all', async () => {
  const issue = (code: 'lost-records' | 'call-failed') => issueOf(code, '', { byte: 0 }, 5)
  const call: TraceEvent = { ...UNKNOWN.token, call: 0, phase: 'decode', tokens: 1, startNs: 0, endNs: 9, tid: 1 }
  const sched: TraceEvent = {
    ...{ kind: 'switch', cpu: 0, atNs: 3, prevTid: 0, prevComm: 0, prevPrio: 120, prevState: 0 },
    ...{ nextTid: 1, nextComm: 0, nextPrio: 120 },
  }
  const { run } = await analyze([
    logOf([], { command: 'llama-cli', level: 'token' }, [call, issue('call-failed')]),
    logOf([], { command: 'trace-cmd', cpus: 4, kernel_release: '6.1' }, [sched, issue('lost-records')], 'sched'),
  ])
  expect(run).toMatchObject({
    ...{ command: 'llama-cli', level: 'calls', cpus: 4, kernel: '6.1', host: null },
    recorded: ['calls', 'scheduler'],
    losses: { 'lost-records': 1 },
  })
})

test('the bundled log', async () => {
  const { run, undetermined } = await analyze(inputOf('examples/moe.ggtrace.gz'))
  // 6 layers, 1 024 wide, 2 048 tokens, 8 experts with 1 536, 4 of 8 heads for keys and values.
  const attention = 1024 * (1024 + 512 + 512 + 1024)
  const experts = 8 * 3 * 1024 * 1536 + 1024 * 8
  const norms = 2 * 1024
  expect(run).toMatchObject({
    ...{
      model: 'moe',
      layers: 6,
      workers: 2,
      threads: 2,
      cpu: 'Intel(R) Xeon(R) Processor',
      cpus: 2,
      build: '0.25.1',
      level: 'op',
    },
    parameters: 2 * 1024 * 2048 + 6 * (attention + experts + norms) + 1024,
    recorded: ['calls', 'graphs', 'operators', 'experts', 'memory', 'copies', 'states'],
  })
  expect(undetermined.map(({ what }) => what).filter((what) => what.startsWith('run.'))).toEqual([
    'run.architecture',
    'run.host',
  ])
})
