import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { formatShape, OP_TABLES, parseTensorName } from '../../lib/core.ts'
import { Names } from '../../lib/index.ts'
import { givenOpNames, inferOpNames, type OpUse } from '../../lib/read/common/op-table.ts'
import { pickOrigin, TimeGuard } from '../../lib/read/common/time-guard.ts'
import { Workers } from '../../lib/read/profinfer/threads.ts'

/** What readers work out: roles, op tables, workers, times. */

describe('parseTensorName', () => {
  test.each([
    ['blk.0.attn_q.weight', 'attn_q.weight', 0],
    ['blk.31.ffn_gate_inp.bias', 'ffn_gate_inp.bias', 31],
    ['blk.12.ffn_up_exps.weight', 'ffn_up_exps.weight', 12],
    ['token_embd.weight', 'token_embd.weight', -1],
    ['output_norm.weight', 'output_norm.weight', -1],
    ['cache_k_l5', 'cache_k', 5],
    ['cache_v_l23 (view)', 'cache_v', 23],
    ['cache_k_l0 (view) (permuted)', 'cache_k', 0],
    ['Qcur-11', 'Qcur', 11],
    ['Qcur-11 (reshaped)', 'Qcur', 11],
    ['Qcur-3 (view) (permuted)', 'Qcur', 3],
    ['Kcur-7 (copy of cache_k_l7)', 'Kcur', 7],
    ['__fattn__-2', '__fattn__', 2],
    ['ffn_moe_weights_sum_clamped-4', 'ffn_moe_weights_sum_clamped', 4],
    ['ffn_moe_weight-', 'ffn_moe_weight', -1],
    ['kqv_out-0', 'kqv_out', 0],
    ['cache_k_l3 (vie', 'cache_k', 3],
    ['embd', 'embd', -1],
    ['result_output', 'result_output', -1],
    ['node_120', '', -1],
    ['node_120 (view)', '', -1],
    ['leaf_4', '', -1],
    ['', '', -1],
  ])('%s', (name, role, layer) => {
    expect(parseTensorName(name)).toEqual({ role, layer })
  })

  test('takes any text, at once', () => {
    const part = fc.constantFrom('blk.', '-', ' (view)', ' (', ')', '1', '99', 'cache_k_l', 'copy of ', 'a', '.', ' ')
    fc.assert(
      fc.property(fc.array(part, { maxLength: 200 }), (parts) => {
        const { role, layer } = parseTensorName(parts.join(''))
        expect(typeof role).toBe('string')
        expect(layer === -1 || layer >= 0).toBe(true)
      }),
    )
    const before = process.cpuUsage()
    parseTensorName(`Qcur${' (copy of '.repeat(20_000)}`)
    parseTensorName(`Qcur${' (view)'.repeat(20_000)}x`)
    expect(process.cpuUsage(before).user / 1e6).toBeLessThan(1) // in quadratic time: minutes
  })
})

test.each([
  [[512, 16, 1, 1], '512×16'],
  [[1, 1, 1, 1], '1'],
  [[0, 1, 1, 1], '0'],
  [[64, 1, 8, 1], '64×1×8'],
  [[64, 8, 16, 2], '64×8×16×2'],
])('formatShape(%j)', (ne, text) => {
  expect(formatShape(ne)).toBe(text)
})

