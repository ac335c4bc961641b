import { isObject, type JsonObject, textOf, wholeOf } from '../../../input/json.ts'
import { type GpuEvent, type GpuPlace, UNKNOWN_PLACE } from '../../../model/gpu-events.ts'
import type { Names } from '../../../model/names.ts'

/** A record with its times, in ns since the input's origin. */
export interface Timed {
  readonly object: JsonObject
  readonly startNs: number
  readonly endNs: number
  /** -1 = not recorded. */
  readonly correlation: number
  readonly tid: number
}

/** `rocprofiler_agent_type_t`. */
const GPU = 2

interface Agent {
  readonly isGpu: boolean
  /** Number among the agents of its type, as HIP counts devices. */
  readonly index: number
}

interface Kernel {
  readonly name: string
  readonly signature: string
  readonly vgprs: number | undefined
  readonly sgprs: number | undefined
}

/** Makes GPU work of records, with the names and agents of their process, which come first in the document. */
export class Records {
  pid = -1
  private readonly agents = new Map<number, Agent>()
  private readonly kernels = new Map<number, Kernel>()
  /** Names of operations, by kind of record. */
  private kinds: (readonly unknown[])[] = []
  private readonly markers = new Map<number, string>()

  constructor(private readonly names: Names) {}

  /** Ids of kernels and of texts are those of one process. */
  beginProcess(metadata: JsonObject): void {
    this.pid = wholeOf(metadata, 'pid') ?? -1
    this.agents.clear()
    this.kernels.clear()
    this.markers.clear()
    this.kinds = []
  }

  addAgent(agent: JsonObject): void {
    const handle = handleOf(agent, 'id')
    const index = wholeOf(agent, 'logical_node_type_id') ?? wholeOf(agent, 'logical_node_id') ?? -1
    this.agents.set(handle, { isGpu: wholeOf(agent, 'type') === GPU, index })
  }

  addKernel(kernel: JsonObject): void {
    const id = wholeOf(kernel, 'kernel_id')
    const signature = textOf(kernel, 'formatted_kernel_name') || textOf(kernel, 'kernel_name')
    const name = textOf(kernel, 'truncated_kernel_name') || signature
    if (id === undefined || name === '') return
    this.kernels.set(id, {
      name,
      signature,
      vgprs: wholeOf(kernel, 'arch_vgpr_count'),
      sgprs: wholeOf(kernel, 'sgpr_count'),
    })
  }

  /** Kinds are in the order of their numbers. */
  addKind({ operations }: JsonObject): void {
    this.kinds.push(Array.isArray(operations) ? operations : [])
  }

  addMarker(marker: JsonObject): void {
    const key = wholeOf(marker, 'key')
    if (key !== undefined) this.markers.set(key, textOf(marker, 'value'))
  }

  /** A kernel's run. `isNamed`: its name is in the document. */
  dispatch({ object, startNs, endNs, correlation }: Timed): { readonly event: GpuEvent; readonly isNamed: boolean } {
    const info = objectOf(object, 'dispatch_info')
    const id = wholeOf(info, 'kernel_id') ?? -1
    const kernel = this.kernels.get(id)
    const [block, items] = [sizeOf(info, 'workgroup_size'), sizeOf(info, 'grid_size')]
    const facts = present({
      // HIP counts work items in a grid, CUDA workgroups.
      grid: items?.map((size, i) => Math.ceil(size / Math.max(1, block?.[i] ?? 1))).join('x'),
      block: block?.join('x'),
      vgprs: kernel?.vgprs,
      sgprs: kernel?.sgprs,
      lds_bytes: wholeOf(info, 'group_segment_size'),
      scratch_bytes: wholeOf(info, 'private_segment_size'),
      queue: optionalHandleOf(info, 'queue_id'),
      dispatch: wholeOf(info, 'dispatch_id'),
    })
    const event: GpuEvent = {
      kind: 'gpu',
      what: 'kernel',
      name: this.names.id(kernel?.name ?? `kernel ${id}`),
      signature: kernel ? this.names.id(kernel.signature) : 0,
      ...{ startNs, endNs, correlation, facts },
      ...this.place(this.agents.get(handleOf(info, 'agent_id')), object, optionalHandleOf(info, 'queue_id')),
    }
    return { event, isNamed: kernel !== undefined }
  }

