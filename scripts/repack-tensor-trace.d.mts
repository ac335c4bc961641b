/** See repack-tensor-trace.mjs. */
export function repack(log: Uint8Array, bytes: 256 | 128 | 64): Uint8Array
