import { checkCounters, fitsSmall, numberOf, U32_END } from './fields.ts'
import type { BlockWriter, OpenBlock } from './ggtrace-blocks.ts'
import {
  COPY_KINDS,
  COUNTERS_MAX,
  FUNCTION_PURPOSES,
  GPU_WAITS,
  GPU_WORKS,
  LEVELS,
  NONE,
  NVTX_OBJECTS,
  NVTX_PAYLOADS,
  PARTS,
  RECORD_BYTES,
  RECORD_BYTES_MAX,
  RecordType,
  SEQUENCE_CHANGES,
  SPAN_BYTES,
  TASK_STEPS,
  THREAD_STATES,
  TOKEN_KINDS,
  TokenBits,
} from './ggtrace-layout.ts'
import type {
  GgtraceCopy,
  GgtraceExperts,
  GgtraceFunction,
  GgtraceGpuClock,
  GgtraceGpuComplete,
  GgtraceGpuSubmission,
  GgtraceGpuWait,
  GgtraceGpuWork,
  GgtraceGraphRun,
  GgtraceNvtx,
  GgtraceOperator,
  GgtracePart,
  GgtraceResources,
  GgtraceRpc,
  GgtraceSequence,
  GgtraceTask,
  GgtraceToken,
} from './ggtrace-records.ts'

export type * from './ggtrace-records.ts'

const CURSOR_BYTES = RECORD_BYTES[RecordType.Cursor]!
const COUNTS_BYTES_MAX = RECORD_BYTES[RecordType.Counts]! + 8 * COUNTERS_MAX
const LONG_BYTES = RECORD_BYTES[RecordType.OperatorLong]!
const TOKEN_BYTES = RECORD_BYTES[RecordType.Token]!
const EXPERTS_BYTES = RECORD_BYTES[RecordType.Experts]!

/** What one thread writes; created by {@link GgtraceWriter.thread}. */
export class GgtraceThread {
  /** Records written so far. */
  records = 0
  /** The call that the next operators belong to; -1: none. */
  call = -1
  private cursorNs = 0
  private writtenCall = -1

  constructor(
    private readonly originNs: bigint,
    private readonly blocks: BlockWriter,
  ) {}

  operator(operator: GgtraceOperator): void {
    const { tensor, startNs, endNs, waitEndNs = endNs, innerWaitNs = 0, fusedTo = 0, counts, isScaled } = operator
    this.reserve(CURSOR_BYTES + LONG_BYTES + (counts ? COUNTS_BYTES_MAX : 0), startNs)
    if (counts) this.counts(counts, isScaled ? RecordType.CountsScaled : RecordType.Counts)
    const isShort = endNs - startNs < U32_END && waitEndNs - endNs < U32_END && (innerWaitNs === 0 || fusedTo === 0)
    const start = startNs - this.cursorNs
    const isNear = !isShort || (start >= 0 && start < U32_END)
    if (!isNear || this.call !== this.writtenCall) this.cursor(isShort ? startNs : this.cursorNs)
    if (isShort && startNs === this.cursorNs && fitsSmall(operator)) this.smallOperator(operator)
    else if (isShort) {
      const type = fusedTo > 0 ? RecordType.OperatorFused : RecordType.OperatorInner
      const record = this.record(fusedTo > 0 || innerWaitNs > 0 ? type : RecordType.Operator)
      record
        .u32(tensor)
        .u32(startNs - this.cursorNs)
        .u32(endNs - startNs)
        .u32(waitEndNs - endNs)
      if (fusedTo > 0 || innerWaitNs > 0) record.u32(fusedTo || innerWaitNs)
    } else {
      const record = this.record(RecordType.OperatorLong)
      this.time(this.time(this.time(record, startNs), endNs), waitEndNs)
      record.u32s(tensor, Math.min(innerWaitNs, U32_END - 1), fusedTo)
    }
    this.cursorNs = waitEndNs
  }

  private smallOperator(operator: GgtraceOperator): void {
    const { tensor, startNs, endNs, waitEndNs = endNs, innerWaitNs = 0, fusedTo = 0 } = operator
    const type = fusedTo > 0 ? RecordType.OperatorSmallFused : RecordType.OperatorSmallInner
    const record = this.record(fusedTo > 0 || innerWaitNs > 0 ? type : RecordType.OperatorSmall)
    const [compute, wait] = [endNs - startNs, waitEndNs - endNs]
    record.u32(tensor | (wait << 20)).u32((wait >>> 12) | (compute << 8))
    if (fusedTo > 0 || innerWaitNs > 0) record.u32(fusedTo || innerWaitNs)
  }

