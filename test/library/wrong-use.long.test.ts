import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import ts from 'typescript'
import * as analysis from '../../lib/analysis.ts'
import * as core from '../../lib/core.ts'
import * as datasets from '../../lib/datasets.ts'
import * as main from '../../lib/index.ts'
import * as node from '../../lib/node.ts'
import * as perfetto from '../../lib/perfetto.ts'
import * as report from '../../lib/report.ts'
import * as sql from '../../lib/sql.ts'
import * as tables from '../../lib/tables.ts'
import * as worker from '../../lib/worker.ts'
import { ROOT } from '../root.ts'

/** What programs do wrong with what the entries export is a UsageError with a hint. */

const ENTRIES = { index: main, core, perfetto, sql, analysis, report, tables, node, datasets, worker }

/** Functions and classes with options: the entry, the name, and the place of the options among the arguments. */
function withOptions(): [keyof typeof ENTRIES, string, number][] {
  const { config } = ts.readConfigFile(join(ROOT, 'tsconfig.json'), ts.sys.readFile)
  const { options } = ts.parseJsonConfigFileContent({ ...config, include: [] }, ts.sys, ROOT)
  const names = Object.keys(ENTRIES) as (keyof typeof ENTRIES)[]
  const pathOf = (name: string) => join(ROOT, `lib/${name}.ts`)
  const program = ts.createProgram(names.map(pathOf), options)
  const checker = program.getTypeChecker()
  return names.flatMap((entry) => {
    const module = checker.getSymbolAtLocation(program.getSourceFile(pathOf(entry))!)!
    return checker.getExportsOfModule(module).flatMap((exported) => {
      const symbol = exported.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(exported) : exported
      if (!(symbol.flags & ts.SymbolFlags.Value) || /Error$/.test(symbol.name)) return []
      const type = checker.getTypeOfSymbol(symbol)
      return [...type.getCallSignatures(), ...type.getConstructSignatures()].flatMap((signature) => {
        // An object whose fields may all be missing, or that is called so.
        const at = signature.parameters.findIndex((parameter) => {
          const given = checker.getNonNullableType(checker.getTypeOfSymbol(parameter))
          const optional = given.getProperties().filter(({ flags }) => flags & ts.SymbolFlags.Optional)
          const areAll = optional.length > 0 && optional.length === given.getProperties().length
          return /options$/i.test(parameter.name) || (areAll && checker.isArrayType(given) === false)
        })
        return at < 0 ? [] : [[entry, exported.name, at] as [typeof entry, string, number]]
      })
    })
  })
}

async function errorOf(run: () => unknown): Promise<unknown> {
  try {
    const result = await run()
    if (typeof (result as AsyncGenerator | undefined)?.next === 'function') await (result as AsyncGenerator).next()
    return undefined
  } catch (error) {
    return error
  }
}

const FUNCTIONS = withOptions()

test('functions with options are found', () => {
  expect(FUNCTIONS.map(([entry, name]) => `${entry}.${name}`)).toEqual(
    expect.arrayContaining([
      'index.convert',
      'core.convert',
      'core.GgtraceWriter',
      'sql.openTrace',
      'analysis.dagOf',
      'node.record',
    ]),
  )
  expect(FUNCTIONS.length).toBeGreaterThan(25)
})

test.each(FUNCTIONS)('%s: %s refuses an option that it does not have', async (entry, name, at) => {
  const call = (ENTRIES[entry] as unknown as Record<string, (...values: unknown[]) => unknown>)[name]!
  const values = [...Array.from({ length: at }, () => ({ name: 'x', source: new Uint8Array(9) })), { detial: 'full' }]
  const isClass = /^class\b/.test(String(call))
  const error = await errorOf(() => (isClass ? Reflect.construct(call, values) : call(...values)))
  const message = expect.stringMatching(/no option is called "detial"\nhint: /)
  expect(error).toMatchObject({ name: 'UsageError', message })
})

