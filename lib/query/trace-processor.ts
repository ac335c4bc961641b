import { Writer } from 'protobufjs/minimal.js'
import {
  AppendTraceDataResult,
  CellsBatch,
  ComputationSpec,
  FinalizeDataResult,
  RegisterSqlPackageArgs as PackageArgs,
  QueryArgs,
  RegisterSqlPackageResult,
  QueryResult as Result,
  TraceProcessorRpc as Rpc,
  SqlModule,
  TraceProcessorRpcStream as Stream,
  TraceSummaryArgs as SummaryArgs,
  SummaryFormat,
  TraceSummaryResult as SummaryResult,
  TraceProcessorMethod,
} from '../generated/trace_processor.ts'
import { appendBatch, type Cell } from './cells.ts'
import { SqlError, TraceProcessorError } from './errors.ts'
import { Message } from './message.ts'
import { bundlesOf, type MetricBundle } from './trace-summary.ts'
import { type HostImage, memoryLimit, WasmHost } from './wasm-host.ts'

export type { Cell }

/** The result of a query: the columns' names, and the rows with one cell per column. */
export interface QueryResult {
  readonly columns: string[]
  readonly rows: Cell[][]
}

/** Largest piece of a trace sent in one message: 32 MiB minus room for the message's frame. */
const pieceSize = (32 << 20) - 64

/** Bytes by which a query may let the memory grow at once: more is a row of hundreds of MiB, of which there are several copies. */
const QUERY_STEP = 256 << 20
/** A row may be as large as this. */
const ROW_BYTES = 64 << 20
const TOO_LARGE = `a row or a value is too large: at most ${ROW_BYTES / 2 ** 20} MiB\nhint: select parts of it (substr)`

/** Modules of PerfettoSQL: `INCLUDE PERFETTO MODULE <package>.<module>` runs the module's text once. */
export interface SqlPackage {
  /** The first part of the names of its modules. */
  readonly name: string
  /** The texts of its modules, by their names without the package's. */
  readonly modules: Readonly<Record<string, string>>
}

const {
  TPM_APPEND_TRACE_DATA,
  TPM_FINALIZE_TRACE_DATA,
  TPM_QUERY_STREAMING,
  TPM_REGISTER_SQL_PACKAGE,
  TPM_SUMMARIZE_TRACE,
} = TraceProcessorMethod

/** Tag of `Trace.packet`, which is length-delimited. */
const PACKET = 0x0a

/**
 * Per module, the image of an instance that has read the first byte of a protobuf trace. Its SQL and its packet reader are set
 * up: a trace opened from it loads in a fifth of the time. Created for the second trace, because most programs open only one and
 * the image takes 12 MiB. `null`: one trace has been opened.
 */
export const prepared = new WeakMap<WebAssembly.Module, HostImage | null>()

/**
 * Google's trace_processor with one trace: open it, query it in SQL, close it.
 *
 * It works on the calling thread; a call of `query` blocks that thread. Several instances may be open at once.
 */
export class TraceProcessor {
  readonly #host: WasmHost
  #sent = 0
  #received = 0

  private constructor(host: WasmHost) {
    this.#host = host
  }

  /**
   * Loads a trace given in chunks cut anywhere, in any format that trace_processor reads.
   * @param wasm the compiled `trace_processor.wasm`
   * @param options.maxMemory bytes its memory may grow to; by default, and at most, 4 GiB
   * @throws TraceProcessorError if the module is not a trace_processor or cannot start, or if it refuses the trace or
   *   fails; what `chunks` throws
   */
  static async open(
    wasm: WebAssembly.Module,
    chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
    { maxMemory = memoryLimit }: { maxMemory?: number } = {},
  ): Promise<TraceProcessor> {
    let opened: TraceProcessor | undefined
    try {
      for await (const chunk of chunks) {
        if (chunk.length === 0) continue
        if (opened) opened.#append(chunk)
        else if (beginsWithMessage(chunk)) {
          opened = await TraceProcessor.#behindFirstByte(wasm, maxMemory)
          opened.#append(chunk.subarray(1))
        } else {
          opened = new TraceProcessor(await WasmHost.start(wasm, maxMemory))
          opened.#append(chunk)
        }
      }
      opened ??= new TraceProcessor(await WasmHost.start(wasm, maxMemory))
      const replies = opened.#request(TPM_FINALIZE_TRACE_DATA)
      opened.#accept(replies, Rpc.finalize_data_result, FinalizeDataResult.error)
      return opened
    } catch (error) {
      opened?.close()
      throw error
    }
  }

