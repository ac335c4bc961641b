import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { PHASES, type TensorEvent, UNKNOWN } from '../../lib/core.ts'
import { Names, type TraceEvent } from '../../lib/index.ts'
import { TablesPass } from '../../lib/tables/tables-pass.ts'
import { Tables } from '../../lib/tables.ts'
import { inLong, inParts, isLong } from '../long.ts'
import { duckDb, SUMS } from './duckdb.ts'

/** The rows of operator_sum are the sums of the rows of operator, by DuckDB. */
const db = duckDb()

/** The rows of operator_sum of these events, and what they are to be. */
async function sumsOf(make: (names: Names) => TraceEvent[]) {
  const names = new Names()
  const compression = { codec: 'none', compress: (bytes: Uint8Array) => bytes } as const
  const tables = new Tables({ traceId: '0'.repeat(32), compression, createdBy: 'test 1' })
  const pass = new TablesPass(tables, names)
  pass.take(make(names))
  pass.finish()
  const files = new Map<string, Uint8Array[]>()
  for await (const { table, bytes } of tables.finish()) files.set(table, [...(files.get(table) ?? []), bytes])
  await db.viewNoCalls()
  for (const [table, pieces] of files) await db.view(table, Buffer.concat(pieces))
  return { rows: await db.rows(SUMS.rows), expected: await db.rows(SUMS.expected) }
}

const NAMES = [
  "it's; --",
  '"',
  'a","b',
  'null',
  '',
  'line\nfeed\0',
  '😀\u202e',
  'MUL_MAT',
  'MUL_MAT_ID',
  'blk.0.x.weight',
]
const BATCH = {
  function: 'llama_decode',
  areAllOutput: false,
  isLeftOut: false,
  result: 0,
  spans: [],
  context: 0,
} as const
const name = fc.constantFrom(...NAMES)
const small = fc.nat(9)

/** A node whose sources are the two before it. `isKnown`: its shape is; `isLarge`: with much work. */
interface Node {
  readonly name: string
  readonly op: string
  readonly type: string
  readonly isKnown?: boolean
  readonly isLarge?: boolean
}

const node: fc.Arbitrary<Node> = fc.record({ name, op: name, type: name, isKnown: fc.boolean(), isLarge: fc.boolean() })
const event = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant('operator' as const),
      tensor: small,
      fused: fc.boolean(),
      call: small,
      dur: small,
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('token' as const), phase: fc.constantFrom(...PHASES) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('graph' as const), backend: name, call: small }) },
)

function tensorEvents(of: readonly Node[], names: Names): TraceEvent[] {
  return of.map(({ name, op, type, isKnown, isLarge }, id): TraceEvent => {
    const size = isLarge ? 2 ** 17 : 4
    return {
      ...{ ...UNKNOWN.tensor, id, name: names.id(name), op: names.id(op), type: names.id(type) },
      ...(isKnown ? { ne: [size, size, 1, 1], sizeBytes: 4 * size * size } : {}),
      sources: id > 1 ? [id - 2, id - 1] : [],
    }
  })
}

inParts(test)(
  'of any events: calls before and after their operators, any names, amounts that are not known',
  async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(node, { minLength: 1, maxLength: 8 }),
        fc.array(event, { minLength: 1, maxLength: 200 }),
        async (nodes, events) => {
          const { rows, expected } = await sumsOf((names) => {
            const made = tensorEvents(nodes, names)
            let calls = 0
            for (const [at, of] of events.entries()) {
              if (of.kind === 'token') {
                made.push({ ...UNKNOWN.token, batch: BATCH, call: calls++, phase: of.phase, startNs: 0, endNs: at })
              } else if (of.kind === 'graph') {
                const backend = names.id(of.backend)
                made.push({ ...UNKNOWN.graph, call: of.call - 1, backend, startNs: Math.max(0, at - 20), endNs: at })
              } else {
                const [tensor, endNs] = [of.tensor % nodes.length, at + of.dur]
                const fused = of.fused && tensor + 1 < nodes.length ? { fusedTo: tensor + 1 } : {}
                const times = { startNs: at, endNs, waitEndNs: endNs + of.call, innerWaitNs: of.dur >> 1 }
                made.push({ ...UNKNOWN.operator, tensor, call: of.call - 1, ...times, ...fused })
              }
            }
            // An operator at least: without any, there are no tables to compare.
            made.push({ ...UNKNOWN.operator, tensor: 0, startNs: 0, endNs: 1, waitEndNs: 1 })
            return made
          })
          expect(rows).toEqual(expected)
        },
      ),
      { numRuns: isLong ? 60 : 20, endOnFailure: true },
    )
  },
)

