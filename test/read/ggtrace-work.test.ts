import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { ByteCursor } from '../../lib/input/byte-cursor.ts'
import { BLOCK_BYTES_MAX, HEADER_BYTES, Header, MAGIC } from '../../lib/log/ggtrace-layout.ts'
import { type Block, BlockFinder } from '../../lib/read/ggtrace/blocks.ts'
import { Waiting } from '../../lib/read/ggtrace/order.ts'
import { inParts, someOf } from '../long.ts'
import { blocksOf, joined, read, tiny, viewOf } from './ggtrace-logs.ts'

/** How much work a log takes whose blocks are made to take much: counted, not timed. */

/** A header every 8 bytes, of a block of that size. */
function overlapping(length: number, size: number): Uint8Array {
  const bytes = new Uint8Array(length)
  const view = viewOf(bytes)
  for (let at = 0; at + 8 <= length; at += 8) {
    view.setUint32(at + Header.magic, MAGIC, true)
    view.setUint32(at + Header.size, size, true)
  }
  return bytes
}

async function checkedBytes(log: Uint8Array): Promise<number> {
  const finder = new BlockFinder(() => {})
  const cursor = new ByteCursor(
    (async function* () {
      yield log
    })(),
  )
  await cursor.fill()
  while (finder.next(cursor, true));
  return finder.checkedBytes
}

describe('blocks that overlap', () => {
  inParts(test).each(someOf([HEADER_BYTES, 4096, BLOCK_BYTES_MAX], 3, 1))(
    'of %i bytes: twice the log is twice the work',
    async (size) => {
      const once = await checkedBytes(overlapping(8 << 20, size))
      const twice = await checkedBytes(overlapping(16 << 20, size))
      expect(once).toBeGreaterThan(1 << 20)
      expect(twice).toBeLessThanOrEqual(2.5 * once)
      expect(twice).toBeLessThan(6 * (16 << 20))
    },
  )

  test('sound blocks before, and a mebibyte behind them, are read', async () => {
    const blocks = blocksOf(tiny())
    const gap = new Uint8Array(BLOCK_BYTES_MAX)
    const { of, issues } = await read(
      joined([...blocks.slice(0, -2), overlapping(3 << 20, BLOCK_BYTES_MAX), gap, ...blocks.slice(-2)]),
    )
    const { of: sound } = await read(tiny())
    expect(of('operator')).toEqual(sound('operator'))
    expect(of('token')).toEqual(sound('token'))
    expect(issues.some((issue) => issue.includes('left out unchecked: too many before it are damaged'))).toBe(true)
  })

  test('a block whose size is damaged hides no block within that size', async () => {
    const blocks = blocksOf(tiny())
    for (const [i, block] of blocks.entries()) {
      const damaged = block.slice()
      viewOf(damaged).setUint32(Header.size, BLOCK_BYTES_MAX, true)
      const log = joined([...blocks.slice(0, i), damaged, ...blocks.slice(i + 1), new Uint8Array(BLOCK_BYTES_MAX)])
      const found: number[] = []
      const cursor = new ByteCursor(
        (async function* () {
          yield log
        })(),
      )
      await cursor.fill()
      const finder = new BlockFinder(() => {})
      for (let next = finder.next(cursor, true); next; next = finder.next(cursor, true)) {
        if (next.state === 'sealed') found.push(next.byte)
      }
      expect(found).toHaveLength(blocks.length - 1)
    }
  })
})

const blockOf = (writer: number, needs: number, isOpen = false): Block => ({
  ...{ state: isOpen ? 'open' : 'sealed', view: new DataView(new ArrayBuffer(8)), at: 0, end: 8, byte: 0, kind: 3 },
  ...{ writer, sequence: 0, needs, dropped: 0 },
})

/** The same by going through all that wait, each time. */
class Model {
  private entries: { id: number; writer: number; needs: number }[] = []

  hold(id: number, { writer, needs, state }: Block, defined: number): boolean {
    const before = this.entries.findLast((entry) => entry.writer === writer)
    if (before?.needs === Infinity) before.needs = needs
    const own = state === 'sealed' ? needs : Infinity
    if (own <= defined && !before) return false
    this.entries.push({ id, writer, needs: own })
    return true
  }

  release(defined: number): number[] {
    const stuck = new Set<number>()
    const goes = this.entries.filter(({ writer, needs }) => {
      if (needs > defined) stuck.add(writer)
      return !stuck.has(writer)
    })
    this.entries = this.entries.filter((entry) => !goes.includes(entry))
    return goes.map(({ id }) => id)
  }

  get needs(): number {
    return Math.max(0, ...this.entries.map(({ needs }) => needs).filter(Number.isFinite))
  }
}

describe('blocks that wait for definitions', () => {
  test('are released as when all are looked at each time', () => {
    const step = fc.record({ writer: fc.nat(4), needs: fc.nat(30), isOpen: fc.boolean(), defines: fc.nat(3) })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
        const [waiting, model] = [new Waiting(), new Model()]
        let defined = 0
        for (const [id, { writer, needs, isOpen, defines }] of steps.entries()) {
          const block = { ...blockOf(writer, needs, isOpen), byte: id }
          expect(waiting.hold(block, defined)).toBe(model.hold(id, block, defined))
          defined += defines
          expect(waiting.release(defined).map(({ byte }) => byte)).toEqual(model.release(defined))
          expect(waiting.needs).toBe(model.needs)
        }
        expect(waiting.release(Infinity).map(({ byte }) => byte)).toEqual(model.release(Infinity))
      }),
    )
  })

  test.each([
    ['of one writer', () => 0, () => 1e9],
    ['of a writer each', (i: number) => i, () => 1e9],
    ['of few writers, each for other definitions', (i: number) => i % 7, (i: number) => 1e6 - i],
  ])('%s: twice the blocks are twice the work', (_, writer, needs) => {
    const stepsOf = (count: number) => {
      const waiting = new Waiting()
      for (let i = 0; i < count; i++) {
        waiting.hold(blockOf(writer(i), needs(i)), i)
        waiting.release(i)
      }
      expect(waiting.release(Infinity)).toHaveLength(count)
      return waiting.steps
    }
    expect(stepsOf(20_000)).toBeLessThanOrEqual(2.5 * stepsOf(10_000))
    expect(stepsOf(20_000)).toBeLessThan(20_000 * 20)
  })
})
