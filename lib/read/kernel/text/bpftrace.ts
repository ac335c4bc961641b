import type { Format } from '../../format.ts'

const HEAD =
  /^(?:\{"type": "attached_probes", |(?:\{"type": "printf", "data": ")?g2p (?:clock|fact|switch|waking|fork|rename|exit|thread|token|encode|span|remove|graph|op|fault|io) )/m

export const bpftrace: Format = {
  name: 'bpftrace',
  title: 'what the bpftrace scripts of ggml2perfetto print, plain or -f json',
  sniff: (head) => HEAD.test(new TextDecoder().decode(head)),
  async *read(source, context) {
    yield* (await import('./bpftrace-reader.ts')).readBpftrace(source, context)
  },
}