  token({ startNs, endNs, call, tokens, kind = 'decode', spans = [], ...batch }: GgtraceToken): void {
    const number = numberOf(TOKEN_KINDS, kind, 'kind')
    this.resources(startNs, batch.resources)
    const record = this.span(RecordType.Token, startNs, endNs, TOKEN_BYTES + SPAN_BYTES * spans.length)
    const flags =
      (batch.isLeftOut ? TokenBits.leftOut : 0) |
      (batch.areAllOutput ? TokenBits.allOutput : 0) |
      (batch.isForEmbeddings ? TokenBits.embeds : 0) |
      (batch.isByGraph ? TokenBits.byGraph : 0) |
      (batch.mayWarmUp ? TokenBits.mayWarmUp : 0) |
      (batch.followsUnread ? TokenBits.followsUnread : 0) |
      (batch.isInferred ? TokenBits.inferredKind : 0)
    record.u32s(orNone(call), tokens, number | flags, batch.result ?? 0).u64(batch.context ?? 0)
    for (const { sequence, position, tokens } of spans) record.u32s(sequence, orNone(position), tokens)
  }

  private resources(startNs: number, resources: GgtraceResources | undefined): void {
    if (!resources) return
    const { minorFaults, majorFaults, bytesRead, processCpuNs, cpuNs = -1, waitingNs = -1 } = resources
    const record = this.instant(RecordType.Resources, startNs)
    for (const value of [minorFaults, majorFaults, bytesRead, processCpuNs, cpuNs, waitingNs])
      record.u64(BigInt.asUintN(64, BigInt(value)))
  }

  graph({ startNs, endNs, graph, call, status = 0, backend = 0, split = -1 }: GgtraceGraphRun): void {
    this.span(RecordType.GraphRun, startNs, endNs).u32s(graph, orNone(call), status, backend, orNone(split))
  }

  /** Writes a choice, in several records if it does not fit into one. */
  experts({ atNs, tensor, call, k, ids }: GgtraceExperts): void {
    const most = Math.max(1, Math.floor((RECORD_BYTES_MAX - EXPERTS_BYTES) / 4 / Math.max(k, 1)))
    const all = k > 0 ? Math.floor(ids.length / k) : 0
    for (let token = 0; token === 0 || token < all; token += most) {
      const tokens = Math.min(most, all - token)
      const record = this.instant(RecordType.Experts, atNs, EXPERTS_BYTES + 4 * tokens * k)
      record.u32s(tensor, tokens, k, orNone(call))
      for (let i = token * k; i < (token + tokens) * k; i++) record.u32(ids[i]! >>> 0)
    }
  }

  copy({ startNs, endNs, bytes, from = 0, to = 0, tensor = 0, what }: GgtraceCopy): void {
    const number = numberOf(COPY_KINDS, what, 'what')
    this.span(RecordType.Copy, startNs, endNs).u64(bytes).u32s(from, to, tensor, number)
  }

  part({ startNs, endNs, call, what }: GgtracePart): void {
    const number = numberOf(PARTS, what, 'what')
    this.span(RecordType.Part, startNs, endNs).u32s(orNone(call), number)
  }

  /** A function that is not a call. */
  function(function_: GgtraceFunction): void {
    const { what, name = 0, startNs, endNs, context = 0, sequence = -1, output = -1, value = -1 } = function_
    const number = numberOf(FUNCTION_PURPOSES, what, 'what')
    this.resources(startNs, function_.resources)
    const record = this.span(RecordType.Function, startNs, endNs).u32s(number, name).u64(context)
    record.u32s(orNone(sequence), orNone(output)).u64(BigInt.asUintN(64, BigInt(value)))
  }

  /** One side of a message of ggml-rpc. */
  rpc({ side, startNs, sentNs, answeredNs, endNs, requestBytes, answerBytes = 0, ...message }: GgtraceRpc): void {
    const { number, command, client, server, call = -1 } = message
    const record = this.time(this.instant(RecordType.Rpc, startNs), sentNs)
    record.u64(answeredNs === undefined ? 0 : this.originNs + BigInt(answeredNs))
    this.time(record, endNs).u64(requestBytes).u64(answerBytes)
    record.u32s(number, command, side === 'server' ? 1 : 0, client, server, orNone(call))
  }

