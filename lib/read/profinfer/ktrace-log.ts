import { LineLog, type Origin } from '../common/line-log.ts'
import type { ReadContext } from '../format.ts'
import { SchedStates } from './sched-states.ts'

const TRACED = /^Children PIDs are: *(\d+(?: *, *\d+)*) *$/
const STAMP = /^\d{1,20}(?= \[)/
const SWITCH = /^(\d{1,20}) \[(\d{1,5})\] sched_switch: \[(.*)\] => \[(.*)\]$/
const WAKEUP = /^(\d{1,20}) \[(\d{1,5})\] sched_wakeup: (\d{1,10}) /
/** Bytes at a line's start that hold its time. */
const STAMP_BYTES = 32
const FORMS = '"<ns> [<cpu>] sched_switch: […] => […]" or "<ns> [<cpu>] sched_wakeup: <tid> <comm>"'

/** Reads ProfInfer's `ktrace` text. */
export class KtraceLog extends LineLog {
  private readonly states: SchedStates

  constructor(source: AsyncIterable<Uint8Array>, format: string, context: ReadContext) {
    const states = new SchedStates(format, context)
    super(source, format, states)
    this.states = states
  }

  protected override readHead(): boolean {
    return true
  }

  protected override stampOf(bytes: Uint8Array, start: number, end: number): bigint | undefined {
    const stamp = STAMP.exec(decoder.decode(bytes.subarray(start, Math.min(end, start + STAMP_BYTES))))
    return stamp ? BigInt(stamp[0]) : undefined
  }

  protected override readLine(origin: Origin): void {
    const { lines, states } = this
    const text = decoder.decode(lines.bytes.subarray(lines.start, lines.end))
    const row = SWITCH.exec(text) ?? WAKEUP.exec(text)
    if (!row) {
      const traced = TRACED.exec(text)
      if (traced) states.trace(traced[1]!.split(',').map(Number))
      else this.reject('unreadable-row', `expected ${FORMS}, found "${printable(text)}"`)
      return
    }
    const [, stamp, cpu, first, next] = row as unknown as [string, string, string, string, string | undefined]
    const atNs = (Number(stamp.slice(0, -9)) - origin.high) * 1e9 + (Number(stamp.slice(-9)) - origin.low)
    if (!this.believes(atNs)) return
    const at = { byte: lines.offset, line: lines.line }
    const what = next === undefined ? { woken: Number(first), prev: '', next: '' } : { woken: -1, prev: first, next }
    states.add({ atNs, at, cpu: Number(cpu), ...what })
  }
}

/** The start of a line, for a message. */
function printable(text: string): string {
  return text.slice(0, 60).replace(/[^\x20-\x7e]/g, '.')
}

const decoder = new TextDecoder()
