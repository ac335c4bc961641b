import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { UsageError } from '../errors.ts'

/** Relative to `lib/node/` in the sources, and to `dist/` in the package. */
const PLACES = ['../../vendor/trace_processor.wasm', '../vendor/trace_processor.wasm']

let compiled: Promise<WebAssembly.Module> | undefined

/** Google's trace_processor from this package, compiled once per process. Throws UsageError if it is missing. */
export function traceProcessorModule(): Promise<WebAssembly.Module> {
  compiled ??= load()
  return compiled
}

async function load(): Promise<WebAssembly.Module> {
  for (const place of PLACES) {
    const bytes = await readFile(fileURLToPath(new URL(place, import.meta.url))).catch(() => undefined)
    if (bytes) return WebAssembly.compile(bytes as Uint8Array<ArrayBuffer>)
  }
  throw new UsageError(
    'vendor/trace_processor.wasm is missing from the package\nhint: in a clone, run "npm run vendor"',
  )
}