describe('op tables', () => {
  /** Result, first sources and op, as llama.cpp has them in graphs of attention and experts. */
  const USES: [string, string[], string][] = [
    ['embd', ['token_embd.weight', 'inp_tokens'], 'GET_ROWS'],
    ['attn_norm-0', ['norm-0', 'blk.0.attn_norm.weight'], 'MUL'],
    ['Qcur-0', ['blk.0.attn_q.weight', 'attn_norm-0'], 'MUL_MAT'],
    ['Qcur-0', ['Qcur-0 (reshaped)', 'inp_pos'], 'ROPE'],
    ['cache_k_l0 (view)', ['Kcur-0', 'leaf_3'], 'SET_ROWS'],
    ['__fattn__-0', ['Qcur-0 (view)', 'cache_k_l0 (view)'], 'FLASH_ATTN_EXT'],
    ['ffn_moe_argsort-0', ['ffn_moe_probs-0'], 'ARGSORT'],
    ['ffn_moe_up-0', ['blk.0.ffn_up_exps.weight', 'ffn_norm-0'], 'MUL_MAT_ID'],
    ['ffn_moe_up_biased-0', ['ffn_moe_up-0', 'blk.0.ffn_up_exps.bias'], 'ADD_ID'],
    ['ffn_moe_swiglu-0', ['ffn_moe_gate-0', 'ffn_moe_up-0'], 'GLU'],
    ['ffn_moe_weights_sum_clamped-0', ['ffn_moe_weights_sum-0'], 'CLAMP'],
    ['result_output', ['output.weight', 'result_norm'], 'MUL_MAT'],
  ]
  const usesBy = (ops: readonly string[]): OpUse[] =>
    USES.map(([result, sources, op]) => ({ op: ops.indexOf(op), result, sources }))

  test('each has every op once, and the tables differ', () => {
    for (const { ops } of OP_TABLES) {
      expect(new Set(ops).size).toBe(ops.length)
      for (const [, , op] of USES) expect(ops).toContain(op)
    }
    // The numbers that SOURCES.md of our recordings and the published table name.
    const [newest, january] = OP_TABLES.map(({ ops }) => ops)
    expect([40, 42, 48, 74, 100].map((op) => newest![op])).toEqual([
      'GET_ROWS',
      'SET_ROWS',
      'ROPE',
      'FLASH_ATTN_EXT',
      'GLU',
    ])
    expect(january).toHaveLength(95)
    expect([73, 94].map((op) => january![op])).toEqual(['FLASH_ATTN_EXT', 'GLU'])
  })

  test.each(OP_TABLES.map((table) => [table.name, table] as const))('%s is found by its uses', (_, table) => {
    const names = new Names()
    const found = inferOpNames(usesBy(table.ops), names)
    expect(found).toMatchObject({ inferred: true, problem: undefined })
    expect(found.about).toContain(table.about)
    for (const [, , op] of USES) expect(names.text(found.name(table.ops.indexOf(op)))).toBe(op)
    expect(found.knows(250)).toBe(false)
    expect(names.text(found.name(250))).toBe('op 250')
  })

  test('one contradiction among many uses does not matter, many do', () => {
    for (const table of OP_TABLES) {
      const uses = usesBy(table.ops)
      const one = inferOpNames([...uses.slice(1), { ...uses[0]!, op: 9 }], new Names())
      expect(one.about).toContain(table.about)
      const many = inferOpNames(
        uses.map((use, i) => (i % 2 ? use : { ...use, op: 9 })),
        new Names(),
      )
      expect(many).toMatchObject({ about: 'none fits', problem: expect.stringMatching(/^no known op table fits/) })
      expect(many.knows(29)).toBe(false)
    }
  })

  test('what all tables name alike needs no decision; what they name differently does', () => {
    const names = new Names()
    const alike = inferOpNames([{ op: 29, result: 'node_1', sources: [] }], names)
    expect(alike.problem).toBeUndefined()
    expect(names.text(alike.name(29))).toBe('MUL_MAT')
    const unclear = inferOpNames([{ op: 74, result: 'node_1', sources: [] }], names)
    expect(unclear.problem).toMatch(/^several op tables fit/)
    expect(names.text(unclear.name(74))).toBe('op 74')
    expect(unclear.knows(29)).toBe(true)
  })

  test('a table that was told is used, and doubted only where the log contradicts it', () => {
    const names = new Names()
    const told = givenOpNames(OP_TABLES[0]!, [], names)
    const argsort = { op: 68, result: 'ffn_moe_argsort-0', sources: [] } // 69 in this table
    expect(givenOpNames(OP_TABLES[0]!, [argsort, argsort], names).problem).toMatch(/^2 of 2 uses .* contradict/)
    expect(told).toMatchObject({ inferred: false, problem: undefined })
    expect(names.text(told.name(74))).toBe('FLASH_ATTN_EXT')
  })
})

describe('Workers', () => {
  test('a fresh thread for each graph is worker 1 again', () => {
    const workers = new Workers()
    for (const fresh of [701, 702, 703]) {
      expect([workers.host(700), workers.of(fresh), workers.of(700), workers.host(700)]).toEqual([0, 1, 0, 0])
      workers.release(700)
      workers.release(fresh)
    }
  })

  test('threads that stay keep their indices, in whatever order they come back', () => {
    const workers = new Workers()
    const first = [workers.host(1), workers.of(2), workers.of(3), workers.of(4)]
    expect(first).toEqual([0, 1, 2, 3])
    for (const tid of [1, 2, 3, 4]) workers.release(tid)
    expect([workers.of(4), workers.host(1), workers.of(3), workers.of(2)]).toEqual([3, 0, 2, 1])
  })

  test('a second host at work at the same time gets an index of its own', () => {
    const workers = new Workers()
    expect([workers.host(1), workers.host(2), workers.of(3)]).toEqual([0, 1, 2])
  })

  test('no two threads are one worker at a time, and a thread is the same until it is released', () => {
    const step = fc.record({ tid: fc.nat(6), what: fc.constantFrom('host', 'of', 'of', 'release') })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const workers = new Workers()
        const active = new Map<number, number>()
        for (const { tid, what } of steps) {
          if (what === 'release') {
            workers.release(tid)
            active.delete(tid)
            continue
          }
          const worker = what === 'host' ? workers.host(tid) : workers.of(tid)
          const others = [...active].filter(([other]) => other !== tid).map(([, index]) => index)
          expect(others).not.toContain(worker)
          expect(worker).toBe(active.get(tid) ?? worker)
          expect(worker).toBeLessThanOrEqual(6 + 1)
          active.set(tid, worker)
        }
      }),
    )
  })
})

describe('times', () => {
  const DAY = 86_400e9

  test('a lone jump of more than a day is doubted, two in a row are believed', () => {
    const guard = new TimeGuard()
    expect(guard.doubt(DAY)).toBeUndefined()
    expect(guard.doubt(2 * DAY + 1)).toMatch(/^expected a time within a day of its neighbours/)
    expect(guard.doubt(DAY + 5)).toBeUndefined()
    expect(guard.lastNs).toBe(DAY + 5)
    expect(guard.doubt(-9 * DAY)).toBeDefined()
    expect(guard.doubt(-9 * DAY + 7)).toBeUndefined()
    expect(guard.lastNs).toBe(-9 * DAY + 7)
  })

  test('times that a number does not hold are never believed', () => {
    const guard = new TimeGuard()
    for (let i = 0; i < 4; i++) expect(guard.doubt(2 ** 53 + 2 * i)).toBeDefined()
  })

  test('the origin is the first time that another one agrees with', () => {
    expect(pickOrigin([100n, 200n, 300n])).toBe(100n)
    expect(pickOrigin([2n ** 61n, 200n, 300n])).toBe(200n)
    expect(pickOrigin([2n ** 63n, 2n ** 63n + 1n, 300n])).toBe(300n)
    expect(pickOrigin([0n, 5n])).toBe(0n)
    expect(pickOrigin([7n])).toBe(7n)
    expect(pickOrigin([])).toBe(0n)
  })
})
