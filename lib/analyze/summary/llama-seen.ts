import type { FunctionPurpose } from '../../model/events.ts'
import type { LlamaSeen } from './figures.ts'

/** Functions that programs without llama.cpp call, too. */
const OF_GGML: readonly FunctionPurpose[] = ['synchronize', 'read-header', 'map']
/** Of a log without functions: the recorder's `functions.missing` (native/recorder/functions.c). */
const NOT_REQUESTED = 'all: not requested'

/** Is it a function of llama.cpp, and not of ggml alone? */
export const isOfLlama = (what: FunctionPurpose): boolean => !OF_GGML.includes(what)

/** What was seen, from the facts of the log and whether it contains functions of llama.cpp; undefined: nothing. */
export function llamaSeen(
  attributes: Readonly<Record<string, string | number>>,
  hasFunctions: boolean,
): LlamaSeen | undefined {
  if (attributes['llama.calls'] !== undefined) return 'calls'
  if (hasFunctions) return 'functions'
  if (attributes['llama.functions'] === undefined) return undefined
  return attributes['functions.missing'] === NOT_REQUESTED ? 'functions' : 'loading'
}
