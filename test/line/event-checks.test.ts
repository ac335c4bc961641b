import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { describe, expect, test } from '@jest/globals'
import {
  analyze,
  convert,
  eventsOf,
  type Format,
  type Input,
  Names,
  summarize,
  type TraceEvent,
} from '../../lib/index.ts'
import { ROOT } from '../root.ts'
import { LOGS } from '../tables/of-logs.ts'

/** Events that programs create are checked: a wrong one is one UsageError that names it. */

const INPUT: TraceEvent = { kind: 'input', format: 'own', clock: 'MONOTONIC', originNs: 10n ** 18n, attributes: {} }
const TENSOR: TraceEvent = {
  kind: 'tensor',
  ...{ id: 0, name: 1, layer: -1, op: 1, type: 0, ne: undefined, sources: [], sizeBytes: -1, buffer: -1 },
  ...{ offset: undefined, address: 0, structAddress: 0, inferred: 0 },
}
const OPERATOR: TraceEvent = {
  kind: 'operator',
  ...{ tensor: 0, worker: 0, tid: 1, cpu: 1, call: 0, startNs: 100, endNs: 200, waitEndNs: 250 },
  ...{ experts: undefined, inferred: 0 },
}
const TOKEN: TraceEvent = {
  kind: 'token',
  call: 3,
  phase: 'decode',
  tokens: 1,
  startNs: 0,
  endNs: 9,
  tid: 1,
  inferred: 0,
}
const EXPERTS: TraceEvent = { kind: 'experts', tensor: 0, call: 0, atNs: 1, tokens: 1, k: 1, ids: Int32Array.of(3) }
const SLICE: TraceEvent = { kind: 'own-slice', track: 1, name: 1, startNs: 1, endNs: 2 }

const made = (...events: readonly unknown[]): Input => ({
  name: 'mine',
  events: (names) => {
    names.id('x')
    return [events as TraceEvent[]]
  },
})

const errorOf = (running: Promise<unknown>) =>
  running.then(
    () => undefined,
    (error: unknown) => error as Error,
  )

const drained = (input: Input, options = {}) => drain(convert(input, options))

async function drain(pieces: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of pieces);
}

/** A wrong use: what is yielded, what is expected, what was found, and the hint. */
const WRONG: readonly (readonly [string, readonly unknown[], RegExp])[] = [
  [
    'a kind',
    [INPUT, { ...TENSOR, kind: 'operater' }],
    /event 2: expected an event with a known kind, found "operater"\nhint: did you mean operator\?/,
  ],
  ['no kind', [INPUT, {}], /event 2: expected an event with a known kind, found \{\}\nhint: /],
  ['null', [INPUT, null], /event 2: expected an event with a known kind, found null\nhint: /],
  [
    'a text for an id',
    [INPUT, { ...TENSOR, name: 'ffn' }],
    /event 2 \(tensor\): expected name: a number, found "ffn"\nhint: texts are interned: names\.id\("ffn"\)/,
  ],
  [
    'an origin',
    [{ ...INPUT, originNs: 0 }],
    /event 1 \(input\): expected originNs: a bigint, found 0\nhint: 0n is a bigint/,
  ],
  [
    'a time',
    [INPUT, { ...TOKEN, startNs: 5n }],
    /event 2 \(token\): expected startNs: a number, found 5n\nhint: times are numbers/,
  ],
  [
    'a word',
    [INPUT, { ...TOKEN, phase: 'decoed' }],
    /event 2 \(token\): expected phase: .*"decode".*, found "decoed"\nhint: did you mean decode\?/,
  ],
  [
    'a field that lacks',
    [INPUT, { ...SLICE, name: undefined }],
    /event 2 \(own-slice\): expected name: a number, found undefined\nhint: /,
  ],
  [
    'a misspelled field',
    [INPUT, { kind: 'own-slice', track: 1, nmae: 1, startNs: 1, endNs: 2 }],
    /event 2 \(own-slice\): expected known fields, found "nmae"\nhint: did you mean name\?/,
  ],
  [
    'a misspelled field that may lack',
    [INPUT, { ...SLICE, flow: [1] }],
    /event 2 \(own-slice\): expected known fields, found "flow"\nhint: did you mean flows\?/,
  ],
  [
    'an item of a list',
    [INPUT, { ...SLICE, flows: [1, '2'] }],
    /event 2 \(own-slice\): expected flows\[1\]: a number, found "2"\nhint: /,
  ],
  [
    'a field of a field',
    [INPUT, { ...TOKEN, resources: { minorFaults: '1' } }],
    /event 2 \(token\): expected resources\.minorFaults: a number, found "1"\nhint: /,
  ],
  [
    'an argument',
    [INPUT, { ...SLICE, args: { mhz: true } }],
    /event 2 \(own-slice\): expected args: an object or an array, found \{"mhz":true\}\nhint: /,
  ],
  [
    'an unknown tensor',
    [INPUT, { ...OPERATOR, tensor: 7 }],
    /event 2 \(operator\): expected tensor: the id of a tensor event before it, found 7\nhint: /,
  ],
  [
    'an unknown last tensor',
    [INPUT, TENSOR, { ...OPERATOR, fusedTo: 7 }],
    /event 3 \(operator\): expected fusedTo: the id of a tensor event before it, found 7\nhint: /,
  ],
  [
    'an unknown tensor of experts',
    [INPUT, { ...EXPERTS, tensor: 7 }],
    /event 2 \(experts\): expected tensor: the id of a tensor event before it, found 7\nhint: /,
  ],
  [
    'two calls with one number',
    [INPUT, TOKEN, TOKEN],
    /event 3 \(token\): expected call: a number that no other call has, found 3\nhint: /,
  ],
]

