import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { FORMATS } from '../../lib/index.ts'
import { HEADER_BYTES, Header, MAGIC, RecordType } from '../../lib/log/ggtrace-layout.ts'
import { inputOf } from '../../lib/node.ts'
import { inParts, isLong, someOf } from '../long.ts'
import { viewOf } from '../read/ggtrace-logs.ts'
import { faultsOf, madeOf } from '../read/made.ts'
import { LOGS, ROOT } from '../tables/of-logs.ts'
import { corpusOf } from './corpus.ts'
import { Fuzzer, WAYS } from './execution.ts'

/** The first executions of the fuzzer (`npm run fuzz` makes 100 000), and what it starts from: each is without a fault. */

const [FIRST, EXECUTIONS] = isLong ? [40, 1000] : [0, 40]

inParts(test).each(WAYS)('%s of damaged inputs', async (way) => {
  const fuzzer = new Fuzzer(1, { way })
  for (let number = FIRST; number < EXECUTIONS; number++) {
    const { fault } = await fuzzer.execute(number)
    if (fault !== undefined) throw new Error(`execution ${number}: ${fault}`)
  }
})

/** The types of the records of the complete blocks of a log. */
function typesOf(log: Uint8Array): number[] {
  const view = viewOf(log)
  const types: number[] = []
  for (let block = 0, end = 0; block + HEADER_BYTES <= log.length; block = end) {
    end = block + view.getUint32(block + Header.size, true)
    if (view.getUint32(block, true) !== MAGIC || end === block || end > log.length) return types
    for (let at = block + HEADER_BYTES, size = 4; at + 4 <= end && size >= 4; at += size) {
      types.push(view.getUint16(at, true))
      size = view.getUint16(at + 2, true)
    }
  }
  return types
}

test('each format and each type of record is mutated', () => {
  const corpus = corpusOf()
  expect(FORMATS.filter(({ name }) => !corpus.has(name))).toEqual([])
  const types = new Set(corpus.get('ggtrace')!.flatMap(typesOf))
  const missing = Object.values(RecordType).filter((type) => typeof type === 'number' && !types.has(type))
  expect(missing.map((type) => RecordType[type as number])).toEqual([])
})

inParts(test).each(someOf(LOGS, 4))('%s', async (path) => {
  const made = await madeOf(inputOf(join(ROOT, path)))
  expect(made ? faultsOf(made) : []).toEqual([])
})
