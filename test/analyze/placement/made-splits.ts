import { GgtraceWriter } from '../../../lib/core.ts'

/** A log of a scheduler that divides the graph of a model over two backends. */

const ORIGIN_NS = 1_000_000_000n
const [F32, Q4_0, Q5_1] = [0, 2, 7]
const [MUL_MAT, ADD, FLASH_ATTN_EXT, GET_ROWS, VIEW] = [29, 2, 74, 40, 36]
const [DEVICE, HOST] = [0x7f00_0000_0000, 0x7e00_0000_0000]
const MIB = 1 << 20

/** A layer, and what of it is on the CPU. */
interface MadeLayer {
  readonly weights?: 'CPU_Mapped' | 'CUDA0'
  /** FLASH_ATTN_EXT is computed there. */
  readonly attention?: 'CPU' | 'CUDA0'
  /** Its last product, with the weight that it reads. */
  readonly down?: 'CPU' | 'CUDA0'
  readonly cache?: 'CPU' | 'CUDA0'
}

export interface MadeSplits {
  readonly layers: readonly MadeLayer[]
  /** Decode calls, after a prefill. */
  readonly decodes?: number
  /** Is attention FLASH_ATTN_EXT? By default. */
  readonly hasFlash?: boolean
  /** Does each layer read the positions of tokens, an input on the CPU? */
  readonly hasPositions?: boolean
  readonly facts?: Readonly<Record<string, string>>
  /** Called with the log before its events. */
  readonly define?: (writer: GgtraceWriter) => void
}

/** Times of a graph run on the CPU and of one on the device, of a copy, and between them, in ns. */
export const NS = { CPU: 40_000, CUDA0: 5_000, copy: 1_000, gap: 100 } as const
/** Bytes of a result, and of a KV cache of a layer as attention reads it. */
export const BYTES = { result: 256, cache: 4096 } as const

interface Split {
  readonly backend: 'CPU' | 'CUDA0'
  readonly nodes: number[]
}

