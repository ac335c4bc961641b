/**
 * Fuzzes the decoders of all formats with seeded mutations of the fixtures or, with --line, the whole line: readers, timeline and
 * writer, or the analysis, with random options, in random pieces; the output is then parsed. Samples of memory are joined with the log
 * that they belong to. A bug is: an error of another class than ours, output
 * that cannot be parsed or is too large, an input that takes too long, or memory that grows.
 *   node scripts/fuzz.mjs [executions, default 100000] [seed, default 1] [format] [--line]
 * The same seed gives the same inputs; a finding is printed with its bytes (base64) and the number of its execution.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gunzipSync } from 'node:zlib'
import { analyze, convert, eventsOf, FORMATS, isOwnError, Names, sniffFormat } from 'ggml2perfetto'
import protobuf from 'protobufjs'

const FIXTURES = fileURLToPath(new URL('../test/fixtures', import.meta.url))
const SEED_BYTES_MAX = 3300
/** Formats with pointers from the beginning to far behind: these are sometimes read whole. */
const POINTING = new Set(['nsys', 'perf-data', 'trace-dat'])
const WHOLE_EVERY = 16
const SLOW_MS = 2000
const REPORT_EVERY = 50_000

/** Limit of written bytes per read byte, and for an input of any size: its tracks, its issues. */
const OUTPUT_RATIO_MAX = 400
const OUTPUT_BYTES = 1 << 20
/** How much the process may grow after the first report, in MiB. */
const GROWTH_MIB_MAX = 400

const isLine = process.argv.includes('--line')
const [count = '100000', seedText = '1', only] = process.argv.slice(2).filter((arg) => arg !== '--line')
const [executions, seed] = [Number(count), Number(seedText)]

/** mulberry32 */
function random(state) {
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
}

/** Formats without fixtures, made as in their tests. */
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

