// Output of the bpftrace scripts of native/ebpf/, plain or with `-f json`; docs/reference/ebpf-format.md specifies it:
//
//   Attaching 6 probes...
//   g2p clock boot
//   g2p switch 5120031417 1 4242 120 1 0 120 llama-cli       |swapper/1
//   {"type": "printf", "data": "g2p waking 5120093870 0 911 4242 120 1 0 llama-cli\n"}
//
// Other lines are counted.

import { Ascii } from '../../../bytes/ascii.ts'
import { FormatError } from '../../../errors.ts'
import { parsedJson } from '../../../input/json-bytes.ts'
import { clockNamed } from '../../../model/clock-names.ts'
import type { TraceEvent } from '../../../model/events.ts'
import { issueOf } from '../../../model/issues.ts'
import type { Origin } from '../../common/line-log.ts'
import type { Format, ReadContext } from '../../format.ts'
import { isLlamaType, LlamaLines, type LlamaRecord, type LlamaType } from './llama-lines.ts'
import { Columns, key, Scan } from './scan.ts'
import { type About, type Handler, type SchedEvent, SchedTextLog } from './text-log.ts'

/** Reads a text: see {@link Format.read}. */
export const readBpftrace: Format['read'] = (source, context) => new BpftraceLog(source, 'bpftrace', context).read()

const OURS = key('g2p ')
/** How `bpftrace -f json` wraps a line. */
const JSON_START = key('{"type": "printf", "data": "')
const JSON_END = key('\\n"}')
const encoder = new TextEncoder()
const decoder = new TextDecoder()

/** Columns of our scripts: `g2p switch 5120031417 1`, plain or in JSON (docs/reference/ebpf-format.md). */
class BpftraceColumns extends Columns {
  override read(): boolean {
    const { scan } = this
    if (!unwrap(scan) || !scan.eat(OURS)) return false
    this.nameStart = scan.at
    scan.skipWord()
    this.nameEnd = scan.at
    if (!scan.eatByte(Ascii.Blank) || !scan.nanoseconds() || !scan.eatByte(Ascii.Blank)) return false
    this.cpu = scan.integer()
    return !Number.isNaN(this.cpu) && scan.eatByte(Ascii.Blank)
  }
}

/** Moves to the text in a JSON object, if the line is one; false if the object has none. */
function unwrap(scan: Scan): boolean {
  if (scan.byte !== Ascii.OpenCurly) return true
  const start = scan.at
  const textEnd = scan.end - JSON_END.length
  const isPlain = scan.eat(JSON_START) && scan.isAt(textEnd, JSON_END)
  const backslash = isPlain ? scan.bytes.indexOf(Ascii.Backslash, scan.at) : -1
  if (backslash === textEnd) {
    scan.end = textEnd
    return true
  }
  scan.at = start
  const text = printed(decoder.decode(scan.bytes.subarray(start, scan.end)))
  if (text === undefined) return false
  scan.bytes = encoder.encode(text)
  scan.at = 0
  scan.end = scan.bytes.length
  return true
}

function printed(json: string): string | undefined {
  try {
    const { type, data } = parsedJson(json) as { type?: unknown; data?: unknown }
    return type === 'printf' && typeof data === 'string' ? data.replace(/\n$/, '') : undefined
  } catch {
    return undefined
  }
}

/** Events by which one may be late: bpftrace empties one CPU's buffer after the other. */
const WINDOW = 65_536
/** The first of two command names is padded to so many bytes. */
const COMM_WIDTH = 16
const CLOCK = /^g2p clock (\w+)$/
const FACT = /^g2p fact (\w{1,40}) (.*)$/
const LOST = /^(?:Lost (\d+) events|\{"type": "lost_events", "data": \{"events": (\d+)\}\})$/
const ATTACHED =
  /^(?:Attach(?:ing|ed) (\d+) probes?(?:\.\.\.)?|\{"type": "attached_probes", "data": \{"probes": (\d+)\}\})$/
/** BEGIN and END, which each script has. */
const OWN_PROBES = 2
/** Functions with our uprobes, by script. Some versions of bpftrace ignore a function that is not in the file. */
const FUNCTIONS: Readonly<Record<string, string>> = {
  token: 'llama_decode',
  graph: 'ggml_backend_graph_compute_async',
  op: 'ggml_cpu_extra_compute_forward',
}
/** How many numbers are between the CPU and the text, by type of line. */
const NUMBERS: Readonly<Record<string, number>> = { switch: 5, waking: 5, fork: 3, rename: 2, exit: 2, thread: 2 }

/** Reads the output of our bpftrace scripts. */
class BpftraceLog extends SchedTextLog {
  private readonly numbers: number[] = [0, 0, 0, 0, 0]
  private readonly llama: LlamaLines
  private ourLines = 0
  private otherLines = 0
  private llamaLines = 0
  private probes: number | undefined

  constructor(source: AsyncIterable<Uint8Array>, format: string, context: ReadContext) {
    const scan = new Scan()
    super(source, format, context, scan, new BpftraceColumns(scan), WINDOW)
    this.attributes['tool'] = 'bpftrace'
    this.llama = new LlamaLines(context)
  }

  protected override handlerOf(name: string): Handler | undefined {
    this.ourLines++
    if (isLlamaType(name)) return 'llama'
    if (!Object.hasOwn(NUMBERS, name)) return undefined
    return name === 'thread' ? 'known' : (name as Handler)
  }

