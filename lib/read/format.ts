import type { ByteRange, SizeBeside } from '../input/byte-source.ts'
import type { Definitions } from '../model/definitions.ts'
import type { Clock, InputEvent, TraceEvent } from '../model/events.ts'
import type { Names } from '../model/names.ts'
import type { OpTable } from '../model/op-tables.ts'

/** What a reader is handed beside the bytes. */
export interface ReadContext {
  /** Where the reader interns its texts. */
  readonly names: Names
  /** The op table the user chose; readers of logs that carry op numbers infer one otherwise. */
  readonly opTable?: OpTable | undefined
  /** What companions of the input tell of the tensors and buffers in it. */
  readonly definitions?: Definitions | undefined
  /**
   * Any part of the input at any time, where it is plain bytes, a blob or a file that is not compressed: for formats
   * that have at their end what is needed to read their start.
   */
  readonly range?: ByteRange | undefined
  /** The sizes of files beside the input, where that is known. */
  readonly beside?: SizeBeside | undefined
  /** The whole input once more, decompressed, where it is compressed and can be read again. */
  readonly again?: (() => AsyncIterable<Uint8Array>) | undefined
  /** Arguments are wanted that profilers keep their own books by, too. */
  readonly everything?: boolean | undefined
  /** Calls into the operating system's libraries are wanted, too: there may be more of them than of all others. */
  readonly osRuntime?: boolean | undefined
}

/** One input format: one file in `lib/read/`, one line in `lib/read/index.ts`. */
export interface Format {
  /** What `--from` takes and what every error message starts with. */
  readonly name: string
  /** In words, for `--help` and for the list of known formats. */
  readonly title: string
  /**
   * Such files go with a log: what they define is handed to the reader of the log, and what they tell is drawn with it.
   */
  readonly isCompanion?: boolean
  /** How Perfetto itself reads such files, where it does, and on a clock of the kernel. */
  readonly perfetto?: PerfettoReading
  /** Is `head` (at most {@link HEAD_BYTES}, less for a shorter input) the start of such a file? Pure; never throws. */
  sniff(head: Uint8Array): boolean
  /**
   * Decodes the input, a batch per chunk, in file order; the first event is the {@link InputEvent}. How the input is
   * cut into chunks changes nothing but the batches. Throws FormatError where it cannot go on.
   */
  read(source: AsyncIterable<Uint8Array>, context: ReadContext): AsyncGenerator<TraceEvent[]>
}

/** How Perfetto reads files of a format. */
export interface PerfettoReading {
  /** Why it cannot read this file, from the file's first MiB; undefined where it can. */
  refusal(head: Uint8Array): string | undefined
  /** Does it show the scheduler's switches from it? */
  readonly showsSwitches: boolean
  /** The clock that it takes the times to be on; undefined where it does not know the file's clock. */
  clockOf(input: InputEvent): Clock | undefined
}

/** How much of the start of an input detection sees, in bytes. */
export const HEAD_BYTES = 4096