  /** A copy of memory, on the GPU that takes part in it. */
  copy(timed: Timed): GpuEvent {
    const { object, startNs, endNs, correlation } = timed
    const [from, to] = ['src_agent_id', 'dst_agent_id'].map((key) => this.agents.get(handleOf(object, key)))
    const gpu = to?.isGpu ? to : from?.isGpu ? from : to
    const facts = present({ bytes: wholeOf(object, 'bytes'), from: memoryOf(from), to: memoryOf(to) })
    const name = this.names.id(this.operationOf(object) ?? 'memory copy')
    const place = this.place(gpu, object, undefined)
    return { kind: 'gpu', what: 'memcpy', name, signature: 0, startNs, endNs, correlation, facts, ...place }
  }

  /** Name of a call. */
  nameOf(object: JsonObject): number {
    const [kind, operation] = [wholeOf(object, 'kind'), wholeOf(object, 'operation')]
    return this.names.id(this.operationOf(object) ?? `operation ${operation ?? '?'} of kind ${kind ?? '?'}`)
  }

  /** Text of a range or mark of ROCTx. */
  rangeOf(object: JsonObject): number {
    const text = this.markers.get(wholeOf(objectOf(object, 'correlation_id'), 'internal') ?? -1)
    return text ? this.names.id(text) : this.nameOf(object)
  }

  private operationOf(object: JsonObject): string | undefined {
    const name = this.kinds[wholeOf(object, 'kind') ?? -1]?.[wholeOf(object, 'operation') ?? -1]
    return typeof name === 'string' ? name : undefined
  }

  /** Versions before 1.0 record no streams: then work is by queue. */
  private place(agent: Agent | undefined, object: JsonObject, queue: number | undefined): GpuPlace {
    const stream = optionalHandleOf(object, 'stream_id')
    const queueName = queue === undefined ? 'copies' : `queue ${queue}`
    return {
      ...UNKNOWN_PLACE,
      device: agent?.index ?? -1,
      stream: stream ?? queue ?? -1,
      pid: this.pid,
      queue: stream === undefined ? this.names.id(queueName) : undefined,
    }
  }
}

/** Facts of a process, for the trace's attributes. */
export function factsOf(metadata: JsonObject): {
  readonly command?: string
  readonly [key: string]: string | number | undefined
} {
  const { command } = metadata
  const node = objectOf(metadata, 'node')
  const words = Array.isArray(command) ? command.filter((word) => typeof word === 'string') : []
  const pid = wholeOf(metadata, 'pid')
  return {
    ...(words.length > 0 && { command: words.join(' ').slice(0, COMMAND_MAX) }),
    ...(pid !== undefined && { pid }),
    ...(textOf(node, 'release') !== '' && { kernel_release: textOf(node, 'release') }),
  }
}

/** Longest command line in the attributes. */
const COMMAND_MAX = 512

/** An object that is a member, or one without members. */
export function objectOf(object: JsonObject, key: string): JsonObject {
  const value = object[key]
  return isObject(value) ? value : {}
}

/** The number of a handle, `{"handle": 5}`; -1 = none. */
function handleOf(object: JsonObject, key: string): number {
  return optionalHandleOf(object, key) ?? -1
}

function optionalHandleOf(object: JsonObject, key: string): number | undefined {
  return wholeOf(objectOf(object, key), 'handle')
}

function sizeOf(object: JsonObject, key: string): readonly number[] | undefined {
  const size = objectOf(object, key)
  const parts = ['x', 'y', 'z'].map((axis) => wholeOf(size, axis))
  return parts.every((part) => part !== undefined) ? parts : undefined
}

const memoryOf = (agent: Agent | undefined) => (agent ? (agent.isGpu ? 'device' : 'host') : undefined)

/** The members that are known. */
function present(facts: Readonly<Record<string, number | string | undefined>>): Record<string, number | string> {
  return Object.fromEntries(
    Object.entries(facts).filter((entry): entry is [string, number | string] => entry[1] !== undefined),
  )
}
