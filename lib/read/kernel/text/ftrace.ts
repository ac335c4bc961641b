// ftrace's text: what `trace` and `trace_pipe` of tracefs hold, whichever options are set, and `trace-cmd report`:
//
//   # entries-in-buffer/entries-written: 401/401   #P:2
//   #           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
//             bash-31384   [001] d..2. 16397.032913: sched_waking: comm=cat pid=31316 prio=120 target_cpu=000
//             bash-31384   (  31384) [001] 16397.032915: sched_switch: prev_comm=bash … ==> next_comm=cat …      record-tgid
//       bash-31384     1d..2. 24956us+: sched_switch: …                                                latency-format
//   CPU:0 [LOST 123 EVENTS]
//
// sched_switch, sched_waking (sched_wakeup where there is none), sched_process_fork, _exec, _exit, task_rename are read, others
// are counted. Times are microseconds (`trace-cmd report -t`: nanoseconds) of a clock that the text does not name, but by markers:
// docs/scheduler.md.

import type { Format } from '../../format.ts'
import { FtraceLog } from './ftrace-log.ts'
import { perfettoOfFtrace } from './perfetto.ts'

const HEAD =
  /^(?:# tracer: \w+|cpus=\d+|.{1,80}-\d+ +(?:\( *[\d-]+\) +)?(?:\[\d{3,}\] +(?:[A-Za-z.0-9#]{4,6} +)?|\d+[A-Za-z.0-9#]{4,6} +)\d+(?:\.\d+|us.?)?: +(?:\(\+\d+\) +)?(?!PERF_RECORD_)\w+:(?!\w))/m

export const ftrace: Format = {
  name: 'ftrace',
  title: "ftrace's text (trace, trace_pipe) and trace-cmd report",
  perfetto: perfettoOfFtrace,
  sniff: (head) => HEAD.test(new TextDecoder().decode(head)),
  read: (source, context) => new FtraceLog(source, ftrace.name, context).read(),
}
