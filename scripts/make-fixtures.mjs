/**
 * Makes test/fixtures: small logs with one special property each, with the same bytes every time.
 *
 *     node scripts/make-fixtures.mjs                       all of them
 *     node scripts/make-fixtures.mjs tensor-trace/hole.bin  some of them
 *     node scripts/make-fixtures.mjs --check               checks that test/fixtures contains what this script makes
 *     node scripts/make-fixtures.mjs --own FOLDER          packs our own recordings in FOLDER
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { ktraceOf, openharmonyOf, rowsOf, textOf, without } from './profinfer-generations.mjs'
import { randomOf } from './random.mjs'
import { jsonOf, repack } from './repack-tensor-trace.mjs'

const FIXTURES = fileURLToPath(new URL('../test/fixtures/', import.meta.url))

// TensorTrace: a record is { at, op, name, layer, sources, experts?, phase, thread }.

const RECORD_BYTES = 1024
const NONE = 65535
/** ggml_op of January 2026. */
const OPS_2026 = {
  ADD_ID: 3,
  MUL: 7,
  MUL_MAT: 29,
  MUL_MAT_ID: 30,
  GET_ROWS: 40,
  SET_ROWS: 42,
  ROPE: 48,
  ARGSORT: 68,
  FLASH_ATTN_EXT: 73,
  GLU: 94,
}
const COMPUTE = 0x5567_0000_1000n
const KV = 0x5567_0000_2000n
const START_NS = 600_604_883_848_933n

function encodeRecord({ at, op, name, layer = NONE, sources = [], experts = [], phase = 0, thread = 63255 }) {
  const record = Buffer.alloc(RECORD_BYTES)
  record.writeBigUInt64LE(at, 0)
  record.writeUInt16LE(layer, 12)
  record.writeUInt16LE(thread, 14)
  record[16] = op
  record[17] = phase
  record[18] = sources.length
  record.write(name, 24, 127)
  sources.forEach((source, i) => {
    const start = 152 + 160 * i
    record.write(source.name, start, 127)
    record.writeBigUInt64LE(source.pointer, start + 128)
    record.writeUInt32LE(source.size, start + 136)
    record.writeUInt16LE(source.layer ?? NONE, start + 140)
    record[start + 142] = source.buffer === undefined ? 0 : 1
    record.writeBigUInt64LE(source.buffer ?? source.offset, start + 144)
    record.writeUInt32LE(0xffffffff, start + 152)
  })
  experts.forEach((expert, i) => {
    record.writeInt32LE(expert, 792 + 4 * i)
  })
  record[856] = experts.length
  return record
}

const MAPPED = 0x7f00_0000_0000n
const weight = (name, offset, size, layer) => ({
  name,
  pointer: MAPPED + BigInt(offset),
  size,
  layer,
  offset: BigInt(offset),
})
const inCompute = (name, at, size) => ({ name, pointer: 0x7e10_0000_0000n + BigInt(at), size, buffer: COMPUTE })
const inCache = (name, at, size, layer) => ({ name, pointer: 0x7e20_0000_0000n + BigInt(at), size, layer, buffer: KV })

/** The records of one pass, without their times. */
function embedding(tokens) {
  const sources = [weight('token_embd.weight', 4096, 65536), inCompute('inp_tokens', 0, 4 * tokens)]
  return { op: OPS_2026.GET_ROWS, name: 'embd', sources }
}

