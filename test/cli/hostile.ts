import { GgtraceWriter } from '../../lib/core.ts'
import { begun, counted, everyRecord, placed, runCalls } from '../read/ggtrace-logs.ts'

/** Names that no text may show as they are, and logs of them. */

/** What shows nothing, or changes how something else is shown. The tab and the line feed are no such characters. */
export const RAW =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: what must not be there
  /[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\ufff9-\ufffb\ufffe\uffff\u{e0000}-\u{e0fff}]|\u034f/u

/** Clears the screen, rings, turns the direction of writing, and contains what nobody sees. */
export const SIGNS =
  '\x1b[2J\x07\r\x01\x7f\x9b31m\xad\u061c\u200b\u200c\u200d\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202eevil\u2060\u2066\u2067\u2068\u2069\u3164\ufeff\ufffa\u{e0041}\u{e007f}'

/** What remains as it is in all texts: letters of several scripts, a combined one, a picture. */
export const LEGIBLE = 'mäßig模型модельनमूनाمدلe\u0301🙂☀️'

/** A name with all of it. */
export const NAME = `n${SIGNS}${LEGIBLE}`

const { name, run } = GgtraceWriter.prototype

/** A log by `write`, in which each name, and each fact, has {@link NAME} in it; `keeps` is for names that remain. */
function withNames(write: () => Uint8Array, keeps: RegExp): Uint8Array {
  const hostile = (text: string) => (text === '' || keeps.test(text) ? text : text.replace(/^.[^-]?/, `$&${NAME}`))
  GgtraceWriter.prototype.name = function (text) {
    return name.call(this, hostile(text))
  }
  GgtraceWriter.prototype.run = function (facts, clocks) {
    const entries = Object.entries(facts).map(([key, value]) => [key, /^\d+$/.test(value) ? value : hostile(value)])
    run.call(this, { ...Object.fromEntries(entries), [NAME]: NAME }, clocks)
  }
  try {
    return write()
  } finally {
    Object.assign(GgtraceWriter.prototype, { name, run })
  }
}

/** A run of some calls, with what a log contains about the model and the machine. */
function calls(): Uint8Array {
  const facts = ['command', 'ggml.version', 'llama.version', 'model.desc', 'cpu.model', 'host', 'kernel', 'note']
  const writer = begun(Object.fromEntries(facts.map((key) => [key, `the ${key}`])))
  runCalls(writer, [500, 1, 1, 1, 1], 2)
  writer.end(5_000_000)
  return writer.take()
}

/** Words that a log must have unchanged to be one of calls of ggml. */
const OF_GGML = /^(?:[A-Z_]{3,}|f32|q4_0|CPU|ms|ns|bytes|count|[\d., :-]+)$/

/** Logs with such names, by the names of their files: as far as figures remain, and all of them. */
export const HOSTILE_LOGS: Readonly<Record<string, () => Uint8Array>> = {
  'calls.ggtrace': () => withNames(calls, OF_GGML),
  'all.ggtrace': () => withNames(calls, /^$/),
  'every.ggtrace': () => withNames(everyRecord, OF_GGML),
  'placed.ggtrace': () => withNames(placed, OF_GGML),
  'counted.ggtrace': () => withNames(counted, OF_GGML),
}

/** All texts in a value of JSON, keys too. */
export function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, of]) => [key, ...textsIn(of)])
}
