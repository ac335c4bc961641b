import type { Answer } from './answer.ts'
import { type Ran, type Run, runCli } from './child.ts'
import type { Options } from './options.ts'
import type { Place, Places } from './places.ts'

/** A JSON Schema. */
export type Schema = Readonly<Record<string, unknown>>

/** What a tool has of the server. */
export interface Session {
  readonly options: Options
  readonly places: Places
}

/** What a tool has of the call. */
export interface Call {
  readonly signal: AbortSignal
  /** Reports that the call takes so many ms already, of at most `limitMs`. */
  readonly onTick: (ms: number, limitMs: number) => void
}

/** A tool of the server. `A`: its arguments, which the SDK has checked by `input`. */
export interface Tool<A = never> {
  readonly name: string
  readonly title: string
  readonly description: string
  /** Schemas of its arguments. */
  readonly input: Readonly<Record<string, Schema>>
  readonly required: readonly string[]
  /** Schemas of the fields of `evidence`. */
  readonly evidence: Readonly<Record<string, Schema>>
  /** It changes nothing. */
  readonly isReadOnly: boolean
  run(args: A, session: Session, call: Call): Promise<Answer>
}

const PATH = { type: 'string', minLength: 1, maxLength: 4096 }

/** A path within the folders of the server. */
export const path = (description: string): Schema => ({ ...PATH, description })

/** Several of them. */
export const paths = (description: string): Schema => ({
  ...{ type: 'array', items: PATH, minItems: 1, maxItems: 64 },
  description,
})

/** The argument of most tools. */
export const LOGS = paths(
  'Logs of one run: what record wrote, with its .sched.dat, or logs of other tools, or an Analysis (stats --json)',
)

/** A whole number. */
export const whole = (description: string, minimum = 0, maximum = 1e9): Schema => ({
  ...{ type: 'integer', minimum, maximum },
  description,
})

/** A text of at most so many characters. */
export const text = (description: string, maxLength = 200): Schema => ({ type: 'string', maxLength, description })

/** One of several words. */
export const oneOf = (words: readonly string[], description: string): Schema => ({
  ...{ type: 'string', enum: words },
  description,
})

/** An object whose fields the reference describes. */
export const object = (description: string): Schema => ({ type: ['object', 'null'], description })

/** A list of them. */
export const list = (description: string): Schema => ({ type: 'array', description })

/** Where a cut answer continues. */
export const FROM = whole('The first of what is listed: 0, or what `left` of an earlier answer has')

/** The schema of an object with these fields only. */
export const fieldsOf = (properties: Tool['input'], required: readonly string[]): Schema => ({
  ...{ type: 'object', properties, required, additionalProperties: false },
})

/** Places of paths. Throws UsageError for those that are not allowed. */
export const placesOf = (given: readonly string[], { places }: Session): Promise<Place[]> =>
  Promise.all(given.map((path) => places.input(path)))

/** Runs a command on inputs, which may not change meanwhile. */
export async function runOn(
  inputs: readonly Place[],
  args: readonly string[],
  session: Session,
  { signal, onTick }: Call,
  more: Partial<Run> & { readonly codes?: readonly number[] } = {},
): Promise<Ran> {
  const { places, options } = session
  const { codes, ...run } = more
  const ran = await runCli(args, { folder: places.first, limitMs: options.timeoutMs, signal, onTick, ...run }, codes)
  await places.refuseChanged(inputs)
  return ran
}