test('the nearest option is named', async () => {
  const options = { detial: 'full' } as main.ConvertOptions
  const error = await errorOf(() => main.convert({ name: 'x', source: new Uint8Array(9) }, options))
  expect(error).toMatchObject({ message: 'convert: no option is called "detial"\nhint: did you mean detail?' })
  const text = await errorOf(() =>
    main.convert({ name: 'x', source: new Uint8Array(9) }, 'full' as main.ConvertOptions),
  )
  expect(text).toMatchObject({ message: 'convert: expected options as an object, found "full"' })
})

const made = () =>
  main.analyze({
    name: 'own',
    events: () => [[{ kind: 'input', format: 'own', clock: 'MONOTONIC', originNs: 0n, attributes: {} }]],
  })

describe('documents', () => {
  type Compare = (before: unknown, after: unknown) => unknown
  const compare = analysis.compareRuns as Compare

  test.each<[string, unknown, RegExp]>([
    ['nothing', undefined, /before: expected a name and at least one run, found undefined\nhint: /],
    ['a list', [], /before: expected a name and at least one run, found \[\]\nhint: /],
    ['no runs', { name: 'a', runs: [] }, /before: expected a name and at least one run, found /],
    [
      'summaries',
      { name: 'a', runs: [{ format: 'ggtrace' }] },
      /before\.runs\[0\]: expected an object with the schema ggml2perfetto\.analysis\/1, found object without a schema\nhint: /,
    ],
  ])('wrong runs to compare: %s', async (_, side, message) => {
    const error = await errorOf(() => compare(side, side))
    expect(error).toMatchObject({ name: 'UsageError', message: expect.stringMatching(message) })
  })

  test('others', async () => {
    const run = await made()
    const comparison = analysis.compareRuns({ name: 'a', runs: [run] }, { name: 'b', runs: [run] })
    const wrong: (() => unknown)[] = [
      () => analysis.gateOf(run as never, 0.1),
      () => analysis.scaling([comparison] as never),
      () => report.reportHtml({ schema: 'x' } as never),
    ]
    for (const call of wrong) {
      const message = expect.stringMatching(/expected an object with the schema .*\nhint: /)
      expect(await errorOf(call)).toMatchObject({ name: 'UsageError', message })
    }
  })
})

describe('a written log', () => {
  const writer = () => new core.GgtraceWriter({ originNs: 1n })
  const good = { startNs: 1, endNs: 2, call: 0, tokens: 1 }

  test.each<[string, () => unknown, RegExp]>([
    [
      'a kind of call',
      () =>
        writer()
          .thread(1)
          .token({ ...good, kind: 'prefill' as never }),
      /^kind: expected one of decode, .*, found "prefill"\nhint: /,
    ],
    [
      'a state',
      () =>
        writer()
          .thread(1)
          .state(1, 1, 1, 'runing' as never),
      /found "runing"\nhint: did you mean running\?/,
    ],
    [
      'a usage',
      () => writer().buffer({ name: 'a', base: 0, sizeBytes: 1, usage: 'computes' as never }),
      /found "computes"\nhint: did you mean compute\?/,
    ],
    [
      'a type that was not defined',
      () => writer().tensor({ name: 'a' }),
      /^tensor: expected a defined type, found 0\nhint: type\(0, /,
    ],
    [
      'an op that was not defined',
      () => {
        const log = writer()
        log.type(0, 'f32')
        log.tensor({ name: 'a', op: 3 })
      },
      /^tensor: expected a defined op, found 3\nhint: op\(3, /,
    ],
    [
      'a size of blocks',
      () => new core.GgtraceWriter({ originNs: 1n, blockBytes: 7 }),
      /^blockBytes: expected a multiple of 8, .*, found 7/,
    ],
  ])('%s', async (_, call, message) => {
    expect(await errorOf(call)).toMatchObject({ name: 'UsageError', message: expect.stringMatching(message) })
  })
})
