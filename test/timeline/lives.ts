import { expect } from '@jest/globals'
import type { ByteSource, ConvertOptions } from '../../lib/index.ts'
import { drawn } from '../printing-sink.ts'

/** The lifetimes that a timeline draws, and an independent look at whether they can be. */

export interface ShownLife {
  readonly row: string
  readonly arena: string
  readonly tensor: string
  readonly startNs: number
  readonly endNs: number
  readonly offset: number
  readonly bytes: number
  readonly lastReader: string | undefined
  readonly inferred: string | undefined
}

const ARGS = ['tensor', 'bytes', 'offset', 'last_reader', 'inferred']

/** What the timeline draws of a log's memory, with lifetimes. */
export const memoryOf = (source: ByteSource, options: ConvertOptions = {}): Promise<string[]> =>
  drawn({ name: 'log', source }, { memory: 'lifetimes', ...options }, { rows: /^Memory|: live$/, args: ARGS })

/** `Memory/compute buffer: tensors/at 0 | 892–5036 inp_tokens {tensor: inp_tokens, bytes: 64, offset: 0, last_reader: embd}` */
const LIFE =
  /^(Memory\/(.*): tensors\/.*) \| (\d+)–(\d+) .* {tensor: (.*), bytes: (\d+), offset: (-?\d+)(?:, last_reader: (.*?))?(?:, inferred: (.*))?}$/

/** All lifetimes that lines show, in order of time. */
export function livesIn(lines: readonly string[]): ShownLife[] {
  const lives = lines.filter((line) => line.includes(': tensors/')).map(lifeOf)
  return lives.sort((a, b) => a.startNs - b.startNs)
}

function lifeOf(line: string): ShownLife {
  const [, row = '', arena = '', ...found] = LIFE.exec(line) ?? []
  if (!row) throw new Error(`no lifetime: ${line}`)
  const [startNs = '', endNs = '', tensor = '', bytes = '', offset = '', lastReader, inferred] = found
  return { row, arena, tensor, startNs: +startNs, endNs: +endNs, offset: +offset, bytes: +bytes, lastReader, inferred }
}

/** `compute buffer: live | 892 = 64` */
const samples = (lines: readonly string[], track: string): [atNs: number, value: number][] =>
  lines
    .filter((line) => line.replace(/^Memory\//, '').startsWith(`${track} | `))
    .map((line) => line.split(' | ')[1]!.split(' = ').map(Number) as [number, number])

/**
 * Sweeps over time: no two live tensors may share an address, none may lie outside of its arena, and wherever live bytes
 * were sampled they must be the sum of what lives. Returns how many lives there are, by arena.
 */
export function expectPossible(lines: readonly string[]): Record<string, number> {
  const lives = livesIn(lines)
  const found: Record<string, number> = {}
  for (const arena of new Set(lives.map((life) => life.arena))) {
    const own = lives.filter((life) => life.arena === arena)
    found[arena] = own.length
    const [[, size] = [0, 0]] = samples(lines, `Sizes/${arena}: size`)
    expect(own.filter(({ offset, bytes }) => offset < 0 || offset + bytes > size)).toEqual([])
    expect(overlaps(own)).toEqual([])
    expect(wrongSums(own, samples(lines, `${arena}: live`))).toEqual([])
  }
  expect(nestedIn(lives)).toEqual([])
  return found
}

/** Lives that begin on a row before the last one there has ended. */
function nestedIn(lives: readonly ShownLife[]): ShownLife[] {
  const ends = new Map<string, number>()
  return lives.filter(({ row, startNs, endNs }) => {
    const last = ends.get(row) ?? 0
    ends.set(row, endNs)
    return startNs < last
  })
}

/** Pairs of tensors that share memory and time. A life ends where the next one begins: [start, end). */
export function overlaps(lives: readonly ShownLife[]): [ShownLife, ShownLife][] {
  const wrong: [ShownLife, ShownLife][] = []
  let open: ShownLife[] = []
  for (const life of lives) {
    open = open.filter(({ endNs }) => endNs > life.startNs)
    for (const other of open) {
      const isApart = other.offset + other.bytes <= life.offset || life.offset + life.bytes <= other.offset
      if (!isApart && life.endNs > life.startNs) wrong.push([other, life])
    }
    open.push(life)
  }
  return wrong
}

function wrongSums(lives: readonly ShownLife[], sampled: readonly [number, number][]): unknown[] {
  // Of several samples at one time, the last holds.
  const last = new Map(sampled)
  const changes = lives.flatMap(({ startNs, endNs, bytes }) => [
    { at: startNs, bytes },
    { at: endNs, bytes: -bytes },
  ])
  changes.sort((a, b) => a.at - b.at)
  let [sum, next] = [0, 0]
  const wrong: unknown[] = []
  for (const [at, value] of [...last].sort((a, b) => a[0] - b[0])) {
    for (; next < changes.length && changes[next]!.at <= at; next++) sum += changes[next]!.bytes
    if (sum !== value) wrong.push({ at, sampled: value, sum })
  }
  expect(last.size).toBeGreaterThan(0)
  return wrong
}
