import type { Summary } from '../../analyze/summary/figures.ts'
import { SummaryPass } from '../../analyze/summary/summary.ts'
import { UsageError } from '../../errors.ts'
import { type ByteSource, chunksOf } from '../../input/byte-source.ts'
import { isGzip, peek } from '../../input/gunzip.ts'
import type { Clock, ClocksEvent, InputEvent, TraceEvent } from '../../model/events.ts'
import { Names } from '../../model/names.ts'
import { formatIn } from '../../read/detect.ts'
import { type Format, HEAD_BYTES, type PerfettoReading } from '../../read/format.ts'
import type { Clocks, Joined } from '../clocks/clocks.ts'
import { chained, inverse, type Relation, timeOf } from '../clocks/relation.ts'
import { type BegunInput, begin, type LogInput, type OpenInput, openInputs } from '../inputs.ts'

/** Clocks that a `perfetto_manifest` has names for. */
const MANIFEST_CLOCKS: readonly string[] = ['MONOTONIC', 'MONOTONIC_RAW', 'BOOTTIME', 'REALTIME']
/** Bytes of a file that are checked for whether Perfetto can read it. */
const READABLE_BYTES = 1 << 20

/**
 * A file that Perfetto reads itself, in one archive with our trace. trace_processor assumes a clock for the file; our trace is
 * converted to that clock, under the same name.
 */
export class Bundle {
  /** Name of the file in the archive. */
  readonly path: string
  private readonly pass = new SummaryPass(new Names())
  private how = ''
  /** From the first input to the file; undefined if both have the same clock and origin. */
  private back: Relation | undefined
  /** The first input's origin on the file's clock. */
  private originNs = 0n
  /** The clock that trace_processor assumes for the file. */
  private readonly clock: Clock
  /** Name of the file in messages. */
  readonly name: string

  /** `trace`: name of our trace in the archive. */
  private constructor(
    private readonly file: LogInput,
    private readonly trace: string,
    private readonly reading: PerfettoReading,
    private readonly input: OpenInput,
    private readonly begun: BegunInput,
  ) {
    const { name } = file
    this.name = name
    this.path = memberName(name) === trace ? `bundled-${trace}` : memberName(name)
    const clock = reading.clockOf(begun.first)
    if (clock === undefined) throw unknownClock(name, begun.first)
    this.clock = clock
  }

  /**
   * Begins to read a file, for its clock; `trace`: name of our trace in the archive. Throws UsageError for a file that Perfetto
   * cannot read, or that can be read only once.
   */
  static async open(file: LogInput, trace: string, formats: readonly Format[] = []): Promise<Bundle> {
    const { name, source } = file
    const { head, rest } = await peek(chunksOf(source, name), READABLE_BYTES)
    await rest.return()
    const reading = perfettoReading(name, head, formats)
    const [input] = await openInputs([file], new Names(), { formats }).catch((error) => {
      throw isStream(source) ? onceOnly(name) : error
    })
    try {
      return new Bundle(file, trace, reading, input!, await begin(name, input!.read()))
    } catch (error) {
      await input!.close()
      throw error
    }
  }

  /** Throws UsageError if Perfetto would show the scheduler's switches from both this file and an input. */
  checkSwitches(inputs: readonly BegunInput[]): void {
    const other = inputs.find(({ isOfScheduler }) => isOfScheduler)
    if (!other || !this.reading.showsSwitches) return
    throw new UsageError(
      `${this.name}: cannot be bundled: it contains the scheduler's switches, and so does ${other.name}: each would appear ` +
        'twice\nhint: omit one of them',
    )
  }

  /** Finds the relation of the first input's clock to the file's. Throws UsageError if none is known. */
  async meet(clocks: Clocks, first: Joined): Promise<void> {
    const { relation, batches } = await clocks.joinAhead(this.begun, first)
    for await (const batch of batches) this.pass.take(batch)
    const { clock, originNs } = clocks.reference
    const offsetNs = originNs + BigInt(relation.shiftNs) - this.begun.first.originNs
    this.how = relation.how
    if (clock !== this.clock || offsetNs !== 0n || relation.drift !== 0) this.turn(relation)
  }

  /** The relation of an input to the trace, from its relation to the first input. */
  relation(relation: Relation): Relation {
    return this.back ? chained(relation, this.back) : relation
  }

  /** The trace's clock and origin. */
  reference(first: InputEvent): InputEvent {
    return this.back ? { ...first, clock: this.clock, originNs: this.originNs } : first
  }

