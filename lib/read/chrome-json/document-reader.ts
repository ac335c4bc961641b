// Chrome's Trace Event Format, mainly as the profiler of PyTorch (Kineto) writes it: an object with a list of events, or
// only the list, which may lack its end; or only the events, one per line.
//
//     {"schemaVersion": 1, "deviceProperties": […], "traceEvents": [
//       {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 7, "tid": 7, "ts": 1428625746277.044, "dur": 111.822,
//        "args": {"External id": 12, "Input Dims": [[8944,1024],[1024,1024]]}},
//       {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": …, "args": {"correlation": 9, …}}, …],
//      "baseTimeNanoseconds": 1751410836000000000}
//
// Times are decimal microseconds since 1970, or since `baseTimeNanoseconds`, which may come last; other programs may have any
// origin, and be below 0: then
// all are moved so that the first one is at 0. They are read digit by digit, as doubles are not exact enough. Events are in any order.
//
//     start.ts      the first bytes → is it Chrome JSON?
//     document.ts   bytes → events, one by one; members of the object; recovery from damage        about.ts   members
//     scanner.ts    one event → places of its fields and arguments in its bytes
//     fields.ts     fields → category, name, process, thread, times                               args.ts    arguments
//     recording.ts  one event → events of the model, by its phase ("ph") and category
//     rows.ts       rows by process, thread, kind                            gpu.ts    GPU work, and calls that launch it
//     nesting.ts    slices of a row in order, outer before inner             steps.ts  steps of serving engines → calls
//     pairs.ts      begins and ends in order of time                         operations.ts  asynchronous ones
//     flows.ts      ends of arrows (s, t, f, bind_id)                        arrows.ts ends → arrows

import { peek } from '../../input/gunzip.ts'
import type { InputEvent, TraceEvent } from '../../model/events.ts'
import { pickOrigin } from '../common/time-guard.ts'
import { HEAD_BYTES, type ReadContext } from '../format.ts'
import { About, searchWhole } from './about.ts'
import { Document } from './document.ts'
import { Recording } from './recording.ts'
import { areEventLines } from './start.ts'

const FORMAT = 'chrome-json'
/** Number of events that the origin is picked from. */
const ORIGIN_EVENTS = 3
/** The year 2001 in nanoseconds since 1970: later times of the profiler are since 1970, others since another origin. */
const SINCE_1970 = 10n ** 18n

/** Reads a document: see {@link Format.read}. */
export async function* readDocument(
  source: AsyncIterable<Uint8Array>,
  context: ReadContext,
): AsyncGenerator<TraceEvent[]> {
  const about = new About()
  const recording = new Recording(context.names, context.everything === true)
  const { head, rest } = await peek(source, HEAD_BYTES)
  const document = new Document(rest, FORMAT, about, recording, areEventLines(head))
  try {
    const times = await document.firstTimes(ORIGIN_EVENTS)
    const firstNs = firstOf(times)
    about.noteTimes(times, firstNs)
    if (about.baseNs === undefined && firstNs < SINCE_1970) await searchWhole(about, firstNs, context)
    const input = inputOf(about, firstNs)
    recording.begin(firstNs, input.originNs, about.isKineto)
    yield [input]
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
}

/** The origin of times that may be below 0. */
function firstOf(times: readonly bigint[]): bigint {
  const least = times.reduce((least, ns) => (ns < least ? ns : least), 0n)
  return least === 0n ? pickOrigin(times) : pickOrigin(times.map((ns) => ns - least + 1n)) + least - 1n
}

function inputOf(about: About, firstNs: bigint): InputEvent {
  const { isKineto, baseNs, own, shiftNs } = about
  const attributes = shiftNs > 0n ? { ...about.attributes, times_shifted_ns: Number(shiftNs) } : about.attributes
  about.attributes = {}
  const isSince1970 = isKineto && (baseNs !== undefined || firstNs >= SINCE_1970)
  return {
    kind: 'input',
    format: FORMAT,
    clock: own?.clock ?? (isSince1970 ? 'REALTIME' : 'unknown'),
    originNs: firstNs + (baseNs ?? own?.zeroNs ?? shiftNs),
    title: isKineto ? 'PyTorch profiler' : 'Chrome trace',
    attributes,
    capabilities: { order: false, operators: false },
  }
}
