// The profile of ggml's profiler of all backends (llama.cpp pull request 21160: --profile-output, GGML_PROFILE): operators and copies.
//
//   {"version": 2, "backends": [{"id": 0, "name": "CUDA0", "device": "NVIDIA …", "type": 1}, …],
//    "records": [{"type": 0, "name": "MUL_MAT", "backend_id": 0, "split_id": 1, "start_ns": 81…, "duration_ns": 5120, "bytes": 8192,
//                 "extra": null, "ne_src0": [4096,4096,1,1], "ne_src1": [4096,1,1,1]}, …]}
//
// `type` is 0 for an operator, 1 for a copy. Times are those of CLOCK_MONOTONIC_RAW. Later revisions add the tensor's name, its shape and
// the types of sources. The profile has no calls, threads or addresses.

import { isObject, type JsonObject, textOf } from '../../input/json.ts'
import { bigOf, JsonItems } from '../../input/json-items.ts'
import { type Facts, type GpuEvent, UNKNOWN_PLACE } from '../../model/gpu-events.ts'
import { Inferred } from '../../model/inferred.ts'
import { issueOf } from '../../model/issues.ts'
import type { Names } from '../../model/names.ts'
import { EventBatch } from '../common/batches.ts'
import { holding } from '../common/holdings.ts'
import { type ItemReader, jsonIssue, readItems } from '../common/json-issues.ts'
import type { Format } from '../format.ts'

const TEXT_MAX = 1000
const BACKENDS_MAX = 256
/** Backends whose operators the profiler lays end to end. */
const LAID = /^Vulkan/i

export const backendProfiler: Format = {
  name: 'backend-profiler',
  title: "profile of ggml's profiler of all backends (--profile-output): operators and copies",
  sniff: (head) => {
    const text = new TextDecoder().decode(head)
    return /^\s*\{/.test(text) && /"backends"\s*:\s*\[/.test(text) && /"(?:records|version)"\s*:/.test(text)
  },
  read(source, { names }) {
    const items = new JsonItems(source, ['backends/*', 'records/*'])
    const profile = new Profile(names)
    return readItems(items, profile, (item) => {
      if (item.what !== 'item') profile.batch.add(issueOf(...jsonIssue(item), profile.lastNs))
      else if (item.path === 'backends/*') profile.backend(item.value)
      else profile.record(item.value, item.byte)
    })
  },
}

class Profile implements ItemReader {
  readonly batch = new EventBatch()
  lastNs = 0
  private readonly backends: string[] = []
  private readonly devices: string[] = []
  private originNs: bigint | undefined
  private operators = 0
  private copies = 0

  constructor(private readonly names: Names) {}

  backend(value: unknown): void {
    if (!isObject(value) || this.backends.length >= BACKENDS_MAX) return
    const id = isBackend(value['id']) ? value['id'] : this.backends.length
    const name = textOf(value, 'name').slice(0, TEXT_MAX) || `backend ${id}`
    this.backends[id] = name
    const device = textOf(value, 'device').slice(0, TEXT_MAX)
    if (device !== '') this.devices.push(`${name}: ${device}`)
  }

  record(value: unknown, byte: number): void {
    const type = isObject(value) ? (value['type'] ?? 0) : undefined
    const isKnown = type === 0 || type === 1
    if (Number.isInteger(type) && !isKnown) return this.batch.leftOut.add(`records of type ${type}`)
    const event = isObject(value) && isKnown ? this.eventOf(value) : undefined
    if (event) {
      this.batch.add(event)
      this.lastNs = event.endNs
      return
    }
    const detail = 'expected a record with name, backend_id, start_ns and duration_ns'
    this.batch.add(issueOf('unreadable-row', detail, { byte }, this.lastNs))
  }

  finish(): void {
    if (this.originNs === undefined) this.begin(0n)
    const { operators, copies, devices } = this
    const { contents, attributes } = holding({ operator: operators, copy: copies }, 'no records')
    const gpus = devices.length > 0 && { devices: devices.join(', ') }
    this.batch.add({ kind: 'facts', contents, attributes: { ...attributes, ...gpus } })
    this.batch.end()
  }

  private eventOf(record: JsonObject): GpuEvent | undefined {
    const [start, duration] = [bigOf(record['start_ns']), bigOf(record['duration_ns'])]
    const { name, backend_id: id } = record
    if (start === undefined || duration === undefined || duration < 0n || typeof name !== 'string') return undefined
    if (!isBackend(id)) return undefined
    if (this.originNs === undefined) this.begin(start)
    const startNs = Number(start - this.originNs!)
    const isCopy = record['type'] === 1
    if (isCopy) this.copies++
    else this.operators++
    const backend = this.backends[id] ?? `backend ${id}`
    return {
      ...{ kind: 'gpu', what: isCopy ? 'memcpy' : 'kernel', name: this.names.id(name.slice(0, TEXT_MAX)) },
      ...{ startNs, endNs: startNs + Number(duration), correlation: -1, signature: 0 },
      ...{ ...UNKNOWN_PLACE, device: id, stream: 0, queue: this.names.id(backend) },
      facts: factsOf(record),
      ...(LAID.test(backend) && { inferred: Inferred.Laid }),
    }
  }

  private begin(originNs: bigint): void {
    this.originNs = originNs
    this.batch.begin({
      ...{ kind: 'input', format: backendProfiler.name, originNs, title: 'Profile of backends' },
      clock: originNs > 0n ? 'MONOTONIC_RAW' : 'unknown',
      attributes: {
        times: 'CLOCK_MONOTONIC_RAW, as Linux has it; those of a Vulkan backend are laid end to end by the profiler',
      },
      capabilities: { order: false, operators: false, requests: true },
    })
  }
}

const isBackend = (id: unknown): id is number =>
  Number.isInteger(id) && (id as number) >= 0 && (id as number) < BACKENDS_MAX

/** Shapes, the tensor, its bytes: what is shown of a record. */
function factsOf(record: JsonObject): Facts {
  const facts: Record<string, number | string> = {}
  for (const key of ['bytes', 'split_id', 'extra', 'tensor_name', 'out_type', 'sub_op']) {
    const value = record[key]
    if (typeof value === 'number' && Number.isFinite(value) && value >= 0) facts[key] = value
    if (typeof value === 'string' && value !== '') facts[key] = value.slice(0, TEXT_MAX)
  }
  for (const key of ['ne', 'ne_src0', 'ne_src1', 'ne_src2']) {
    const value = record[key]
    const isShape = Array.isArray(value) && value.length <= 4 && value.every((n) => Number.isSafeInteger(n))
    if (isShape && value.some((n) => n > 0)) facts[key] = value.join('×')
  }
  return facts
}
