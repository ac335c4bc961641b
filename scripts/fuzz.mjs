/**
 * Fuzzes the decoders of all formats: seeded mutations of the fixtures, each read as `summarize` and the timeline would. What
 * is neither events nor an error of our own is a bug, as is an input that takes long or memory that grows.
 *   node scripts/fuzz.mjs [executions, default 100000] [seed, default 1] [format]
 * The same seed gives the same inputs; a finding is printed with its bytes (base64) and the number of its execution.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gunzipSync } from 'node:zlib'
import { eventsOf, FORMATS, isOwnError, Names, sniffFormat } from 'ggml2perfetto'

const FIXTURES = fileURLToPath(new URL('../test/fixtures', import.meta.url))
const SEED_BYTES_MAX = 3300
/** Formats whose beginning points far behind: now and then they are read whole. */
const POINTING = new Set(['nsys', 'perf-data', 'trace-dat'])
const WHOLE_EVERY = 16
const SLOW_MS = 2000
const REPORT_EVERY = 250_000

const [executions, seed] = [Number(process.argv[2] ?? 100_000), Number(process.argv[3] ?? 1)]
const only = process.argv[4]

/** mulberry32 */
function random(state) {
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
}

/** Of formats that have no fixture, as their tests make them. */
const ALLOC =
  '{"timestamp_ms":1.5,"event":"alloc","buffer_id":7,"buffer_ptr":4096,"size":4096,"name":"CPU","backend":"CPU","usage":2,"layer":3}\n'
const SMALL = {
  'buffer-stats': `${ALLOC}${ALLOC.replace('7', '8')}{"timestamp_ms":9.25,"event":"dealloc","buffer_id":7}\n`,
  'buffer-timeline': JSON.stringify({
    metadata: { total_buffers: 1 },
    buffers: [{ id: 2, name: 'b', size: 20, usage: 2, alloc_time_ms: 1.5, dealloc_time_ms: null }],
    timeline: [],
  }),
  'memory-map': JSON.stringify({
    model_name: 'm',
    total_size_bytes: 99,
    metadata: { n_tensors: 1 },
    tensors: [
      { name: 'blk.0.ffn_up.weight', offset_start: 32, offset_end: 96, size_bytes: 64, shape: [4, 4], layer_id: 0 },
    ],
  }),
  'ggml-graph': JSON.stringify({
    metadata: { total_nodes: 2, total_edges: 1 },
    nodes: ['n0', 'n1'].map((id) => ({
      id,
      label: `${id}-1`,
      operation: 'X*Y',
      layer_id: 1,
      address: '0x5',
      shape: [4],
      dtype: 'f32',
    })),
    edges: [{ source: 'n1', target: 'n0', label: 'src 0' }],
  }),
}

SMALL['nsys-gpu-trace'] = `Start (ns),Duration (ns),CorrId,GrdX,Bytes (MB),Device,Ctx,Strm,Name
1949099896,3552,142,,0.038,NVIDIA RTX A4500 (0),1,7,[CUDA memcpy Host-to-Device]
1959533099,1632,209,64,,NVIDIA RTX A4500 (0),1,7,"void gemm<float, 4>(T1, T2)"
`

const joined = (...parts) => new Uint8Array(Buffer.concat(parts))

function seedsByFormat() {
  const seeds = new Map()
  for (const [name, text] of Object.entries(SMALL))
    if (!only || only === name) seeds.set(name, [new Uint8Array(Buffer.from(text))])
  const paths = readdirSync(FIXTURES, { recursive: true, encoding: 'utf8' }).sort()
  for (const path of paths.filter((name) => /\.\w+$/.test(name) && !name.endsWith('.md'))) {
    const raw = readFileSync(join(FIXTURES, path))
    const bytes = path.endsWith('.gz') ? gunzipSync(raw) : raw
    const format = sniffFormat(bytes.subarray(0, 4096))
    if (!format || (only && format.name !== only)) continue
    const cut = new Uint8Array(POINTING.has(format.name) ? bytes : bytes.subarray(0, SEED_BYTES_MAX))
    seeds.set(format.name, [...(seeds.get(format.name) ?? []), cut])
  }
  return seeds
}

