import { sha256 } from '@noble/hashes/sha2.js'
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js'
import { UsageError } from '../../errors.ts'
import { chunksOf, rangeOf } from '../../input/byte-source.ts'
import { gunzip } from '../../input/gunzip.ts'
import type { LogInput } from '../inputs.ts'

/** Hexadecimal digits of a trace id: 128 bits. */
const DIGITS = 32

/**
 * The id of a run by the bytes of its logs, as the command `export` has it: the first 128 bits of the SHA-256 of the log, decompressed; of
 * several logs, of their hashes in rising order. The logs are streamed, and read again by {@link tablesOf}: sources are bytes, a `Blob`,
 * a `File`, or others with a method `range`. Throws UsageError for a stream, which can be read once only, and for no log.
 */
export async function traceIdOfInputs(inputs: LogInput | readonly LogInput[]): Promise<string> {
  const hashes: string[] = []
  for (const { name, source } of [inputs].flat() as readonly LogInput[]) {
    if (!rangeOf(source))
      throw new UsageError(
        `${name}: expected bytes, a Blob or a File, which are read again for the tables, found a stream\nhint: read it into a Blob, or give a traceId`,
      )
    const hash = sha256.create()
    for await (const chunk of gunzip(chunksOf(source, name), () => undefined)) hash.update(chunk)
    hashes.push(bytesToHex(hash.digest()))
  }
  const [first] = hashes
  if (first === undefined) throw new UsageError('no input: there is nothing to export')
  const whole = hashes.length === 1 ? first : bytesToHex(sha256(utf8ToBytes(hashes.sort().join(''))))
  return whole.slice(0, DIGITS)
}