function attention(layer, tokens) {
  const [base, rows] = [131072 * (layer + 1), 512 * tokens]
  return [
    {
      op: OPS_2026.MUL_MAT,
      name: `Qcur-${layer}`,
      layer,
      sources: [weight(`blk.${layer}.attn_q.weight`, base, 16384, layer), inCompute(`attn_norm-${layer}`, 4096, rows)],
    },
    {
      op: OPS_2026.SET_ROWS,
      name: `cache_k_l${layer} (view)`,
      layer,
      sources: [inCompute(`Kcur-${layer}`, 8192, rows), inCache(`cache_k_l${layer}`, 65536 * layer, 32768, layer)],
    },
    {
      op: OPS_2026.FLASH_ATTN_EXT,
      name: `__fattn__-${layer}`,
      sources: [
        inCompute(`Qcur-${layer} (view) (permuted)`, 12288, rows),
        inCache(`cache_k_l${layer} (view)`, 65536 * layer, 2048, layer),
        inCache(`cache_v_l${layer} (view)`, 65536 * layer + 32768, 2048, layer),
        inCompute('KQ_mask', 16384, 64 * tokens),
      ],
    },
  ]
}

/** The products of the experts and, as in gpt-oss, a bias per expert. */
function mixture(layer, tokens, experts) {
  const [base, rows] = [131072 * (layer + 1) + 32768, 512 * tokens]
  const chosen = inCompute(`ffn_moe_topk-${layer}`, 24576, 8 * tokens)
  return [
    {
      op: OPS_2026.MUL_MAT_ID,
      name: `ffn_moe_up-${layer}`,
      layer,
      sources: [
        weight(`blk.${layer}.ffn_up_exps.weight`, base, 16384, layer),
        inCompute(`ffn_moe_in-${layer}`, 20480, rows),
        chosen,
      ],
      experts,
    },
    {
      op: OPS_2026.ADD_ID,
      name: `ffn_moe_up_biased-${layer}`,
      layer,
      sources: [
        inCompute(`ffn_moe_up-${layer}`, 32768, rows),
        weight(`blk.${layer}.ffn_up_exps.bias`, base + 16384, 1024, layer),
        chosen,
      ],
      experts,
    },
  ]
}

const output = () => ({
  op: OPS_2026.MUL_MAT,
  name: 'result_output',
  sources: [weight('output.weight', 1048576, 65536), inCompute('result_norm', 28672, 512)],
})

/** Adds times and phases to the records of passes: nodes follow each other, passes follow a pause. */
function timed(seed, passes, start = START_NS) {
  const random = randomOf(seed)
  let at = start
  return passes.flatMap(({ phase, records, thread, pause = 50_000n }) => {
    at += pause
    return records.map((record) => {
      at += BigInt(500 + Math.floor(random() * 20_000))
      return { ...record, at, phase, ...(thread === undefined ? {} : { thread }) }
    })
  })
}

const bytesOf = (records, zeros = 0) =>
  Buffer.concat([...records.map(encodeRecord), Buffer.alloc(zeros * RECORD_BYTES)])

const moePass = (phase, tokens, experts) => ({
  phase,
  records: [embedding(tokens), ...attention(0, tokens), ...mixture(0, tokens, experts)],
})
const shortPass = (phase, tokens) => ({ phase, records: [embedding(tokens), output()] })
const densePass = (phase, tokens) => ({ phase, records: [embedding(tokens), attention(0, tokens)[0], output()] })

/** Three products per pass. */
function twoLayers(seed) {
  const records = (n) => [embedding(n), ...attention(0, n), ...attention(1, n), output()]
  const passes = [4, 1, 1].map((n) => ({ phase: n > 1 ? 0 : 1, records: records(n) }))
  return bytesOf(timed(seed, passes), 1)
}

/** An op number whose name cannot be inferred from its use. */
const nameless = (op, i) => ({ op, name: `node_${i}`, sources: [inCompute(`leaf_${i}`, 4096 * i, 256)] })

