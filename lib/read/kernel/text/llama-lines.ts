import { Ascii } from '../../../bytes/ascii.ts'
import type { Position } from '../../../errors.ts'
import { failureOf, phaseOf } from '../../../model/calls.ts'
import { type CallBatch, Inferred, type SequenceSpan, type TokenEvent, type TraceEvent } from '../../../model/events.ts'
import { parseTensorName } from '../../../model/tensors.ts'
import { UNKNOWN } from '../../../model/unknown.ts'
import { givenOpNames, inferOpNames, type OpNames, type OpUse } from '../../common/op-table.ts'
import type { ReadContext } from '../../format.ts'
import type { Scan } from './scan.ts'

/** Names of the numbers after `<ns> <cpu>` of a line; `end` is another time. */
const FIELDS = {
  token: ['tid', 'end', 'tokens', 'result'],
  encode: ['tid', 'end', 'tokens', 'result'],
  span: ['tid', 'end', 'sequence', 'position', 'tokens'],
  remove: ['tid', 'sequence', 'from', 'to'],
  graph: ['tid', 'end', 'nodes', 'status'],
  op: ['tid', 'ith', 'end', 'end', 'op', 'type', 'ne', 'ne', 'ne', 'ne', 'address'],
  fault: ['tid', 'isMajor', 'address'],
  io: ['tid', 'end', 'isWrite', 'bytes', 'device', 'sector'],
} as const satisfies Readonly<Record<string, readonly string[]>>
/** Types of lines about llama.cpp, or the kernel's work for it. */
export type LlamaType = keyof typeof FIELDS

/** Is the name one of these types? */
export const isLlamaType = (name: string): name is LlamaType => Object.hasOwn(FIELDS, name)

/** A line. `atNs` is its end: lines are printed nearly in that order. */
export interface LlamaRecord {
  readonly kind: 'llama'
  readonly type: LlamaType
  readonly atNs: number
  readonly startNs: number
  readonly cpu: number
  /** Where the line is. */
  readonly at: Position
  readonly numbers: readonly number[]
  /** Name of the tensor, or 0. */
  readonly name: number
}

/** Most uses of op numbers for the choice of the op table. */
const USES_MAX = 4096

/** Spans of a call at most; of a call with more, none is known. The script prints 16. */
const SPANS_MAX = 64

/** Threads whose spans wait for the line of their call, which may be lost; the oldest ones are dropped. */
const OPEN_MAX = 1024

/** Spans of a call whose own line has not been read. */
interface OpenCall {
  readonly startNs: number
  readonly spans: SequenceSpan[]
}

/** Makes events of lines about llama.cpp (docs/reference/ebpf-format.md). */
export class LlamaLines {
  private readonly uses = new Map<string, OpUse>()
  private ops: OpNames | undefined
  private readonly tensors = new Map<string, number>()
  /** By thread. */
  private readonly open = new Map<number, OpenCall>()
  private calls = 0
  private readonly totals = new Map<string, number>()

  constructor(private readonly context: ReadContext) {}

  /** Reads the fields after `<ns> <cpu> `; undefined where they do not match. `toNs` converts the scan's last time. */
  read(
    type: LlamaType,
    scan: Scan,
    { atNs: startNs, cpu }: { readonly atNs: number; readonly cpu: number },
    at: Position,
    toNs: () => number,
  ): LlamaRecord | undefined {
    const numbers: number[] = []
    let atNs = startNs
    for (const [i, field] of FIELDS[type].entries()) {
      if (i > 0 && !scan.eatByte(Ascii.Blank)) return undefined
      if (field !== 'end') numbers.push(scan.integer())
      else if (!scan.nanoseconds()) return undefined
      else {
        atNs = toNs()
        numbers.push(atNs)
      }
    }
    if (numbers.some((number) => !Number.isSafeInteger(number))) return undefined
    const record = { kind: 'llama', type, atNs, startNs, cpu, at, numbers, name: 0 } as const
    if (type !== 'op') return scan.at === scan.end ? record : undefined
    if (!scan.eatByte(Ascii.Blank)) return undefined
    const name = decoder.decode(scan.bytes.subarray(scan.at, scan.end))
    this.noteUse(numbers[4]!, name)
    return { ...record, name: this.context.names.id(name) }
  }

  /** Chooses the op table, once; returns attributes of the trace. */
  begin(): Readonly<Record<string, string>> {
    if (this.uses.size === 0) return {}
    const { opTable, names } = this.context
    const uses = [...this.uses.values()]
    this.ops = opTable ? givenOpNames(opTable, uses, names) : inferOpNames(uses, names)
    return { op_numbers: this.ops.about }
  }

