import { readFileSync } from 'node:fs'
import { TraceProcessor } from '../../lib/query/trace-processor.ts'

let compiled: WebAssembly.Module | undefined

/** The vendored trace_processor, compiled once per test file. */
export const wasm = () => {
  compiled ??= new WebAssembly.Module(readFileSync(new URL('../../vendor/trace_processor.wasm', import.meta.url)))
  return compiled
}

/** A trace_processor with `trace` loaded. */
export const open = (trace: Iterable<Uint8Array>, options?: { maxMemory?: number }): Promise<TraceProcessor> =>
  TraceProcessor.open(wasm(), trace, options)

/** Bytes written in hexadecimal, with blanks between them. */
export const bytes = (hex: string) => Uint8Array.from(hex.split(' '), (byte) => Number.parseInt(byte, 16))

/** Complete packets, put together by hand from the format's definition. */
export const packets = {
  clocks: bytes('0a 14 32 12 0a 06 08 03 10 c0 84 3d 0a 06 08 06 10 c0 84 3d 10 03'),
  process: bytes('0a 1b 40 c0 84 3d d0 03 03 e2 03 11 08 01 1a 0d 08 64 32 09 6c 6c 61 6d 61 2d 63 6c 69'),
  thread: bytes('0a 1c 40 c0 84 3d d0 03 03 e2 03 12 08 02 22 0e 08 64 10 65 2a 08 77 6f 72 6b 65 72 20 30'),
  counter: bytes('0a 19 e2 03 16 08 03 28 02 12 0a 4c 4c 43 20 6d 69 73 73 65 73 42 04 18 02 28 01'),
  sequence: bytes(
    '0a 25 50 01 68 01 da 03 0a d0 03 40 5a 05 58 02 f8 01 03 32 12 0a 08 08 40 10 c0 84 3d 18 01 0a 06 08 03 10 c0 84 3d',
  ),
  begin: bytes('0a 1c 40 f4 03 50 01 62 0d 12 0b 08 01 12 07 4d 55 4c 5f 4d 41 54 5a 06 48 01 50 01 60 00'),
  end: bytes('0a 0d 40 b0 ea 01 50 01 5a 05 48 02 60 d2 09'),
  beginAgain: bytes('0a 0d 40 84 07 50 01 5a 06 48 01 50 01 60 0a'),
  sched: bytes(
    '0a 31 0a 2f 08 00 22 2b 2a 07 73 77 61 70 70 65 72 2a 08 77 6f 72 6b 65 72 20 30 0a 06 d0 87 3d c8 e2 01 12 02 00 01 1a 02 65 00 22 02 78 78 32 02 01 00',
  ),
}

/** A small trace of one operator, one counter, one scheduler switch, and a slice that never ends. */
export const smallTrace = Object.values(packets)

/** `parts` as one array. */
export const joined = (parts: Uint8Array[]): Uint8Array<ArrayBuffer> =>
  new Uint8Array(parts.flatMap((part) => [...part]))

/** `whole` in pieces that end at the given places (in any order). */
export const cutAt = (whole: Uint8Array, places: number[]): Uint8Array[] => {
  const ends = [...new Set(places), whole.length].sort((a, b) => a - b)
  return ends.map((end, index) => whole.subarray(ends[index - 1] ?? 0, end))
}

/** The error that `run` throws or rejects with. */
export const failure = async (run: () => unknown): Promise<Error & { outOfMemory?: boolean }> => {
  try {
    await run()
  } catch (error) {
    return error as Error
  }
  throw new Error('it did not fail')
}
