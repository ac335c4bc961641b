import { TaskState } from '../../../model/events.ts'
import { bitsOfLetter } from './states.ts'

/** Gives the bits of {@link TaskState} for a `prev_state` as a kernel recorded it. */
type DecodeState = (raw: number) => number

const FLAGS = /__print_flags\(REC->prev_state\b[^"]*"\|",(.*?)\)\s*:\s*"R"/s
const FLAG = /\{\s*(0x[0-9a-f]+|\d+)\s*,\s*"([^"]*)"\s*\}/gi
const PREEMPTED = /REC->prev_state\s*&\s*([^?"]*?)\s*\?\s*"\+"/
/** No kernel has more bits of states. */
const BITS_MAX = 1 << 16

/**
 * Reads how a kernel's `sched_switch` prints `prev_state`: the bits differ between releases, the letters do not (but for `x`,
 * which became `X`). Undefined for a text that names no states.
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
  // that mended it ("sched/debug: Fix task state recording/printout") also moved the flag of preemption next to the bit of I.
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

/** The value of `(((0x0000 | 0x0040) + 1) << 1)`; 0 for what is no such expression. */
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

/** C's operators, those that bind less first. */
const OPERATORS: readonly Readonly<Record<string, (a: number, b: number) => number>>[] = [
  { '|': (a, b) => a | b },
  { '<<': (a, b) => a << b },
  { '+': (a, b) => a + b, '-': (a, b) => a - b },
]
