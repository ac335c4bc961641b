/** Logs of CUDA, as verify.mjs compares them. */
import { eventsOf, Names } from 'ggml2perfetto'
import { inputOf } from 'ggml2perfetto/node'

export async function readLog(log) {
  const names = new Names()
  const events = []
  for await (const batch of eventsOf(inputOf(log), names)) events.push(...batch)
  const ofKind = (kind) => events.filter((event) => event.kind === kind)
  const tensors = []
  for (const tensor of ofKind('tensor')) tensors[tensor.id] = tensor
  const text = (id) => names.text(id)
  const nodeName = (id) => `${text(tensors[id].op)} ${text(tensors[id].name)}`
  const works = ofKind('gpu').toSorted((a, b) => a.startNs - b.startNs)
  const facts = Object.assign({}, ...[...ofKind('input'), ...ofKind('facts')].map(({ attributes }) => attributes))
  const issues = ofKind('issue').map(({ title, detail }) => `${title}: ${detail}`)
  return { log, ofKind, text, nodeName, works, facts, issues, op: (id) => text(tensors[id].op) }
}

/** `rms_norm_f32` of a mangled name, or of a signature. */
export function shortName(name) {
  const [, length, rest] = /^_Z(\d+)(.*)$/.exec(name) ?? []
  if (length !== undefined) return rest.slice(0, Number(length))
  const base = name.replace(/^(?:static )?void /, '').replace(/[<([].*/s, '')
  return base.replace(/^.*::/s, '') || name
}

/** Kernels of a call in the order in which the device began them: what they computed, from the first to the last node. */
export const kernelsOf = ({ works, nodeName, text }, call) =>
  works
    .filter((work) => work.call === call && work.what === 'kernel')
    .map(({ name, node }) => {
      const range = node && [node.tensor, ...(node.fusedTo === undefined ? [] : [node.fusedTo])].map(nodeName)
      return `${text(name)}: ${range?.join(' … ') ?? 'no operator'}`
    })

const counted = (items) => {
  const counts = new Map()
  for (const item of items) counts.set(item, (counts.get(item) ?? 0) + 1)
  return counts
}
/** What differs between two lists that have the same items in any order; undefined: nothing. */
export function difference(found, expected) {
  const [a, b] = [counted(found), counted(expected)]
  const wrong = [...new Set([...a.keys(), ...b.keys()])].filter((key) => a.get(key) !== b.get(key))
  return wrong.length === 0
    ? undefined
    : wrong
        .slice(0, 4)
        .map((key) => `${key}: ${a.get(key) ?? 0}, expected ${b.get(key) ?? 0}`)
        .join('; ')
}
export const firstUnequal = (found, expected) => {
  const at = Array.from({ length: Math.max(found.length, expected.length) }).findIndex(
    (_, i) => found[i] !== expected[i],
  )
  return at < 0 ? undefined : `at ${at} of ${expected.length}: ${found[at]}, expected ${expected[at]}`
}

export function demand(condition, what) {
  if (!condition) throw new Error(typeof what === 'function' ? what() : what)
}
/** On every stream: works do not overlap, and their sum is no longer than the run. */
export function checkStreams({ works }) {
  let overlapping = 0
  const sums = new Map()
  const ends = new Map()
  for (const { device, stream, startNs, endNs } of works) {
    const key = `${device}.${stream}`
    sums.set(key, (sums.get(key) ?? 0) + endNs - startNs)
    if (startNs < (ends.get(key) ?? 0)) overlapping++
    ends.set(key, Math.max(endNs, ends.get(key) ?? 0))
  }
  const wall = works.at(-1).endNs - works[0].startNs
  for (const [key, sum] of sums) demand(sum <= wall, `stream ${key}: ${sum} ns of work in ${wall} ns`)
  return { streams: sums.size, overlapping }
}

/** A work begins after the host began to launch it, and is over when the host has waited for it. Returns the smallest distance, ns. */
export function checkClock({ works, ofKind }, errorNs = 0) {
  const launches = new Map(
    ofKind('api')
      .filter(({ correlation }) => correlation > 0)
      .map((call) => [call.correlation, call]),
  )
  let [least, missing] = [Infinity, 0]
  for (const { correlation, startNs } of works) {
    const launch = launches.get(correlation)
    if (launch) least = Math.min(least, startNs - launch.startNs)
    else missing++
  }
  demand(missing === 0, `${missing} works without a launch`)
  demand(least > -errorNs, `a work begins ${-least} ns before its launch`)
  return least
}
