// Logs of the calls of cuBLAS, cuBLASLt, hipBLASLt and rocBLAS, each alone or several in one file, with lines of the program between them.
//
//     cublas.ts   records of several lines, with a time to 1 s
//     lt.ts       lines of cuBLASLt and hipBLASLt, with a time to 1 s
//     rocm.ts     lines of rocBLAS and of hipBLASLt, without a time
//     calls.ts    what they share: sizes, types, distinct calls

import { LineCursor } from '../../input/line-cursor.ts'
import { BLAS_LIBRARIES, BLAS_TITLES, type BlasLibrary } from '../../model/blas-events.ts'
import { Inferred } from '../../model/events.ts'
import { type IssueCode, issueOf } from '../../model/issues.ts'
import { wholeLines } from '../common/head.ts'
import { containing, contentsOf } from '../common/holdings.ts'
import { LineReader } from '../common/line-reader.ts'
import type { Format } from '../format.ts'
import { CallSet, type Found, merged } from './calls.ts'
import { CublasRecord } from './cublas.ts'
import { readLtLine } from './lt.ts'
import { readRocmLine } from './rocm.ts'

/** Calls from which it is decided whether the log has times. */
const HEAD_CALLS = 256
/** Calls of one second, and calls without a time, are drawn so long after one another. */
const STEP_NS = 1000
const SECOND_NS = 1e9

export const blasLog: Format = {
  name: 'blas-log',
  title: 'calls of cuBLAS, cuBLASLt, hipBLASLt or rocBLAS, as their loggers write them',
  sniff: (head) => wholeLines(head).some(isCall),
  read: (source) => new BlasLog(new LineCursor(source, blasLog.name, true)).batches(),
}

/** Is a line certainly of one of these libraries? */
function isCall(line: string): boolean {
  if (CublasRecord.begin(line) || readLtLine(line)) return true
  return /^(?:\S*\/)?(?:hipblaslt|rocblas)-bench |^rocblas_\w+,|^- \{ ?rocblas_function:/.test(line)
}

interface Timed {
  readonly found: Found
  /** Seconds since 1970 as the local clock showed them; undefined: the line has no time. */
  readonly seconds: number | undefined
}

class BlasLog extends LineReader {
  private readonly calls = new CallSet()
  /** Until the origin is known. */
  private head: Timed[] = []
  private hasBegun = false
  /** Undefined: the log has no times. */
  private firstSecond: number | undefined
  private second = 0
  private inSecond = 0
  private record: CublasRecord | undefined
  /** A line that the next one may complete. */
  private open: Timed | undefined
  private readonly counts = new Map<BlasLibrary, number>()
  private version = ''
  /** Calls of functions that are no products. */
  private others = 0
  private otherLines = 0

  protected override readLine({ text }: LineCursor): void {
    if (this.record?.take(text)) return
    this.endRecord()
    const record = CublasRecord.begin(text)
    if (record) {
      this.record = record
      this.version ||= record.version
      return
    }
    const line = readLtLine(text)
    if (line) this.take(line.found ?? 'other', secondsOf(line.time))
    else {
      const found = readRocmLine(text)
      if (found === undefined && text !== '') this.otherLines++
      this.take(found, undefined)
    }
  }

  private endRecord(): void {
    const { record } = this
    if (!record) return
    this.record = undefined
    this.take(record.finish() ?? 'other', record.time === undefined ? undefined : secondsOf(record.time))
  }

  private take(found: ReturnType<typeof readRocmLine>, seconds: number | undefined): void {
    if (found === undefined) return
    if (found === 'other') this.others++
    else if (found === 'unreadable') {
      this.close()
      this.issue(
        'unreadable-call',
        'expected the sizes m, n and k of a matrix product, found none, or none that are positive',
      )
    } else {
      const both = this.open && merged(this.open.found, found)
      if (both) {
        this.open = { found: both, seconds: this.open?.seconds ?? seconds }
        return
      }
      this.close()
      this.open = { found, seconds }
    }
  }

  /** No line completes the open one. */
  private close(): void {
    const { open } = this
    if (!open) return
    this.open = undefined
    if (this.hasBegun) return this.add(open)
    this.head.push(open)
    if (open.seconds !== undefined || this.head.length >= HEAD_CALLS) this.begin()
  }

  private begin(): void {
    if (this.hasBegun) return
    this.hasBegun = true
    this.firstSecond = this.head.find(({ seconds }) => seconds !== undefined)?.seconds
    const isTimed = this.firstSecond !== undefined
    const times = isTimed
      ? 'local, to 1 s: the time zone is not in the log; within a second only the order is known'
      : 'none in the log: each call is drawn 1 µs after the one before it'
    this.batch.begin({
      kind: 'input',
      format: blasLog.name,
      clock: 'unknown',
      originNs: BigInt(this.firstSecond ?? 0) * 1_000_000_000n,
      times: isTimed ? 'recorded' : 'order',
      clockSource: isTimed ? 'local' : undefined,
      attributes: { times },
      capabilities: { operators: false },
    })
    if (!isTimed && this.head.length > 0)
      this.issue('calls-without-time', 'expected times of the calls, found none in the first of them')
    for (const call of this.head.splice(0)) this.add(call)
  }

  private add({ found, seconds }: Timed): void {
    const { library, facts, count } = found
    const startNs = this.next(seconds)
    const inferred = Inferred.NoEnd | Inferred.Order
    this.batch.add({ kind: 'blas', of: this.calls.of(facts), startNs, endNs: startNs, count, inferred })
    this.counts.set(library, (this.counts.get(library) ?? 0) + count)
  }

  /** The time of the next call, since the origin. Never decreases. */
  private next(seconds: number | undefined): number {
    if (this.firstSecond !== undefined && seconds !== undefined && seconds - this.firstSecond > this.second) {
      this.second = seconds - this.firstSecond
      this.inSecond = 0
    }
    const within = STEP_NS * this.inSecond++
    return this.second * SECOND_NS + (this.firstSecond === undefined ? within : Math.min(within, SECOND_NS - STEP_NS))
  }

  protected override finish(): void {
    this.endRecord()
    this.close()
    this.begin()
    const { batch, counts, version, others, otherLines, lines } = this
    const calls = BLAS_LIBRARIES.filter((library) => counts.has(library)).map(
      (library) => [counts.get(library)!, `call of ${BLAS_TITLES[library]}`] as const,
    )
    const { contents, attributes } = containing(
      contentsOf(calls).replaceAll(/ call of (\S+?)s\b/g, ' calls of $1') || 'no calls',
    )
    const known = { ...(version !== '' && { cublas: version }), ...(otherLines > 0 && { other_lines: otherLines }) }
    batch.add({ kind: 'facts', contents, attributes: { ...known, ...attributes } })
    batch.leftOut.add('calls of functions that are no products', others)
    batch.end(lines)
  }

  private issue(code: IssueCode, detail: string): void {
    this.batch.add(issueOf(code, detail, this.lines.position, this.second * SECOND_NS))
  }
}

/** `2026-05-04 15:08:47`, `2026-09-11T18:39:31`; undefined where it is no time. */
function secondsOf(text: string): number | undefined {
  const ms = Date.parse(`${text.replace(' ', 'T')}Z`)
  return ms >= 0 ? ms / 1000 : undefined
}
