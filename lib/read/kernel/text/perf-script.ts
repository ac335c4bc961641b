// The text of `perf script`, with whichever fields it was told to print (-F), and its header (--header):
//
//   # clockid: monotonic (1)
//   # reference time: 2026-11-21 16:13:51.384101 = 1795277631.384101 (TOD) = 16528.456065734 (monotonic)
//             perf   415/415   [000] 16528.503456462:       sched:sched_switch: prev_comm=perf … ==> next_comm=bash …
//             bash   418 [001] 16528.504703: PERF_RECORD_COMM: bash:416/418                        --show-task-events
//
// The same events as in ftrace's texts, and perf's own records of threads; call stacks (lines that begin with a tab) are left
// out. The clock is told by the header alone, and there only after `perf record -k`: docs/scheduler.md.

import type { Format } from '../../format.ts'
import { PerfLog } from './perf-log.ts'

const HEAD =
  /^(?:# ========\n# captured on +: |.{0,16} +-?\d+(?:\/-?\d+)? +(?:\[\d{3,}\] +)?(?:[A-Z]{1,3} +)?-?\d+\.(?:\d{6}|\d{9}): +(?:\d+ +)?(?:[\w-]+:\S*: |PERF_RECORD_))/m

export const perfScript: Format = {
  name: 'perf-script',
  title: 'the text of perf script: scheduler events',
  sniff: (head) => HEAD.test(new TextDecoder().decode(head)),
  read: (source, context) => new PerfLog(source, perfScript.name, context).read(),
}