const INTERESTING = [0, 1, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff]
const TOKENS = [
  ',',
  '\n',
  '"',
  '-',
  '.',
  '0',
  '9'.repeat(20),
  ':',
  '{',
  '}',
  '[',
  ']',
  'null',
  '1e999',
  '\\u0000',
  ' ==> ',
]

/** One to a few changes of any kind. */
function mutated(bytes, next, others) {
  const below = (limit) => Math.floor(next() * limit)
  // Mostly a short beginning: damage at the start of a log is worth more than at its end.
  const isWhole = below(bytes.length > SEED_BYTES_MAX ? WHOLE_EVERY : 4) === 0
  let out = bytes.slice(0, isWhole ? bytes.length : 200 + below(1000))
  for (let changes = 1 + below(4); changes > 0 && out.length > 0; changes--) {
    const at = below(out.length)
    const view = new DataView(out.buffer, out.byteOffset, out.byteLength)
    switch (below(8)) {
      case 0:
        out[at] ^= 1 << below(8)
        break
      case 1:
        out[at] = below(256)
        break
      case 2: {
        const value = INTERESTING[below(INTERESTING.length)]
        if (at + 4 <= out.length) view.setUint32(at & ~3, value, true)
        break
      }
      case 3:
        out = out.slice(0, at)
        break
      case 4: {
        const end = Math.min(out.length, at + 1 + below(64))
        out = joined(out.subarray(0, at), out.subarray(end))
        break
      }
      case 5: {
        const end = Math.min(out.length, at + 1 + below(64))
        out = joined(out.subarray(0, end), out.subarray(at, end), out.subarray(end))
        break
      }
      case 6: {
        const other = others[below(others.length)]
        const from = below(other.length)
        out = Uint8Array.from([
          ...out.subarray(0, at),
          ...other.subarray(from, from + 1 + below(200)),
          ...out.subarray(at),
        ])
        break
      }
      default: {
        const token = Buffer.from(TOKENS[below(TOKENS.length)])
        out.set(token.subarray(0, out.length - at), at)
      }
    }
  }
  return out
}

async function run(bytes, from) {
  let events = 0
  try {
    for await (const batch of eventsOf({ name: 'fuzz', source: bytes }, new Names(), { from })) events += batch.length
  } catch (error) {
    if (!isOwnError(error)) throw error
  }
  return events
}

const seeds = seedsByFormat()
const missing = FORMATS.filter(({ name }) => !seeds.has(name) && (!only || name === only)).map(({ name }) => name)
if (missing.length > 0) console.log(`no fixture of: ${missing.join(', ')}`)
const names = [...seeds.keys()]
const counts = Object.fromEntries(names.map((name) => [name, 0]))
let [events, findings] = [0, 0]
const started = performance.now()
const heap = []
for (let i = 0; i < executions; i++) {
  const next = random(seed * 0x9e3779b1 + i)
  const format = names[i % names.length]
  const corpus = seeds.get(format)
  const input = mutated(corpus[Math.floor(next() * corpus.length)], next, corpus)
  const before = performance.now()
  let problem
  try {
    events += await run(input, format)
  } catch (error) {
    problem = error.stack
  }
  const took = performance.now() - before
  if (took > SLOW_MS && !problem) {
    // Once more, as another program may have had the CPU.
    const again = performance.now()
    await run(input, format)
    if (performance.now() - again > SLOW_MS) problem = `took ${took.toFixed(0)} ms`
  }
  if (problem) {
    findings++
    console.log(`execution ${i} (${format}): ${problem}\n${Buffer.from(input).toString('base64')}`)
  }
  counts[format]++
  if ((i + 1) % REPORT_EVERY === 0 || i + 1 === executions) {
    globalThis.gc?.()
    heap.push(Math.round(process.memoryUsage().heapUsed / 2 ** 20))
    const rate = ((i + 1) / (performance.now() - started)) * 1e3
    console.log(
      `${i + 1} executions, ${rate.toFixed(0)} a second, ${events} events, heap ${heap.at(-1)} MiB, ${findings} findings`,
    )
  }
}
console.log(JSON.stringify(counts))
process.exitCode = findings > 0 ? 1 : 0
