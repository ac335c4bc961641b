/** Where in the input something was wrong. `line` is present for text formats only. */
export interface Position {
  /** Offset from the start of the decompressed input, in bytes. */
  readonly byte: number
  /** 1-based. */
  readonly line?: number
}

/** `line 3, byte 40 (0x28)`, the way every message of ours names a place. */
export function describePosition(at: Position): string {
  const line = at.line === undefined ? '' : `line ${at.line}, `
  return `${line}byte ${at.byte} (0x${at.byte.toString(16)})`
}

/**
 * The input is not what its format promises, and reading cannot go on. The message alone is enough to find the spot:
 * input, format, place, expectation, finding and, where there is one, a hint.
 */
export class FormatError extends Error {
  override readonly name = 'FormatError'

  constructor(
    readonly format: string,
    readonly at: Position,
    readonly expected: string,
    readonly found: string,
    readonly hint?: string | undefined,
    readonly input?: string | undefined,
  ) {
    const place = `${input === undefined ? '' : `${input}: `}${format}: ${describePosition(at)}`
    // What was found may be the input's own text: it must not look like a line of ours.
    super(
      `${place}: expected ${expected}, found ${found.replaceAll('\n', '\\n')}${hint === undefined ? '' : `\nhint: ${hint}`}`,
    )
  }

  /** Its fields, which `postMessage` and `structuredClone` keep, unlike those of an error; see {@link restoreError}. */
  toJSON(): StoredError {
    const { name, message, format, at, expected, found, hint, input } = this
    return { name, message, format, at, expected, found, hint, input }
  }

  /** The same error, naming the input it came from. */
  inInput(input: string): FormatError {
    return new FormatError(this.format, this.at, this.expected, this.found, this.hint, input)
  }
}

/** What was asked for cannot be done: an option's value, a file that cannot be read. The message says what would do. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
  /** Of a failed operation on a file: the system's code, such as `ENOENT`. */
  readonly code: string | undefined

  /** `cause`: the error that it explains. */
  constructor(message: string, { code, cause }: { readonly code?: string | undefined; readonly cause?: unknown } = {}) {
    super(message, cause === undefined ? undefined : { cause })
    this.code = code
  }

  /** As that of {@link FormatError}. */
  toJSON(): StoredError {
    const { name, message, code } = this
    return { name, message, code }
  }
}

/** An error of ours as plain data. */
export interface StoredError
  extends Partial<Pick<FormatError, 'format' | 'at' | 'expected' | 'found' | 'hint' | 'input'>> {
  readonly name: string
  readonly message: string
  readonly code?: string | undefined
}

/** The error that `toJSON` of a {@link FormatError} or a {@link UsageError} stored: what a worker posted, for example. */
export function restoreError(stored: StoredError): Error {
  const { name, message, format, at, expected, found, hint, input, code } = stored
  if (name === 'FormatError' && at) return new FormatError(format ?? '', at, expected ?? '', found ?? '', hint, input)
  return name === 'UsageError' ? new UsageError(message, { code }) : Object.assign(new Error(message), { name })
}

/** Is `error` one of ours, meant for a person? By name: bundles and test runners make second copies of classes. */
export function isOwnError(error: unknown): error is Error {
  return OWN_ERRORS.has((error as Error | undefined)?.name ?? '')
}

/** Is `error` a {@link FormatError}? */
export function isFormatError(error: unknown): error is FormatError {
  return (error as Error | undefined)?.name === 'FormatError'
}

const OWN_ERRORS = new Set(['FormatError', 'UsageError', 'TraceProcessorError', 'SqlError'])

/** Throws UsageError for options of a function that have none of these names. One that is undefined is not given. */
export function checkNames(name: string, options: unknown, known: readonly string[]): void {
  if (options === undefined) return
  if (typeof options !== 'object' || options === null)
    throw new UsageError(`${name}: expected options as an object, found ${JSON.stringify(options)}`)
  const wrong = Object.entries(options).find(([key, value]) => value !== undefined && !known.includes(key))?.[0]
  if (wrong === undefined) return
  const meant = closest(wrong, known)
  const hint = meant === undefined ? `known ones are ${known.join(', ')}` : `did you mean ${meant}?`
  throw new UsageError(`${name}: no option is called "${wrong}"\nhint: ${hint}`)
}

/** The candidate that `word` is probably a misspelling of; undefined if none resembles it. Upper and lower case are the same. */
export function closest(word: string, candidates: Iterable<string>): string | undefined {
  let best: string | undefined
  let least = Math.min(3, Math.max(1, Math.floor(word.length / 3))) + 1
  for (const candidate of candidates) {
    const distance = editDistance(word.toLowerCase(), candidate.toLowerCase())
    const isBetter =
      distance === least && best !== undefined && isShortened(word, candidate) && !isShortened(word, best)
    if (distance < least || isBetter) [best, least] = [candidate, distance]
  }
  return best
}

/** Is `word` only `whole` without some letters? */
function isShortened(word: string, whole: string): boolean {
  let at = 0
  for (const letter of whole) if (letter === word[at]) at++
  return at === word.length
}

/** How many letters are inserted, deleted, replaced, or swapped with the next one. */
function editDistance(from: string, to: string): number {
  const rows: number[][] = [Array.from({ length: to.length + 1 }, (_, j) => j)]
  for (let i = 1; i <= from.length; i++) {
    const row = [i]
    const [above, twoAbove] = [rows[i - 1]!, rows[i - 2]]
    for (let j = 1; j <= to.length; j++) {
      const replaced = above[j - 1]! + (from[i - 1] === to[j - 1] ? 0 : 1)
      const isSwap = twoAbove && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1]
      row.push(Math.min(replaced, above[j]! + 1, row[j - 1]! + 1, isSwap ? twoAbove[j - 2]! + 1 : Infinity))
    }
    rows.push(row)
  }
  return rows[from.length]![to.length]!
}
