import { TraceProcessorError } from './errors.ts'
import { type Guest, grow, importsFor, wasmPage } from './wasm-imports.ts'

/** Largest piece handed over in one call; the instance keeps a buffer of this size. */
const requestSize = 4 << 20

/** Bytes that addresses of 32 bits reach. */
export const memoryLimit = 65_536 * wasmPage

/** An instance's memory between two calls, from which others start. */
export interface HostImage {
  /** Bytes of the whole memory. */
  readonly size: number
  /** Its pages that are not all zeros, by address. */
  readonly pages: ReadonlyMap<number, Uint8Array>
  readonly requestBuffer: number
}

/** Stands for the memory until there is one. */
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
  /** Where requests are put: an address in its memory. */
  requestBuffer: number
}

/**
 * One running instance of trace_processor's WASM: bytes in, bytes out. It stands in for Emscripten's JavaScript, which
 * comes with every build and expects a browser's worker.
 *
 * Once a call fails inside the WASM its memory is in an unknown state, so the instance is given up: the failing call and
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
   * Starts an instance as another one of the same module was.
   * @param maxMemory bytes its memory may grow to, at least the image's
   */
  static async resume(module: WebAssembly.Module, image: HostImage, maxMemory: number): Promise<WasmHost> {
    const host = await WasmHost.#instantiate(module, maxMemory)
    host.#call((running) => {
      const { exports, guest } = running
      exports.emscripten_stack_init()
      host.#takeReplies(running) // the table gives the same index to the first function that it is grown by
      if (!grow(guest, image.size)) throw new RangeError('there is no memory to start from another instance')
      const memory = new Uint8Array(exports.memory.buffer)
      for (const [address, page] of image.pages) memory.set(page, address)
      running.requestBuffer = image.requestBuffer
    })
    return host
  }

  static async #instantiate(module: WebAssembly.Module, maxMemory: number): Promise<WasmHost> {
    const guest: Guest = { memory: noMemory, maxMemory, output: '', refusedMemory: false }
    const instance = await WebAssembly.instantiate(module, importsFor(module, guest)).catch((cause) => {
      throw new TraceProcessorError(`the trace_processor WASM cannot be started: ${messageOf(cause)}`, { cause })
    })
    const exports = instance.exports as unknown as Exports
    if (typeof exports.trace_processor_rpc_init !== 'function')
      throw new TraceProcessorError('this WASM module is not a trace_processor: it exports no trace_processor_rpc_init')
    guest.memory = exports.memory
    return new WasmHost(exports, guest)
  }

  /** Its memory as it is now. Throws TraceProcessorError if it failed or is closed. */
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

  /** Bytes of memory the instance holds now; 0 after `close` or a failure. */
  get memorySize(): number {
    return this.#running?.exports.memory.buffer.byteLength ?? 0
  }

  /**
   * Sends bytes of the request stream and returns the bytes of the reply stream that came back meanwhile.
   * @throws TraceProcessorError if the instance fails, failed before, or is closed
   */
  send(message: Uint8Array): Uint8Array {
    for (let start = 0; start < message.length; start += requestSize) {
      const piece = message.subarray(start, start + requestSize)
      this.#call(({ exports, requestBuffer }) => {
        // Growth replaces the memory's buffer, so a view of it is good for one call only.
        new Uint8Array(exports.memory.buffer).set(piece, requestBuffer)
        exports.trace_processor_on_rpc_request(piece.length)
      })
    }
    const replies = this.#replies
    this.#replies = []
    return joined(replies)
  }

  /** Frees the memory and makes every later call throw. May be called twice. */
  close(): void {
    this.#end ??= new TraceProcessorError('this trace_processor is closed; open the trace again')
    this.#release()
  }

  /** Gives the instance up because of `reason`, which it returns for the caller to throw. */
  giveUp<Reason>(reason: Reason): Reason {
    const { outOfMemory = false } = reason as { outOfMemory?: boolean }
    const message = `this trace_processor is not usable any more (${messageOf(reason)}); open the trace again`
    this.#end ??= new TraceProcessorError(message, { outOfMemory, cause: reason })
    this.#release()
    return reason
  }

  /** Makes a function that takes the instance's replies; returns its place in the table of functions. */
  #takeReplies({ exports, guest }: Running): number {
    // A reply's memory is reused after the call, hence the copy. Without bytes it means "no more replies".
    const onReply = asWasmFunction((start, size) => {
      if (size > 0) this.#replies.push(new Uint8Array(guest.memory.buffer, start >>> 0, size).slice())
    })
    return exports.__indirect_function_table.grow(1, onReply)
  }

  /** Runs code of the instance; whatever it throws ends the instance. */
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

/** Large replies come in pieces. */
function joined(pieces: Uint8Array[]): Uint8Array {
  if (pieces.length === 1) return pieces[0]!
  const whole = new Uint8Array(pieces.reduce((size, piece) => size + piece.length, 0))
  let at = 0
  for (const piece of pieces) {
    whole.set(piece, at)
    at += piece.length
  }
  return whole
}

function explain(guest: Guest, cause: unknown): TraceProcessorError {
  const words = lastWords(guest)
  // Nobody refuses it memory where its addresses, of 32 bits, are used up.
  if (!guest.refusedMemory && !words.includes('Out of memory'))
    return new TraceProcessorError(`trace_processor failed: ${messageOf(cause)}${words}`, { cause })
  const held = Math.round(guest.memory.buffer.byteLength / 2 ** 20)
  const message =
    `trace_processor is out of memory (it holds ${held} MiB ${guest.refusedMemory ? 'and was refused more' : 'of 4096'})\n` +
    'hint: convert less of the log (--tokens 0..9, --detail names), or load the trace into the native trace_processor_shell'
  return new TraceProcessorError(message, { outOfMemory: true, cause })
}

/** The last line it wrote, which before an abort says why; the copies of it between dashed lines are left out. */
function lastWords({ output }: Guest): string {
  const lines = output.split(/[\r\n]+/).filter((line) => line.trim() && !line.startsWith('-----'))
  const line = lines.at(-1)?.replace(/^\[[\d.]+\]\s*/, '')
  return line ? ` (its last words: ${line})` : ''
}

const messageOf = (error: unknown) => (error as Error)?.message ?? String(error)

/**
 * A table of WASM functions takes no plain JavaScript function, so this makes one that was imported and exported again
 * by a module of its own: (module (import "_" "_" (func (param i32 i32))) (export "_" (func 0))).
 */
function asWasmFunction(call: (a: number, b: number) => void): WebAssembly.ExportValue {
  const header = [0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]
  const type = [1, 6, 1, 0x60, 2, 0x7f, 0x7f, 0]
  const imports = [2, 7, 1, 1, 0x5f, 1, 0x5f, 0, 0]
  const exports = [7, 5, 1, 1, 0x5f, 0, 0]
  const module = new WebAssembly.Module(new Uint8Array([...header, ...type, ...imports, ...exports]))
  return new WebAssembly.Instance(module, { _: { _: call } }).exports['_']!
}
