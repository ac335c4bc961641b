import {
  FUNCTION_PURPOSES,
  HEADER_BYTES,
  RECORD_BYTES,
  RecordType,
  SEQUENCE_CHANGES,
  TASK_STEPS,
} from '../../log/ggtrace-layout.ts'
import { DefaultMap } from '../../model/default-map.ts'
import type { FunctionEvent, SequenceEvent, TaskEvent } from '../../model/events.ts'
import type { Names } from '../../model/names.ts'
import type { Resources } from '../../model/resources.ts'
import { ServerMessages } from '../common/server-messages.ts'
import type { Block, Report } from './blocks.ts'
import type { LogDefinitions } from './definitions.ts'
import { readAddress, readNumber, readText, readU64 } from './fields.ts'

interface Place {
  readonly startNs: number
  readonly endNs: number
  readonly tid: number
  readonly names: LogDefinitions
  readonly byte: number
  readonly resources: Resources | undefined
}

/**
 * Does a block contain only events that refer to no definition, or to known names? Threads that answer a server's clients write no
 * others, and rarely: when such a block is sealed, its `needs` counts the definitions of all the time that it took to fill.
 */
export function isOfRequests({ view, at, end }: Block, names: LogDefinitions): boolean {
  for (let record = at + HEADER_BYTES; record + 4 <= end; ) {
    const [type, size] = [view.getUint16(record, true), view.getUint16(record + 2, true)]
    if (type === 0 && size === 0) return true
    if (type === RecordType.Function ? size < 28 || !names.hasName(view.getUint32(record + 24, true)) : !FREE.has(type))
      return false
    record += Math.max(size, 4)
  }
  return true
}

/** Types of records without references. */
const FREE: ReadonlySet<number> = new Set([
  RecordType.Resources,
  RecordType.Sequence,
  RecordType.Task,
  RecordType.Message,
])

/** A FUNCTION record as an event; the number of its purpose where that is not known. */
export function readFunction(view: DataView, at: number, place: Place): FunctionEvent | number {
  const number = view.getUint32(at + 20, true)
  const what = FUNCTION_PURPOSES[number]
  if (!what) return number
  const { startNs, endNs, tid, names, byte, resources } = place
  const name = names.name(view.getUint32(at + 24, true), byte)
  const [context, sequence, output] = [readAddress(view, at + 28), readNumber(view, at + 36), readNumber(view, at + 40)]
  const value = readNumber(view, at + 48) < 0 ? -1 : readU64(view, at + 44)
  return { kind: 'function', what, name, startNs, endNs, tid, resources, context, sequence, output, value }
}

/** A SEQUENCE record as an event; the number of its change where that is not known. */
export function readSequence(view: DataView, at: number, atNs: number, tid: number): SequenceEvent | number {
  const number = (offset: number) => view.getInt32(at + offset, true)
  const what = SEQUENCE_CHANGES[number(20)]
  if (!what) return number(20)
  const [sequence, to, from, end, delta] = [number(24), number(28), number(32), number(36), number(40)]
  const [context, isDone] = [readAddress(view, at + 12), number(44) !== 0]
  return { kind: 'sequence', what, atNs, tid, context, sequence, to, from, end, delta, isDone }
}

/** A TASK record as an event; the number of its step where that is not known. */
export function readTask(view: DataView, at: number, atNs: number, tid: number): TaskEvent | number {
  const number = (offset: number) => view.getInt32(at + offset, true)
  const what = TASK_STEPS[number(12)]
  return what ? { kind: 'task', what, atNs, tid, task: number(16), slot: number(20) } : number(12)
}

/** Reads MESSAGE records: lines of llama-server's log. */
export class MessageRecords {
  /** By thread: records of several threads are not in the order of time. */
  private readonly threads = new DefaultMap<number, ServerMessages>(() => new ServerMessages(this.names))

  constructor(
    private readonly names: Names,
    private readonly report: Report,
  ) {}

  /** The steps of tasks that the message of a record states: none, one or more. */
  read(view: DataView, at: number, end: number, { atNs, tid, byte }: MessagePlace): TaskEvent[] {
    const message = readText(view, at + TEXT_AT, end)
    if (message) return this.threads.of(tid).read(message.text, atNs, tid)
    this.report('damaged-record', 'expected the text of a MESSAGE within the record; left out', byte)
    return []
  }
}

interface MessagePlace {
  readonly atNs: number
  readonly tid: number
  readonly byte: number
}

/** Place of a MESSAGE's text in the record. */
const TEXT_AT = RECORD_BYTES[RecordType.Message]! - 4
