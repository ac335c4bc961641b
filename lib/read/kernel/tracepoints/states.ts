import { TaskState } from '../../../model/events.ts'

const LETTERS = new Map(Object.entries(TaskState).map(([letter, bit]): [number, number] => [letter.charCodeAt(0), bit]))
LETTERS.set('x'.charCodeAt(0), TaskState.X) // of kernels before 4.14, for a thread that is no more
/** Letters of kernels before 4.14 that say more of a state, but are none: wake on kill, waking, no load. */
const REMARKS = new Set(Array.from('KWN|R', (letter) => letter.charCodeAt(0)))
/** All bits that have a meaning today. */
const CURRENT = Object.values(TaskState).reduce((all, bit) => all | bit, 0)
/**
 * The letters of trace-cmd's own printing, bit by bit (plugin_sched_switch.c of libtraceevent): Z and X stand for each other's
 * bit, and W for that of I.
 */
const PLUGIN = new Map(Array.from('SDTtZXxW', (letter, bit) => [letter.charCodeAt(0), 1 << bit]))

/** Bits of a state's letter; 0 for one that is none. */
export function bitsOfLetter(letter: string): number {
  return LETTERS.get(letter.charCodeAt(0)) ?? 0
}

/** Is a number that stands for a state one that only kernels before 4.15 record? */
export function isOldState(value: number): boolean {
  return value > CURRENT
}

/**
 * Bits of a state that is known as a number alone, as Linux from 4.15 on has them. Of others: in older kernels a higher bit that
 * is alone says that the thread was preempted, one beside others that it does not count as load.
 */
export function currentBits(value: number): number {
  if (value < 0) return 0
  return isOldState(value) && (value & CURRENT) === 0 ? TaskState['+'] : value & CURRENT
}

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