  /** A change of a sequence in the KV cache. */
  sequence(change: GgtraceSequence): void {
    const { what, atNs, context = 0, sequence, to = -1, from = -1, end = -1, delta = 0, isDone = true } = change
    const number = numberOf(SEQUENCE_CHANGES, what, 'what')
    const record = this.instant(RecordType.Sequence, atNs).u64(context).u32(number)
    record.u32s(sequence, to, from, end, delta, isDone ? 1 : 0, 0)
  }

  /** A step of a server's task. */
  task({ what, atNs, task = -1, slot = -1 }: GgtraceTask): void {
    const number = numberOf(TASK_STEPS, what, 'what')
    this.instant(RecordType.Task, atNs).u32s(number, task, slot, 0)
  }

  /** A line of the program's own log; `level` is ggml's number. */
  message(atNs: number, level: number, text: string): void {
    const bytes = new TextEncoder().encode(text)
    const size = RECORD_BYTES[RecordType.Message]! + Math.ceil(bytes.length / 4) * 4
    this.instant(RecordType.Message, atNs, size).u32(level).text(bytes)
  }

  gpuWork(work: GgtraceGpuWork): void {
    const { what, startNs, endNs, submission, queue, tensor = 0, fusedTo = 0, call = -1, bytes = 0 } = work
    const number = numberOf(GPU_WORKS, what, 'what')
    const { graph = 0, kernel = 0, dispatches = 0, part = 0 } = work
    const record = this.instant(RecordType.GpuWork, startNs)
    record.u64(endNs === undefined ? 0 : this.originNs + BigInt(endNs))
    record.u32s(submission, queue, number, tensor, fusedTo, orNone(call), graph, kernel, dispatches, part).u64(bytes)
  }

  gpuSubmission(submission: GgtraceGpuSubmission): void {
    const { startNs, endNs, id, queue, buffers = 1, works, call = -1, graph = 0 } = submission
    this.span(RecordType.GpuSubmission, startNs, endNs).u32s(id, queue, buffers, works, orNone(call), graph)
  }

  /** Pipelines were compiled; `name` is the id of a name, 0 for none. */
  gpuPipeline(startNs: number, endNs: number, name: number, pipelines = 1): void {
    this.span(RecordType.GpuPipeline, startNs, endNs).u32(name).u32(pipelines)
  }

  gpuWait({ what, startNs, endNs, device, call = -1 }: GgtraceGpuWait): void {
    const number = numberOf(GPU_WAITS, what, 'what')
    this.span(RecordType.GpuWait, startNs, endNs).u32s(number, device, orNone(call), 0)
  }

  gpuClock({ atNs, ticks, deviationNs, lateNs = 0, device }: GgtraceGpuClock): void {
    const late = BigInt.asUintN(64, BigInt(lateNs))
    this.instant(RecordType.GpuClock, atNs).u64(ticks).u64(deviationNs).u64(late).u32s(device, 0)
  }

  gpuComplete({ atNs, startNs, endNs, submission, queue }: GgtraceGpuComplete): void {
    const record = this.instant(RecordType.GpuComplete, atNs)
    for (const time of [startNs, endNs]) record.u64(time === undefined ? 0 : this.originNs + BigInt(time))
    record.u32(submission).u32(queue)
  }

  free(atNs: number, buffer: number): void {
    this.instant(RecordType.Free, atNs).u32(buffer)
  }

  /** A sample; `name` is an id, as {@link GgtraceWriter.name} returns it. */
  counter(atNs: number, name: number, value: number): void {
    this.instant(RecordType.Counter, atNs).f64(value).u32(name)
  }

  /** The new state of a thread. */
  state(atNs: number, tid: number, cpu: number, state: (typeof THREAD_STATES)[number]): void {
    const number = numberOf(THREAD_STATES, state, 'state')
    this.instant(RecordType.State, atNs).u32(tid).u32(cpu).u32(number)
  }

  /** The thread of this worker begins a graph on a CPU; ids of names: the list of those on which it may run, and the NUMA policy of its memory. */
  affinity(atNs: number, cpu: number, allowed = 0, policy = 0): void {
    const bytes = RECORD_BYTES[RecordType.Affinity]! + (policy === 0 ? 0 : 4)
    const record = this.instant(RecordType.Affinity, atNs, bytes).u32(orNone(cpu)).u32(allowed)
    if (policy !== 0) record.u32(policy)
  }

  begin(atNs: number, name: number): void {
    this.instant(RecordType.RangeBegin, atNs).u32(name)
  }

  end(atNs: number): void {
    this.instant(RecordType.RangeEnd, atNs)
  }

