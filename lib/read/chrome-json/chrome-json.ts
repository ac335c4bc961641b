// Chrome's Trace Event Format, above all as the profiler of PyTorch (Kineto) writes it: an object with a list of events, or
// the list alone, which may lack its end.
//
//     {"schemaVersion": 1, "deviceProperties": […], "traceEvents": [
//       {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 7, "tid": 7, "ts": 1428625746277.044, "dur": 111.822,
//        "args": {"External id": 12, "Input Dims": [[8944,1024],[1024,1024]]}},
//       {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": …, "args": {"correlation": 9, …}}, …],
//      "baseTimeNanoseconds": 1751410836000000000}
//
// Times are decimal microseconds: since 1970, or since `baseTimeNanoseconds`, which may come last; as others write them,
// since whenever. Their digits are what counts: doubles do not hold them.

import type { InputEvent } from '../../model/events.ts'
import { pickOrigin } from '../common/time-guard.ts'
import type { Format } from '../format.ts'
import { About } from './about.ts'
import { lookBehind } from './behind.ts'
import { Document } from './document.ts'
import { Recording } from './recording.ts'
import { sniffChromeJson } from './sniff.ts'

/** Events that the origin is picked from. */
const ORIGIN_EVENTS = 3
/** Times of the profiler beyond this, the year 2001 in nanoseconds, are since 1970: others are less than a quarter. */
const SINCE_1970 = 10n ** 18n

export const chromeJson: Format = {
  name: 'chrome-json',
  title: 'PyTorch profiler (Kineto), and any other Chrome JSON (Trace Event Format)',

  sniff: sniffChromeJson,

  async *read(source, context) {
    const about = new About()
    const recording = new Recording(context.names, context.everything === true)
    const document = new Document(source, chromeJson.name, about, recording)
    try {
      const firstNs = pickOrigin(await document.firstTimes(ORIGIN_EVENTS))
      recording.begin(firstNs)
      if (about.baseNs === undefined && firstNs < SINCE_1970) await lookBehind(about, context)
      yield [inputOf(about, firstNs)]
      if (about.isKineto && about.baseNs === undefined && firstNs < SINCE_1970) {
        recording.issue('json-no-base-time', 'expected "baseTimeNanoseconds", found none: when it was is not known', 0)
      }
      for (let isMore = true; isMore; ) {
        isMore = await document.read()
        yield recording.take()
      }
      yield* recording.finish()
      yield [...about.leftOut.events(), { kind: 'facts', attributes: about.attributes }]
    } finally {
      await document.close()
    }
  },
}

function inputOf(about: About, firstNs: bigint): InputEvent {
  const { isKineto, baseNs, own, attributes } = about
  about.attributes = {}
  const isTold = isKineto && (baseNs !== undefined || firstNs >= SINCE_1970)
  return {
    kind: 'input',
    format: chromeJson.name,
    clock: own?.clock ?? (isTold ? 'REALTIME' : 'unknown'),
    originNs: firstNs + (baseNs ?? own?.zeroNs ?? 0n),
    title: isKineto ? 'PyTorch profiler' : 'Chrome trace',
    attributes,
  }
}
