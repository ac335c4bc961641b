import { Ascii } from '../../../bytes/ascii.ts'
import { Columns } from './columns.ts'
import { key, type Scan } from './scan.ts'

const OURS = key('g2p ')
/** How `bpftrace -f json` wraps a line. */
const JSON_START = key('{"type": "printf", "data": "')
const JSON_END = key('\\n"}')
const encoder = new TextEncoder()
const decoder = new TextDecoder()

/** What each line of our scripts begins with: `g2p switch 5120031417 1`, plain or in JSON (docs/ebpf-format.md). */
export class BpftraceColumns extends Columns {
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

/** Moves to the text of a JSON object, if this is one; false if it holds none. */
export function unwrap(scan: Scan): boolean {
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
    const { type, data } = JSON.parse(json) as { type?: unknown; data?: unknown }
    return type === 'printf' && typeof data === 'string' ? data.replace(/\n$/, '') : undefined
  } catch {
    return undefined
  }
}
