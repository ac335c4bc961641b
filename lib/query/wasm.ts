import { UsageError } from '../errors.ts'

/** Google's trace_processor: its module, its bytes, or the place to load it from. */
export type TraceProcessorWasm = WebAssembly.Module | Uint8Array | ArrayBuffer | URL | string | Response

/** Compiled once per process, by their places. */
export const compiled = new Map<string, Promise<WebAssembly.Module>>()

/**
 * The module of trace_processor; by default from the file of this package, which bundlers that know `new URL(…, import.meta.url)` copy. Throws
 * UsageError where it cannot be loaded.
 */
export async function traceProcessorModule(wasm?: TraceProcessorWasm): Promise<WebAssembly.Module> {
  if (wasm === undefined) return loaded(packaged())
  if (typeof wasm === 'string') return loaded(wasm)
  if ('href' in wasm) return loaded(wasm.href)
  if ('arrayBuffer' in wasm) return compile(await bodyOf(wasm))
  if ('byteLength' in wasm) return compile(wasm)
  return wasm
}

const compile = (bytes: Uint8Array | ArrayBuffer) => WebAssembly.compile(bytes as ArrayBuffer)

function packaged(): string {
  try {
    // The same place relative to lib/query/ in the sources and to dist/chunks/ in the package.
    return new URL('../../vendor/trace_processor.wasm', import.meta.url).href
  } catch (cause) {
    throw missing('', cause) // a bundle that does not know where it is
  }
}

function loaded(place: string): Promise<WebAssembly.Module> {
  const known = compiled.get(place)
  if (known) return known
  const loading = load(place).then(compile)
  compiled.set(place, loading)
  loading.catch(() => compiled.delete(place))
  return loading
}

async function load(place: string): Promise<Uint8Array | ArrayBuffer> {
  try {
    const read = /^file:/.test(place) ? readFile() : undefined
    return await (read ? read(new URL(place)) : bodyOf(await fetch(place)))
  } catch (cause) {
    throw missing(place, cause)
  }
}

async function bodyOf(response: Response): Promise<ArrayBuffer> {
  if (!response.ok) throw new UsageError(`HTTP ${response.status} ${response.statusText}`.trimEnd())
  return response.arrayBuffer()
}

type ReadFile = (path: URL) => Promise<Uint8Array>

/** `process` of Node, Deno and Bun. */
interface Host {
  getBuiltinModule?(name: string): { readonly readFile: ReadFile } | undefined
}

/** Node's, without an import of it: bundles for browsers contain this module, too. */
function readFile(): ReadFile | undefined {
  const host = globalThis as unknown as Readonly<Record<string, Host | undefined>>
  return host['process']?.getBuiltinModule?.('node:fs/promises')?.readFile
}

function missing(place: string, cause: unknown): UsageError {
  const why = (cause as Error).message
  const error = new UsageError(
    `trace_processor.wasm cannot be loaded${place === '' ? '' : ` from ${place}`}: ${why}\n` +
      'hint: openTrace(trace, { wasm }) takes its URL or bytes, those of ggml2perfetto/trace_processor.wasm; in a clone, npm run vendor',
  )
  error.cause = cause
  return error
}
