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
import { OPENHARMONY } from './layouts.ts'
import { RowLog } from './row-log.ts'

const HEADER = /^[^\n]*\bPID,TID,CPU,Timestamp,Type\b/

export const profinferOpenharmony: Format = {
  name: 'profinfer-openharmony',
  title: "ProfInfer's CSV on OpenHarmony: Function,PID,TID,…",
  sniff: (head) => HEADER.test(new TextDecoder().decode(head)),
  read: (source, context) => new RowLog(source, profinferOpenharmony.name, OPENHARMONY, context).read(),
}
