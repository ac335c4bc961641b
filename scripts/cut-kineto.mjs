/**
 * Cuts a file of PyTorch's profiler down to a period of time; the events are not changed. The result contains no host,
 * user, job or path. Makes test/fixtures/chrome-json.
 *
 *     node scripts/cut-kineto.mjs trace.json[.gz] cut.json[.gz] <from µs> <to µs, since the first event>
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { gunzipSync, gzipSync } from 'node:zlib'

const [from, to, first, last] = process.argv.slice(2)
const stored = readFileSync(from)
const text = (stored[0] === 0x1f ? gunzipSync(stored) : stored).toString()

/** Members of the document without private data; lists of devices are kept only in part. */
const KEPT = ['schemaVersion', 'cupti_version', 'roctracer_version', 'cuda_runtime_version', 'hip_runtime_version']
const KEPT_AFTER = ['displayTimeUnit', 'baseTimeNanoseconds']
const FOLDERS = /(?<=")(?:\/[\w.+@-]+)+\/(?=[\w.-]+\.py\()/g

/** Numbers keep their spelling: they become marked texts, and digits again at the end. */
const TOKEN = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g
const document = JSON.parse(text.replace(TOKEN, (token) => (token.startsWith('"') ? token : `"\\u0001${token}"`)))
const written = (value) => JSON.stringify(value).replace(/"\\u0001([^"]*)"/g, '$1')

const micros = (digits) => Number(digits.slice(1))
const times = document.traceEvents.map(({ ts }) => micros(ts))
const start = Math.min(...times)
const isKept = ({ ph, ts, dur = '\u00010' }) => {
  const at = micros(ts) - start
  return ph === 'M' || (at + micros(dur) >= Number(first) && at < Number(last))
}
const events = document.traceEvents
  .filter(isKept)
  .filter(({ ph, pid }, _, all) => ph !== 'M' || all.some((other) => other.ph !== 'M' && other.pid === pid))
for (const { name, args } of events) if (name === 'process_name') args.name = 'python3'
const members = (keys) => keys.filter((key) => key in document).map((key) => `"${key}": ${written(document[key])},\n`)
const devices = (document.deviceProperties ?? []).slice(0, 1).map(({ id, name }) => ({ id, name }))
const parts = [
  '{\n',
  ...members(KEPT),
  `"deviceProperties": ${written(devices)},\n`,
  `"traceEvents": [\n${events.map(written).join(',\n')}\n],\n`,
  ...members(KEPT_AFTER),
  '"traceName": "cut.json"\n}\n',
]
const cut = parts.join('').replace(FOLDERS, '/srv/')
writeFileSync(to, to.endsWith('.gz') ? gzipSync(cut, { level: 9 }) : cut)
console.log(`${events.length} events, ${cut.length} bytes`)
