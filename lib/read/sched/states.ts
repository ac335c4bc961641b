import { TaskState } from '../../model/events.ts'

const LETTERS = new Map(Object.entries(TaskState).map(([letter, bit]) => [letter.charCodeAt(0), bit]))
/** Letters of kernels before 4.14 that say more of a state, but are none: wake on kill, waking, parked, no load. */
const REMARKS = new Set(Array.from('KWNx|R', (letter) => letter.charCodeAt(0)))
/**
 * The letters of trace-cmd's own printing, bit by bit (plugin_sched_switch.c of libtraceevent): Z and X stand for each other's
 * bit, and W for that of I.
 */
const PLUGIN = new Map(Array.from('SDTtZXxW', (letter, bit) => [letter.charCodeAt(0), 1 << bit]))

/**
 * Bits of a `prev_state` as the kernel's tracepoint prints it, `[start, end)`: `S`, `R+`, `D|K`, or the number itself, which is
 * taken to be of Linux 4.14 or later. -1: no state.
 */
export function stateOf(bytes: Uint8Array, start: number, end: number): number {
  return isDigit(bytes[start]!) ? numberOf(bytes, start, end) : bitsOf(bytes, start, end, LETTERS)
}

/** Bits of a state as `trace-cmd report` prints it in its short form. -1: no state. */
export function pluginStateOf(bytes: Uint8Array, start: number, end: number): number {
  const bits = bitsOf(bytes, start, end, PLUGIN)
  return bits < 0 ? stateOf(bytes, start, end) : bits // newer ones print as the kernel does
}

function bitsOf(bytes: Uint8Array, start: number, end: number, letters: ReadonlyMap<number, number>): number {
  let bits = 0
  for (let at = start; at < end; at++) {
    const bit = letters.get(bytes[at]!)
    if (bit !== undefined) bits |= bit
    else if (!REMARKS.has(bytes[at]!)) return -1
  }
  return end > start ? bits : -1
}

function numberOf(bytes: Uint8Array, start: number, end: number): number {
  let value = 0
  for (let at = start; at < end; at++) {
    if (!isDigit(bytes[at]!)) return -1
    value = value * 10 + bytes[at]! - 0x30
  }
  return value <= 0x7fffffff ? value : -1
}

const isDigit = (byte: number) => byte >= 0x30 && byte <= 0x39
