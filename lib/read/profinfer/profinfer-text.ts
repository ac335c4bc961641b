// ProfInfer's older text: one line per probe hit, not sorted, each cell with its name before it (its writer is still in
// artifact/Linux/trace_llama.py, commented out). The last line has no line break.
//
//   ts:3917038898440,func:ggml_compute_forward,pos:start,pid:11685,op:40,cpu:1,name:embd,[parm_addr:…,
//   first_src_addr:…,second_src_addr:…,ne0:…,src1_ne0:…,src2_ne0:…,ne1:…,…,src2_ne3:…,][guid:…,][pmc:…,]
//
//   ts    ns, CLOCK_MONOTONIC        pid   the thread id (sic)
//   src1, src2  the first and the second source     guid  of graphs' starts only     rest as in the CSV

import type { Format } from '../format.ts'
import { TEXT } from './layouts.ts'
import { RowLog } from './row-log.ts'

/** A line with a time, a function, an edge and a thread, in any order. */
const LINE = /^(?=[^\n]*\bts:\d)(?=[^\n]*\bfunc:\w)(?=[^\n]*\bpos:(?:start|end)\b)(?=[^\n]*\bpid:\d)[a-z]\w*:/m

export const profinferText: Format = {
  name: 'profinfer-text',
  title: "ProfInfer's older text: ts:…,func:…,pos:…",
  sniff: (head) => LINE.test(new TextDecoder().decode(head)),
  read: (source, context) => new RowLog(source, profinferText.name, TEXT, context).read(),
}