  /** `5 2 120 1 llama-cli       |swapper/1`: numbers, then names of commands. */
  protected override readFields(handler: Handler, name: string, origin: Origin): SchedEvent | LlamaRecord | undefined {
    const { scan, numbers, context, comms } = this
    if (handler === 'llama') {
      this.llamaLines++
      const toNs = () => (scan.seconds - origin.high) * 1e9 + (scan.nanos - origin.low)
      return this.llama.read(name as LlamaType, scan, context, this.lines.position, toNs)
    }
    const count = NUMBERS[name]!
    for (let i = 0; i < count; i++) {
      numbers[i] = scan.integer()
      if (Number.isNaN(numbers[i]) || !scan.eatByte(Ascii.Blank)) return undefined
    }
    const { cpu, atNs } = context
    const [a, b, c, d, e] = numbers as [number, number, number, number, number]
    if (handler === 'switch') return this.readComms(a, b, c, d, e)
    const comm = comms.get(scan.bytes, scan.at, scan.end)
    if (handler === 'waking') {
      this.maker.noteWaking()
      const waking = { cpu, atNs, wakerTid: a, tid: b, comm, prio: c, targetCpu: d, isIrq: e === 1 }
      return { kind: 'waking', ...waking }
    }
    if (handler === 'fork') return { kind: 'thread', what: 'fork', atNs, tid: b, tgid: c, comm, parentTid: a }
    return { kind: 'thread', what: handler as 'known' | 'rename' | 'exit', atNs, tid: a, tgid: b, comm, parentTid: -1 }
  }

  protected override readOther(text: string): boolean {
    const { scan, lines } = this
    const lost = LOST.exec(text)
    if (lost) {
      this.issue('lost-records', `bpftrace reports that ${lost[1] ?? lost[2]} were lost`)
      return true
    }
    const attached = ATTACHED.exec(text)
    if (attached) this.probes = Number(attached[1] ?? attached[2])
    scan.bytes = lines.bytes
    scan.at = lines.start
    scan.end = lines.end
    const printed = unwrap(scan) ? this.textFrom(scan.at) : text
    // In JSON, all lines of one printf are one line.
    return printed.split('\n').every((line) => line === '' || this.readOwn(line))
  }

  /** Reads a line of our scripts that is no event; false where it has our prefix but is unknown, or is torn. */
  private readOwn(line: string): boolean {
    const name = CLOCK.exec(line)?.[1]
    const clock = name === undefined ? undefined : clockNamed(name)
    const [, fact, value] = FACT.exec(line) ?? []
    if (fact !== undefined) this.attributes[fact] = value!
    if (name !== undefined && clock === undefined) return false
    if (clock !== undefined) {
      this.clock = clock
      this.attributes['clock_from'] = 'the line "g2p clock" names it'
    }
    const isOurs = clock !== undefined || fact !== undefined
    if (isOurs) this.ourLines++
    else this.otherLines++
    return isOurs || !(line.startsWith('g2p') || this.lines.isTorn)
  }

  protected override finish(): void {
    if (this.ourLines === 0) {
      const hint = 'only what the scripts of ggml2perfetto print can be read: docs/reference/ebpf-format.md'
      throw new FormatError(this.format, { byte: 0 }, 'lines that begin with "g2p"', 'none', hint)
    }
    if (this.llamaLines === 0) this.reportNothing()
    super.finish()
    if (this.otherLines > 0) this.maker.emit({ kind: 'facts', attributes: { other_lines: this.otherLines } })
  }

  /** Reports a script for llama.cpp that saw no call. */
  private reportNothing(): void {
    const { script, traced } = this.attributes
    const wanted = Object.hasOwn(FUNCTIONS, `${script}`) ? FUNCTIONS[`${script}`]! : undefined
    if (wanted === undefined) return
    const file = traced === undefined ? 'the file that was traced' : `${traced}`
    const found = this.probes === OWN_PROBES ? 'no such function there' : 'none'
    const detail = `expected calls of ${wanted} in ${file}, found ${found}`
    this.maker.emit(issueOf('nothing-traced', detail, this.lines.position, 0))
  }

  protected override about(): About {
    Object.assign(this.attributes, this.llama.begin())
    return super.about()
  }

  protected override expand(record: LlamaRecord): readonly TraceEvent[] {
    return this.llama.events(record)
  }

  private readComms(prevTid: number, prevPrio: number, prevState: number, nextTid: number, nextPrio: number) {
    const { scan, comms, context } = this
    const { bytes, at, end } = scan
    const isPadded = bytes[at + COMM_WIDTH] === Ascii.Bar && at + COMM_WIDTH < end
    const bar = isPadded ? at + COMM_WIDTH : bytes.indexOf(Ascii.Bar, at)
    if (bar < at || bar >= end || prevState < 0) return undefined
    let prevEnd = bar
    while (isPadded && prevEnd > at && bytes[prevEnd - 1] === Ascii.Blank) prevEnd--
    const { cpu, atNs } = context
    const prev = { prevTid, prevComm: comms.get(bytes, at, prevEnd), prevPrio, prevState }
    return { kind: 'switch', cpu, atNs, ...prev, nextTid, nextComm: comms.get(bytes, bar + 1, end), nextPrio } as const
  }
}
