// ProfInfer's CSV (pandas): one row per probe hit, not sorted, columns found by the names in the header (paper:
// ProfInfer, MLSys 2026, Table 2; columns described in field-notes 1.3).
//
//   ,ts,type,pid,cpu,[pmc_0,pmc_1,]guid,op,name,parm_addr,first_src_addr,second_src_addr,third_src_addr,
//   ne0,src0_ne0,src1_ne0,src2_ne0,ne1,…,src2_ne3
//
//   ts    ns, CLOCK_MONOTONIC        pid   the thread id (sic)
//   type  10/15 llama_decode start/end · 20/25 operator · 30/35 graph (backend guid) · 40/45 operator on an accelerator
//   op    number of the running ggml version     name  cut to 15 bytes     *_addr  addresses of ggml_tensor structs
//
// End rows have no names: they belong to the latest start of their thread.
//
// ProfInfer's older text: one line per probe hit, not sorted, each cell with its name before it (its writer is still in
// artifact/Linux/trace_llama.py, commented out). The last line has no line break.
//
//   ts:3917038898440,func:ggml_compute_forward,pos:start,pid:11685,op:40,cpu:1,name:embd,[parm_addr:…,
//   first_src_addr:…,second_src_addr:…,ne0:…,src1_ne0:…,src2_ne0:…,ne1:…,…,src2_ne3:…,][guid:…,][pmc:…,]
//
//   ts    ns, CLOCK_MONOTONIC        pid   the thread id (sic)
//   src1, src2  the first and the second source     guid  of graphs' starts only     rest as in the CSV
//
// ProfInfer's CSV on OpenHarmony (event_log_<date>_<time>.csv, written by artifact/OpenHarmony/trace_llm.c): one row per
// probe hit, written buffer by buffer of the CPUs, so not sorted.
//
//   Function,PID,TID,CPU,Timestamp,Type,OP,Name,GUID,Tensor,Src0,Src1,Src2,ne0,…,ne3,src0_ne0,…,src2_ne3
//
//   Function   `llama_decode (start)`: the same as Type, whose numbers are those of the other CSV
//   PID, TID   the thread's id and the process' (sic); which is which is inferred from the rows
//   GUID       16 decimal bytes, joined by `|`; zeros except at a graph's start
//   Tensor, Src0 …  addresses of ggml_tensor structs, 0x…; Src2 is always 0
//
// A logger built without structures writes the same header, and rows that end after GUID with a comma.

import type { Format } from '../format.ts'
import { type Layout, OPENHARMONY, PANDAS, TEXT } from './layouts.ts'
import { RowLog } from './row-log.ts'

/** A line with a time, a function, an edge and a thread, in any order. */
const TEXT_LINE = /^(?=.*\bts:\d)(?=.*\bfunc:\w)(?=.*\bpos:(?:start|end)\b)(?=.*\bpid:\d)[a-z]\w*:/m

export const profinferCsv: Format = formatOf(
  'profinfer-csv',
  "ProfInfer's CSV (eBPF probes on llama.cpp)",
  /^[^\n]*\bts,type,pid\b/,
  PANDAS,
)

export const profinferText: Format = formatOf(
  'profinfer-text',
  "ProfInfer's older text: ts:…,func:…,pos:…",
  TEXT_LINE,
  TEXT,
)

export const profinferOpenharmony: Format = formatOf(
  'profinfer-openharmony',
  "ProfInfer's CSV on OpenHarmony: Function,PID,TID,…",
  /^[^\n]*\bPID,TID,CPU,Timestamp,Type\b/,
  OPENHARMONY,
)

/** A format whose head, or the first line of it, matches a pattern. */
function formatOf(name: string, title: string, head: RegExp, layout: Layout): Format {
  return {
    name,
    title,
    sniff: (bytes) => head.test(new TextDecoder().decode(bytes)),
    read: (source, context) => new RowLog(source, name, layout, context).read(),
  }
}