  /** Adds the trace's clock to readings of clocks, which the input may record under another name. */
  withOwnReadings(batch: TraceEvent[], input: InputEvent): TraceEvent[] {
    if (!this.back || !batch.some(({ kind }) => kind === 'clocks')) return batch
    return batch.flatMap((event): TraceEvent[] => (event.kind === 'clocks' ? this.readingsOf(event, input) : [event]))
  }

  /** Summary of the file. */
  get summary(): Summary {
    return this.pass.finish()
  }

  /** Closes the file. */
  close(): Promise<void> {
    return this.input.close()
  }

  /** The file's bytes. */
  async *content(): AsyncGenerator<Uint8Array, void> {
    let bytes = 0
    for await (const chunk of chunksOf(this.file.source, this.name)) {
      bytes += chunk.length
      yield chunk
    }
    if (bytes === 0) throw onceOnly(this.name)
  }

  /** The `perfetto_manifest`, which Perfetto reads since v58. */
  async *manifest(): AsyncGenerator<Uint8Array, void> {
    const manifest = {
      version: 1,
      ...(MANIFEST_CLOCKS.includes(this.clock) ? { trace_time: { clock: this.clock, file: this.trace } } : {}),
      files: [{ path: this.trace }, { path: this.path }],
      attributes: { generator: 'ggml2perfetto', 'ggml2perfetto.clock_relation': this.how },
    }
    yield new TextEncoder().encode(`${JSON.stringify({ perfetto_manifest: manifest }, undefined, 2)}\n`)
  }

  /** Converts the origin of the first input, from which the trace's times count, to the file's clock. */
  private turn(relation: Relation): void {
    const back = inverse(relation)
    const zeroNs = timeOf(back, 0)
    this.back = { ...back, shiftNs: back.shiftNs - zeroNs, how: `that of ${this.name}: ${relation.how}` }
    this.originNs = this.begun.first.originNs + BigInt(zeroNs)
  }

  private readingsOf({ kind, readings }: ClocksEvent, input: InputEvent): ClocksEvent[] {
    const own = readings.find(({ clock }) => clock === input.clock)
    if (!own) return []
    const atNs = BigInt(timeOf(this.back!, Number(own.ns - input.originNs)))
    const others = readings.filter(({ clock }) => clock !== this.clock)
    return [{ kind, readings: [{ clock: this.clock, ns: this.originNs + atNs }, ...others] }]
  }
}

/** How Perfetto reads a file with these first bytes. Throws UsageError if it cannot. */
export function perfettoReading(name: string, head: Uint8Array, formats: readonly Format[]): PerfettoReading {
  const refuse = (why: string) => new UsageError(`${name}: cannot be bundled: ${why}`)
  if (isGzip(head)) throw refuse(`it is compressed by gzip\nhint: gunzip ${name}`)
  const format = formatIn(head.subarray(0, HEAD_BYTES), formats)
  if (!format) throw refuse(NEITHER)
  if (!format.perfetto) {
    throw refuse(
      `Perfetto does not read ${format.name} files\nhint: to draw it, give it as an input: ggml2perfetto <log> ${name}`,
    )
  }
  const refusal = format.perfetto.refusal(head.subarray(0, READABLE_BYTES))
  if (refusal !== undefined) throw refuse(refusal)
  return format.perfetto
}

/** Perfetto v55 cannot relate the clocks of its traces and of Chrome's JSON to others. */
const NEITHER =
  "it is neither perf.data nor ftrace's text\nhint: Perfetto can relate only the clocks of these to ours; its own traces and " +
  "Chrome's JSON have separate timelines"

function unknownClock(name: string, { clockSource }: InputEvent): UsageError {
  const own = `clock id ${clockSource}`
  return new UsageError(
    `${name}: cannot be bundled: Perfetto does not know its ${own}\nhint: perf record -k CLOCK_MONOTONIC`,
  )
}

/** Name of a file in an archive: ASCII, without folders, without a leading dot, because Perfetto skips hidden files. */
export function memberName(path: string): string {
  const name = path.replace(/^.*[/\\]/, '').replace(/[^\w@%+=:,.-]/g, '_')
  return (name.startsWith('.') || name === '' ? `_${name}` : name).slice(-99)
}

/** Iterators and streams can be read only once. */
function isStream(source: ByteSource): boolean {
  return typeof source === 'object' && source !== null && ('next' in source || 'getReader' in source)
}

function onceOnly(name: string): UsageError {
  return new UsageError(
    `${name}: cannot be bundled: it must be read twice, first for its clock\nhint: give bytes, a Blob or a file`,
  )
}
