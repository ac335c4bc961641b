// ProfInfer's scheduler log (ktrace_*.txt, written by artifact/Linux/trace_kernel.py): sched_switch and sched_wakeup of
// the traced threads, as each CPU's buffer was emptied, so not sorted. The last line has no line break.
//
//   Children PIDs are: 4242,4243
//   3917038898440 [1] sched_wakeup: 4243 llama-cli
//   3917038901200 [1] sched_switch: [llama-cli 4242 120 0] => [kworker/1:2 77 120]
//
//   ns of CLOCK_MONOTONIC, [CPU], [comm tid priority state] => [comm tid priority]
//   state  as the kernel prints it: 0 (or R+, 256) = preempted, still runnable
//
// A build with kprobes puts the parent's id behind each tid. Switches between threads that are not traced are left out.

import type { Format } from '../format.ts'
import { KtraceLog } from './ktrace-log.ts'

const LINE = /^(?:Children PIDs are: ?\d|\d+ \[\d+\] sched_(?:switch: \[|wakeup: \d))/m

export const profinferKtrace: Format = {
  name: 'profinfer-ktrace',
  title: "ProfInfer's ktrace text: sched_switch and sched_wakeup of the traced threads",
  sniff: (head) => LINE.test(new TextDecoder().decode(head)),
  read: (source, context) => new KtraceLog(source, profinferKtrace.name, context).read(),
}
