import type { Format } from '../../format.ts'

const HEAD =
  /^(?:# ========\r?\n# captured on +: |.{0,16} +-?\d+(?:\/-?\d+)? +(?:\[\d{3,}\] +)?(?:[A-Z]{1,3} +)?-?\d+\.(?:\d{6}|\d{9}): +(?:\d+ +)?(?:[\w-]+:\S*: |PERF_RECORD_|\S+: +[0-9a-f]{1,16}(?: +[0-9a-f]{1,16} \|OP .*)?(?: +\d+)? *$|\S+: +[0-9a-f]{8,16} \S[^\n]{0,400}\)\r?$))/m

export const perfScript: Format = {
  name: 'perf-script',
  title: 'the text of perf script: scheduler events, samples of data addresses',
  sniff: (head) => HEAD.test(new TextDecoder().decode(head)),
  async *read(source, context) {
    yield* (await import('./perf-script-reader.ts')).readPerfScript(source, context)
  },
}
