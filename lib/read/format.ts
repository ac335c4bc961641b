import type { ByteRange, SizeBeside } from '../input/byte-source.ts'
import type { Definitions } from '../model/definitions.ts'
import type { Clock, InputEvent, TraceEvent } from '../model/events.ts'
import type { Names } from '../model/names.ts'
import type { OpTable } from '../model/op-tables.ts'

/** Parameters of a reader, in addition to the bytes. */
export interface ReadContext {
  /** The reader interns its texts here. */
  readonly names: Names
  /** The op table that the user chose; without it, readers of logs with op numbers infer one. */
  readonly opTable?: OpTable | undefined
  /** Tensors and buffers of the input that its companions define. */
  readonly definitions?: Definitions | undefined
  /**
   * Random access, where the input is plain bytes, a blob or a file that is not compressed: for formats whose start
   * cannot be read without their end.
   */
  readonly range?: ByteRange | undefined
  /** Sizes of files next to the input, where the input is a file. */
  readonly beside?: SizeBeside | undefined
  /** The whole input again, decompressed, where it is compressed and can be read twice. */
  readonly again?: (() => AsyncIterable<Uint8Array>) | undefined
  /** Include arguments that only the profiler itself uses. */
  readonly everything?: boolean | undefined
  /** Include calls into the operating system's libraries: they may outnumber all others. */
  readonly osRuntime?: boolean | undefined
}

/** One input format: a line of `lib/read/index.ts`. */
export interface Format {
  /** The value of `--from`, and the start of every error message. */
  readonly name: string
  /** A phrase for `--help` and for the list of known formats. */
  readonly title: string
  /**
   * Such files accompany a log: the reader of the log gets their definitions, and their events are drawn with the log's.
   */
  readonly isCompanion?: boolean
  /** How Perfetto itself reads such files, where it does so on a clock of the kernel. Of built-in formats only. */
  readonly perfetto?: PerfettoReading
  /** Is `head` (at most {@link HEAD_BYTES}, less for a shorter input) the start of such a file? Pure; never throws. */
  sniff(head: Uint8Array): boolean
  /**
   * Decodes the input, a batch per chunk, in file order; the first event is the {@link InputEvent}. How the input is
   * cut into chunks affects only the batches. Throws FormatError where it cannot continue.
   */
  read(source: AsyncIterable<Uint8Array>, context: ReadContext): AsyncGenerator<TraceEvent[]>
}

/** How Perfetto reads files of a format. */
export interface PerfettoReading {
  /** Why Perfetto cannot read this file, from its first MiB; undefined where it can. */
  refusal(head: Uint8Array): string | undefined
  /** Does Perfetto show the scheduler's switches from such a file? */
  readonly showsSwitches: boolean
  /** The clock that Perfetto assumes for the times; undefined where it does not know the file's clock. */
  clockOf(input: InputEvent): Clock | undefined
}

/** Bytes at the start of an input that detection sees. */
export const HEAD_BYTES = 4096
