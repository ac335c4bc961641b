/**
 * The small operating system that trace_processor's WASM needs: clocks, text output, memory growth. It has no files and no
 * environment: calls for them return the error that the call does not exist.
 */

/** State of the instance that the imports share. */
export interface Guest {
  /** The instance's memory; set after instantiation. */
  memory: WebAssembly.Memory
  /** Bytes the memory may grow to. */
  readonly maxMemory: number
  /** Bytes by which the memory may grow at once: one allocation of more is refused. */
  largestStep: number
  /** The end of its standard output and standard error, which contains the reason of a failure. */
  output: string
  /** True after an allocation was refused. */
  refusedMemory: boolean
}

/** Bytes by which the memory grows. */
export const wasmPage = 65_536
const growthStep = 256 * wasmPage
const ENOSYS = 52
const keptOutput = 4096

type Import = (...args: never[]) => unknown

/** Imports for every function that `module` needs. Those that abort the program throw an `Error` with the reason. */
export function importsFor(module: WebAssembly.Module, guest: Guest): WebAssembly.Imports {
  const known: Record<string, Import> = { ...clocks(guest), ...system(guest), ...endings(guest) }
  const imports: Record<string, Record<string, Import>> = {}
  for (const { module: namespace, name } of WebAssembly.Module.imports(module)) {
    imports[namespace] ??= {}
    imports[namespace][name] = known[name] ?? absent(namespace, name)
  }
  return imports as WebAssembly.Imports
}

/** Linux-like calls report errors as negative numbers, WASI as positive ones; the others are Emscripten's debugging aids. */
function absent(namespace: string, name: string): Import {
  if (namespace.startsWith('wasi')) return () => ENOSYS
  return name.startsWith('__syscall') || name === '_mmap_js' ? () => -ENOSYS : () => 0
}

function clocks(guest: Guest): Record<string, Import> {
  const started = performance.now()
  const now = () => performance.now() - started
  return {
    emscripten_get_now: now,
    emscripten_date_now: () => Date.now(),
    clock_time_get(clock: number, _precision: bigint, result: number) {
      const milliseconds = clock === 0 ? Date.now() : now()
      view(guest).setBigUint64(result, BigInt(Math.round(milliseconds * 1e6)), true)
      return 0
    },
    // The time zone is always UTC, so that a query returns the same result on every machine.
    _tzset_js(timezone: number, daylight: number, standardName: number, daylightName: number) {
      view(guest).setInt32(timezone, 0, true)
      view(guest).setInt32(daylight, 0, true)
      for (const at of [standardName, daylightName]) bytes(guest).set([0x55, 0x54, 0x43, 0], at)
    },
    _gmtime_js: (seconds: bigint, result: number) => writeDate(guest, seconds, result),
    _localtime_js: (seconds: bigint, result: number) => writeDate(guest, seconds, result),
    _timegm_js(tm: number) {
      const [second, minute, hour, day, month, year] = new Int32Array(guest.memory.buffer, tm, 6)
      return BigInt(Date.UTC(year! + 1900, month, day, hour, minute, second)) / 1000n
    },
  }
}

function writeDate(guest: Guest, seconds: bigint, result: number): void {
  const date = new Date(Number(seconds) * 1000)
  const year = date.getUTCFullYear()
  const dayOfYear = Math.floor((date.getTime() - Date.UTC(year, 0, 1)) / 86_400_000)
  const time = [date.getUTCSeconds(), date.getUTCMinutes(), date.getUTCHours()]
  const day = [date.getUTCDate(), date.getUTCMonth(), year - 1900, date.getUTCDay(), dayOfYear]
  const [isDaylightSaving, utcOffset] = [0, 0]
  new Int32Array(guest.memory.buffer, result, 10).set([...time, ...day, isDaylightSaving, utcOffset])
}

function system(guest: Guest): Record<string, Import> {
  return {
    emscripten_get_heap_max: () => guest.maxMemory,
    emscripten_resize_heap: (size: number) => grow(guest, size >>> 0),
    environ_sizes_get(count: number, size: number) {
      view(guest).setUint32(count, 0, true)
      view(guest).setUint32(size, 0, true)
      return 0
    },
    environ_get: () => 0,
    fd_write(_fd: number, vectors: number, count: number, written: number) {
      let total = 0
      for (let at = vectors; at < vectors + count * 8; at += 8) {
        const [start, size] = [view(guest).getUint32(at, true), view(guest).getUint32(at + 4, true)]
        guest.output += new TextDecoder().decode(bytes(guest).subarray(start, start + size))
        total += size
      }
      guest.output = guest.output.slice(-keptOutput)
      view(guest).setUint32(written, total, true)
      return 0
    },
    emscripten_err: (text: number) => {
      guest.output += `${readText(guest, text)}\n`
    },
  }
}

/** Grows the memory to at least `size`; 0 if this is not possible. */
export function grow(guest: Guest, size: number): number {
  const present = guest.memory.buffer.byteLength
  const generous = Math.min(Math.ceil(size / growthStep) * growthStep, guest.maxMemory)
  try {
    if (size > guest.maxMemory || size - present > guest.largestStep) throw new RangeError('the limit is reached')
    if (generous > present) guest.memory.grow(Math.ceil((generous - present) / wasmPage))
    return 1
  } catch {
    guest.refusedMemory = true
    return 0
  }
}

/** The ways in which C++ code aborts. */
function endings(guest: Guest): Record<string, Import> {
  const end = (reason: string) => {
    throw new Error(reason)
  }
  return {
    _abort_js: () => end('it aborted'),
    __assert_fail: (condition: number, file: number, line: number) =>
      end(`assertion failed: ${readText(guest, condition)} (${readText(guest, file)}:${line})`),
    __cxa_throw: () => end('it threw a C++ exception'),
    exit: (code: number) => end(`it exited with ${code}`),
    proc_exit: (code: number) => end(`it exited with ${code}`),
  }
}

const view = (guest: Guest) => new DataView(guest.memory.buffer)
const bytes = (guest: Guest) => new Uint8Array(guest.memory.buffer)

function readText(guest: Guest, start: number): string {
  const memory = bytes(guest)
  return new TextDecoder().decode(memory.subarray(start, memory.indexOf(0, start)))
}
