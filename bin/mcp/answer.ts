import { isVisible, visible } from '../../lib/cli.ts'

/** Bytes of an answer as JSON, at most. */
export const ANSWER_BYTES = 4096
/** Bytes of an argument of a call that an answer names; a longer one is not repeated. */
const ARGUMENTS_BYTES = 300

/** A call of a tool that an answer names. */
export interface ToolCall {
  readonly tool: string
  readonly arguments: Readonly<Record<string, unknown>>
  /** Names of further arguments, which are as in the call that was answered: long ones, and those with characters that an answer shows as escapes. */
  readonly same?: readonly string[]
  readonly why: string
}

/** What an answer had no room for. */
export interface Left {
  readonly what: string
  readonly count: number
  readonly next: ToolCall
}

/** The answer of a tool. */
export interface Answer {
  /** The result in one sentence. */
  readonly verdict: string
  /** Figures, unchanged as the command has them with `--json`. */
  readonly evidence: Readonly<Record<string, unknown>>
  /** Calls that show the same figures in another way. */
  readonly check: readonly ToolCall[]
  /** Calls that show more; the first is the best one. */
  readonly next: readonly ToolCall[]
  readonly left: Left | null
}

/** A value as clients get it: models read it, so its texts and keys have escapes for characters that are not visible. */
export function visibleValue<T>(value: T): T
export function visibleValue(value: unknown): unknown {
  if (typeof value === 'string') return visible(value)
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(visibleValue)
  return Object.fromEntries(Object.entries(value).map(([key, field]) => [visible(key), visibleValue(field)]))
}

/** Bytes of a value as JSON, as clients get it. */
export const bytesOf = (value: unknown): number => Buffer.byteLength(JSON.stringify(visibleValue(value)) ?? '')

/** Names a call of a tool; long arguments, which the call that is answered has, too, are named only. */
export function callOf(tool: string, args: Readonly<Record<string, unknown>>, why: string): ToolCall {
  const given = Object.entries(args).filter(([, value]) => value !== undefined)
  const isShort = ([, value]: [string, unknown]) => bytesOf(value) <= ARGUMENTS_BYTES && hasNoEscapes(value)
  const same = given.filter((argument) => !isShort(argument)).map(([name]) => name)
  return { tool, arguments: Object.fromEntries(given.filter(isShort)), ...(same.length > 0 && { same }), why }
}

const hasNoEscapes = (value: unknown): boolean =>
  typeof value === 'string' ? isVisible(value) : !Array.isArray(value) || value.every(hasNoEscapes)

/** The answer with as many of `items` as it has room for, from the first one on. One that is too large alone is shortened. */
export function withMost<T>(items: readonly T[], answerOf: (shown: readonly T[]) => Answer): Answer {
  const fits = (count: number) => bytesOf(answerOf(items.slice(0, count))) <= ANSWER_BYTES
  let [most, tooMany] = [0, items.length + 1]
  while (tooMany - most > 1) {
    const middle = items.length < tooMany ? items.length : (most + tooMany) >> 1
    if (fits(middle)) most = middle
    else tooMany = middle
  }
  return shortened(answerOf(items.slice(0, most === 0 && items.length > 0 ? 1 : most)))
}

/** Characters of a text and elements of a list that remain; tried one after the other. */
const LIMITS = [
  [1000, 40],
  [400, 20],
  [200, 8],
  [80, 4],
  [40, 1],
  [12, 0],
] as const

/** The answer, with shorter texts and lists if it has no room otherwise; each says what it lacks. */
export function shortened(answer: Answer): Answer {
  if (bytesOf(answer) <= ANSWER_BYTES) return answer
  for (const [characters, elements] of LIMITS) {
    const { evidence, check, next, left } = answer
    const shorter: Answer = {
      verdict: shortText(answer.verdict, Math.max(characters, 200)),
      evidence: shortValue(evidence, characters, elements) as Answer['evidence'],
      ...{ check: check.slice(0, Math.max(elements, 1)), next: next.slice(0, Math.max(elements, 1)), left },
    }
    if (bytesOf(shorter) <= ANSWER_BYTES) return shorter
  }
  return { ...answer, verdict: shortText(answer.verdict, 200), evidence: {}, check: [], next: [] }
}

/** At most so many characters of a text. */
export function shortText(text: string, characters: number): string {
  const all = [...text]
  if (all.length <= characters) return text
  return `${all.slice(0, characters).join('')}… (${all.length - characters} more characters)`
}

function shortValue(value: unknown, characters: number, elements: number): unknown {
  if (typeof value === 'string') return shortText(value, characters)
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) {
    const shown = value.slice(0, elements).map((element) => shortValue(element, characters, elements))
    return value.length > elements ? [...shown, `… (${value.length - elements} more)`] : shown
  }
  const fields = Object.entries(value).map(([key, field]) => [key, shortValue(field, characters, elements)])
  return Object.fromEntries(fields)
}
