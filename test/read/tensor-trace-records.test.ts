import { closeSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync, truncateSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import type { OperatorEvent } from '../../lib/core.ts'
import { convert, summarize } from '../../lib/index.ts'
import { readFileChunks } from '../../lib/node/files.ts'
import { openTrace } from '../../lib/node.ts'
import { sniffFormat } from '../../lib/read/index.ts'
import { repack } from '../../scripts/repack-tensor-trace.mjs'
import { converted, eventsIn, FIXTURE_NAMES, joined, plainBytes } from '../line/support.ts'
import { inParts, isLong } from '../long.ts'
import { opOf } from '../operators-sql.ts'
import { ZERO_NS } from '../origin.ts'

/** TensorTrace records of all sizes: the same run in each of them, where one ends and the next begins, and where all end. */

const SIZES = [1024, 256, 128, 64] as const
const MUL_MAT = 29
const ROOT = fileURLToPath(new URL('../..', import.meta.url))
/** Folder of further recordings, `<run>.1024.bin` beside `<run>.256.bin`. */
const RECORDINGS = process.env['TENSOR_TRACE_RECORDINGS']

const recorded = plainBytes('tensor-trace/moe-2threads.bin.gz')
const inSize = (log: Uint8Array, bytes: (typeof SIZES)[number]) => (bytes === 1024 ? log : repack(log, bytes))

const folder = mkdtempSync(join(tmpdir(), 'records-'))
afterAll(() => rmSync(folder, { recursive: true }))

interface Slice {
  readonly key: string
  readonly sources: string[]
  readonly experts: unknown
}

/** Operator slices as trace_processor finds them, by time: all that both layouts tell, and what one of them cuts. */
async function slicesOf(log: Uint8Array): Promise<Slice[]> {
  const arg = (key: string) => `extract_arg(arg_set_id, 'debug.${key}')`
  const open = await openTrace(await converted(log))
  expect(open.problems()).toEqual([])
  const { rows } =
    open.query(`SELECT ts + ${ZERO_NS}, dur, name, ${opOf('slice')}, ${['layer', 'tensor', 'experts', 'src0', 'src1', 'src2', 'src3'].map(arg)}
    FROM slice WHERE category = 'operator' ORDER BY ts, slice.id`)
  open.close()
  return rows.map(([ts, dur, name, op, layer, tensor, experts, ...sources]) => ({
    key: [ts, dur, name, op, layer, tensor].join('|'),
    sources: sources.filter((source) => source !== null).map(String),
    experts,
  }))
}

/** A name of more than 23 characters was cut, and with it the number of the layer where the record does not tell it. */
function cutKey(key: string): string {
  const [ts, dur, , op, , tensor] = key.split('|')
  if (tensor!.length <= 23) return key
  const name = tensor!.slice(0, 23)
  return [ts, dur, `${name} ${op}`, op, '', name].join('|')
}

async function expectSameSlices(large: Uint8Array, small: Uint8Array): Promise<Slice[]> {
  const [whole, cut] = [await slicesOf(large), await slicesOf(small)]
  expect(cut.map(({ key }) => key)).toEqual(whole.map(({ key }) => cutKey(key)))
  for (const [i, { sources, experts }] of cut.entries()) {
    expect(experts).toBeNull()
    expect(sources.length).toBe(whole[i]!.sources.length)
    for (const [j, source] of sources.entries()) {
      const full = whole[i]!.sources[j]!
      expect(source).toBe(full.length > 19 ? full.slice(0, 19) : full)
    }
  }
  return whole
}

/** `[time, source]` of every source of every MUL_MAT, straight from the records of 1 024 bytes. */
function accessesIn(log: Uint8Array): [bigint, string][] {
  const view = new DataView(log.buffer, log.byteOffset)
  const accesses: [bigint, string][] = []
  for (let at = 0; at + 1024 <= log.length; at += 1024) {
    const stamp = view.getBigUint64(at, true)
    if (stamp === 0n || log[at + 16] !== MUL_MAT) continue
    for (let i = 0; i < log[at + 18]!; i++) {
      const start = at + 152 + 160 * i
      accesses.push([stamp, Buffer.from(log.subarray(start, log.indexOf(0, start))).toString()])
    }
  }
  return accesses.sort((a, b) => Number(a[0] - b[0]))
}

describe('a recorded run in records of each size', () => {
  test('256 bytes: the same slices by time, op, name and layer; sources are prefixes, no experts', async () => {
    const whole = await expectSameSlices(recorded, inSize(recorded, 256))
    expect(whole.length).toBe(1332)
    expect(whole.filter(({ key }) => cutKey(key) !== key).length).toBe(54)
    expect(whole.filter(({ experts }) => experts !== null).length).toBeGreaterThan(100)
    expect(whole.some(({ sources }) => sources.some((source) => source.length > 19))).toBe(true)
  })

  test.each([128, 64] as const)('%i bytes: one slice per source of a MUL_MAT, at its time', async (bytes) => {
    const accesses = accessesIn(recorded)
    expect(accesses.length).toBe(558)
    const log = inSize(recorded, bytes)
    const slices = await slicesOf(log)
    expect(slices.length).toBe(accesses.length)
    const found = slices.map(({ key, sources }) => [key.split('|')[0], sources[0]])
    const named = accesses.map(([stamp, source]) => [`${stamp}`, bytes === 128 ? source : 'unnamed'])
    expect(found).toEqual(named)
    expect(new Set(slices.map(({ key }) => key.split('|')[3]))).toEqual(new Set(['MUL_MAT']))
    const { calls, issues, attributes } = await summarize({ name: 'log', source: log })
    expect(Object.entries(calls.by_phase).map(([phase, { calls }]) => [phase, calls])).toEqual([
      ['prefill', 1],
      ['decode', 8],
    ])
    expect(issues).toEqual([])
    expect(attributes).toMatchObject({ record_bytes: bytes, op_numbers: expect.stringMatching(/1 MUL_MAT/) })
  })

  test('128 bytes: slices are called by their source, of its layer; those of one time do not overlap', async () => {
    const slices = await slicesOf(inSize(recorded, 128))
    const [, , name, , layer, tensor] = slices
      .find(({ sources }) => sources[0] === 'blk.3.attn_q.weight')!
      .key.split('|')
    expect([name, layer, tensor]).toEqual(['attn_q.weight MUL_MAT', '3', ''])
  })

  const runs = RECORDINGS === undefined ? [] : readdirSync(RECORDINGS).filter((name) => name.endsWith('.1024.bin'))
  for (const run of runs) {
    test(`${run} and its 256-byte twin`, async () => {
      const [large, small] = [run, run.replace('.1024.', '.256.')].map((name) => readFileSync(join(RECORDINGS!, name)))
      const slices = await expectSameSlices(large!, small!)
      expect(slices.length).toBeGreaterThan(0)
      expect(slices.filter(({ key }) => cutKey(key) !== key)).toEqual([])
      for (const bytes of [128, 64] as const) {
        expect((await slicesOf(repack(large!, bytes))).length).toBe(accessesIn(large!).length)
      }
    })
  }

  test('digits at the end of a name that was cut are no layer', async () => {
    const log = plainBytes('tensor-trace/tiny-v3.bin')
    const named = (name: string) => {
      const copy = log.slice()
      for (let at = 0; at < copy.length; at += 1024) {
        copy.fill(0, at + 24, at + 152)
        copy.set(new TextEncoder().encode(name), at + 24)
        copy[at + 12] = copy[at + 13] = 0xff
      }
      return repack(copy, 256)
    }
    const layers = async (name: string) => {
      const { events } = await eventsIn(named(name))
      return new Set(events.flatMap((event) => (event.kind === 'tensor' && event.op !== 0 ? [event.layer] : [])))
    }
    expect(await layers('ffn_moe_softmax-12')).toEqual(new Set([12]))
    expect(await layers('ffn_moe_weights_softm-12')).toEqual(new Set([-1]))
  })
})

describe('detection', () => {
  const sizeOf = async (log: Uint8Array) => (await summarize({ name: 'log', source: log })).attributes['record_bytes']

  inParts(test).each(SIZES)('records of %i bytes, from wherever in a run they begin and however few', async (bytes) => {
    const log = inSize(recorded, bytes)
    const count = Math.floor(log.length / bytes) - 64
    for (let first = 0; first < count; first += (bytes === 1024 ? 7 : 3) * (isLong ? 1 : 4)) {
      for (const records of [1, 2, 3, 5, 100]) {
        const part = log.subarray(first * bytes, Math.min(first + records, count) * bytes)
        // One access record of 128 bytes without a name in it would be one of 64, and an empty one.
        expect(`${first} ${records}: ${sniffFormat(part.subarray(0, 4096))?.name}`).toBe(
          `${first} ${records}: tensor-trace`,
        )
        if (first % 5 === 0) expect(`${first} ${records}: ${await sizeOf(part)}`).toBe(`${first} ${records}: ${bytes}`)
      }
    }
  })

  test('one record before the reserved rest of the file', async () => {
    for (const bytes of SIZES) {
      const log = new Uint8Array(1 << 16)
      log.set(inSize(recorded, bytes).subarray(4 * bytes, 5 * bytes))
      if (bytes !== 64) expect(await sizeOf(log)).toBe(bytes) // of 64: as well one of 128 without a name
      expect((await summarize({ name: 'log', source: log })).operators).toBe(1)
    }
  })

  test('what the user says is TensorTrace is read as such, though the start is damaged', async () => {
    for (const bytes of SIZES) {
      const log = Buffer.from(inSize(recorded, bytes))
      for (let at = 0; at < 3000; at += bytes) log[at + 20] = 7
      expect(sniffFormat(log.subarray(0, 4096))).toBeUndefined()
      const { attributes } = await summarize({ name: 'log', source: log }, { from: 'tensor-trace' })
      expect(attributes['record_bytes']).toBe(bytes)
    }
  })

  inParts(test)('no other file is claimed', () => {
    const claimed = (head: Uint8Array) => sniffFormat(head)?.name === 'tensor-trace'
    const files = [
      'package-lock.json',
      'vendor/trace_processor.wasm',
      'dist/ggml2perfetto.js',
      'docs/reference/tracks.md',
    ]
    const heads = [process.execPath, ...files.map((name) => join(ROOT, name))].map((path) => readFileSync(path))
    const others = FIXTURE_NAMES.filter((name) => !name.startsWith('tensor-trace/')).map(plainBytes)
    for (const bytes of [...heads, ...others]) {
      for (let at = 0; at < Math.min(bytes.length, 1 << 22); at += 4096)
        expect(claimed(bytes.subarray(at, at + 4096))).toBe(false)
    }
    expect(claimed(new Uint8Array(4096))).toBe(false)
    const byte = fc.oneof(fc.constant(0), fc.constant(1), fc.integer({ min: 0, max: 255 }))
    fc.assert(fc.property(fc.uint8Array({ minLength: 64, maxLength: 4096 }), (bytes) => !claimed(bytes)))
    const sparse = fc.array(byte, { minLength: 128, maxLength: 2048 }).map((bytes) => Uint8Array.from(bytes))
    fc.assert(fc.property(sparse, (bytes) => !claimed(bytes)))
    const words = fc.array(fc.integer({ min: 0, max: 40 }), { minLength: 64, maxLength: 1024 })
    const tables = words.map((numbers) => new Uint8Array(Uint32Array.from(numbers).buffer))
    fc.assert(
      fc.property(tables, (bytes) => !claimed(bytes)),
      { numRuns: isLong ? 3000 : 300 },
    )
  })
})

describe('the end', () => {
  test.each(SIZES)('records of %i bytes in a file of 2 GiB: the empty rest is not read', async (bytes) => {
    const path = join(folder, `${bytes}.bin`)
    const log = inSize(recorded, bytes)
    const file = openSync(path, 'w')
    writeSync(file, log)
    closeSync(file)
    truncateSync(path, 2 ** 31)
    let read = 0
    const source = readFileChunks(path, (sofar) => (read = sofar))
    const trace = await joined(convert({ name: path, source }))
    expect(read).toBeLessThan(log.length + 4096 * bytes + (1 << 20))
    expect(Buffer.compare(trace, await converted(log))).toBe(0)
  })

  test('an endless input ends there, too, and its source is closed', async () => {
    let closed = false
    let chunks = 0
    async function* endless() {
      try {
        yield recorded
        for (;;) {
          chunks++
          yield new Uint8Array(1 << 16)
        }
      } finally {
        closed = true
      }
    }
    const summary = await summarize({ name: 'log', source: endless() })
    expect(summary).toMatchObject({ operators: 1332, issues: [] })
    expect([closed, chunks]).toEqual([true, expect.any(Number)])
    expect(chunks).toBeLessThan(70)
  })

  test.each(SIZES)('records of %i bytes: a hole and a torn tail are told', async (bytes) => {
    const log = inSize(recorded, bytes).subarray(0, 200 * bytes)
    const holed = [
      log.subarray(0, 100 * bytes),
      new Uint8Array(1024 * bytes),
      log.subarray(100 * bytes, 199 * bytes + 40),
    ]
    const { operators, issues } = await summarize({ name: 'log', source: holed })
    expect(operators).toBe(199)
    expect(issues.map(({ title, count, first }) => [title, count, first.at.byte, first.detail])).toEqual([
      ['hole in the log', 1, 1124 * bytes, 'expected records, found 1 024 empty ones'],
      ['torn record', 1, (1024 + 199) * bytes, `expected ${bytes} bytes, found the first 40`],
    ])
  })
})

test('operators of access records have one source, and no result', async () => {
  const { names, events } = await eventsIn(plainBytes('tensor-trace/tiny-128.bin'))
  const operators = events.filter((event): event is OperatorEvent => event.kind === 'operator')
  expect(operators.length).toBe(18)
  const tensors = new Map(events.flatMap((event) => (event.kind === 'tensor' ? [[event.id, event] as const] : [])))
  for (const { tensor } of operators) {
    expect(tensors.get(tensor)).toMatchObject({ name: 0, sources: [expect.any(Number)] })
    expect(names.text(tensors.get(tensor)!.op)).toBe('MUL_MAT')
  }
  const places = [...tensors.values()].filter(({ op }) => op === 0).map(({ buffer, offset }) => [buffer, typeof offset])
  expect(new Set(places.map(String))).toEqual(new Set(['-1,undefined', '0,number']))
})
