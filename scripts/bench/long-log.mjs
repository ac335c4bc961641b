/**
 * A long `.ggtrace`: the events of examples/moe.ggtrace.gz repeated, each round with later times and higher call numbers. The blocks
 * are sealed again, so that the log is equivalent to a recorded one.
 */
import { readFileSync } from 'node:fs'
import { gunzipSync } from 'node:zlib'

const EVENTS = 3
const RUN = 1
const HEADER = 48
const NONE = 0xffffffff
/** Offsets of the times (u64) and the call (u32) in each type of record; see docs/reference/ggtrace-format.md. */
const FIELDS = {
  35: { times: [4], call: 12 },
  36: { times: [4, 12], call: 20 },
  37: { times: [4, 12], call: 24 },
  38: { times: [4], call: 24 },
  39: { times: [4, 12] },
  45: { times: [4, 12, 20] },
  46: { times: [4] },
}
const OPERATORS = [32, 33, 34, 45, 71, 72, 73]
const TOKEN = 36

const bytes = gunzipSync(readFileSync(new URL('../../examples/moe.ggtrace.gz', import.meta.url)))
const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)

function blocksOf() {
  const blocks = []
  for (let at = 0; at + HEADER <= bytes.length; ) {
    const size = view.getUint32(at, true) === 0x30544747 ? view.getUint32(at + 4, true) : 0
    if (size > 0) blocks.push({ at, size, kind: view.getUint16(at + 12, true) })
    at += size || 8
  }
  return blocks
}

function* recordsOf({ at, size }) {
  for (let record = at + HEADER; record + 4 <= at + size; record += view.getUint16(record + 2, true)) {
    if (view.getUint32(record, true) === 0) return
    yield record
  }
}

function checksum(block) {
  const words = new Uint32Array(block.buffer, block.byteOffset + 12, (block.length - 12) / 4)
  const lanes = Uint32Array.from({ length: 8 }, (_, lane) => 0x811c9dc5 + lane)
  for (let i = 0; i < words.length; i++) lanes[i & 7] = Math.imul(lanes[i & 7] ^ words[i], 0x01000193)
  return lanes.reduce((sum, lane, n) => (sum ^ ((lane << (4 * n)) | (n && lane >>> (32 - 4 * n)))) >>> 0, 0)
}

const blocks = blocksOf()
const events = blocks.filter(({ kind }) => kind === EVENTS)
const bases = events.map(({ at }) => view.getBigUint64(at + 24, true))
const inOrder = bases.toSorted((a, b) => Number(a - b))
const period = inOrder.at(-1) - inOrder[0] + 50_000_000n
/** Calls in one round. */
export const calls = Math.max(...events.flatMap((block) => [...recordsOf(block)].map((record) => callOf(record)))) + 1

function callOf(record) {
  const call = FIELDS[view.getUint16(record, true)]?.call
  const number = call === undefined ? NONE : view.getUint32(record + call, true)
  return number === NONE ? -1 : number
}

/** The block in that round: with later times, and higher call and sequence numbers; its last call ends later by `slowNs`. */
function blockIn(round, block, sequence, slowNs) {
  const copy = new Uint8Array(block.size)
  copy.set(bytes.subarray(block.at, block.at + block.size))
  const to = new DataView(copy.buffer)
  const shift = period * BigInt(round)
  const later = (at) => to.setBigUint64(at, to.getBigUint64(at, true) + shift, true)
  const countOn = (at) => {
    if (to.getUint32(at, true) !== NONE) to.setUint32(at, to.getUint32(at, true) + round * calls, true)
  }
  later(24)
  countOn(44)
  to.setUint32(16, sequence, true)
  for (const record of recordsOf(block)) {
    const { times = [], call } = FIELDS[view.getUint16(record, true)] ?? {}
    for (const time of times) later(record - block.at + time)
    if (call !== undefined) countOn(record - block.at + call)
    if (slowNs > 0 && view.getUint16(record, true) === TOKEN && callOf(record) === calls - 1) {
      const end = record - block.at + 12
      to.setBigUint64(end, to.getBigUint64(end, true) + BigInt(slowNs), true)
    }
  }
  to.setUint32(8, checksum(copy), true)
  return copy
}

/** Operators in one round. */
export const perRound = events
  .flatMap((block) => [...recordsOf(block)])
  .filter((record) => OPERATORS.includes(view.getUint16(record, true))).length

/** The log with that many rounds, block by block. In the round `slow.round`, the last call ends `slow.ns` later (less than 50 ms). */
export async function* longLog(rounds, slow) {
  for (const block of blocks.filter(({ kind }) => kind !== EVENTS)) {
    const isEnd = block.kind === RUN && [...recordsOf(block)].some((record) => view.getUint16(record, true) === 3)
    if (!isEnd) yield bytes.subarray(block.at, block.at + block.size)
  }
  const sequences = new Map()
  for (let round = 0; round < rounds; round++) {
    const pieces = []
    for (const block of events) {
      const writer = view.getUint16(block.at + 14, true)
      const sequence = sequences.get(writer) ?? 0
      sequences.set(writer, sequence + 1)
      pieces.push(blockIn(round, block, sequence, slow?.round === round ? slow.ns : 0))
    }
    yield Buffer.concat(pieces)
  }
}
