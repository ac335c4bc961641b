import { UsageError } from '../../errors.ts'
import { isGzip } from '../../input/gunzip.ts'
import { HEAD_BYTES } from '../../read/format.ts'
import { sniffFormat } from '../../read/index.ts'

/** As much of a file as is looked at. */
export const READABLE_BYTES = 1 << 20

/** Tells of a format why Perfetto cannot read this file of it, from its beginning; undefined where it can. */
type Check = (head: Uint8Array) => string | undefined

/**
 * Formats that Perfetto reads, too, on a clock of the kernel. (Its own traces and Chrome's JSON have timelines of their own,
 * which v55 of it cannot relate to others.)
 */
const CHECKS: ReadonlyMap<string, Check> = new Map(Object.entries({ 'perf-data': checkPerfData, ftrace: checkFtrace }))

/** Throws UsageError for a file that Perfetto cannot read, as its beginning tells. */
export function checkReadable(name: string, head: Uint8Array): void {
  const why = isGzip(head) ? `it is compressed by gzip\nhint: gunzip ${name}` : whyNot(name, head)
  if (why !== undefined) throw new UsageError(`${name}: cannot be bundled: ${why}`)
}

function whyNot(name: string, head: Uint8Array): string | undefined {
  const format = sniffFormat(head.subarray(0, HEAD_BYTES))
  if (!format) {
    return (
      "it is neither perf.data nor ftrace's text\nhint: only these does Perfetto read on a clock that can be related to ours; its " +
      "own traces and Chrome's JSON have timelines of their own"
    )
  }
  const check = CHECKS.get(format.name)
  if (check) return check(head)
  return `Perfetto does not read ${format.name} files\nhint: to draw it, give it as an input: ggml2perfetto <log> ${name}`
}

const FILE_HEAD_BYTES = 104
/** Place of the features' bits, and which of them means that records are compressed. */
const FEATURES_AT = 72
const COMPRESSED = 27

function checkPerfData(head: Uint8Array): string | undefined {
  const view = new DataView(head.buffer, head.byteOffset, head.byteLength)
  const headBytes = head.length < 16 ? 0 : view.getUint32(8, true)
  if (headBytes === FILE_HEAD_BYTES && head.length < headBytes) {
    return `expected ${headBytes} bytes of a head, found the end of the file after ${head.length}\nhint: give the whole file`
  }
  if (headBytes !== FILE_HEAD_BYTES) {
    return 'Perfetto does not read what `perf record -o -` writes\nhint: record to a file: perf record -o perf.data'
  }
  if ((view.getUint32(FEATURES_AT, true) & (1 << COMPRESSED)) === 0) return undefined
  return 'Perfetto does not read compressed records\nhint: record without -z, or: perf inject -i <it> -o plain.data'
}

/** As Perfetto's reader takes a line of ftrace's text apart. */
const LINE = /-\d+\s+\(?\s?-?\d*\)?\s?\[\d+\]\s*[a-zA-Z0-9.]{0,5}\s+\d+\.\d+:\s+\S+:/
const SWITCH =
  /-\d+\s+(?:\(\s*(?:\d+|-+)\)\s+)?\[\d+\]\s*[a-zA-Z0-9.]{0,5}\s+\d+\.\d+:\s+sched_switch:\s+prev_comm=.* prev_pid=-?\d+ prev_prio=\d+ prev_state=\S+ (?:==> )?next_comm=/

function checkFtrace(head: Uint8Array): string | undefined {
  const text = new TextDecoder().decode(head)
  const firstLine = text.slice(0, text.indexOf('\n') + 1)
  const isKnown = /^(?: |# tracer|cpus=\d|TRACE:)/.test(text) || LINE.test(firstLine)
  if (isKnown && SWITCH.test(text)) return undefined
  return (
    'Perfetto reads no sched_switch of this text, which is of another form than the one it knows\nhint: it knows that of ' +
    '`trace` in tracefs without the options latency-format and fields, and that of trace-cmd report -R'
  )
}