const TENSOR_TRACES = {
  'tiny-v4.bin': () => bytesOf(timed(1, [moePass(0, 4, [5, 2]), moePass(1, 1, [2, 7])]), 1),
  'tiny-v3.bin': () => bytesOf(timed(2, [densePass(0, 3), densePass(1, 1)])),
  'warm-up.bin': () => {
    const prefill = { ...shortPass(0, 5), pause: 180_000_000n }
    return bytesOf(timed(3, [shortPass(0, 2), prefill, shortPass(1, 1)]), 1)
  },
  // Each thread flushes its records in a batch: most of the first pass come after those of the second.
  'two-threads-out-of-order.bin': () => {
    const records = timed(4, [
      { ...densePass(0, 2), thread: 501 },
      { ...densePass(1, 1), thread: 502 },
    ])
    return bytesOf([...records.slice(0, 1), ...records.slice(3), ...records.slice(1, 3)])
  },
  'hole.bin': () => {
    const records = timed(5, [shortPass(0, 3), shortPass(1, 1)])
    return Buffer.concat([bytesOf(records.slice(0, 3), 2), bytesOf(records.slice(3))])
  },
  'torn-tail.bin': () => bytesOf(timed(6, [densePass(0, 3), densePass(1, 1)])).subarray(0, 4 * RECORD_BYTES + 700),
  'unknown-op.bin': () => {
    const records = timed(7, [densePass(0, 3), densePass(1, 1)])
    records.splice(4, 0, { ...records[4], ...nameless(250, 4), at: records[4].at - 200n })
    return bytesOf(records.slice(0, -1))
  },
  'tiny-256.bin': () => repack(bytesOf(timed(1, [moePass(0, 4, [5, 2]), moePass(1, 1, [2, 7])]), 1), 256),
  'tiny-128.bin': () => repack(twoLayers(9), 128),
  'tiny-64.bin': () => repack(twoLayers(10), 64),
  // 68, 73 and 94 are ARGSORT, FLASH_ATTN_EXT and GLU or others, depending on the version; 29 is MUL_MAT in all.
  'ambiguous-ops.bin': () => bytesOf(timed(8, [{ phase: 0, records: [68, 29, 73, 94].map(nameless) }])),
}

// ProfInfer's CSV: a row is { ts, type, tid, cpu, pmc?, guid?, op?, name?, address?, sources?, ne? }.

const CPU_GUID = 'aa67c743-96e6-a38a-e3af-ea9236bcfc89'
const BOOT_NS = 3_917_038_898_440n
/** ggml_op of llama.cpp v0.5.0. */
const NODES = [
  { op: 40, name: 'embd', address: 0x7f4e35b674e0, sources: [0x55b379a54860, 0x7f4e35b67200], ne: [64, 0, 1, 1] },
  { op: 29, name: 'Qcur-0', address: 0x7f4e35b67650, sources: [0x55b379a549d0, 0x7f4e35b674e0], ne: [64, 0, 1, 1] },
  { op: 100, name: 'ffn_swiglu-0', address: 0x7f4e35b677c0, sources: [0x7f4e35b67650], ne: [16, 4, 0, 1] },
]

/** Runs calls of one graph each on two workers; the second worker is a new thread each time. */
function probes(seed, calls, { nodes = NODES, host = 700 } = {}) {
  const random = randomOf(seed)
  let now = BOOT_NS
  const rows = []
  const tick = (most) => {
    now += BigInt(100 + Math.floor(random() * most))
    return now
  }
  calls.forEach((tokens, call) => {
    const tids = [host, host + 1 + call]
    rows.push({ ts: tick(90_000), type: 10, tid: host, cpu: 1 })
    rows.push({ ts: tick(9000), type: 30, tid: host, cpu: 1, guid: CPU_GUID })
    for (const node of nodes) {
      const ne = node.ne.map((n) => n || tokens)
      for (const [i, tid] of tids.entries()) rows.push({ ts: tick(700), type: 20, tid, cpu: 1 - i, ...node, ne })
      for (const [i, tid] of random() < 0.5 ? tids.entries() : [...tids.entries()].reverse()) {
        rows.push({ ts: tick(20_000), type: 25, tid, cpu: 1 - i })
      }
    }
    rows.push({ ts: tick(2000), type: 35, tid: host, cpu: 1 })
    rows.push({ ts: tick(2000), type: 15, tid: host, cpu: 1 })
  })
  return rows
}

