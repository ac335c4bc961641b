import { joined } from '../bytes/joined.ts'
import { TraceProcessorError } from './errors.ts'
import { type Guest, grow, importsFor, wasmPage } from './wasm-imports.ts'

/** Largest piece passed in one call; the instance keeps a buffer of this size. */
const requestSize = 4 << 20

/** Bytes that 32-bit addresses can reach. */
export const memoryLimit = 65_536 * wasmPage

/** An instance's memory between two calls, from which other instances start. */
export interface HostImage {
  /** Bytes of the whole memory. */
  readonly size: number
  /** Its pages that are not all zero, by address. */
  readonly pages: ReadonlyMap<number, Uint8Array>
  readonly requestBuffer: number
}

/** Used as the memory until the real one exists. */
const noMemory = { buffer: new ArrayBuffer(0), grow: () => 0 } as unknown as WebAssembly.Memory

interface Exports {
  readonly memory: WebAssembly.Memory
  readonly __indirect_function_table: WebAssembly.Table
  emscripten_stack_init(): void
  __wasm_call_ctors(): void
  trace_processor_rpc_init(onReply: number, requestSize: number): number
  trace_processor_on_rpc_request(size: number): void
}

interface Running {
  readonly exports: Exports
  readonly guest: Guest
  /** Address of the buffer for requests. */
  requestBuffer: number
}

/**
 * One running instance of trace_processor's WASM: bytes in, bytes out. It replaces Emscripten's JavaScript, which
 * differs in every build and requires a browser's worker.
 *
 * After a failure inside the WASM, its memory is in an unknown state, so the instance is abandoned: the failing call and
 * every later one throw.
 */
export class WasmHost {
  #running: Running | undefined
  #replies: Uint8Array[] = []
  #end: TraceProcessorError | undefined

  private constructor(exports: Exports, guest: Guest) {
    this.#running = { exports, guest, requestBuffer: 0 }
  }

  /**
   * Starts an instance.
   * @param maxMemory bytes its memory may grow to, at most 4 GiB
   * @throws TraceProcessorError if the module is not a trace_processor or cannot start
   */
  static async start(module: WebAssembly.Module, maxMemory = memoryLimit): Promise<WasmHost> {
    const host = await WasmHost.#instantiate(module, maxMemory)
    host.#call((running) => {
      const { exports } = running
      exports.emscripten_stack_init()
      exports.__wasm_call_ctors()
      running.requestBuffer = exports.trace_processor_rpc_init(host.#takeReplies(running), requestSize) >>> 0
    })
    return host
  }

  /**
   * Starts an instance in the state of another one of the same module.
   * @param maxMemory bytes its memory may grow to, at least the image's
   */
  static async resume(module: WebAssembly.Module, image: HostImage, maxMemory: number): Promise<WasmHost> {
    const host = await WasmHost.#instantiate(module, maxMemory)
    host.#call((running) => {
      const { exports, guest } = running
      exports.emscripten_stack_init()
      host.#takeReplies(running) // the first function added to the table gets the same index
      if (!grow(guest, image.size)) throw new RangeError('there is no memory to start from another instance')
      const memory = new Uint8Array(exports.memory.buffer)
      for (const [address, page] of image.pages) memory.set(page, address)
      running.requestBuffer = image.requestBuffer
    })
    return host
  }

  static async #instantiate(module: WebAssembly.Module, maxMemory: number): Promise<WasmHost> {
    const guest: Guest = { memory: noMemory, maxMemory, largestStep: Infinity, output: '', refusedMemory: false }
    const instance = await WebAssembly.instantiate(module, importsFor(module, guest)).catch((cause) => {
      throw new TraceProcessorError(`the trace_processor WASM cannot be started: ${messageOf(cause)}`, { cause })
    })
    const exports = instance.exports as unknown as Exports
    if (typeof exports.trace_processor_rpc_init !== 'function')
      throw new TraceProcessorError('this WASM module is not a trace_processor: it exports no trace_processor_rpc_init')
    guest.memory = exports.memory
    return new WasmHost(exports, guest)
  }

  /** A copy of its current memory. Throws TraceProcessorError if it failed or is closed. */
  image(): HostImage {
    if (!this.#running) throw this.#end
    const { exports, requestBuffer } = this.#running
    const { buffer } = exports.memory
    const pages = new Map<number, Uint8Array>()
    for (let address = 0; address < buffer.byteLength; address += wasmPage)
      if (!isZero(new Int32Array(buffer, address, wasmPage / 4)))
        pages.set(address, new Uint8Array(buffer, address, wasmPage).slice())
    return { size: buffer.byteLength, pages, requestBuffer }
  }

  /** Bytes of memory that the instance uses now; 0 after `close` or a failure. */
  get memorySize(): number {
    return this.#running?.exports.memory.buffer.byteLength ?? 0
  }

  /**
   * Sends bytes of the request stream and returns the resulting bytes of the reply stream. `largestStep`: bytes by which the memory may grow at once.
   * @throws TraceProcessorError if the instance fails, failed before, or is closed
   */
  send(message: Uint8Array, largestStep = Infinity): Uint8Array {
    if (this.#running) this.#running.guest.largestStep = largestStep
    for (let start = 0; start < message.length; start += requestSize) {
      const piece = message.subarray(start, start + requestSize)
      this.#call(({ exports, requestBuffer }) => {
        // Growth replaces the memory's buffer, so a view of it is valid for one call only.
        new Uint8Array(exports.memory.buffer).set(piece, requestBuffer)
        exports.trace_processor_on_rpc_request(piece.length)
      })
    }
    const replies = this.#replies // large ones arrive in pieces
    this.#replies = []
    return joined(replies)
  }

  /** Was memory refused in the last call, which continued without it? */
  get refusedMemory(): boolean {
    return this.#running?.guest.refusedMemory ?? false
  }

  /** Frees the memory and makes every later call throw. May be called twice. */
  close(): void {
    this.#end ??= new TraceProcessorError('this trace_processor is closed; open the trace again')
    this.#release()
  }

  /** Abandons the instance because of `reason`, and returns that for the caller to throw. */
  giveUp<Reason>(reason: Reason): Reason {
    const { outOfMemory = false } = reason as { outOfMemory?: boolean }
    const message = `this trace_processor is not usable any more (${messageOf(reason)}); open the trace again`
    this.#end ??= new TraceProcessorError(message, { outOfMemory, cause: reason })
    this.#release()
    return reason
  }

  /** Makes a function that receives the instance's replies; returns its index in the table of functions. */
  #takeReplies({ exports, guest }: Running): number {
    // The memory of a reply is reused after the call, so it is copied. A reply of 0 bytes means "no more replies".
    const onReply = asWasmFunction((start, size) => {
      if (size > 0) this.#replies.push(new Uint8Array(guest.memory.buffer, start >>> 0, size).slice())
    })
    return exports.__indirect_function_table.grow(1, onReply)
  }

  /** Runs code of the instance; an exception ends the instance. */
  #call(run: (running: Running) => void): void {
    const running = this.#running
    if (!running) throw this.#end
    running.guest.refusedMemory = false
    try {
      run(running)
    } catch (cause) {
      throw this.giveUp(explain(running.guest, cause))
    }
  }

  #release(): void {
    this.#running = undefined
    this.#replies = []
  }
}

