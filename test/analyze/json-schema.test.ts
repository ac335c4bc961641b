import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from '@jest/globals'
import { Ajv2020, type AnySchemaObject } from 'ajv/dist/2020.js'
import { analysisJsonSchema } from '../../lib/analysis.ts'
import { analyze, isOwnError } from '../../lib/index.ts'
import { inputOf } from '../../lib/node.ts'
import { FIXTURES } from '../line/support.ts'
import { inParts, oneOfEach } from '../long.ts'

/** The JSON Schema of an Analysis, by an independent validator. */

const SHIPPED = fileURLToPath(new URL('../../dist/analysis.schema.json', import.meta.url))
/** Fields that the schema does not name are wrong, too: it allows them for later versions. */
const closed = JSON.parse(JSON.stringify(analysisJsonSchema()), (_, value) =>
  value?.properties && value.type === 'object' ? { ...value, additionalProperties: false } : value,
) as AnySchemaObject
const validate = new Ajv2020({ allErrors: true }).compile(closed)
const problemsOf = (document: unknown) => {
  validate(document)
  return (validate.errors ?? []).map(({ instancePath, message, params }) => [instancePath, message, params])
}

const analysisOf = async (name: string): Promise<unknown> =>
  JSON.parse(JSON.stringify(await analyze(inputOf(join(FIXTURES, name)))))

/** All files of fixtures: logs, and what belongs to them. */
const ALL = readdirSync(FIXTURES, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile() && !entry.name.endsWith('.md'))
  .map((entry) => relative(FIXTURES, join(entry.parentPath, entry.name)))
  .sort()

inParts(test)('the Analysis of each fixture is valid', async () => {
  let valid = 0
  for (const name of oneOfEach(ALL)) {
    const analysis = await analysisOf(name).catch((error) => {
      if (!isOwnError(error)) throw error // what only completes a log, and has no Analysis alone
    })
    if (analysis === undefined) continue
    expect({ name, problems: problemsOf(analysis) }).toEqual({ name, problems: [] })
    valid++
  }
  expect(valid).toBeGreaterThan(20)
})

test('another document is not', async () => {
  const analysis = (await analysisOf('tensor-trace/moe-2threads.bin.gz')) as Record<string, object>
  expect(problemsOf(analysis)).toEqual([])
  const { calls, ...without } = analysis
  expect(problemsOf(without)).toMatchObject([['', "must have required property 'calls'", {}]])
  expect(problemsOf({ ...analysis, more: 1 })).toMatchObject([['', expect.any(String), { additionalProperty: 'more' }]])
  expect(problemsOf({ ...analysis, schema: 'other/1' })).toMatchObject([['/schema', expect.any(String), {}]])
  expect(problemsOf({ ...analysis, calls: { ...calls, prefill: 'fast' } })).not.toEqual([])
})

test('the package contains it as a file', () => {
  expect(JSON.parse(readFileSync(SHIPPED, 'utf8'))).toEqual(JSON.parse(JSON.stringify(analysisJsonSchema())))
})
