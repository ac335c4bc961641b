import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { ZipWriter } from '../../lib/write/zip.ts'
import { joined } from '../line/support.ts'
import { unzip } from './support.ts'

async function* zipped(members: readonly { readonly name: string; readonly pieces: readonly Uint8Array[] }[]) {
  const zip = new ZipWriter()
  const results: string[] = []
  for (const { name, pieces } of members) {
    const content = async function* () {
      yield* pieces
      return name
    }
    results.push(yield* zip.add(name, content()))
  }
  yield* zip.finish()
  expect(results).toEqual(members.map(({ name }) => name))
}

const member = fc.record({
  name: fc.stringMatching(/^[\w.]{1,99}$/),
  pieces: fc.array(fc.uint8Array({ maxLength: 3000 }), { maxLength: 5 }),
})

test('what is packed comes out again, however it was cut', async () => {
  const members = fc.uniqueArray(member, { maxLength: 4, selector: ({ name }) => name })
  await fc.assert(
    fc.asyncProperty(members, async (all) => {
      const found = unzip(await joined(zipped(all)))
      expect([...found]).toEqual(all.map(({ name, pieces }) => [name, Buffer.concat(pieces)]))
    }),
    { numRuns: 60 },
  )
})

test('what a member throws ends the archive', async () => {
  const broken = async function* (): AsyncGenerator<Uint8Array> {
    yield new Uint8Array(9)
    throw new Error('broken')
  }
  await expect(joined(new ZipWriter().add('x', broken()))).rejects.toThrow('broken')
})