inLong(test)('of several row groups, whose calls come long after their operators', async () => {
  const { rows, expected } = await sumsOf((names) => {
    const nodes = Array.from({ length: 100 }, (_, id) => ({ name: `Qcur-${id}`, op: 'MUL_MAT', type: 'F32' }))
    const made = tensorEvents(nodes, names)
    const [calls, late] = [3000, 900]
    for (let call = 0; call < calls + late; call++) {
      const of = call - late
      const phase = PHASES[1 + (call % 5)]!
      if (of >= 0)
        made.push({ ...UNKNOWN.token, batch: BATCH, call: of, phase, startNs: 1000 * of, endNs: 1000 * call })
      if (call >= calls) continue
      const startNs = 1000 * call
      for (let tensor = 0; tensor < nodes.length; tensor++) {
        const times = { startNs: startNs + tensor, endNs: startNs + 2 * tensor, waitEndNs: startNs + 3 * tensor }
        made.push({ ...UNKNOWN.operator, tensor, call, ...times })
      }
      const backend = names.id(call % 2 === 0 ? 'CPU' : 'CUDA0')
      made.push({ ...UNKNOWN.graph, call, backend, startNs, endNs: startNs + 100 })
    }
    return made
  })
  const phases = PHASES.slice(1).sort()
  expect(rows.map(([phase]) => phase)).toEqual(phases.flatMap((phase) => [phase, phase]))
  expect(new Set(rows.map(([, , , , backend]) => backend))).toEqual(new Set(['CPU', 'CUDA0']))
  expect(rows).toEqual(expected)
})

inLong(test)('operators of calls that the log lacks, or of none, have no phase', async () => {
  const { rows, expected } = await sumsOf((names) => {
    const made: TraceEvent[] = [{ ...UNKNOWN.tensor, id: 0, name: names.id('a'), op: names.id('ADD') }]
    for (let i = 0; i < 200_000; i++)
      made.push({ ...UNKNOWN.operator, tensor: 0, call: 2 ** (i % 40) - 2, startNs: i, endNs: i + 1, waitEndNs: i + 1 })
    return made
  })
  expect(rows).toEqual(expected)
  expect(rows.map(([phase, role, , , , n]) => [phase, role, n])).toEqual([[null, 'a', '200000']])
})

test.each([
  [1001, String(1001n * 2n ** 52n + 14n)],
  [3000, null],
])('the work of %i large products is exact, or null where int64 ends', async (count, flop) => {
  const { rows } = await sumsOf((names) => {
    const large = { name: 'x', op: 'MUL_MAT', type: 'F32', isKnown: true, isLarge: true }
    const made = tensorEvents([large, large, large], names)
    // 1 × 1 × 7: 14 FLOP.
    for (const id of [3, 4]) made.push({ ...(made[0] as TensorEvent), id, ne: [7, 1, 1, 1] })
    made.push({ ...(made[0] as TensorEvent), id: 5, ne: [1, 1, 1, 1], sources: [3, 4] })
    const times = { startNs: 0, endNs: 1, waitEndNs: 1 }
    for (let i = 0; i < count; i++) made.push({ ...UNKNOWN.operator, tensor: 2, ...times })
    return [...made, { ...UNKNOWN.operator, tensor: 5, ...times }]
  })
  expect(rows.map((row) => [row[5], row[10]])).toEqual([[String(count + 1), flop]])
})
