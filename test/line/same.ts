import type { Cell, OpenTrace } from '../../lib/sql.ts'
import { zeroOf } from '../origin.ts'

/**
 * What a trace holds as far as Chrome's JSON can carry it, read from either kind of trace: one text per slice, counter
 * sample and arrow. Times are absolute. Groups go by the name of their process, `Memory (LLM run)`.
 */
export interface Content {
  readonly slices: string[]
  readonly samples: string[]
  readonly flows: string[]
  /** Rows in their order on the screen. */
  readonly rows: string[]
}

interface Slice {
  readonly id: number
  readonly parent: number | null
  readonly text: string
}

const big = (cell: Cell | undefined) => BigInt(cell as number | bigint)

function contentOf(trace: OpenTrace, slices: Slice[], samples: string[], rows: string[]): Content {
  const texts = new Map(slices.map(({ id, text }) => [id, text]))
  const withParents = slices.map(({ parent, text }) => `${text} in ${parent === null ? 'the row' : texts.get(parent)}`)
  const arrows = trace.query('SELECT slice_out, slice_in FROM flow').rows
  const flows = arrows.map(([from, to]) => `${texts.get(from as number)} -> ${texts.get(to as number)}`)
  return { slices: withParents.sort(), samples: samples.sort(), flows: flows.sort(), rows }
}

/** trace_processor reads a double's digits from JSON with an error in the last bit; integers are exact. */
const roughly = (value: Cell) => (Number.isInteger(Number(value)) ? `${value}` : Number(value).toPrecision(14))

/** Argument set → arguments in the order of their keys. Types are told; a pointer is a text in JSON, and trace_processor leaves out empty lists and objects there. */
function argsOf(trace: OpenTrace, prefix: 'debug' | 'args'): Map<Cell, string> {
  const { rows } =
    trace.query(`SELECT arg_set_id, substr(key, ${prefix.length + 2}), display_value, real_value, value_type
    FROM args WHERE key GLOB '${prefix}.*' AND coalesce(string_value, '') NOT IN ('[]', '{}') ORDER BY 1, 2`)
  const sets = new Map<Cell, string>()
  for (const [id, key, display, real, type] of rows) {
    const told = type === 'pointer' ? 'string' : type
    const value = type === 'real' ? roughly(real!) : display
    sets.set(id as number, `${sets.get(id as number) ?? ''} ${told} ${key}=${value}`)
  }
  return sets
}

const sliceText = (row: string, [name, category, depth, dur]: readonly Cell[], ts: bigint, args: string | undefined) =>
  JSON.stringify([row, name, category, depth, dur, `${ts}`, args ?? ''])

/** Names from the track itself up to the top. */
function pathsOf(trace: OpenTrace): Map<Cell, string[]> {
  const { rows } = trace.query('SELECT id, parent_id, name FROM track')
  const tracks = new Map(
    rows.map(([id, parent, name]) => [id as number, { parent: parent as number | null, name: `${name}` }]),
  )
  const pathOf = (id: number): string[] => {
    const { parent, name } = tracks.get(id)!
    return parent === null ? [name] : [name, ...pathOf(parent)]
  }
  return new Map([...tracks.keys()].map((id) => [id, pathOf(id)]))
}

const titleOf = ([name, ...above]: readonly string[]) =>
  above.length > 0 ? `${name} (${above.join(', ')})` : `${name}`

/** Of a trace in Perfetto's protobuf. */
export function perfettoContent(trace: OpenTrace): Content {
  const rows = new Map([...pathsOf(trace)].map(([id, [name, ...group]]) => [id, `${titleOf(group)}: ${name}`]))
  const args = argsOf(trace, 'debug')
  const zeroNs = zeroOf(trace)
  const slices = trace
    .query('SELECT id, parent_id, track_id, arg_set_id, ts, name, category, depth, dur FROM slice')
    .rows.map(([id, parent, track, set, ts, ...what]) => {
      const text = sliceText(rows.get(track!)!, what, big(ts) + zeroNs, args.get(set!))
      return { id: id as number, parent: parent as number | null, text }
    })
  const samples = trace
    .query('SELECT track_id, unit, ts, value FROM counter JOIN counter_track track ON track.id = track_id')
    .rows.map(([track, unit, ts, value]) =>
      JSON.stringify([`${rows.get(track!)} ${unit}`, `${big(ts) + zeroNs}`, roughly(value!)]),
    )
  const ordered = trace.query(`SELECT track.id, track.parent_id, coalesce(args.int_value, 0) FROM track
    LEFT JOIN args ON arg_set_id = source_arg_set_id AND key = 'sibling_order_rank'`).rows
  return contentOf(trace, slices, samples, orderOf(trace, ordered, rows))
}

/** Rows with slices, a group's own before those of groups in it. */
function orderOf(trace: OpenTrace, tracks: readonly Cell[][], rows: ReadonlyMap<Cell, string>): string[] {
  const withSlices = new Set(trace.query('SELECT DISTINCT track_id FROM slice').rows.flat())
  const below = (parent: Cell): string[] => {
    const children = tracks.filter((track) => track[1] === parent).sort((a, b) => Number(a[2]) - Number(b[2]))
    const own = children.filter(([id]) => withSlices.has(id!)).map(([id]) => rows.get(id!)!)
    return [...own, ...children.flatMap(([id]) => below(id!))]
  }
  return below(null)
}

/** Of a trace in Chrome's JSON; `zeroNs` is the absolute time of its 0. */
export function jsonContent(trace: OpenTrace, zeroNs: bigint): Content {
  const args = argsOf(trace, 'args')
  const slices = trace
    .query(`SELECT slice.id, slice.parent_id, process.name || ': ' || thread.name, slice.arg_set_id, ts, slice.name,
        category, depth, dur
      FROM slice JOIN thread_track ON thread_track.id = track_id JOIN thread USING (utid) JOIN process USING (upid)`)
    .rows.map(([id, parent, row, set, ts, ...what]) => {
      const text = sliceText(`${row}`, what, big(ts) + zeroNs, args.get(set!))
      return { id: id as number, parent: parent as number | null, text }
    })
  const samples = trace
    .query(`SELECT process.name || ': ' || track.name, ts, value
      FROM counter JOIN process_counter_track track ON track.id = track_id JOIN process USING (upid)`)
    .rows.map(([row, ts, value]) => JSON.stringify([row, `${big(ts) + zeroNs}`, roughly(value!)]))
  const hint = (of: string) => `coalesce((SELECT int_value FROM args WHERE arg_set_id = ${of}.arg_set_id
    AND key = '${of}_sort_index_hint'), 0)`
  const rows = trace
    .query(`SELECT process.name || ': ' || thread.name FROM thread_track JOIN thread USING (utid) JOIN process USING (upid)
      WHERE thread_track.id IN (SELECT track_id FROM slice)
      ORDER BY ${hint('process')}, ${hint('thread')}`)
    .rows.map(([row]) => `${row}`)
  return contentOf(trace, slices, samples, rows)
}
