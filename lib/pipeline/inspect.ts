import { traceStart } from '../bytes/trace-start.ts'
import { checkNames } from '../errors.ts'
import { INSPECT_OPTIONS } from '../generated/option-names.ts'
import { type ByteSource, chunksOf } from '../input/byte-source.ts'
import { peek } from '../input/gunzip.ts'
import type { Replay } from '../input/replay.ts'
import { packingOf, unpackedHead } from '../input/unpack.ts'
import { areEventLines } from '../read/chrome-json/start.ts'
import { isAnalysis } from '../read/documents.ts'
import { HEAD_BYTES } from '../read/format.ts'
import { sniffFormat } from '../read/index.ts'
import type { InputOptions } from './inputs.ts'
import { ProgressCount } from './progress.ts'
import { inTurns, untilAborted } from './turns.ts'

/** An input whose first bytes are known. */
export interface Inspected {
  /** `log`: of a known format; `trace`: Perfetto's packets or Chrome's JSON; `analysis`: a stored Analysis; else `unknown`. */
  readonly kind: 'log' | 'trace' | 'analysis' | 'unknown'
  /** Chrome's JSON and ZIP archives are both logs that can be converted and traces. */
  readonly isTrace: boolean
  /** Compressed by gzip. */
  readonly isZipped: boolean
  /** The first bytes as stored, at most {@link HEAD_BYTES}. */
  readonly head: Uint8Array
  /** The whole input; can be read once. */
  readonly source: Replay<Uint8Array>
}

/**
 * Recognises an input by its first bytes, as it is or packed ({@link unpackedHead}). `signal` and `onProgress` also apply to what is read of
 * {@link Inspected.source} afterwards.
 */
export async function inspect(
  from: ByteSource,
  options: Pick<InputOptions, 'signal' | 'onProgress'> = {},
): Promise<Inspected> {
  checkNames('inspect', options, INSPECT_OPTIONS)
  const { signal, onProgress } = options
  const progress = await ProgressCount.of([{ source: from }], onProgress)
  const read = untilAborted(chunksOf(from, 'input'), signal, (bytes) => progress?.add(bytes))
  const { head, rest: source } = await peek(inTurns(read, signal), HEAD_BYTES)
  // The head is the start of a longer stream: the part that can be unpacked is enough.
  const plain = await unpackedHead(head, HEAD_BYTES)
  // The trace in a page follows its viewer, which is longer than the head; no other page is an input.
  const format = sniffFormat(plain)?.name
  const packing = packingOf(head)
  const isLog = format !== undefined || packing === 'html'
  const looksTrace = looksLikeTrace(plain) && !areEventLines(plain)
  return {
    kind: isLog ? 'log' : looksTrace ? 'trace' : isAnalysis(plain) ? 'analysis' : 'unknown',
    isTrace: (format === 'chrome-json' && !areEventLines(plain)) || packing === 'zip' || looksTrace,
    isZipped: packing === 'gzip',
    head,
    source,
  }
}

/** Packets of Perfetto; or Chrome's JSON: an object with `traceEvents`, or an array of events, each of which has a phase. */
function looksLikeTrace(head: Uint8Array): boolean {
  const start = traceStart(head)
  if (start !== 'json') return start === 'perfetto'
  return /"(traceEvents|ph)"\s*:/.test(new TextDecoder('latin1').decode(head))
}