  /** The events of a record; records must be in order of time. */
  events(record: LlamaRecord): TraceEvent[] {
    const { type, startNs, atNs, numbers } = record
    const [, , third, fourth] = numbers as [number, number, number, number]
    if (type === 'op') return this.operator(record)
    if (type === 'graph') {
      return [{ ...UNKNOWN.graph, startNs, endNs: atNs, nodes: Math.max(0, third), status: fourth }]
    }
    if (type === 'token' || type === 'encode') return this.call(record)
    if (type === 'span') return this.keep(record)
    if (type === 'remove') return [this.removal(record)]
    if (type === 'fault')
      return [this.count(numbers[1] === 1 ? 'page faults, major' : 'page faults, minor', 'count', atNs, 1)]
    return [this.count(third === 1 ? 'written to block devices' : 'read from block devices', 'bytes', atNs, fourth)]
  }

  /** Keeps a part of a call for its line, which comes next. */
  private keep({ startNs, numbers }: LlamaRecord): [] {
    const [tid, , sequence, position, tokens] = numbers as [number, number, number, number, number]
    const open = this.open.get(tid)
    const { spans }: OpenCall = open?.startNs === startNs ? open : { startNs, spans: [] }
    this.open.delete(tid)
    this.open.set(tid, { startNs, spans })
    const [oldest] = this.open.keys()
    if (this.open.size > OPEN_MAX) this.open.delete(oldest!)
    const last = spans.at(-1)
    if (last && last.sequence === sequence && last.position + last.tokens === position)
      spans[spans.length - 1] = { ...last, tokens: last.tokens + tokens }
    else if (spans.length <= SPANS_MAX) spans.push({ sequence, position, tokens })
    return []
  }

  /** All spans of a call, or none. */
  private spansOf(tid: number, startNs: number, tokens: number): readonly SequenceSpan[] {
    const call = this.open.get(tid)
    if (call?.startNs !== startNs) return []
    this.open.delete(tid)
    const isWhole = call.spans.length <= SPANS_MAX && call.spans.reduce((sum, span) => sum + span.tokens, 0) === tokens
    return isWhole && call.spans.every((span) => span.tokens > 0 && span.position >= 0) ? call.spans : []
  }

  private removal({ atNs, numbers }: LlamaRecord): TraceEvent {
    const [tid, sequence, from, end] = numbers as [number, number, number, number]
    return {
      kind: 'sequence',
      what: 'remove',
      atNs,
      tid,
      context: 0,
      sequence,
      to: -1,
      from,
      end,
      delta: 0,
      isDone: true,
    }
  }

  private call({ type, startNs, atNs: endNs, at, numbers }: LlamaRecord): TraceEvent[] {
    const [tid, , tokens, result] = numbers as [number, number, number, number]
    const isEncode = type === 'encode'
    const spans = this.spansOf(tid, startNs, tokens)
    const isKnown = spans.length > 0
    const phase = isEncode
      ? 'encode'
      : isKnown
        ? phaseOf(tokens, { spans, areAllOutput: false })
        : tokens > 1
          ? 'prefill'
          : 'decode'
    const unknown = { areAllOutput: false, isLeftOut: false, context: 0 }
    const batch: CallBatch = { function: isEncode ? 'llama_encode' : 'llama_decode', result, spans, ...unknown }
    // Several tokens after earlier ones may be drafts that are verified.
    const isCertain = isKnown && spans.every((span) => span.tokens === 1 || span.position === 0)
    const inferred = isEncode || isCertain ? 0 : Inferred.Phase
    const event: TokenEvent = { kind: 'token', call: this.calls++, phase, tokens, startNs, endNs, tid, inferred, batch }
    const failure = failureOf(event, at)
    return failure ? [event, failure] : [event]
  }

  private operator({ startNs, atNs, cpu, numbers, name }: LlamaRecord): TraceEvent[] {
    const [tid, worker, endNs, , op, type] = numbers as [number, number, number, number, number, number]
    const dimensions = numbers.slice(6) // and the address
    const key = `${name} ${op} ${dimensions.join(' ')}`
    const known = this.tensors.get(key)
    const tensor = known ?? this.tensors.size
    const operator = { ...UNKNOWN.operator, tensor, worker, tid, cpu, startNs, endNs, waitEndNs: atNs } as const
    if (known !== undefined) return [operator]
    this.tensors.set(key, tensor)
    const { names } = this.context
    this.ops ??= inferOpNames([...this.uses.values()], names)
    const node = {
      ...{ ...UNKNOWN.tensor, id: tensor, name, layer: parseTensorName(names.text(name)).layer },
      op: this.ops.name(op),
      type: names.id(`type ${type}`),
      ...{ ne: dimensions.slice(0, 4), structAddress: dimensions[4]! },
      inferred: this.ops.inferred ? Inferred.OpName : 0,
    }
    return [node, operator]
  }

  private count(name: string, unit: 'bytes' | 'count', atNs: number, more: number): TraceEvent {
    const value = (this.totals.get(name) ?? 0) + more
    this.totals.set(name, value)
    return { kind: 'counter', name: this.context.names.id(name), unit, atNs, value }
  }

  private noteUse(op: number, result: string): void {
    const key = `${op} ${result}`
    if (this.ops || this.uses.size >= USES_MAX || this.uses.has(key)) return
    this.uses.set(key, { op, result, sources: [] })
  }
}

const decoder = new TextDecoder()
