// What the bpftrace scripts of native/ebpf/ print, plain or with `-f json`; docs/ebpf-format.md specifies it:
//
//   Attaching 6 probes...
//   g2p clock boot
//   g2p switch 5120031417 1 4242 120 1 0 120 llama-cli       |swapper/1
//   {"type": "printf", "data": "g2p waking 5120093870 0 911 4242 120 1 0 llama-cli\n"}
//
// Other lines are counted.

import type { Format } from '../../format.ts'
import { BpftraceLog } from './bpftrace-log.ts'

const HEAD =
  /^(?:\{"type": "attached_probes", |(?:\{"type": "printf", "data": ")?g2p (?:clock|fact|switch|waking|fork|rename|exit|thread|token|encode|graph|op|fault|io) )/m

export const bpftrace: Format = {
  name: 'bpftrace',
  title: 'what the bpftrace scripts of ggml2perfetto print, plain or -f json',
  sniff: (head) => HEAD.test(new TextDecoder().decode(head)),
  read: (source, context) => new BpftraceLog(source, bpftrace.name, context).read(),
}