function isZero(words: Int32Array): boolean {
  for (let at = 0; at < words.length; at++) if (words[at] !== 0) return false
  return true
}

function explain(guest: Guest, cause: unknown): TraceProcessorError {
  const words = lastWords(guest)
  // If all 32-bit addresses are in use, no allocation is refused explicitly.
  if (!guest.refusedMemory && !words.includes('Out of memory'))
    return new TraceProcessorError(`trace_processor failed: ${messageOf(cause)}${words}`, { cause })
  if (guest.largestStep < Infinity && guest.refusedMemory && guest.memory.buffer.byteLength < guest.maxMemory / 2) {
    const most = `more than ${guest.largestStep / 2 ** 20} MiB at once`
    const message = `the query needs ${most}, for a value, a row or a table\nhint: select less of it (substr, limit)`
    return new TraceProcessorError(message, { outOfMemory: true, cause })
  }
  const held = Math.round(guest.memory.buffer.byteLength / 2 ** 20)
  const message =
    `trace_processor is out of memory (it holds ${held} MiB ${guest.refusedMemory ? 'and was refused more' : 'of 4096'})\n` +
    'hint: convert less of the log (--tokens 0..9, --detail names), or load the trace into the native trace_processor_shell'
  return new TraceProcessorError(message, { outOfMemory: true, cause })
}

/** The last line of its output, which before an abort contains the reason; omits the copies between dashed lines. */
function lastWords({ output }: Guest): string {
  const lines = output.split(/[\r\n]+/).filter((line) => line.trim() && !line.startsWith('-----'))
  const line = lines.at(-1)?.replace(/^\[[\d.]+\]\s*/, '')
  return line ? ` (its last words: ${line})` : ''
}

const messageOf = (error: unknown) => (error as Error)?.message ?? String(error)

/**
 * A table of WASM functions does not accept a plain JavaScript function. So this wraps it in a small module that imports and
 * exports it: (module (import "_" "_" (func (param i32 i32))) (export "_" (func 0))).
 */
function asWasmFunction(call: (a: number, b: number) => void): WebAssembly.ExportValue {
  const header = [0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]
  const type = [1, 6, 1, 0x60, 2, 0x7f, 0x7f, 0]
  const imports = [2, 7, 1, 1, 0x5f, 1, 0x5f, 0, 0]
  const exports = [7, 5, 1, 1, 0x5f, 0, 0]
  const module = new WebAssembly.Module(new Uint8Array([...header, ...type, ...imports, ...exports]))
  return new WebAssembly.Instance(module, { _: { _: call } }).exports['_']!
}