const STRUCT = ['parm_addr', 'first_src_addr', 'second_src_addr', 'third_src_addr']
const SHAPES = [0, 1, 2, 3].flatMap((i) => [`ne${i}`, `src0_ne${i}`, `src1_ne${i}`, `src2_ne${i}`])

/** The rows in the form that pandas writes. */
function csv(rows, { pmc = false, struct = true, float = false, breaks = '\n', quote = (name) => name } = {}) {
  const columns = ['ts', 'type', 'pid', 'cpu', ...(pmc ? ['pmc_0', 'pmc_1'] : []), 'guid', 'op', 'name']
  if (struct) columns.push(...STRUCT, ...SHAPES)
  // pandas turns a column with empty cells into floats.
  const holed = (n) => (n === undefined ? '' : float ? `${n}.0` : `${n}`)
  const lines = rows.map((row, index) => {
    const cells = { ts: `${row.ts}`, type: `${row.type}`, pid: `${row.tid}`, cpu: `${row.cpu}`, guid: row.guid ?? '' }
    for (const [i, value] of (row.pmc ?? []).entries()) cells[`pmc_${i}`] = `${value}`
    cells.op = holed(row.op)
    cells.name = row.name === undefined ? '' : quote(row.name.slice(0, 15))
    if (row.op !== undefined) {
      const addresses = [row.address, ...[0, 1, 2].map((i) => row.sources[i] ?? 0)]
      for (const [i, address] of addresses.entries()) cells[STRUCT[i]] = holed(address)
      for (let i = 0; i < 4; i++) {
        const dimensions = [row.ne, ...[0, 1, 2].map((source) => (row.sources[source] ? row.ne : [0, 0, 0, 0]))]
        for (const [of, ne] of dimensions.entries()) cells[SHAPES[4 * i + of]] = holed(ne[i])
      }
    }
    return [index, ...columns.map((column) => cells[column] ?? '')].join(',')
  })
  return Buffer.from([['', ...columns].join(','), ...lines, ''].join(breaks))
}

const tiny = () => probes(11, [5, 1])
const single = () => probes(18, [5])

/** Every start and end contains the readings of the two counters so far. */
function withCounters(rows) {
  const random = randomOf(12)
  let [refills, faults] = [1_000_000, 20]
  return rows.map((row) => {
    refills += Math.floor(random() * 5000)
    faults += random() < 0.2 ? 1 : 0
    return { ...row, pmc: [refills, faults] }
  })
}

/** Swaps rows with near neighbours. */
function stirred(rows) {
  const random = randomOf(13)
  return rows
    .map((row, i) => ({ row, place: i + random() * 6 }))
    .sort((a, b) => a.place - b.place)
    .map(({ row }) => row)
}

/** Removes the ends of three operators, of the first graph, and of the second call. */
function withoutEnds(rows) {
  const lost = { 25: [2, 3, 9], 35: [0], 15: [1] }
  const seen = {}
  return rows.filter(({ type }) => {
    seen[type] = (seen[type] ?? -1) + 1
    return !lost[type]?.includes(seen[type])
  })
}

const QUOTED = [
  NODES[0],
  { ...NODES[1], name: 'Qcur, v-0' },
  { ...NODES[1], name: 'say "hi"-1', address: 0x7f4e35b67930 },
  NODES[2],
]

const PROFINFER_CSVS = {
  'tiny.csv': () => csv(tiny()),
  'tiny-float.csv': () => csv(single(), { float: true }),
  'crlf.csv': () => csv(single(), { breaks: '\r\n' }),
  'unsorted.csv': () => csv(stirred(single())),
  'pmc.csv': () => csv(withCounters(tiny()), { pmc: true }),
  'no-struct.csv': () => csv(probes(14, [5, 1]), { struct: false }),
  'lost-ends.csv': () => csv(withoutEnds(probes(15, [5, 1, 1]))),
  'graph-only.csv': () => csv(probes(16, [5, 1, 1], { nodes: [] }), { struct: false }),
  'quoted-names.csv': () =>
    csv(probes(17, [5], { nodes: QUOTED }), { quote: (name) => `"${name.replaceAll('"', '""')}"` }),
}

