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

import type { Format } from '../format.ts'
import { PANDAS } from './layouts.ts'
import { RowLog } from './row-log.ts'

const HEADER = /^[^\n]*\bts,type,pid\b/

export const profinferCsv: Format = {
  name: 'profinfer-csv',
  title: "ProfInfer's CSV (eBPF probes on llama.cpp)",
  sniff: (head) => HEADER.test(new TextDecoder().decode(head)),
  read: (source, context) => new RowLog(source, profinferCsv.name, PANDAS, context).read(),
}
