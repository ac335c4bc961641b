import type { PerfettoReading } from '../../format.ts'

/** Perfetto's reader of ftrace's text: on MONOTONIC, whichever clock it was recorded on. */
export const perfettoOfFtrace: PerfettoReading = { refusal, showsSwitches: true, clockOf: () => 'MONOTONIC' }

/** A line of ftrace's text that Perfetto's reader accepts. */
const LINE = /-\d+\s+\(?\s?-?\d*\)?\s?\[\d+\]\s*[a-zA-Z0-9.]{0,5}\s+\d+\.\d+:\s+\S+:/
const SWITCH =
  /-\d+\s+(?:\(\s*(?:\d+|-+)\)\s+)?\[\d+\]\s*[a-zA-Z0-9.]{0,5}\s+\d+\.\d+:\s+sched_switch:\s+prev_comm=.* prev_pid=-?\d+ prev_prio=\d+ prev_state=\S+ (?:==> )?next_comm=/

function refusal(head: Uint8Array): string | undefined {
  const text = new TextDecoder().decode(head)
  const firstLine = text.slice(0, text.indexOf('\n') + 1)
  const isKnown = /^(?: |# tracer|cpus=\d|TRACE:)/.test(text) || LINE.test(firstLine)
  if (isKnown && SWITCH.test(text)) return undefined
  return (
    'Perfetto reads no sched_switch of this text, which is of another form than the one it knows\nhint: it knows that of ' +
    '`trace` in tracefs without the options latency-format and fields, and that of trace-cmd report -R'
  )
}