/** The log: each call has the same splits, and one copy of 1 KiB before each split but the first. */
export function madeSplits({
  layers,
  decodes = 4,
  hasFlash = true,
  hasPositions = false,
  facts = {},
  define,
}: MadeSplits): Uint8Array {
  const writer = new GgtraceWriter({ originNs: ORIGIN_NS })
  writer.run({ 'format.version': '0', command: './llama-cli -m tiny.gguf', level: 'op', ...facts })
  for (const [name, number] of Object.entries({ f32: F32, q4_0: Q4_0, q5_1: Q5_1 })) writer.type(number, name)
  for (const [name, number] of Object.entries({ MUL_MAT, ADD, FLASH_ATTN_EXT, GET_ROWS, VIEW })) writer.op(number, name)
  const place = (name: string, usage: 'weights' | 'compute' | 'any', base: number) =>
    ({ name, id: writer.buffer({ name, backend: name, usage, base, sizeBytes: MIB }), base, used: 0 }) as const
  const buffers = {
    CPU_Mapped: place('CPU_Mapped', 'weights', HOST),
    CUDA0: place('CUDA0', 'weights', DEVICE),
    'CPU cache': place('CPU', 'any', HOST + MIB),
    'CUDA0 cache': place('CUDA0', 'any', DEVICE + MIB),
    'CPU results': place('CPU', 'compute', HOST + 2 * MIB),
    'CUDA0 results': place('CUDA0', 'compute', DEVICE + 2 * MIB),
  }
  const used = new Map<string, number>()
  const at = (name: keyof typeof buffers, sizeBytes: number) => {
    const offset = used.get(name) ?? 0
    used.set(name, offset + sizeBytes)
    return { buffer: buffers[name].id, address: buffers[name].base + offset, sizeBytes }
  }
  const splits: Split[] = []
  const owners = new Map<number, string>()
  /** Copies of results, by backend and result: a scheduler makes one for all splits of a backend. */
  const copies = new Map<string, number>()
  /** A node on a backend; sources of another backend are copied. */
  const node = (backend: Split['backend'], name: string, op: number, sources: readonly number[]) => {
    if (splits.at(-1)?.backend !== backend) splits.push({ backend, nodes: [] })
    const own = sources.map((source) => {
      const owner = owners.get(source)
      if (owner === undefined || owner === backend) return source
      const { name, sizeBytes, type } = made.get(source)!
      const known = copies.get(`${backend} ${source}`)
      if (known !== undefined) return known
      const copy = tensor({ name: `${backend}#${name}#0`, type, ...at(`${backend} results`, sizeBytes) }, backend)
      copies.set(`${backend} ${source}`, copy)
      return copy
    })
    const id = tensor({ name, op, type: F32, sources: own, ...at(`${backend} results`, BYTES.result) }, backend)
    splits.at(-1)!.nodes.push(id)
    return id
  }
  const made = new Map<number, { name: string; sizeBytes: number; type: number }>()
  const tensor = (fields: Parameters<GgtraceWriter['tensor']>[0] & { sizeBytes: number; type: number }, on: string) => {
    const id = writer.tensor({ ne: [64], ...fields })
    made.set(id, fields)
    owners.set(id, on)
    return id
  }
  const weight = (name: string, buffer: 'CPU_Mapped' | 'CUDA0') =>
    tensor({ name, type: Q4_0, ...at(buffer, 2304) }, buffer === 'CUDA0' ? 'CUDA0' : 'CPU')
  const table = weight('token_embd.weight', 'CPU_Mapped')
  const positions = hasPositions ? [tensor({ name: 'inp_pos', type: F32, ...at('CPU results', 8) }, 'CPU')] : []
  let residual = node('CPU', 'embd', GET_ROWS, [table])
  for (const [i, { weights = 'CUDA0', cache: cacheOn, attention, down }] of layers.entries()) {
    const home = weights === 'CUDA0' ? 'CUDA0' : 'CPU'
    const query = node(home, `Qcur-${i}`, MUL_MAT, [weight(`blk.${i}.attn_q.weight`, weights), residual, ...positions])
    const cacheHome = cacheOn ?? home
    const cache = tensor({ name: `cache_k_l${i}`, type: Q5_1, ...at(`${cacheHome} cache`, BYTES.cache) }, cacheHome)
    const view = { op: VIEW, flags: 1, viewSource: cache, sources: [cache], type: Q5_1 }
    const keys = tensor(
      { name: `cache_k_l${i} (view)`, ...view, buffer: buffers[`${cacheHome} cache`].id, sizeBytes: BYTES.cache },
      cacheHome,
    )
    const attended = node(attention ?? home, `__fattn__-${i}`, hasFlash ? FLASH_ATTN_EXT : MUL_MAT, [query, keys])
    const output = node(home, `attn_out-${i}`, MUL_MAT, [weight(`blk.${i}.attn_output.weight`, weights), attended])
    const lower = down === undefined ? weights : down === 'CPU' ? 'CPU_Mapped' : 'CUDA0'
    const ffn = node(down ?? home, `ffn_out-${i}`, MUL_MAT, [weight(`blk.${i}.ffn_down.weight`, lower), output])
    residual = node(home, `l_out-${i}`, ADD, [ffn, output])
  }
  const last = layers.at(-1)?.weights === 'CPU_Mapped' ? ('CPU_Mapped' as const) : ('CUDA0' as const)
  node(last === 'CUDA0' ? 'CUDA0' : 'CPU', 'result_output', MUL_MAT, [weight('output.weight', last), residual])
  define?.(writer)
  const graphs = splits.map(({ backend, nodes }) => ({ backend, id: writer.graph(backend, nodes) }))
  const thread = writer.thread(100)
  let atNs = 1000
  for (let call = 0; call <= decodes; call++) {
    const startNs = atNs
    for (const [split, { backend, id }] of graphs.entries()) {
      if (split > 0) {
        const [from, to] = backend === 'CPU' ? (['CUDA0', 'CPU'] as const) : (['CPU', 'CUDA0'] as const)
        const places = { from: buffers[`${from} results`].id, to: buffers[`${to} results`].id }
        thread.copy({ startNs: atNs, endNs: atNs + NS.copy, bytes: 1024, what: 'copy', ...places })
        atNs += NS.copy
      }
      thread.graph({ startNs: atNs, endNs: atNs + NS[backend], graph: id, call, backend: writer.name(backend), split })
      atNs += NS[backend] + NS.gap
    }
    thread.token({ startNs, endNs: atNs, call, tokens: call === 0 ? 8 : 1 })
    atNs += 1000
  }
  writer.end(atNs)
  return writer.take()
}
