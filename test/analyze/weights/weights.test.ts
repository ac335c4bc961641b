import { describe, expect, test } from '@jest/globals'
import { type GgtraceWeightMemory, GgtraceWriter } from '../../../lib/core.ts'
import { type Analysis, analyze } from '../../../lib/index.ts'

/** Weights of a log by the memory that they are in, and why, from the answers of devices. */

const [Q4_0, F32, MUL_MAT] = [2, 0, 29]

interface Made {
  /** Name of a weight and the buffer that contains it; all have 30 rows of 64. */
  readonly weights: Readonly<Record<string, string>>
  readonly answers: readonly Partial<GgtraceWeightMemory>[]
  readonly facts?: Readonly<Record<string, string>>
}

function log({ weights, answers, facts = {} }: Made): Uint8Array {
  const writer = new GgtraceWriter({ originNs: 1_000_000_000n })
  writer.run({ 'format.version': '0', command: './llama-cli -m tiny.gguf', level: 'op', ...facts })
  writer.type(Q4_0, 'q4_0')
  writer.type(F32, 'f32')
  writer.op(MUL_MAT, 'MUL_MAT')
  const question = { device: 'CPU', op: 'MUL_MAT', opNumber: MUL_MAT, type: 'q4_0', ne: [64, 30], answer: true }
  for (const answer of answers) writer.weightMemory({ ...question, memory: 'CPU', tensor: 'a.weight', ...answer })
  const nodes = Object.entries(weights).map(([name, buffer], i) => {
    const base = 0x10000 * (i + 1)
    const id = writer.buffer({ name: buffer, usage: 'weights', base, sizeBytes: 0x10000 })
    const own = { ne: [64, 30], address: base, sizeBytes: 1080, buffer: id }
    const weight = writer.tensor({ name: name.split(' ')[0]!, type: Q4_0, ...own })
    return writer.tensor({ name: `out-${i}`, op: MUL_MAT, type: F32, ne: [30], sources: [weight] })
  })
  const [graph, worker] = [writer.graph('CPU', nodes), writer.thread(1, 0)]
  worker.token({ startNs: 0, endNs: 9000, call: 0, tokens: 1 })
  worker.graph({ startNs: 0, endNs: 9000, call: 0, graph })
  writer.seal()
  writer.end(9000)
  return writer.take()
}

const found = async (made: Made): Promise<Analysis['weight_memory']> =>
  (await analyze({ name: 'made', source: log(made) })).weight_memory

/** Of each row: its weights, reason and detail, and what refused. */
const short = async (made: Made): Promise<string[]> =>
  ((await found(made))?.rows ?? []).map(({ roles, buffer, reason, detail, op, refused_by }) => {
    const refusals = refused_by.map(({ memory, decided }) => `${memory} ${decided}`)
    return [roles.join('+'), buffer, reason, detail, op, ...refusals].filter(Boolean).join(': ')
  })

const REPACK = { memory: 'CPU_REPACK' }
const REFUSED = { ...REPACK, answer: false }
const PLAIN = { 'a.weight': 'CPU' }

