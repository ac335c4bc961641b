import { Ascii } from '../../bytes/ascii.ts'
import { mistakeAt, skipSpace, skipText, skipValue, textIn } from '../../input/json-bytes.ts'

/** Members that only the profiler of PyTorch writes. */
export const OF_KINETO =
  /^(?:schemaVersion|deviceProperties|distributedInfo|(?:cupti|roctracer)_version|(?:cuda|hip)_\w+_version)$/
const PHASE = /"ph"\s*:\s*"[A-Za-z(),]"/
/** Members that only such documents have, at any depth. */
const OWN_MEMBERS = /"(?:traceEvents|deviceProperties|baseTimeNanoseconds)"\s*:/
/** Other members of the outermost object, as Chrome and Android's systrace name them. */
const MEMBERS =
  /^(?:displayTimeUnit|systemTraceEvents|powerTraceAsString|controllerTraceDataKey|otherData|stackFrames|traceName)$/
const METADATA = 'metadata'

/** Is this the start of Chrome JSON? It may end within its first member. */
export function sniffChromeJson(head: Uint8Array): boolean {
  const text = new TextDecoder().decode(head).trimStart()
  if (text.startsWith('[')) return /^\[\s*\{/.test(text) && PHASE.test(text)
  if (!text.startsWith('{')) return false
  if (OWN_MEMBERS.test(text)) return true
  const { keys, isCut } = membersOf(new TextEncoder().encode(text))
  if (areOfEvent(keys, text)) return true
  return keys.some((key) => MEMBERS.test(key) || OF_KINETO.test(key)) || (isCut && keys.at(-1) === METADATA)
}

/** Is it the start of events, one per line, without a list around them? */
export function areEventLines(head: Uint8Array): boolean {
  const text = new TextDecoder().decode(head).trimStart()
  return text.startsWith('{') && areOfEvent(membersOf(new TextEncoder().encode(text)).keys, text)
}

/** Are these keys of a first object those of an event? */
function areOfEvent(keys: readonly string[], text: string): boolean {
  return ['ph', 'name'].every((key) => keys.includes(key)) && PHASE.test(text)
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
