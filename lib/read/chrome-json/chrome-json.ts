// Chrome's Trace Event Format, mainly as the profiler of PyTorch (Kineto) writes it: an object with a list of events, or
// only the list, which may lack its end.
//
//     {"schemaVersion": 1, "deviceProperties": […], "traceEvents": [
//       {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 7, "tid": 7, "ts": 1428625746277.044, "dur": 111.822,
//        "args": {"External id": 12, "Input Dims": [[8944,1024],[1024,1024]]}},
//       {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": …, "args": {"correlation": 9, …}}, …],
//      "baseTimeNanoseconds": 1751410836000000000}
//
// Times are decimal microseconds since 1970, or since `baseTimeNanoseconds`, which may come last; other programs may have any
// origin. They are read digit by digit, as doubles are not exact enough. Events are in any order.
//
//     document.ts   bytes → events, one by one; members of the object; recovery from damage        about.ts   members
//     scanner.ts    one event → places of its fields and arguments in its bytes
//     fields.ts     fields → category, name, process, thread, times                               args.ts    arguments
//     recording.ts  one event → events of the model, by its phase ("ph") and category
//     rows.ts       rows by process, thread, kind                            gpu.ts    GPU work, and calls that launch it
//     nesting.ts    slices of a row in order, outer before inner             steps.ts  steps of serving engines → calls
//     pairs.ts      begins and ends in order of time                         operations.ts  asynchronous ones
//     flows.ts      ends of arrows (s, t, f, bind_id)                        arrows.ts ends → arrows

import { Ascii } from '../../bytes/ascii.ts'
import { mistakeAt, skipSpace, skipText, skipValue, textIn } from '../../input/json-bytes.ts'
import type { InputEvent } from '../../model/events.ts'
import { pickOrigin } from '../common/time-guard.ts'
import type { Format } from '../format.ts'
import { About, OF_KINETO, searchWhole } from './about.ts'
import { Document } from './document.ts'
import { Recording } from './recording.ts'

/** Number of events that the origin is picked from. */
const ORIGIN_EVENTS = 3
/** The year 2001 in nanoseconds since 1970: later times of the profiler are since 1970, others since another origin. */
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
      if (about.baseNs === undefined && firstNs < SINCE_1970) await searchWhole(about, context)
      recording.begin(firstNs, about.isKineto)
      yield [inputOf(about, firstNs)]
      if (about.isKineto && about.baseNs === undefined && firstNs < SINCE_1970) {
        recording.issue('json-no-base-time', 'expected "baseTimeNanoseconds", found none: its time is not known', 0)
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
  const isSince1970 = isKineto && (baseNs !== undefined || firstNs >= SINCE_1970)
  return {
    kind: 'input',
    format: chromeJson.name,
    clock: own?.clock ?? (isSince1970 ? 'REALTIME' : 'unknown'),
    originNs: firstNs + (baseNs ?? own?.zeroNs ?? 0n),
    title: isKineto ? 'PyTorch profiler' : 'Chrome trace',
    attributes,
    capabilities: { order: false, operators: false },
  }
}

const PHASE = /"ph"\s*:\s*"[A-Za-z(),]"/
/** Members that only such documents have, at any depth. */
const OWN_MEMBERS = /"(?:traceEvents|deviceProperties|baseTimeNanoseconds)"\s*:/
/** Other members of the outermost object, as Chrome and Android's systrace name them. */
const MEMBERS =
  /^(?:displayTimeUnit|systemTraceEvents|powerTraceAsString|controllerTraceDataKey|otherData|stackFrames|traceName)$/
const METADATA = 'metadata'

/** Is this the start of Chrome JSON? It may end within its first member. */
function sniffChromeJson(head: Uint8Array): boolean {
  const text = new TextDecoder().decode(head).trimStart()
  if (text.startsWith('[')) return /^\[\s*\{/.test(text) && PHASE.test(text)
  if (!text.startsWith('{')) return false
  if (OWN_MEMBERS.test(text)) return true
  const { keys, isCut } = membersOf(new TextEncoder().encode(text))
  return keys.some((key) => MEMBERS.test(key) || OF_KINETO.test(key)) || (isCut && keys.at(-1) === METADATA)
}

/** Keys of the outermost object up to the end of the bytes; `isCut`: the value of the last one does not end. */
function membersOf(bytes: Uint8Array): { keys: string[]; isCut: boolean } {
  const [end, keys] = [bytes.length, [] as string[]]
  for (let at = 1; ; ) {
    at = skipSpace(bytes, at, end)
    if (at < end && bytes[at] === Ascii.Comma) at = skipSpace(bytes, at + 1, end)
    if (at >= end || bytes[at] !== Ascii.Quote) return { keys, isCut: false }
    const keyEnd = skipText(bytes, at + 1, end)
    if (keyEnd < 0) return { keys, isCut: false }
    const colon = skipSpace(bytes, keyEnd, end)
    if (bytes[colon] !== Ascii.Colon) return { keys, isCut: false }
    keys.push(textIn(bytes, at, keyEnd))
    at = skipValue(bytes, skipSpace(bytes, colon + 1, end), end)
    if (at < 0) return { keys, isCut: mistakeAt(at) === undefined }
  }
}
