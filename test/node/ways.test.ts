import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from '@jest/globals'

const read = (path: string) => readFileSync(fileURLToPath(new URL(`../../${path}`, import.meta.url)), 'utf8')
const RECORD = 'lib/node/record'

test('each way to run ggml that a message names is a row of docs/reference/compatibility.md', () => {
  const [, table] = /^## Ways to run ggml\n([\s\S]*)/m.exec(read('docs/reference/compatibility.md'))!
  const rows = [...table!.matchAll(/^\| ([^|]+) \|/gm)].map(([, name]) => name!)
  const ways = [...read(`${RECORD}/ways.ts`).matchAll(/^ {2}\| '(.+)'$/gm)].map(([, name]) => name!)
  expect(ways.length).toBeGreaterThan(8)
  expect(rows).toEqual(expect.arrayContaining(ways))
  const sources = readdirSync(fileURLToPath(new URL(`../../${RECORD}`, import.meta.url)))
  const named = sources.flatMap((name) =>
    [...read(`${RECORD}/${name}`).matchAll(/rowOf\('([^']+)'\)/g)].map(([, way]) => way!),
  )
  expect(new Set(named)).toEqual(new Set(ways))
})
