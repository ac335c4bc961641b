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
    readonly hint?: string,
    readonly input?: string,
  ) {
    const place = `${input === undefined ? '' : `${input}: `}${format}: ${describePosition(at)}`
    // What was found may be the input's own text: it must not look like a line of ours.
    super(
      `${place}: expected ${expected}, found ${found.replaceAll('\n', '\\n')}${hint === undefined ? '' : `\nhint: ${hint}`}`,
    )
  }

  /** The same error, naming the input it came from. */
  inInput(input: string): FormatError {
    return new FormatError(this.format, this.at, this.expected, this.found, this.hint, input)
  }
}

/** What was asked for cannot be done: an option's value, a file that cannot be read. The message says what would do. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
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
