import type { Analysis } from '../analyze/analysis.ts'
import { parseAnalysis } from '../analyze/document.ts'
import { joined } from '../bytes/joined.ts'
import { UsageError } from '../errors.ts'
import { chunksOf } from '../input/byte-source.ts'
import { gunzip } from '../input/gunzip.ts'
import type { LogInput } from './inputs.ts'

/**
 * Reads a stored Analysis: its JSON as a text, or an input that contains it, gzip'ed or not. Throws UsageError if it is no Analysis, a newer one, or damaged.
 */
export async function readAnalysis(input: LogInput | string): Promise<Analysis> {
  if (typeof input === 'string') return parseAnalysis(input, 'the Analysis')
  const { name, source } = input
  let broken: string | undefined
  const pieces: Uint8Array[] = []
  const plain = gunzip(chunksOf(source, name), (detail) => {
    broken = detail
  })
  for await (const piece of plain) pieces.push(piece)
  if (broken === undefined) return parseAnalysis(new TextDecoder().decode(joined(pieces)), name)
  throw new UsageError(
    `${name}: cannot be decompressed: ${broken}\nhint: the file was cut or changed after it was compressed`,
  )
}
