import { Ascii } from '../bytes/ascii.ts'
import { type WalkProblem, type WalkResult, walk } from './check.ts'

const DEPTH_MAX = 1000

/**
 * Walks a trace in Chrome's JSON (not compressed) given in chunks cut anywhere: are its strings and brackets closed, and is
 * there nothing after them? trace_processor checks the values between them. Events are the objects of the outermost array, or
 * of an array in the outermost object. Stops at the first problem.
 * @throws only what `source` throws
 */
export function walkJson(source: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): Promise<WalkResult> {
  return walk(source, new JsonWalker())
}

class JsonWalker {
  problem: WalkProblem | undefined
  /** The first bytes of objects and arrays that are open. */
  readonly #open: number[] = []
  #events = 0
  #eventStart = 0
  #bytes = 0
  #inText = false
  #isEscaped = false
  #isOver = false

  push(chunk: Uint8Array): void {
    for (let at = 0; at < chunk.length && !this.problem; at++) {
      const byte = chunk[at]!
      if (!this.#inText) this.#outside(byte, this.#bytes + at)
      else if (this.#isEscaped) this.#isEscaped = false
      else if (byte === Ascii.Backslash) this.#isEscaped = true
      else if (byte === Ascii.Quote) this.#inText = false
      else if (byte < 0x20)
        this.#report('malformed', this.#bytes + at, `a text holds the control character ${hex(byte)}`)
    }
    this.#bytes += chunk.length
  }

  end(): WalkResult {
    // An array without its end is permitted: programs that crash leave such files.
    const mayEnd = this.#isOver || (!this.#inText && this.#open.length === 1 && this.#open[0] === Ascii.OpenSquare)
    if (!this.problem && !mayEnd) {
      const open = this.#open.map((byte) => String.fromCharCode(byte)).join('')
      const what = this.#inText ? 'within a text' : `with ${open || 'nothing'} open`
      this.#report('truncated', this.#eventStart, `the file ends ${what}`)
    }
    const bytes = this.problem && this.problem.kind !== 'truncated' ? this.problem.offset : this.#bytes
    return { packets: this.#events, bytes, problem: this.problem }
  }

  #outside(byte: number, at: number): void {
    if (byte <= 0x20) return
    if (this.#isOver) return this.#report('garbage', at, `the JSON is over, but there is ${hex(byte)}`)
    if (byte === Ascii.Quote) this.#inText = true
    else if (byte === Ascii.OpenCurly || byte === Ascii.OpenSquare) this.#begin(byte, at)
    else if (byte === Ascii.CloseCurly || byte === Ascii.CloseSquare) this.#end(byte, at)
    if (this.#open.length === 0 && !this.#isOver && !this.problem) this.#report('garbage', at, 'expected { or [')
  }

  #begin(byte: number, at: number): void {
    if (this.#isBetweenEvents()) this.#eventStart = at
    if (this.#open.length === DEPTH_MAX) this.#report('malformed', at, `more than ${DEPTH_MAX} brackets are open`)
    this.#open.push(byte)
  }

  #end(byte: number, at: number): void {
    const begin = this.#open.pop()
    if (begin !== byte - 2) {
      return this.#report('malformed', at, `there is ${String.fromCharCode(byte)} where none was opened`)
    }
    this.#isOver = this.#open.length === 0
    if (begin === Ascii.OpenCurly && this.#isBetweenEvents()) {
      this.#events++
      this.#eventStart = at + 1
    }
  }

  #isBetweenEvents(): boolean {
    const { length } = this.#open
    return (
      this.#open[length - 1] === Ascii.OpenSquare &&
      (length === 1 || (length === 2 && this.#open[0] === Ascii.OpenCurly))
    )
  }

  #report(kind: WalkProblem['kind'], offset: number, what: string): void {
    const message = `event ${this.#events}, byte ${offset}: ${what}`
    this.problem = { kind, offset, packet: this.#events, expected: undefined, found: undefined, message }
  }
}

function hex(byte: number): string {
  return `0x${byte.toString(16).padStart(2, '0')}`
}