describe('a wrong event is one UsageError, which names it', () => {
  test.each(WRONG)('%s', async (_, events, message) => {
    const runs = [drained(made(...events)), summarize(made(...events)), analyze(made(...events))]
    for (const error of await Promise.all(runs.map(errorOf)))
      expect(error).toMatchObject({ name: 'UsageError', message: expect.stringMatching(message) })
  })

  test('events that are not in batches', async () => {
    const input = { name: 'mine', events: () => [INPUT] } as unknown as Input
    expect(await errorOf(drained(input))).toMatchObject({
      name: 'UsageError',
      message: expect.stringMatching(/yield \[event\]/),
    })
  })

  test('of a custom format, too', async () => {
    const format: Format = {
      ...{ name: 'mine', title: 'mine', sniff: () => true },
      async *read() {
        yield [INPUT, { ...TOKEN, call: '3' } as unknown as TraceEvent]
      },
    }
    const error = await errorOf(drained({ name: 'log', source: new Uint8Array(9) }, { formats: [format] }))
    expect(error).toMatchObject({ name: 'UsageError', message: expect.stringMatching(/event 2 \(token\)/) })
  })

  test('good ones are not, and fields of the program itself do not matter', async () => {
    expect(
      await errorOf(drained(made(INPUT, TENSOR, { ...OPERATOR, mine: 1 }, TOKEN, { ...TOKEN, call: 4 }, EXPERTS))),
    ).toBeUndefined()
  })
})

test('readers yield what the types of events are', async () => {
  const wrong: string[] = []
  let events = 0
  for (const path of LOGS) {
    const bytes = readFileSync(join(ROOT, path))
    const source = path.endsWith('.gz') ? gunzipSync(bytes) : bytes
    for (const everything of [false, true]) {
      try {
        const batches = eventsOf({ name: path, source }, new Names(), { everything, checkEvents: true })
        for await (const batch of batches) events += batch.length
      } catch (error) {
        if (/: event \d/.test((error as Error).message)) wrong.push((error as Error).message)
      }
    }
  }
  expect(wrong).toEqual([])
  expect(events).toBeGreaterThan(50_000)
})

describe('the check', () => {
  const program = (options: string) => `
    import { convert } from './dist/index.js'
    const events = () => [[{ kind: 'input', format: 'own', clock: 'MONOTONIC', originNs: 0n, attributes: {} }, { kind: 'operater' }]]
    for await (const _ of convert({ name: 'mine', events }, ${options}));`
  const runs = (mode: string, options = '{}') => {
    const args = ['--input-type=module', '-e', program(options)]
    try {
      execFileSync(process.execPath, args, { cwd: ROOT, env: { ...process.env, NODE_ENV: mode }, stdio: 'pipe' })
      return true
    } catch (error) {
      expect(String((error as { stderr: Buffer }).stderr)).toMatch(/UsageError: mine: event 2/)
      return false
    }
  }

  test('is made unless NODE_ENV is production, or as the option says', () => {
    expect([runs('development'), runs('production')]).toEqual([false, true])
    expect([runs('development', '{ checkEvents: false }'), runs('production', '{ checkEvents: true }')]).toEqual([
      true,
      false,
    ])
  })
})
