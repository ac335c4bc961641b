import type { Analysis } from '../analyze/analysis.ts'
import { parseAnalysis } from '../analyze/document.ts'
import { joined } from '../bytes/joined.ts'
import { UsageError } from '../errors.ts'
import { chunksOf } from '../input/byte-source.ts'
import { unpack } from '../input/unpack.ts'
import { Unpacked } from '../input/unpacked.ts'
import { size } from '../model/units.ts'
import type { LogInput } from './inputs.ts'

/** One of a run of 50 000 calls with all series has some 200 MB. */
const BYTES_MAX = 1 << 28

/**
 * Reads a stored Analysis: its JSON as a text, or an input that contains it, packed or not. Throws UsageError if it is no Analysis, a newer one, or damaged.
 */
export async function readAnalysis(input: LogInput | string): Promise<Analysis> {
  if (typeof input === 'string') return parseAnalysis(input, 'the Analysis')
  const { name, source } = input
  const found = new Unpacked()
  const pieces: Uint8Array[] = []
  let bytes = 0
  for await (const piece of unpack(chunksOf(source, name), found)) {
    pieces.push(piece)
    bytes += piece.length
    if (bytes > BYTES_MAX)
      throw new UsageError(
        `${name}: expected an Analysis of at most ${size(BYTES_MAX)}, found more\nhint: stats without --series`,
      )
  }
  if (!found.broken) return parseAnalysis(new TextDecoder().decode(joined(pieces)), name)
  const { detail, hint = 'the file was cut or changed after it was compressed' } = found.broken
  throw new UsageError(`${name}: cannot be decompressed: ${detail}\nhint: ${hint}`)
}
