import { FUNCTION_PURPOSES, NONE, SEQUENCE_CHANGES, TASK_STEPS } from '../../log/ggtrace-layout.ts'
import type { FunctionEvent, SequenceEvent, TaskEvent } from '../../model/events.ts'
import type { LogDefinitions } from './definitions.ts'
import { readAddress, readU64 } from './fields.ts'

interface Place {
  readonly startNs: number
  readonly endNs: number
  readonly tid: number
  readonly names: LogDefinitions
  readonly byte: number
}

/** A FUNCTION record as an event; the number of its purpose where that is not known. */
export function readFunction(view: DataView, at: number, { names, byte, ...place }: Place): FunctionEvent | number {
  const number = view.getUint32(at + 20, true)
  const what = FUNCTION_PURPOSES[number]
  if (!what) return number
  const name = names.name(view.getUint32(at + 24, true), byte)
  const [context, sequence, output] = [readAddress(view, at + 28), orNone(view, at + 36), orNone(view, at + 40)]
  const value = orNone(view, at + 48) < 0 ? -1 : readU64(view, at + 44)
  return { kind: 'function', what, name, ...place, context, sequence, output, value }
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

function orNone(view: DataView, at: number): number {
  const number = view.getUint32(at, true)
  return number === NONE ? -1 : number
}