  /** Begins a range of this thread in an NVTX domain; {@link nvtxPop} ends it. */
  nvtxPush(event: GgtraceNvtx): void {
    this.nvtx(RecordType.NvtxPush, event)
  }

  nvtxPop(atNs: number, domain = 0): void {
    this.instant(RecordType.NvtxPop, atNs).u32(domain)
  }

  nvtxMark(event: GgtraceNvtx): void {
    this.nvtx(RecordType.NvtxMark, event)
  }

  /** Begins a range of the process; `range` is its number, which ends it. */
  nvtxStart(range: number, event: GgtraceNvtx): void {
    this.nvtx(RecordType.NvtxStart, event).u64(range)
  }

  nvtxEnd(atNs: number, range: number): void {
    this.instant(RecordType.NvtxEnd, atNs).u64(range)
  }

  /** The program names an object of CUDA or another resource; `name` is an id. */
  nvtxNamed(atNs: number, what: (typeof NVTX_OBJECTS)[number], handle: number | bigint, name: number): void {
    const number = numberOf(NVTX_OBJECTS, what, 'what')
    this.instant(RecordType.NvtxNamed, atNs).u64(handle).u32(number).u32(name)
  }

  /** Records that something is missing, and why (the id of a name). */
  loss(atNs: number, records: number, why = 0): void {
    this.instant(RecordType.Loss, atNs).u32(records).u32(why)
  }

  /** Less is recorded from then on, because calls took more than `percent` longer when recorded: the times with and without. */
  level(atNs: number, level: (typeof LEVELS)[number], percent: number, withNs: number, withoutNs: number): void {
    const number = numberOf(LEVELS, level, 'level')
    const record = this.instant(RecordType.Level, atNs).u32(number).u32(percent)
    record.u64(withNs).u64(withoutNs)
  }

  /** Counts records that could not be written; block headers contain the number. */
  drop(records: number): void {
    this.blocks.dropped += records
  }

  /** Seals the current block. */
  seal(): void {
    this.blocks.finish()
  }

  private nvtx(
    type: number,
    { atNs, domain = 0, message = 0, category = 0, color = -1, payload }: GgtraceNvtx,
  ): OpenBlock {
    const payloadType = payload ? numberOf(NVTX_PAYLOADS, payload.type, 'payload.type') : 0
    const record = this.instant(type, atNs).u32s(domain, message, category, Math.max(color, 0))
    record.u16(color < 0 ? 0 : 1).u16(payloadType)
    const { type: kind = 'none', value = 0 } = payload ?? {}
    if (kind === 'f64') return record.f64(Number(value))
    if (kind === 'f32') return record.f32(Number(value)).u32(0)
    return record.u64(BigInt.asUintN(kind.endsWith('32') ? 32 : 64, BigInt(value)))
  }

  private reserve(bytes: number, atNs: number): void {
    if (!this.blocks.reserve(bytes, atNs, this.call)) return
    this.cursorNs = atNs
    this.writtenCall = this.call
  }

  private record(type: number, bytes = RECORD_BYTES[type]!): OpenBlock {
    this.records++
    return this.blocks.record(type, bytes)
  }

  private counts(counts: readonly number[], type: number): void {
    checkCounters(counts.length)
    let [present, wide, bytes] = [0, 0, RECORD_BYTES[type]!]
    counts.forEach((value, i) => {
      if (value === 0) return
      present |= 1 << i
      if (value >= U32_END) wide |= 1 << i
      bytes += value >= U32_END ? 8 : 4
    })
    if (present === 0 && type === RecordType.Counts) return
    const record = this.record(type, bytes).u16(present).u16(wide)
    for (const value of counts) {
      if (value >= U32_END) record.u64(value)
      else if (value !== 0) record.u32(value)
    }
  }

  private cursor(atNs: number): void {
    this.time(this.record(RecordType.Cursor), atNs).u32(orNone(this.call))
    this.cursorNs = atNs
    this.writtenCall = this.call
  }

  private span(type: number, startNs: number, endNs: number, bytes?: number): OpenBlock {
    return this.time(this.instant(type, startNs, bytes), endNs)
  }

  private instant(type: number, atNs: number, bytes = RECORD_BYTES[type]!): OpenBlock {
    this.reserve(bytes, atNs)
    return this.time(this.record(type, bytes), atNs)
  }

  private time(record: OpenBlock, atNs: number): OpenBlock {
    return record.u64(this.originNs + BigInt(atNs))
  }
}

const orNone = (number: number) => (number < 0 ? NONE : number)