// Beginnings of the fixtures of these have no samples, no GPUs without numbers, and no kernel.
const SAMPLE = '|OP LOAD|LVL L1 hit|SNP None|TLB L1 or L2 hit|LCK No|BLK  N/A'
SMALL['perf-script'] = `# clockid: monotonic (1)
 decode 20871/20871 [000]  2677.989765071: PERF_RECORD_MMAP2 20871/20871: [0x7f238458c000(0x35000) @ 0 fe:00 338944 0]: r--p /m/nano.gguf
 decode 20871/20871 [000]  2677.989812512: page-faults:     7f238458d2d0      1e05080021 |OP N/A|LVL N/A or N/A|SNP N/A|TLB N/A|LCK N/A|BLK  N/A
 decode 20871/20873 [001]  2678.100000100:          7 cpu/mem-loads,ldlat=30/P:     7f23845c0110       68100142 ${SAMPLE}              213
 decode 20871/20873 [001]  2678.200000100: major-faults:     7f238458f110
`
SMALL['nvidia-smi'] = `timestamp, power.draw [W]
2025/04/24 15:58:57.879, 21.76 W
2025/04/24 15:58:57.883, 31.02 W
2025/04/24 15:58:58.879, 22.00 W
2025/04/24 15:58:58.884, 30.50 W
`
SMALL.ncu = `==PROF== Connected to process 7
"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC","Section Name","Metric Name","Metric Unit","Metric Value"
"0","7","a.out","h","gemm(float *, int)","1","7","(128, 1, 1)","(64, 2, 1)","0","8.0","GPU Speed Of Light Throughput","Duration","us","1,234.50"
"0","7","a.out","h","gemm(float *, int)","1","7","(128, 1, 1)","(64, 2, 1)","0","8.0","Memory Workload Analysis","L2 Hit Rate","%","61.2"
"1","7","a.out","h","add","1","7","(128, 1, 1)","(64, 2, 1)","0","8.0","GPU Speed Of Light Throughput","Duration","ns","900"
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

/** The log that the samples of memory in the fixtures belong to. */
const SAMPLED = {
  formats: new Set(['perf-data', 'perf-script']),
  log: new Uint8Array(gunzipSync(readFileSync(join(FIXTURES, 'memory-samples/nano.ggtrace.gz')))),
}

const INTERESTING = [0, 1, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff]
const INTERESTING_LONG = [2n ** 53n - 1n, 2n ** 53n, 2n ** 53n + 1n, 2n ** 63n - 1n, 2n ** 63n, 2n ** 64n - 1n]
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
  '1e400',
  '1e25',
  '-1',
  '9007199254740993',
  '18446744073709551615',
  '4000000000',
  'constructor',
  '__proto__',
  'Infinity',
  'NaN',
  '\\u0000',
  ' ==> ',
]

/** One to a few changes of any kind. */
function mutated(bytes, next, others) {
  const below = (limit) => Math.floor(next() * limit)
  // Mostly a short beginning: damage at the start of a log finds more than damage at its end.
  const isWhole = below(bytes.length > SEED_BYTES_MAX ? WHOLE_EVERY : 4) === 0
  let out = bytes.slice(0, isWhole ? bytes.length : 200 + below(1000))
  for (let changes = 1 + below(4); changes > 0 && out.length > 0; changes--) {
    const at = below(out.length)
    const view = new DataView(out.buffer, out.byteOffset, out.byteLength)
    switch (below(9)) {
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
      case 7: {
        const value = INTERESTING_LONG[below(INTERESTING_LONG.length)]
        if (at + 8 <= out.length) view.setBigUint64(at & ~3, value, true)
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

const GGTRACE_MAGIC = 0x30544747
const rotated = (word, bits) => (word << bits) | (word >>> ((32 - bits) % 32))

/** Gives each block of a .ggtrace log a valid checksum; otherwise damage in it is never read (docs/ggtrace-format.md §1.1). */
function repaired(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  for (let at = 0; at + 48 <= bytes.length; at += 8) {
    if (view.getUint32(at, true) !== GGTRACE_MAGIC) continue
    const size = view.getUint32(at + 4, true)
    if (size < 48 || size % 8 !== 0 || at + size > bytes.length) continue
    const lanes = Array.from({ length: 8 }, (_, lane) => 0x811c9dc5 + lane)
    for (let word = 0; 12 + 4 * word < size; word++) {
      lanes[word % 8] = Math.imul(lanes[word % 8] ^ view.getUint32(at + 12 + 4 * word, true), 0x01000193)
    }
    const sum = lanes.reduce((all, lane, n) => all ^ rotated(lane, 4 * n), 0)
    view.setUint32(at + 8, sum >>> 0, true)
    at += size - 8
  }
  return bytes
}

async function decode(bytes, from) {
  let events = 0
  for await (const batch of eventsOf({ name: 'fuzz', source: bytes }, new Names(), { from })) events += batch.length
  return events
}

const proto = readFileSync(new URL('../proto/perfetto.proto', import.meta.url), 'utf8')
const Trace = protobuf.parse(proto, { keepCase: true }).root.lookupType('Trace')

const pick = (below, ...values) => values[below(values.length)]

async function* pieces(bytes, below) {
  for (let at = 0; at < bytes.length; ) {
    const size = 1 + below(below(4) === 0 ? 40 : 4000)
    yield bytes.subarray(at, at + size)
    at += size
  }
}

/** Converts an input and parses the output, sometimes together with a second, undamaged input. Returns the bytes written. */
async function convertAll(bytes, from, next, other) {
  const below = (limit) => Math.floor(next() * limit)
  const first = below(6)
  const to = pick(below, 'perfetto', 'json')
  const options = {
    to,
    from: below(4) === 0 ? undefined : from,
    detail: pick(below, 'names', 'shapes', 'full'),
    opName: pick(below, 'role', 'op', 'tensor'),
    memory: pick(below, 'counters', 'lifetimes'),
    tokens: below(8) === 0 ? [first, first + below(3)] : undefined,
    flows: below(4) === 0 ? { token: below(4) } : undefined,
    allThreads: below(2) === 0,
    osRuntime: below(2) === 0,
    strict: below(16) === 0,
  }
  // Inputs with samples of memory are read twice.
  const isSampled = SAMPLED.formats.has(from) && below(3) === 0
  const inputs = [{ name: 'fuzz', source: !isSampled && below(3) === 0 ? pieces(bytes, below) : bytes }]
  if (isSampled) {
    inputs.push({ name: 'log', source: SAMPLED.log })
    options.from = undefined
  } else if (below(8) === 0) {
    inputs.push({ name: 'other', source: other })
    options.from = undefined
    options.clocks = { [pick(below, 'fuzz', 'other')]: pick(below, 'mono', 'boot', '+1.2ms', '@1444.4s') }
  }
  if (below(4) === 0) {
    const { clocks, from, strict } = options
    return JSON.stringify(await analyze(inputs, { clocks, from, strict })).length
  }
  const written = []
  for await (const piece of convert(inputs, options)) written.push(piece)
  const output = Buffer.concat(written)
  if (to === 'json') JSON.parse(output.toString())
  else Trace.decode(output)
  const read = inputs.reduce((sum, { source }) => sum + (source.length ?? bytes.length), 0)
  if (output.length > OUTPUT_BYTES + OUTPUT_RATIO_MAX * read) throw new Error(`${output.length} bytes from ${read}`)
  return output.length
}

async function run(bytes, from, next, other) {
  try {
    return await (isLine ? convertAll(bytes, from, next, other) : decode(bytes, from))
  } catch (error) {
    if (!isOwnError(error)) throw error
    return 0
  }
}

const seeds = seedsByFormat()
const missing = FORMATS.filter(({ name }) => !seeds.has(name) && (!only || name === only)).map(({ name }) => name)
if (missing.length > 0) console.log(`no fixture of: ${missing.join(', ')}`)
const names = [...seeds.keys()]
const counts = Object.fromEntries(names.map((name) => [name, 0]))
let [made, findings] = [0, 0]
const started = performance.now()
const sizes = []
for (let i = 0; i < executions; i++) {
  const next = random(seed * 0x9e3779b1 + i)
  const format = names[i % names.length]
  const corpus = seeds.get(format)
  const damaged = mutated(corpus[Math.floor(next() * corpus.length)], next, corpus)
  const input = format === 'ggtrace' && next() < 0.5 ? repaired(damaged) : damaged
  const others = seeds.get(names[Math.floor(next() * names.length)])
  const [choices, other] = [Math.floor(next() * 2 ** 32), others[Math.floor(next() * others.length)]]
  const before = performance.now()
  let problem
  try {
    made += await run(input, format, random(choices), other)
  } catch (error) {
    problem = error.stack
  }
  const took = performance.now() - before
  if (took > SLOW_MS && !problem) {
    // Measure again: another program may have used the CPU.
    const again = performance.now()
    await run(input, format, random(choices), other)
    if (performance.now() - again > SLOW_MS) problem = `took ${took.toFixed(0)} ms`
  }
  if (problem) {
    findings++
    console.log(`execution ${i} (${format}): ${problem}\n${Buffer.from(input).toString('base64')}`)
  }
  counts[format]++
  if ((i + 1) % REPORT_EVERY === 0 || i + 1 === executions) {
    globalThis.gc?.()
    const { heapUsed, rss } = process.memoryUsage()
    sizes.push(Math.round(rss / 2 ** 20))
    const grown = sizes.at(-1) - sizes[0]
    if (grown > GROWTH_MIB_MAX) {
      findings++
      console.log(`the process grew by ${grown} MiB`)
    }
    const rate = ((i + 1) / (performance.now() - started)) * 1e3
    console.log(
      `${i + 1} executions, ${rate.toFixed(0)} a second, ${made} ${isLine ? 'bytes' : 'events'}, ` +
        `heap ${Math.round(heapUsed / 2 ** 20)} MiB, RSS ${sizes.at(-1)} MiB, ${findings} findings`,
    )
  }
}
console.log(JSON.stringify(counts))
process.exitCode = findings > 0 ? 1 : 0
