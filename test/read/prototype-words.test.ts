import { describe, expect, test } from '@jest/globals'
import { modelOf } from '../../lib/analysis.ts'
import { convert, eventsOf, Names, summarize, type TraceEvent } from '../../lib/index.ts'
import { plainBytes } from '../line/support.ts'
import { begun } from './ggtrace-logs.ts'
import { faultsOf, madeOf } from './made.ts'
import { reportOf, WHOLE } from './reports.ts'

/** Words that every object of JavaScript has, where inputs have words of their own: they mean nothing there. */

const WORDS = ['constructor', '__proto__', 'toString', 'hasOwnProperty', 'valueOf']

const textOf = (fixture: string) => Buffer.from(plainBytes(fixture)).toString()

async function read(source: Uint8Array | string, format?: string) {
  const names = new Names()
  const events: TraceEvent[] = []
  for await (const batch of eventsOf({ name: 'log', source: Buffer.from(source) }, names, { from: format }))
    events.push(...batch)
  const kinds = <K extends TraceEvent['kind']>(kind: K) =>
    events.filter((event): event is Extract<TraceEvent, { kind: K }> => event.kind === kind)
  return { names, kinds }
}

const attributesOf = async (source: Uint8Array | string) =>
  (await summarize({ name: 'log', source: Buffer.from(source) })).attributes
const own = (word: string, value: string) => Object.fromEntries([[word, value]])

async function traceText(source: Uint8Array | string): Promise<string> {
  const pieces: Uint8Array[] = []
  for await (const piece of convert({ name: 'log', source: Buffer.from(source) }, { to: 'json' })) pieces.push(piece)
  return Buffer.concat(pieces).toString()
}

describe.each(WORDS)('%s', (word) => {
  const GUID = /aa67c743-96e6-a38a-e3af-ea9236bcfc89/g

  test.each(['profinfer-csv/tiny.csv', 'profinfer-text/tiny.txt'])('as the GUID of a backend: %s', async (fixture) => {
    const { names, kinds } = await read(textOf(fixture).replace(GUID, word))
    expect(new Set(kinds('graph').map(({ backend }) => names.text(backend)))).toEqual(new Set([`backend ${word}`]))
  })

  test('as the function and the edge of a probe', async () => {
    const sound = textOf('profinfer-text/tiny.txt')
    const [first] = sound.split('\n')
    const bad = [first!.replace(/func:\w+/, `func:${word}`), first!.replace(/pos:\w+/, `pos:${word}`)]
    const { kinds } = await read([first, ...bad, ...sound.split('\n').slice(1)].join('\n'))
    expect(kinds('issue').map(({ title }) => title)).toEqual(['unreadable row', 'unreadable row'])
  })

  test('as a fact of a .ggtrace, and of our bpftrace scripts', async () => {
    const log = begun(own(word, 'x')).take()
    expect(Object.entries(await attributesOf(log))).toContainEqual([word, 'x'])
    expect(await traceText(log)).toContain(`"${word}":"x"`)
    const text = textOf('bpftrace/sched.txt').replace(/^(g2p clock .*)$/m, `$1\ng2p fact ${word} x`)
    expect(Object.entries(await attributesOf(text))).toContainEqual([word, 'x'])
  })

  test.each([
    ['power/dcgm.txt', 'SMCLK'],
    ['power/nvidia-dmon.txt', 'pwr'],
    ['power/nvidia-dmon.txt', 'W'],
    ['power/turbostat.txt', 'PkgWatt'],
    ['llama-bench/tests.csv', 'n_batch'],
    ['perf-stat/program.txt', 'task-clock'],
  ])('as a name of %s: %s', async (fixture, name) => {
    const changed = textOf(fixture).replaceAll(new RegExp(`\\b${name}\\b`, 'g'), word)
    expect(changed).toContain(word)
    const made = await madeOf(Buffer.from(changed))
    expect(made ? faultsOf(made) : []).toEqual([])
  })

  test('as the type of the weights in a config.json', async () => {
    const config = {
      model_type: 'llama',
      hidden_size: 64,
      num_hidden_layers: 2,
      num_attention_heads: 4,
      vocab_size: 300,
    }
    const source = Buffer.from(JSON.stringify({ ...config, torch_dtype: word }))
    expect((await modelOf({ name: 'config.json', source })).model.by_type).toMatchObject([{ type: word }])
  })

  test('as the unit of times, and a name in the tables of a report of nsys', async () => {
    const csv = textOf('nsys-nvtx-trace/jax.csv').replace('Start (ns)', `Start (${word})`)
    await expect(read(csv)).rejects.toThrow('times in ns, us, ms or s')
    const META_DATA_EXPORT = [...WHOLE['META_DATA_EXPORT']!, { name: word, value: 'x' }]
    const attributes = await attributesOf(reportOf({ META_DATA_EXPORT }))
    expect(attributes).toEqual(await attributesOf(reportOf()))
  })

  test('as the symbol of an op in a graph', async () => {
    const node = { label: 'x-0', operation: word, shape: [1], layer_id: 0, address: '0x10' }
    const nodes = [
      { ...node, id: 'a' },
      { ...node, id: 'b' },
    ]
    const edges = [{ source: 'a', target: 'b', label: 'src 0' }]
    const { names, kinds } = await read(JSON.stringify({ token_id: 0, nodes, edges }), 'ggml-graph')
    expect(kinds('tensor').map(({ op }) => names.text(op))).toEqual(['', word])
  })

  test('as a clock, of a trace.dat and on the command line', async () => {
    const bytes = Buffer.from(plainBytes('trace-dat/local-v6.dat.gz'))
    const at = bytes.lastIndexOf('[local]') // its length comes before it, zeros come behind it
    bytes.writeBigUInt64LE(BigInt(word.length), at - 8)
    bytes.write(word, at, 'latin1')
    const input = { name: 'log', source: bytes }
    expect(await summarize(input)).toMatchObject({ clock: 'unknown', attributes: { trace_clock: word } })
    const converted = async () => {
      for await (const _ of convert(input, { clocks: { log: word } }));
    }
    await expect(converted()).rejects.toThrow('clock of log: expected the name of a clock')
  })
})
