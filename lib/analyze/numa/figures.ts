/** Where memory is, and what workers read of it, on a machine with several NUMA nodes. Null in an Analysis where there is one. */
export interface NumaFigures {
  readonly nodes: readonly NumaNode[]
  /** ggml's mode (`--numa`): `distribute`, `isolate`, `numactl`, `mirror`; null: none, or the program set none. */
  readonly mode: string | null
  /** Does the kernel move pages to the nodes that read them? Null: not known. */
  readonly balancing: boolean | null
  /** Other NUMA policies than the default one that threads of workers have, as the kernel names them. */
  readonly policies: readonly string[]
  readonly buffers: readonly NumaBuffer[]
  /** Weights and caches that products and attention read, most bytes that were read first; at most 1 024. */
  readonly tensors: readonly NumaTensor[]
  /** Those of them that are not listed. */
  readonly other_tensors: number
  readonly workers: readonly NumaWorker[]
  readonly operators: readonly NumaOperator[]
  /** All bytes that workers read of these tensors in calls: what is not known of the worker or of the page is in no share. */
  readonly read_bytes: number
  /** Part of the bytes whose places are known that lie on the node of the worker that read them; null: none is known. */
  readonly local_share: number | null
  /** Part of the bytes of which it is not recorded which worker reads which rows: an equal part of all is assumed. */
  readonly estimated_share: number
}

/** A node. */
export interface NumaNode {
  readonly node: number
  /** Its CPUs, as a list of the kernel; empty: it has memory only. */
  readonly cpus: string
  /** Bytes of tensors that lie there, and of the other memory of the program at its end; null: not recorded. */
  readonly tensor_bytes: number
  readonly other_bytes: number | null
  /** Bytes that workers read there in calls. */
  readonly read_bytes: number
}

/** Bytes by node, in the order of `nodes`. */
export type BytesByNode = readonly number[]

/** Pages of a buffer when the kernel was asked. */
export interface NumaPages {
  readonly by_node: BytesByNode
  /** Pages that are not present: they were not used, or the kernel looks at this time who uses them. */
  readonly absent_bytes: number
}

/** A buffer of ggml in the memory of the host. */
export interface NumaBuffer {
  readonly buffer: string
  /** Part of its pages that was asked for. */
  readonly asked_share: number
  /** Of its memory, as the kernel names them (`interleave:0-1`). */
  readonly policy: string
  /** Size of the largest pages that its memory is mapped with; 0: not known. */
  readonly page_bytes: number
  /** After the first graph that used it, and before it or the program ended; null: not recorded. */
  readonly first: NumaPages | null
  readonly last: NumaPages | null
}

/** Reads of workers. */
export interface NumaReads {
  /** In calls, with those whose places are not known. */
  readonly read_bytes: number
  readonly local_bytes: number
  readonly remote_bytes: number
  readonly local_share: number | null
}

/** A weight or a cache. */
export interface NumaTensor extends NumaReads {
  readonly tensor: string
  readonly buffer: string
  readonly size_bytes: number
  readonly by_node: BytesByNode
  /** Of its pages that are not present, or were not asked for. */
  readonly unknown_bytes: number
}

/** A worker. */
export interface NumaWorker extends NumaReads {
  readonly worker: number
  /** Its node in the most time, and the part of the bytes that it read while on it; -1: not known. */
  readonly node: number
  readonly node_share: number
  /** What it read, by where it is. */
  readonly by_node: BytesByNode
}

/** Operators of a kind. */
export interface NumaOperator extends NumaReads {
  readonly op: string
  readonly role: string
  readonly estimated_share: number
}
