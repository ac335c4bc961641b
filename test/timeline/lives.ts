import { expect } from '@jest/globals'
import { type ByteSource, type ConvertOptions, convert, type OpenTrace, openTrace } from '../../lib/index.ts'

/** The lifetimes that a trace shows, and an independent look at whether they can be. */

export interface ShownLife {
  readonly arena: string
  readonly tensor: string
  readonly startNs: number
  readonly endNs: number
  readonly offset: number
  readonly bytes: number
  readonly lastReader: string | null
  readonly inferred: string | null
}

/** A log's trace with lifetimes. */
export const traced = (source: ByteSource, options: ConvertOptions = {}): Promise<OpenTrace> =>
  openTrace(convert({ name: 'log', source }, { memory: 'lifetimes', ...options }))

/** All lifetimes of a trace, in order of time. */
export function livesIn(trace: OpenTrace): ShownLife[] {
  const arg = (key: string) => `extract_arg(s.arg_set_id, 'debug.${key}')`
  const { rows } = trace.query(`select g.name, ${arg('tensor')}, s.ts, s.dur, ${arg('offset')}, ${arg('bytes')},
    ${arg('last_reader')}, ${arg('inferred')}
    from slice s join track t on s.track_id = t.id join track g on t.parent_id = g.id
    where s.category = 'tensor' order by s.ts, s.id`)
  return rows.map(([group, tensor, ts, dur, offset, bytes, lastReader, inferred]) => ({
    arena: String(group).replace(/: tensors$/, ''),
    tensor: String(tensor),
    startNs: Number(ts),
    endNs: Number(ts) + Number(dur),
    offset: Number(offset),
    bytes: Number(bytes),
    lastReader: lastReader as string | null,
    inferred: inferred as string | null,
  }))
}

const samples = (trace: OpenTrace, track: string): [ts: number, value: number][] =>
  trace
    .query(
      `select ts, value from counter c join track t on c.track_id = t.id where t.name = '${track}' order by ts, c.id`,
    )
    .rows.map(([ts, value]) => [Number(ts), Number(value)])

/**
 * Sweeps over time: no two live tensors may share an address, none may lie outside of its arena, and wherever live bytes
 * were sampled they must be the sum of what lives. Returns how many lives there are, by arena.
 */
export function expectPossible(trace: OpenTrace): Record<string, number> {
  expect(trace.problems()).toEqual([])
  const lives = livesIn(trace)
  const found: Record<string, number> = {}
  for (const arena of new Set(lives.map((life) => life.arena))) {
    const own = lives.filter((life) => life.arena === arena)
    found[arena] = own.length
    const [[, size] = [0, 0]] = samples(trace, `${arena}: size`)
    expect(own.filter(({ offset, bytes }) => offset < 0 || offset + bytes > size)).toEqual([])
    expect(overlaps(own)).toEqual([])
    expect(wrongSums(own, samples(trace, `${arena}: live`))).toEqual([])
  }
  // One slice at a time on a row: none is nested in another, none was cut short.
  expect(trace.query("select count(*) from slice where category = 'tensor' and (depth > 0 or dur < 0)").rows).toEqual([
    [0],
  ])
  return found
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
