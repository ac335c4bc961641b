import type { Format } from '../../format.ts'

const HEAD =
  /^(?:# tracer: \w+|cpus=\d+|.{1,80}-\d+ +(?:\( *[\d-]+\) +)?(?:\[\d{3,}\] +(?:[A-Za-z.0-9#]{4,6} +)?|\d+[A-Za-z.0-9#]{4,6} +)\d+(?:\.\d+|us.?)?: +(?:\(\+\d+\) +)?(?!PERF_RECORD_)\w+:(?!\w))/m

export const ftrace: Format = {
  name: 'ftrace',
  title: "ftrace's text (trace, trace_pipe) and trace-cmd report",
  // On MONOTONIC, whichever clock it was recorded on.
  perfetto: { refusal, showsSwitches: true, clockOf: () => 'MONOTONIC' },
  sniff: (head) => HEAD.test(new TextDecoder().decode(head)),
  async *read(source, context) {
    yield* (await import('./ftrace-reader.ts')).readFtrace(source, context)
  },
}

/** A line of ftrace's text that Perfetto's reader accepts. */
// bounded: the head of an input
const PERFETTO_LINE = /-\d+\s+\(?\s?-?\d*\)?\s?\[\d+\]\s*[a-zA-Z0-9.]{0,5}\s+\d+\.\d+:\s+\S+:/
const PERFETTO_SWITCH =
  // bounded: the head of an input
  /-\d+\s+(?:\(\s*(?:\d+|-+)\)\s+)?\[\d+\]\s*[a-zA-Z0-9.]{0,5}\s+\d+\.\d+:\s+sched_switch:\s+prev_comm=.* prev_pid=-?\d+ prev_prio=\d+ prev_state=\S+ (?:==> )?next_comm=/

/** Why Perfetto's reader does not read a text. */
function refusal(head: Uint8Array): string | undefined {
  const text = new TextDecoder().decode(head)
  const firstLine = text.slice(0, text.indexOf('\n') + 1)
  const isKnown = /^(?: |# tracer|cpus=\d|TRACE:)/.test(text) || PERFETTO_LINE.test(firstLine)
  if (isKnown && PERFETTO_SWITCH.test(text)) return undefined
  return (
    'Perfetto reads no sched_switch of this text, which is of another form than the one it knows\nhint: it knows that of ' +
    '`trace` in tracefs without the options latency-format and fields, and that of trace-cmd report -R'
  )
}