describe('why weights of the CPU are in memory of a type', () => {
  test('memory that repacks took them', async () => {
    const made = { weights: { 'a.weight': 'CPU_REPACK' }, answers: [{ memory: 'AMX', answer: false }, REPACK] }
    expect(await short(made)).toEqual(['a.weight: CPU_REPACK: repacked: MUL_MAT: AMX null'])
    expect(await found(made)).toMatchObject({
      repacking: ['AMX', 'CPU_REPACK'],
      rows: [{ type: 'q4_0', tensors: 1, bytes: 1080 }],
    })
  })

  test('it refused them: what decided is known where the CPU was asked again about this type and shape', async () => {
    const facts = { 'asked.CPU_REPACK.MUL_MAT.1': 'q4_0 64×30: 30 rows (it takes 32)' }
    const answers = [REFUSED, {}]
    const refused = 'a.weight: CPU: refused: MUL_MAT: CPU_REPACK'
    expect(await short({ weights: PLAIN, answers, facts })).toEqual([`${refused} 30 rows (it takes 32)`])
    expect(await short({ weights: PLAIN, answers })).toEqual([`${refused} null`])
    const others = ['q4_0 64×32: 30 rows (it takes 32)', 'q4_0 64×30: unknown: it did not answer again']
    for (const other of others)
      expect(await short({ weights: PLAIN, answers, facts: { 'asked.CPU_REPACK.MUL_MAT.1': other } })).toEqual([
        `${refused} null`,
      ])
  })

  test('a table of rows that is the output, too, has a copy that is repacked', async () => {
    const rows = { op: 'GET_ROWS', opNumber: 40 }
    const weights = { 'a.weight': 'CPU', 'a.weight copy': 'CPU_REPACK' }
    const answers = [{ ...rows, ...REFUSED }, { ...rows }, REPACK]
    expect(await short({ weights, answers })).toEqual([
      'a.weight: CPU: refused: GET_ROWS: CPU_REPACK null',
      'a.weight: CPU_REPACK: repacked: MUL_MAT',
    ])
    // Without such a copy, the product has the reason.
    const refused = [...answers.slice(0, 2), REFUSED, {}]
    expect(await short({ weights: PLAIN, answers: refused })).toEqual([
      'a.weight: CPU: refused: MUL_MAT: CPU_REPACK null',
    ])
  })

  test('memory of the host of a device is asked for before', async () => {
    const answers = [{ device: 'CUDA0', memory: 'CUDA_Host' }]
    expect(await short({ weights: { 'a.weight': 'CUDA_Host' }, answers })).toEqual([
      'a.weight: CUDA_Host: taken-before: CUDA_Host: MUL_MAT',
    ])
    expect(await short({ weights: { 'a.weight': 'CPU_Mapped' }, answers })).toEqual([
      'a.weight: CPU_Mapped: taken-before: CUDA_Host: MUL_MAT',
    ])
  })

  test('the program asked for no memory that repacks, with the option if there is one', async () => {
    const none = 'a.weight: CPU: not-asked'
    expect(await short({ weights: PLAIN, answers: [{}] })).toEqual([`${none}: MUL_MAT`])
    const facts = { command: 'llama-cli -m tiny.gguf --no-repack' }
    expect(await short({ weights: PLAIN, answers: [{}], facts })).toEqual([`${none}: --no-repack: MUL_MAT`])
  })

  test('an option places them, and nothing was asked', async () => {
    const weights = { 'a.weight': 'CUDA_Host' }
    const answers = [{ ...REPACK, tensor: 'b.weight' }]
    const placed = (option: string) => short({ weights, answers, facts: { command: `llama-cli -ot ${option}` } })
    expect(await placed('b=CPU,^a=CUDA_Host')).toEqual(['a.weight: CUDA_Host: override: -ot b=CPU,^a=CUDA_Host'])
    // The last one would take years for a long name, if it were executed.
    for (const other of ['^b=CUDA_Host', '^a=CPU', '(=CUDA_Host', '(a+)+(.weight)=CUDA_Host'])
      expect(await placed(other)).toEqual(['a.weight: CUDA_Host: unknown'])
  })

  test('what contradicts itself is unknown', async () => {
    const unknown = ['a.weight: CPU: unknown']
    // It is not where it was taken; and others were asked about memory that repacks.
    expect(await short({ weights: PLAIN, answers: [REPACK] })).toEqual(unknown)
    expect(await short({ weights: PLAIN, answers: [{}, { ...REPACK, tensor: 'b.weight' }] })).toEqual(unknown)
    // Another weight of this name, of another model.
    expect(await short({ weights: PLAIN, answers: [{ ...REFUSED, ne: [64, 32] }] })).toEqual(unknown)
  })

  test('weights of devices have no row, and logs without answers no figures', async () => {
    expect(
      await found({ weights: { 'a.weight': 'CUDA0' }, answers: [{ device: 'CUDA0', memory: 'CUDA0' }] }),
    ).toBeNull()
    expect(await found({ weights: PLAIN, answers: [] })).toBeNull()
  })
})
