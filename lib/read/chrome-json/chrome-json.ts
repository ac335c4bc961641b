import type { Format } from '../format.ts'
import { sniffChromeJson } from './start.ts'

export const chromeJson: Format = {
  name: 'chrome-json',
  title: 'PyTorch profiler (Kineto), and any other Chrome JSON (Trace Event Format)',

  sniff: sniffChromeJson,

  async *read(source, context) {
    yield* (await import('./document-reader.ts')).readDocument(source, context)
  },
}
