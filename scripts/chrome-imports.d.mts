import type { convert } from '../lib/index.ts'
import type { openTrace } from '../lib/sql.ts'

/** What differs between trace_processor's import of a file and our trace of it, see chrome-imports.mjs. */
export interface Compared {
  readonly compared: number
  readonly ours: number
  readonly dropped: number
  readonly wrong: readonly string[]
}

export declare function compareImports(
  bytes: Uint8Array,
  library: { readonly convert: typeof convert; readonly openTrace: typeof openTrace },
): Promise<Compared>
