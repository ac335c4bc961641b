import type { Cell, OpenTrace } from '../../lib/sql.ts'
import { zeroOf } from '../origin.ts'

/**
 * What is in a written trace, as trace_processor sees it: one text per row, so that two multisets are compared by
 * sorting. `expected.ts` says what should be there.
 */

export type Args = Readonly<Record<string, string>>

/** A slice, or an instant where `dur` is 0. Times are absolute. */
export const sliceRow = (
  track: string,
  category: string,
  name: string,
  ts: bigint,
  dur: number,
  args: Args,
  depth = 0,
): string => JSON.stringify(['slice', track, category, name, `${ts}`, dur, depth, sortedEntries(args)])

export const counterRow = (track: string, ts: bigint, value: number): string =>
  JSON.stringify(['counter', track, `${ts}`, value])

export const trackRow = (track: string): string => JSON.stringify(['track', track])

/** A fact on the whole trace. */
export const factRow = (key: string, value: string): string => JSON.stringify(['fact', key, value])

const sortedEntries = (args: Args) => Object.entries(args).sort(([a], [b]) => (a < b ? -1 : 1))

/** What is worked out from whole graphs, and tested by itself: test/timeline/, test/model/work.test.ts. */
const WORKED_OUT = /\/Rates(\/|$)|\/(?:tok|GB|GFLOP)\/s$|: live$|\/Sizes(\/|$)|used \(inferred\)$/
const WORK_ARGS = new Set(['flop', 'gflop_per_s', 'bytes_moved', 'bytes_moved_max', 'gb_per_s', 'waited_for'])

/** Facts from which {@link zeroOf} computes. */
const CLOCK_FACT = /^(clock|origin_\w+)$/

/** Everything in a loaded trace, but for what is worked out. */
export function rowsOf(trace: OpenTrace): string[] {
  const tracks = new Map([...pathsOf(trace)].filter(([, path]) => !WORKED_OUT.test(path)))
  const args = argsOf(trace)
  const rows = [...tracks.values()].map(trackRow)
  const zeroNs = zeroOf(trace)
  const slices = trace.query('SELECT track_id, category, name, ts, dur, arg_set_id, depth FROM slice').rows
  for (const [track, category, name, ts, dur, set, depth] of slices) {
    const path = tracks.get(track as number)!
    rows.push(
      sliceRow(
        path,
        `${category}`,
        `${name}`,
        big(ts) + zeroNs,
        dur as number,
        args.get(set as number) ?? {},
        depth as number,
      ),
    )
  }
  for (const [track, ts, value] of trace.query('SELECT track_id, ts, value FROM counter').rows) {
    const path = tracks.get(track as number)
    if (path !== undefined) rows.push(counterRow(path, big(ts) + zeroNs, value as number))
  }
  const facts = trace.query(`SELECT substr(name, 17), coalesce(str_value, int_value) FROM metadata
    WHERE name GLOB 'trace_attribute.*'`)
  for (const [key, value] of facts.rows) if (!CLOCK_FACT.test(`${key}`)) rows.push(factRow(`${key}`, `${value}`))
  return rows
}

const big = (cell: Cell | undefined) => BigInt(cell as number | bigint)

/** Track id → names from the root on, joined by slashes. */
export function pathsOf(trace: OpenTrace): Map<number, string> {
  const { rows } = trace.query('SELECT id, parent_id, name FROM track')
  const tracks = new Map(rows.map(([id, parent, name]) => [id as number, { parent: parent as number | null, name }]))
  const pathOf = (id: number): string => {
    const { parent, name } = tracks.get(id)!
    return parent === null ? `${name}` : `${pathOf(parent)}/${name}`
  }
  return new Map([...tracks.keys()].map((id) => [id, pathOf(id)]))
}

/** Argument set → arguments. A number with a point is told exactly, and not as SQL would print it. */
function argsOf(trace: OpenTrace): Map<number, Args> {
  const sets = new Map<number, Record<string, string>>()
  const { rows } = trace.query(`SELECT arg_set_id, substr(key, 7), display_value, real_value, value_type FROM args
    WHERE key GLOB 'debug.*'`)
  for (const [id, key, display, real, type] of rows) {
    if (WORK_ARGS.has(`${key}`)) continue
    const set = sets.get(id as number) ?? {}
    sets.set(id as number, set)
    if (`${key}` in set) throw new Error(`argument ${key} comes twice in set ${id}`)
    set[`${key}`] = type === 'real' ? String(real) : `${display}`
  }
  return sets
}

/** How two multisets of rows differ: lines that start with `missing` or `unexpected`; none where they are equal. */
export function differences(expected: readonly string[], found: readonly string[], most = 10): string[] {
  const counts = new Map<string, number>()
  for (const row of expected) counts.set(row, (counts.get(row) ?? 0) + 1)
  for (const row of found) counts.set(row, (counts.get(row) ?? 0) - 1)
  const lines = [...counts].flatMap(([row, count]) => {
    if (count === 0) return []
    return `${count > 0 ? 'missing' : 'unexpected'} ${Math.abs(count)} × ${row}`
  })
  return lines.sort().slice(0, most)
}