  /** An instance that has read the first byte of a trace for which {@link beginsWithMessage} is true. */
  static async #behindFirstByte(wasm: WebAssembly.Module, maxMemory: number): Promise<TraceProcessor> {
    const image = prepared.get(wasm)
    if (image && image.size <= maxMemory) {
      const processor = new TraceProcessor(await WasmHost.resume(wasm, image, maxMemory))
      processor.#sent = processor.#received = 1
      return processor
    }
    const processor = new TraceProcessor(await WasmHost.start(wasm, maxMemory))
    processor.#append(Uint8Array.of(PACKET))
    prepared.set(wasm, image === undefined ? null : imageOf(processor.#host))
    return processor
  }

  /** Bytes of memory that the WASM instance uses now; 0 after `close` or a failure. */
  get memorySize(): number {
    return this.#host.memorySize
  }

  /**
   * Runs SQL (PerfettoSQL) and returns the result of the last statement.
   * @throws SqlError if the SQL is wrong; further queries work
   * @throws TraceProcessorError if trace_processor fails or is closed; also for incomplete SQL ("select 1
   *   where"), which crashes v55.3
   */
  query(sql: string): QueryResult {
    const replies = this.#ask(sql)
    const results = this.#decoded(() => replies.flatMap((reply) => reply.messages(Rpc.query_result)))
    const error = results.map((result) => result.text(Result.error)).find((text) => text !== '')
    const isRefused = error !== undefined && (this.#host.refusedMemory || error.includes('response that is too big'))
    // An answer contains many small rows, or one that is larger than usual answers.
    if (isRefused || replies.some(({ size }) => size > ROW_BYTES)) throw new SqlError(TOO_LARGE)
    if (error) throw new SqlError(readable(error))
    return this.#decoded(() => tableOf(results))
  }

  /**
   * Makes the modules of a package known to `INCLUDE PERFETTO MODULE`; their SQL runs only then.
   * @throws SqlError if a package of this name is known, or a module has no valid name
   */
  register({ name, modules }: SqlPackage): void {
    const replies = this.#request(TPM_REGISTER_SQL_PACKAGE, (writer) => {
      const args = writer.uint32(tagOf(Rpc.register_sql_package_args)).fork()
      args.uint32(tagOf(PackageArgs.package_name)).string(name)
      for (const [module, sql] of Object.entries(modules)) {
        const modules = args.uint32(tagOf(PackageArgs.modules)).fork()
        modules.uint32(tagOf(SqlModule.name)).string(`${name}.${module}`)
        modules.uint32(tagOf(SqlModule.sql)).string(sql).ldelim()
      }
      args.ldelim()
    })
    const result = this.#decoded(() => replies.flatMap((reply) => reply.messages(Rpc.register_sql_package_result)))
    const error = result.at(-1)?.text(RegisterSqlPackageResult.error)
    if (error) throw new SqlError(readable(error))
  }

  /**
   * Computes all metrics of trace summary specs (Perfetto's `TraceSummarySpec`, in textproto).
   * @throws SqlError if a spec or its SQL is wrong; further queries work
   */
  summarize(specs: readonly string[]): MetricBundle[] {
    const summary = this.#summarize(specs, SummaryFormat.BINARY_PROTOBUF)
    return this.#decoded(() => bundlesOf(summary.bytes(SummaryResult.proto_summary)))
  }

  /** The same as textproto, as trace_processor_shell prints it (`TraceSummary`). */
  summarizeAsText(specs: readonly string[]): string {
    return this.#summarize(specs, SummaryFormat.TEXTPROTO).text(SummaryResult.textproto_summary)
  }

