import { setTimeout as wait } from 'node:timers/promises'
import { gunzipSync } from 'node:zlib'
import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { gzip, TraceWriter, toWebStream } from '../../lib/perfetto.ts'
import { inParts, isLong } from '../long.ts'
import { asked } from './asked.ts'

/** The bytes of the writer for anyone's traces, and any slices in it. */

describe('streams', () => {
  const EVENTS = 100_000

  /** Writes much, and returns the most bytes that waited at once. */
  async function written(trace: TraceWriter): Promise<number> {
    const track = trace.track('t')
    let most = 0
    for (let i = 0; i < EVENTS; i++) {
      track.slice(2 * i, 2 * i + 1, `slice ${i % 100}`, { args: { i } })
      most = Math.max(most, trace.size)
      if (i % 100 === 0) await trace.drained()
    }
    trace.finish()
    return most
  }

  test('who writes waits for who reads: a slow reader does not let bytes pile up', async () => {
    const trace = new TraceWriter()
    const writing = written(trace)
    const pieces: Uint8Array[] = []
    for await (const piece of trace.pieces()) {
      pieces.push(piece)
      if (pieces.length % 20 === 0) await wait(1)
    }
    const bytes = Buffer.concat(pieces)
    expect(bytes.length).toBeGreaterThan(3 << 20)
    expect(await writing).toBeLessThan(1.2 * (1 << 20))
    const [[counts]] = (await asked(bytes, 'SELECT count(*), sum(dur) FROM slice')) as [unknown[][]]
    expect(counts).toEqual([EVENTS, EVENTS])
  })

  test('the same bytes, whoever takes them: as a whole, as pieces, compressed, as a web stream', async () => {
    const make = (trace: TraceWriter) => {
      const track = trace.track('t')
      for (let i = 0; i < 20_000; i++) track.slice(i, i + 1, 'a')
      trace.finish()
      return trace
    }
    const whole = make(new TraceWriter()).take()
    const joined = async (pieces: AsyncIterable<Uint8Array>) => {
      const all: Uint8Array[] = []
      for await (const piece of pieces) all.push(piece)
      return Buffer.concat(all)
    }
    expect(Buffer.compare(await joined(make(new TraceWriter()).pieces()), whole)).toBe(0)
    expect(Buffer.compare(gunzipSync(await joined(gzip(make(new TraceWriter()).pieces()))), whole)).toBe(0)
    const blob = await new Response(toWebStream(make(new TraceWriter()).pieces())).blob()
    expect(Buffer.compare(new Uint8Array(await blob.arrayBuffer()), whole)).toBe(0)
  })

  test('flush passes on what is written so far', async () => {
    const trace = new TraceWriter()
    const pieces = trace.pieces()
    const first = pieces.next()
    trace.track('t').instant(1, 'a')
    trace.flush()
    expect((await first).value!.length).toBeGreaterThan(10)
  })

  test('a reader that ends early ends no writer, whose bytes do not pile up', async () => {
    const trace = new TraceWriter()
    const writing = written(trace)
    for await (const _ of trace.pieces()) break
    expect(await writing).toBeLessThan(1.2 * (1 << 20))
    expect(trace.size).toBeLessThan(1 << 20)
  })
})

describe('nesting', () => {
  interface Node {
    readonly name: string
    readonly gap: number
    readonly isComplete: boolean
    readonly length: number
    readonly children: readonly Node[]
  }
  const tree = fc.letrec<{ node: Node; nodes: Node[] }>((tie) => ({
    nodes: fc.array(tie('node'), { maxLength: 3, depthIdentifier: 'tree' }),
    node: fc.record(
      {
        name: fc.constantFrom('a', 'b', 'c', ''),
        gap: fc.nat({ max: 2 }),
        isComplete: fc.boolean(),
        length: fc.nat({ max: 3 }),
        children: fc.oneof({ depthIdentifier: 'tree', depthSize: 'small' }, fc.constant([]), tie('nodes')),
      },
      { noNullPrototype: true },
    ),
  }))

  interface Placed {
    readonly id: number
    readonly start: number
    readonly end: number
    readonly parent: number
    readonly node: Node
  }

  /** Places of slices: those without a length, and those that share their ends with others, too. */
  function place(nodes: readonly Node[], start: number, parent: number, found: Placed[]): number {
    let at = start
    for (const node of nodes) {
      const begin = at + node.gap
      const id = found.length
      found.push({ id, start: begin, end: 0, parent, node })
      const inner = place(node.children, begin, id, found)
      at = Math.max(inner, begin) + node.length
      found[id] = { ...found[id]!, end: at }
    }
    return at
  }

  inParts(test)(
    'any tree of slices, complete ones or not, is read back with its parents, durations and arguments',
    async () => {
      const property = fc.asyncProperty(tree.nodes, async (nodes) => {
        const placed: Placed[] = []
        place(nodes, 0, -1, placed)
        const trace = new TraceWriter()
        const track = trace.track('t')
        const write = (slice: Placed) => {
          const { id, start, end, node } = slice
          if (node.isComplete) track.slice(start, end, node.name, { args: { id } })
          else track.begin(start, node.name, { args: { id } })
          for (const child of placed) if (child.parent === id) write(child)
          if (!node.isComplete) track.end(end, { ended: id })
        }
        for (const slice of placed) if (slice.parent < 0) write(slice)
        const [found] = await asked(
          trace,
          `SELECT extract_arg(s.arg_set_id, 'debug.id'), s.ts, s.dur, extract_arg(s.arg_set_id, 'debug.ended'),
          coalesce(extract_arg(p.arg_set_id, 'debug.id'), -1)
          FROM slice s LEFT JOIN slice p ON p.id = s.parent_id ORDER BY 1`,
        )
        expect(found).toEqual(
          placed.map(({ id, start, end, parent, node }) => [
            id,
            start,
            end - start,
            node.isComplete ? null : id,
            placed[parent]?.end === start && placed[parent].node.isComplete ? expect.any(Number) : parent,
          ]),
        )
      })
      await fc.assert(property, { numRuns: isLong ? 100 : 10 })
    },
  )
})