// ProfInfer's other logs of the same small runs.

const rowsIn = (name) => rowsOf(`${PROFINFER_CSVS[name]()}`)

const PROFINFER_TEXTS = {
  'tiny.txt': () => textOf(rowsOf(`${csv(single())}`)),
  'pmc.txt': () => textOf(rowsOf(`${csv(withCounters(single()), { pmc: true, struct: false })}`), { comma: false }),
  'no-struct.txt': () => textOf(rowsIn('no-struct.csv')),
  'lost-ends.txt': () =>
    without(textOf(rowsIn('no-struct.csv')), [5, 9, 13]).replace(/$/, '\nPossibly lost 3 samples\n'),
}

const OPENHARMONY_CSVS = {
  'tiny.csv': () => openharmonyOf(rowsIn('tiny.csv'), { tgid: 700 }),
  'straight.csv': () => openharmonyOf(rowsIn('no-struct.csv'), { tgid: 700, straight: true, struct: false }),
  'no-struct.csv': () => openharmonyOf(rowsIn('no-struct.csv'), { tgid: 700, struct: false }),
  'graph-only.csv': () => openharmonyOf(rowsIn('graph-only.csv'), { tgid: 650, struct: false }),
}

const KTRACES = {
  'tiny.txt': () => ktraceOf(rowsIn('tiny.csv')),
  'parents.txt': () => ktraceOf(rowsIn('tiny.csv'), { command: 'ggml-w 0', parents: true }),
  'numbered.txt': () => ktraceOf(rowsIn('tiny.csv'), { command: 'ggml-w 0', list: false }),
  'lost.txt': () => without(ktraceOf(rowsIn('tiny.csv')), [5, 11, 12]),
}

/** All that this script makes: path in test/fixtures → bytes. */
const MAKERS = Object.fromEntries([
  ...Object.entries(TENSOR_TRACES).map(([name, make]) => [`tensor-trace/${name}`, make]),
  ['tensor-trace-json/tiny.json', () => jsonOf(TENSOR_TRACES['tiny-v4.bin'](), OPS_2026)],
  ...Object.entries(PROFINFER_CSVS).map(([name, make]) => [`profinfer-csv/${name}`, make]),
  ...Object.entries(PROFINFER_TEXTS).map(([name, make]) => [`profinfer-text/${name}`, () => Buffer.from(make())]),
  ...Object.entries(OPENHARMONY_CSVS).map(([name, make]) => [
    `profinfer-openharmony/${name}`,
    () => Buffer.from(make()),
  ]),
  ...Object.entries(KTRACES).map(([name, make]) => [`profinfer-ktrace/${name}`, () => Buffer.from(make())]),
])

/** Our own recordings → their paths in test/fixtures. */
const OWN = {
  'moe-2threads.tensor_trace.1024.bin': 'tensor-trace/moe-2threads.bin.gz',
  'moe-2threads.profinfer.csv': 'profinfer-csv/moe-2threads.csv.gz',
}

function save(path, bytes) {
  mkdirSync(dirname(join(FIXTURES, path)), { recursive: true })
  writeFileSync(join(FIXTURES, path), bytes)
  console.log(`${path}  ${bytes.length} bytes`)
}

const [first, ...others] = process.argv.slice(2)
if (first === '--own') {
  for (const [from, to] of Object.entries(OWN)) save(to, gzipSync(readFileSync(join(others[0], from)), { level: 9 }))
} else if (first === '--check') {
  const stale = Object.entries(MAKERS).filter(([path, make]) => !make().equals(readFileSync(join(FIXTURES, path))))
  for (const [path] of stale) console.error(`${path} is not what scripts/make-fixtures.mjs makes`)
  process.exitCode = stale.length > 0 ? 1 : 0
} else {
  const wanted = first === undefined ? Object.keys(MAKERS) : [first, ...others]
  for (const path of wanted) save(path, MAKERS[path]())
}
