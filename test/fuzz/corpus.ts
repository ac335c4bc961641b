import { readdirSync, readFileSync } from 'node:fs'
import { gunzipSync } from 'node:zlib'
import { sniffFormat } from '../../lib/read/index.ts'
import { pathOf, plainBytes } from '../line/support.ts'
import { counted, everyRecord, placed } from '../read/ggtrace-logs.ts'

/** What is mutated: the fixtures of each format, and what they do not contain. */

/** Bytes of a fixture that are kept. */
export const SEED_BYTES_MAX = 12 << 10
/** Formats with pointers from the beginning to far behind. */
const POINTING = new Set(['nsys', 'perf-data', 'trace-dat'])
const SNIFFED_BYTES = 4096

/** Formats without fixtures, made as in their tests. */
const ALLOC =
  '{"timestamp_ms":1.5,"event":"alloc","buffer_id":7,"buffer_ptr":4096,"size":4096,"name":"CPU","backend":"CPU","usage":2,"layer":3}\n'
const SMALL: Record<string, string> = {
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
SMALL['ncu'] = `==PROF== Connected to process 7
"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC","Section Name","Metric Name","Metric Unit","Metric Value"
"0","7","a.out","h","gemm(float *, int)","1","7","(128, 1, 1)","(64, 2, 1)","0","8.0","GPU Speed Of Light Throughput","Duration","us","1,234.50"
"0","7","a.out","h","gemm(float *, int)","1","7","(128, 1, 1)","(64, 2, 1)","0","8.0","Memory Workload Analysis","L2 Hit Rate","%","61.2"
"1","7","a.out","h","add","1","7","(128, 1, 1)","(64, 2, 1)","0","8.0","GPU Speed Of Light Throughput","Duration","ns","900"
`

const encoder = new TextEncoder()

/** Recordings that are longer than other seeds, because work of a GPU and messages come late in a log: of CUDA, of a client of ggml-rpc and its server. */
const recordings = () =>
  ['gpu/logs/nano', 'rpc/logs/client', 'rpc/logs/server'].map((name) =>
    gunzipSync(readFileSync(new URL(`../${name}.ggtrace.gz`, import.meta.url))),
  )

/** Inputs by format. Those of .ggtrace contain every type of record. */
export function corpusOf(only?: string): Map<string, Uint8Array[]> {
  const corpus = new Map<string, Uint8Array[]>()
  const add = (format: string, bytes: Uint8Array) => {
    if (only === undefined || only === format) corpus.set(format, [...(corpus.get(format) ?? []), bytes])
  }
  for (const [format, text] of Object.entries(SMALL)) add(format, encoder.encode(text))
  const paths = readdirSync(pathOf(''), { recursive: true, encoding: 'utf8' }).sort()
  for (const path of paths.filter((name) => /\.\w+$/.test(name) && !name.endsWith('README.md'))) {
    const bytes = plainBytes(path)
    const format = sniffFormat(bytes.subarray(0, SNIFFED_BYTES))
    if (format) add(format.name, POINTING.has(format.name) ? bytes : bytes.slice(0, SEED_BYTES_MAX))
  }
  for (const log of [everyRecord(), counted(), placed(), ...recordings()]) add('ggtrace', log)
  return corpus
}
