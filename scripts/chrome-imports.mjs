/**
 * Compares our trace of Chrome JSON with trace_processor's own import of the file: processes, threads, slices with their parents, durations
 * and arguments. docs/tracks.md lists what may differ; anything else is printed, and the exit code is 1.
 *   node scripts/chrome-imports.mjs folder or files …
 */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { basename, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { gunzipSync } from 'node:zlib'

/** trace_processor reads times as doubles: microseconds since 1970 are some hundred nanoseconds off. */
const OFF_NS = 1_000
/** Of PyTorch's profiler: drawn as calls and work of GPUs, or in rows of their own. */
const OF_GPU = /^(cuda_|xpu_|kernel$|gpu_|overhead$|Trace$|api$|gpu$)/
/** Slices that only our trace has: what it computes of the file. */
const OURS = /^(phase|token|issue|api|gpu|thread_overview)$/

const SLICES = `
  SELECT s.id, s.name, coalesce(s.category, '') AS category, s.ts, s.dur, s.depth, s.arg_set_id AS args,
    s.parent_id AS parent, s.track_id AS track, coalesce(p.pid, q.pid) AS pid, coalesce(p.name, q.name) AS process, t.tid, t.name AS thread
  FROM slice s LEFT JOIN thread_track tt ON tt.id = s.track_id LEFT JOIN thread t USING (utid) LEFT JOIN process p ON p.upid = t.upid
    LEFT JOIN process_track pt ON pt.id = s.track_id LEFT JOIN process q ON q.upid = pt.upid`
const ARGS = 'SELECT arg_set_id AS id, key, coalesce(string_value, int_value, real_value) AS value FROM args'

/** Rows of Python functions and of other slices of a thread nest for themselves. */
const stackOf = ({ category }) => (category === 'python_function' ? 'python' : 'others')

/** Paths of Python functions are shorter in ours. */
const shortOf = ({ name, category }) =>
  category === 'python_function' ? (name ?? '').replace(/^.*\//, '') : (name ?? '')

/** PyTorch's profiler writes `thread 7 (python3)`. */
const threadOf = ({ thread }) => /^thread -?\d+ \((.*)\)$/.exec(thread ?? '')?.[1] ?? thread ?? ''

/**
 * Is it not clear whether a slice is in another? Times are a bit off where one ends and the next begins; instants at a border are in it or
 * not, and those of one time are in each other in trace_processor.
 */
function isAtBorder(slice, outer) {
  const [from, to] = [slice.ts, slice.ts + slice.dur]
  const near = (a, b) => Math.abs(Number(a - b)) < OFF_NS
  return near(from, outer.ts + outer.dur) || near(from, outer.ts) || near(to, outer.ts + outer.dur)
}

/** Arguments by their ids, as texts: `args.a.b` and `debug.a_b` are one, empty lists and objects none. */
function argsOf(trace) {
  const byId = new Map()
  for (const { id, key, value } of trace.rows(ARGS)) {
    if (value === '[]' || value === '{}' || value === null) continue
    const name = key.replace(/^(debug|args)\./, '').replaceAll('.', '_')
    byId.set(id, [...(byId.get(id) ?? []), `${name}=${value}`])
  }
  return byId
}

function contentOf(trace) {
  const args = argsOf(trace)
  const slices = [...trace.rows(SLICES)].filter(({ category }) => !OURS.test(category))
  const byId = new Map(slices.map((slice) => [slice.id, slice]))
  for (const slice of slices) {
    let outer = byId.get(slice.parent)
    while (outer && stackOf(outer) !== stackOf(slice)) outer = byId.get(outer.parent)
    slice.place = `${slice.pid} ${slice.process ?? ''} / ${slice.tid} ${threadOf(slice)}`
    slice.key = [slice.category, shortOf(slice), Number(slice.dur)].join(' | ')
    slice.outer = outer
    Object.assign(slice, { ts: BigInt(slice.ts), dur: BigInt(slice.dur) })
    slice.texts = args.get(slice.args) ?? []
  }
  const [{ dropped }] = [
    ...trace.rows("SELECT value AS dropped FROM stats WHERE name = 'slice_drop_overlapping_complete_event'"),
  ]
  /** Threads with further rows: slices that overlap are there, and so is what begins in them. */
  const rows = new Map()
  for (const slice of slices)
    if (stackOf(slice) === 'others') rows.set(slice.place, (rows.get(slice.place) ?? new Set()).add(slice.track))
  const overlapping = new Set([...rows].filter(([, tracks]) => tracks.size > 1).map(([place]) => place))
  return { slices, overlapping, dropped: Number(dropped) }
}

/** From their times to ours, by slices of which there is one of a kind. */
function shiftOf(slices, ours) {
  const counts = new Map()
  for (const { key } of slices) counts.set(key, (counts.get(key) ?? 0) + 1)
  const single = slices.find(({ key }) => counts.get(key) === 1 && ours.get(key)?.length === 1)
  return single ? Number(ours.get(single.key)[0].ts) - Number(single.ts) : 0
}

/** Is the place of one of their slices that of ours? They have rows without a process, and the kernel's idle task for a process 0. */
const isSamePlace = (slice, other) =>
  slice.pid === null ||
  slice.pid === 0 ||
  (slice.pid === other.pid && (slice.tid === null || slice.place === other.place))

const isSameText = (text, other) => {
  if (text === other) return true
  const [[key, value], [name, found]] = [text, other].map((both) => [
    both.slice(0, both.indexOf('=')),
    Number(both.slice(both.indexOf('=') + 1)),
  ])
  // Their doubles are a bit off, and their integers wrap at 2^63.
  return (
    key === name &&
    (Math.abs(value - found) <= 1e-12 * Math.abs(value) ||
      (value < 0 && BigInt.asIntN(64, BigInt(found)) - BigInt(value) < 2048n))
  )
}

/** The names of the slices around one, inner before outer, which are in both: theirs lacks some that overlap. */
function outersOf(slice) {
  const names = []
  for (let { outer } = slice; outer; outer = outer.outer)
    if (outer.isFound) names.push([shortOf(outer), isAtBorder(slice, outer)])
  return names
}

/** Are they in the same slices, but for those whose border is theirs? */
function areInSame(slice, other) {
  const [theirs, ours] = [slice, other].map(outersOf)
  const clear = (names) => names.filter(([, isUnclear]) => !isUnclear)[0]?.[0]
  return theirs[0]?.[0] === ours[0]?.[0] || clear(theirs) === clear(ours)
}

/** Slices of trace_processor's import that have no equal in ours, and why. */
export async function compareImports(bytes, { convert, openTrace }) {
  const imported = await openTrace(bytes)
  const converted = await openTrace(
    convert({ name: 'trace.json', source: bytes }, { detail: 'full', all: true, grouped: true }),
  )
  const [a, b] = [contentOf(imported), contentOf(converted)]
  imported.close()
  converted.close()
  const rest = new Map()
  for (const slice of b.slices) rest.set(slice.key, [...(rest.get(slice.key) ?? []), slice])
  const shiftNs = shiftOf(a.slices, rest)
  const wrong = []
  const pairs = []
  for (const slice of a.slices) {
    if (OF_GPU.test(slice.category) || Number(slice.dur) < 0) continue // ours have an end, and an issue
    const lack = (other) => slice.texts.filter((text) => !other.texts.some((known) => isSameText(text, known)))
    const near = (rest.get(slice.key) ?? []).filter(
      (other) =>
        !other.isFound && isSamePlace(slice, other) && Math.abs(Number(other.ts) - Number(slice.ts) - shiftNs) < OFF_NS,
    )
    const found = near.find((other) => lack(other).length === 0) ?? near[0]
    if (!found) wrong.push(`missing: ${slice.key} of ${slice.place} at ${slice.ts}`)
    else if (lack(found).length > 0) wrong.push(`without ${lack(found)}: ${slice.key}`)
    if (!found) continue
    slice.isFound = true
    found.isFound = true
    pairs.push([slice, found])
  }
  for (const [slice, found] of pairs) {
    if (slice.tid === null || b.overlapping.has(found.place) || areInSame(slice, found)) continue
    const [theirs, ours] = [slice, found].map((one) => outersOf(one)[0]?.[0])
    wrong.push(`in ${ours} instead of ${theirs}: ${slice.key}`)
  }
  return { compared: pairs.length, ours: b.slices.length, dropped: a.dropped, wrong }
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const places = process.argv.slice(2)
  if (places.length === 0) throw new Error('usage: node scripts/chrome-imports.mjs folder or files …')
  const [{ convert }, { openTrace }] = [await import('ggml2perfetto'), await import('ggml2perfetto/sql')]
  const paths = places.flatMap((place) =>
    statSync(place).isDirectory() ? readdirSync(place).map((name) => join(place, name)) : [place],
  )
  for (const path of paths.filter((name) => /\.json(\.gz)?$/.test(name)).sort()) {
    const [stored, name] = [readFileSync(path), basename(path)]
    const bytes = new Uint8Array(name.endsWith('.gz') ? gunzipSync(stored) : stored)
    const { compared, ours, dropped, wrong } = await compareImports(bytes, { convert, openTrace })
    console.log(
      `${name}: ${compared} slices compared of ${ours}, ${dropped} that the import drops, ${wrong.length} differ`,
    )
    for (const line of wrong.slice(0, 5)) console.log(`  ${line}`)
    if (wrong.length > 0) process.exitCode = 1
  }
}
