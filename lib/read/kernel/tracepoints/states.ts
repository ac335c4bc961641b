import { TaskState } from '../../../model/events.ts'

const LETTERS = new Map(Object.entries(TaskState).map(([letter, bit]): [number, number] => [letter.charCodeAt(0), bit]))
LETTERS.set('x'.charCodeAt(0), TaskState.X) // of kernels before 4.14: dead
/** Letters of kernels before 4.14 that qualify a state: wake on kill, waking, no load. */
const REMARKS = new Set(Array.from('KWN|R', (letter) => letter.charCodeAt(0)))
/** All bits with a meaning today. */
const CURRENT = Object.values(TaskState).reduce((all, bit) => all | bit, 0)
/**
 * The letters that trace-cmd prints, bit by bit (plugin_sched_switch.c of libtraceevent): Z and X are swapped, and W is the
 * bit of I.
 */
const PLUGIN = new Map(Array.from('SDTtZXxW', (letter, bit) => [letter.charCodeAt(0), 1 << bit]))

/** Bits of a state's letter; 0 for other letters. */
function bitsOfLetter(letter: string): number {
  return LETTERS.get(letter.charCodeAt(0)) ?? 0
}

/** Is the number of a state one that only kernels before 4.15 record? */
export function isOldState(value: number): boolean {
  return value > CURRENT
}

/**
 * Bits of a state that is recorded as a number alone, as Linux has them from 4.15 on. In older kernels a higher bit alone means
 * that the thread was preempted; together with others, that it does not count as load.
 */
export function currentBits(value: number): number {
  if (value < 0) return 0
  return isOldState(value) && (value & CURRENT) === 0 ? TaskState['+'] : value & CURRENT
}

/**
 * Bits of a `prev_state` as the kernel's tracepoint prints it, `[start, end)`: `S`, `R+`, `D|K`, or the number, as of Linux
 * 4.14 or later. -1: no state.
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

/** Returns the bits of {@link TaskState} of a `prev_state` as the kernel recorded it. */
type DecodeState = (raw: number) => number

// bounded: the kernel's text of a format is one page
const FLAGS = /__print_flags\(REC->prev_state\b[^"]*"\|",(.*?)\)\s*:\s*"R"/s
const FLAG = /\{\s*(0x[0-9a-f]+|\d+)\s*,\s*"([^"]*)"\s*\}/gi
// bounded: as above
const PREEMPTED = /REC->prev_state\s*&\s*([^?"]*?)\s*\?\s*"\+"/
/** More than any kernel's bits of states. */
const BITS_MAX = 1 << 16

/**
 * Makes a decoder from the way a kernel's `sched_switch` prints `prev_state`: the bits differ between releases, the letters do
 * not (except `x`, which became `X`). Undefined for a text that names no states.
 */
export function stateDecoderOf(print: string): DecodeState | undefined {
  const flags = Array.from((FLAGS.exec(print)?.[1] ?? '').matchAll(FLAG), ([, value, letter]) => {
    return { bit: Number(value), to: bitsOfLetter(letter!) }
  })
  if (flags.length === 0) return undefined
  const mask = PREEMPTED.exec(print.replace(FLAGS, ''))?.[1]
  const preempted = mask === undefined ? 0 : evaluate(mask)
  const idle = flags.find(({ to }) => to === TaskState.I)
  // Linux 4.14 recorded the number of a state where its own print format expects the bit: 8, printed as "t", is I. The commit
  // that fixed it ("sched/debug: Fix task state recording/printout") also moved the flag of preemption next to the bit of I.
  const isNumbered = idle !== undefined && preempted > idle.bit * 2
  const decode = (raw: number) => {
    if (raw & preempted) return TaskState['+']
    if (isNumbered) return flags[raw - 1]?.to ?? 0
    return flags.reduce((bits, { bit, to }) => (raw & bit ? bits | to : bits), 0)
  }
  const all = flags.reduce((bits, { bit }) => bits | bit, preempted)
  const states = Uint16Array.from({ length: Math.min(2 ** (32 - Math.clz32(all)), BITS_MAX) }, (_, raw) => decode(raw))
  return (raw) => (raw < 0 ? 0 : states[raw & (states.length - 1)]!)
}

/** The value of an expression such as `(((0x0000 | 0x0040) + 1) << 1)`; 0 for others. */
function evaluate(expression: string): number {
  const tokens = expression.match(/0x[0-9a-f]+|\d+|<<|\S/gi) ?? []
  let at = 0
  const atom = (): number => {
    if (tokens[at] !== '(') return Number(tokens[at++])
    at++
    const value = binary(0)
    at++
    return value
  }
  const binary = (level: number): number => {
    const operators = OPERATORS[level]
    if (!operators) return atom()
    let value = binary(level + 1)
    for (let apply = operators[tokens[at] ?? '']; apply; apply = operators[tokens[at] ?? '']) {
      at++
      value = apply(value, binary(level + 1))
    }
    return value
  }
  const value = binary(0)
  return at === tokens.length && Number.isInteger(value) && value > 0 ? value : 0
}

/** C's operators, by rising precedence. */
const OPERATORS: readonly Readonly<Record<string, (a: number, b: number) => number>>[] = [
  { '|': (a, b) => a | b },
  { '<<': (a, b) => a << b },
  { '+': (a, b) => a + b, '-': (a, b) => a - b },
]