  #summarize(specs: readonly string[], format: SummaryFormat): Message {
    const replies = this.#request(TPM_SUMMARIZE_TRACE, (writer) => {
      const args = writer.uint32(tagOf(Rpc.trace_summary_args)).fork()
      for (const spec of specs) args.uint32(tagOf(SummaryArgs.textproto_specs)).string(spec)
      const computation = args.uint32(tagOf(SummaryArgs.computation_spec)).fork()
      computation
        .uint32(ComputationSpec.run_all_metrics << 3)
        .bool(true)
        .ldelim()
      args
        .uint32(SummaryArgs.output_format << 3)
        .uint32(format)
        .ldelim()
    })
    const result = this.#decoded(() => replies.flatMap((reply) => reply.messages(Rpc.trace_summary_result))).at(-1)
    if (!result) throw this.#misunderstood('an answer to another question')
    const error = result.text(SummaryResult.error)
    if (error) throw new SqlError(readable(error))
    return result
  }

  /** Frees the memory of this instance; every later call throws. May be called twice. */
  close(): void {
    this.#host.close()
  }

  #ask(sql: string): Message[] {
    try {
      const write = (writer: Writer) =>
        writer.uint32(tagOf(Rpc.query_args)).fork().uint32(tagOf(QueryArgs.sql_query)).string(sql).ldelim()
      return this.#request(TPM_QUERY_STREAMING, write, QUERY_STEP)
    } catch (cause) {
      // For such an error, its parser searches beyond the end of the SQL, and aborts.
      if (!/^trace_processor failed.*rewritten_offset/.test((cause as Error).message)) throw cause
      throw new TraceProcessorError(
        'the SQL ends too early, which trace_processor does not survive; open the trace again',
        { cause },
      )
    }
  }

  #append(chunk: Uint8Array): void {
    for (let start = 0; start < chunk.length; start += pieceSize) {
      const piece = chunk.subarray(start, start + pieceSize)
      const replies = this.#request(TPM_APPEND_TRACE_DATA, (writer) => {
        writer.uint32(tagOf(Rpc.append_trace_data)).bytes(piece)
      })
      this.#accept(replies, Rpc.append_result, AppendTraceDataResult.error)
    }
  }

  /** Throws where reading the trace failed. `result` and `error` are the numbers of the fields that report it. */
  #accept(replies: Message[], result: number, error: number): void {
    for (const reply of replies) {
      const text = this.#decoded(() => reply.messages(result))
        .at(-1)
        ?.text(error)
      if (text === undefined) throw this.#misunderstood('an answer to another question')
      const message = `trace_processor cannot read this trace: ${text.trim()}`
      if (text) throw this.#host.giveUp(new TraceProcessorError(message))
    }
  }

  /** Sends one request and returns its answers, at least one. */
  #request(method: TraceProcessorMethod, writeArgs?: (writer: Writer) => void, largestStep?: number): Message[] {
    const writer = Writer.create().uint32(tagOf(Stream.msg)).fork()
    writer.uint32(Rpc.seq << 3).uint32(this.#sent++)
    writer.uint32(Rpc.request << 3).uint32(method)
    writeArgs?.(writer)
    const reply = this.#host.send(writer.ldelim().finish(), largestStep)
    const messages = this.#decoded(() => new Message(reply).messages(Stream.msg))
    for (const message of messages) {
      const [seq, fatalError] = [message.number(Rpc.seq), message.text(Rpc.fatal_error)]
      if (fatalError) throw this.#host.giveUp(new TraceProcessorError(`trace_processor failed: ${fatalError}`))
      if (message.number(Rpc.invalid_request)) throw this.#misunderstood('that a request is unknown')
      if (seq !== this.#received++) throw this.#misunderstood(`answer ${seq} instead of ${this.#received - 1}`)
      if (message.number(Rpc.response) !== method) throw this.#misunderstood('an answer to another question')
    }
    if (messages.length === 0) throw this.#misunderstood('no answer')
    return messages
  }

  #decoded<T>(decode: () => T): T {
    try {
      return decode()
    } catch (cause) {
      throw this.#misunderstood(`a damaged answer: ${(cause as Error).message}`, cause)
    }
  }

  #misunderstood(what: string, cause?: unknown): TraceProcessorError {
    return this.#host.giveUp(new TraceProcessorError(`trace_processor gave ${what}`, { cause }))
  }
}

/** Joins the parts of a table in these results; the first one contains the column names. */
function tableOf(results: Message[]): QueryResult {
  const columns = results.flatMap((result) => result.texts(Result.column_names))
  const batches = results.flatMap((result) => result.messages(Result.batch))
  if (!batches.at(-1)?.number(CellsBatch.is_last_batch)) throw new RangeError('a table without an end')
  const rows: Cell[][] = []
  for (const batch of batches) appendBatch(rows, columns.length, batch)
  return { columns, rows }
}

/** The tag of a length-delimited field: bytes, text, or a message. */
const tagOf = (field: number) => (field << 3) | 2

/** `null` if there is not enough memory for it. */
function imageOf(host: WasmHost): HostImage | null {
  try {
    return host.image()
  } catch {
    return null
  }
}

/**
 * Are these the first bytes of a trace whose first packet contains a single message, as in this library's traces (a track, a clock
 * snapshot)? A line feed alone could also be the first byte of JSON or text.
 */
function beginsWithMessage(head: Uint8Array): boolean {
  const number = (at: number) => {
    const [low = 0, high = 0] = head.subarray(at)
    return low < 0x80 ? { value: low, end: at + 1 } : { value: (low & 0x7f) | (high << 7), end: at + 2 }
  }
  const size = number(1)
  const tag = number(size.end)
  const length = number(tag.end)
  return head[0] === PACKET && (tag.value & 7) === 2 && length.end + length.value === size.end + size.value
}

/** Moves the error itself before its position; trace_processor returns a traceback with names of its own source. */
function readable(error: string): string {
  const lines = error.trimEnd().split('\n')
  if (!lines[0]?.startsWith('Traceback')) return error.trim()
  const end = lines.findLastIndex((line) => line.startsWith(' ')) + 1
  const places = lines
    .slice(1, end)
    .map((line) => line.slice(2).replace(/^File "stdin" line (\d+) col/, 'line $1 column'))
  return [...lines.slice(end), ...places].join('\n')
}
