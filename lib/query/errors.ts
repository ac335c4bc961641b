/**
 * trace_processor itself failed: it rejected the trace, ran out of memory, trapped, or is closed.
 * Compare `name`, not the class: test runners and bundlers create several realms.
 */
export class TraceProcessorError extends Error {
  override readonly name = 'TraceProcessorError'
  /** True if the reason was a lack of memory, which a smaller trace may avoid. */
  readonly outOfMemory: boolean

  constructor(message: string, options: { outOfMemory?: boolean; cause?: unknown } = {}) {
    super(message, 'cause' in options ? { cause: options.cause } : undefined)
    this.outOfMemory = options.outOfMemory ?? false
  }
}

/** The SQL given to a query is wrong; the trace stays open and further queries work. */
export class SqlError extends Error {
  override readonly name = 'SqlError'
}
