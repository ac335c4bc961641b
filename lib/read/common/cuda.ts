/** CUpti_ActivityMemcpyKind, with the names in nsys's reports. */
const COPY_KINDS: Readonly<Record<number, string>> = {
  1: 'Host-to-Device',
  2: 'Device-to-Host',
  3: 'Host-to-Array',
  4: 'Array-to-Host',
  5: 'Array-to-Array',
  6: 'Array-to-Device',
  7: 'Device-to-Array',
  8: 'Device-to-Device',
  9: 'Host-to-Host',
  10: 'Peer-to-Peer',
  11: 'Unified Host-to-Device',
  12: 'Unified Device-to-Host',
  13: 'Unified Device-to-Device',
}

/** Kinds from this one on are migrations of unified memory. */
export const UNIFIED_FROM = 11

/** The name of a copy of this kind. */
export const copyName = (kind: number): string => `[CUDA memcpy ${COPY_KINDS[kind] ?? 'Unknown'}]`
/** The name of a fill. */
export const FILL_NAME = '[CUDA memset]'

/** `mul_mat_q` of `void mul_mat_q<2, 64>(float *)`, without namespaces. */
export function shortKernelName(signature: string): string {
  const base = signature.replace(/^(?:static )?void /, '').replace(/[<([].*/s, '')
  return base.replace(/^.*::/s, '') || signature
}
