/**
 * Packs TensorTrace records of 1 024 bytes into the older layouts, as older loggers wrote them.
 *
 *     node scripts/repack-tensor-trace.mjs 256|128|64 <from> <to>
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const FROM_BYTES = 1024
/** ggml_op of January 2026 → the number that the logger of the access records used. */
const MUL_MAT = 29
const OWN_MUL_MAT = 1
const NONE = 0xffffffff
const NO_EXPERT = 255

/** `log` in records of 256 (one per operator), 128 or 64 bytes (one per source of a MUL_MAT); empty records remain. */
export function repack(log, bytes) {
  const records = []
  for (let at = 0; at + FROM_BYTES <= log.length; at += FROM_BYTES) {
    const record = Buffer.from(log.subarray(at, at + FROM_BYTES))
    if (record.readBigUInt64LE(0) === 0n) records.push(Buffer.alloc(bytes))
    else if (bytes === 256) records.push(operatorRecord(record))
    else if (record[16] === MUL_MAT) records.push(...accessRecords(record, bytes))
  }
  return Buffer.concat(records)
}

/**
 * `log` as the TensorTrace tools convert it: JSON with one entry per record that is not empty. `numbers`: of ops by name.
 */
export function jsonOf(log, numbers) {
  const ops = Object.fromEntries(Object.entries(numbers).map(([name, number]) => [number, name]))
  const records = []
  for (let at = 0; at + FROM_BYTES <= log.length; at += FROM_BYTES) {
    const record = Buffer.from(log.subarray(at, at + FROM_BYTES))
    if (record.readBigUInt64LE(0) !== 0n) records.push(record)
  }
  const [start, end] = [records[0], records.at(-1)].map((record) => Number(record.readBigUInt64LE(0)))
  const entries = records.map((record, i) => entryOf(record, i, start, ops))
  const metadata = {
    total_entries: entries.length,
    duration_ms: msBetween(start, end),
    timestamp_start_ns: start,
    format_version: '1024-byte',
  }
  return Buffer.from(`${JSON.stringify({ token_id: 0, metadata, entries }, null, 2)}\n`)
}

const msBetween = (start, end) => Number(((end - start) / 1e6).toFixed(3))
const layerOf = (layer) => (layer === 0xffff ? null : layer)

function entryOf(record, id, start, ops) {
  const at = Number(record.readBigUInt64LE(0))
  const experts = Array.from({ length: record[856] }, (_, i) => record.readInt32LE(792 + 4 * i))
  return {
    entry_id: id,
    timestamp_ns: at,
    timestamp_relative_ms: msBetween(start, at),
    token_id: 0,
    layer_id: layerOf(record.readUInt16LE(12)),
    thread_id: record.readUInt16LE(14),
    phase: record[17] === 0 ? 'PROMPT' : 'GENERATE',
    operation_type: ops[record[16]],
    dst_name: `${textOf(record.subarray(24, 152))}`,
    num_sources: record[18],
    sources: sourcesOf(record).map(sourceEntryOf),
    expert_ids: experts,
    num_experts: experts.length,
  }
}

function sourceEntryOf(source) {
  const place = Number(source.readBigUInt64LE(144))
  return {
    name: `${textOf(source.subarray(0, 128))}`,
    tensor_ptr: `0x${source.readBigUInt64LE(128).toString(16)}`,
    size_bytes: source.readUInt32LE(136),
    layer_id: layerOf(source.readUInt16LE(140)),
    ...(source[142] === 0
      ? { memory_source: 'DISK', disk_offset: place }
      : { memory_source: 'BUFFER', buffer_id: place }),
  }
}

const textOf = (bytes) => bytes.subarray(0, bytes.includes(0) ? bytes.indexOf(0) : bytes.length)

function sourcesOf(record) {
  return Array.from({ length: record[18] }, (_, i) => record.subarray(152 + 160 * i, 312 + 160 * i))
}

function operatorRecord(record) {
  const packed = Buffer.alloc(256)
  record.copy(packed, 0, 0, 24)
  textOf(record.subarray(24, 152)).copy(packed, 24, 0, 23)
  for (const [i, source] of sourcesOf(record).entries()) {
    const start = 48 + 52 * i
    textOf(source.subarray(0, 128)).copy(packed, start, 0, 19)
    source.copy(packed, start + 20, 128, 143) // pointer, size, layer, kind of memory
    source.copy(packed, start + 36, 144, 156) // place, index
  }
  return packed
}

function accessRecords(record, bytes) {
  return sourcesOf(record).map((source) => {
    const packed = Buffer.alloc(bytes)
    record.copy(packed, 0, 0, 16)
    source.copy(packed, 12, 140, 142) // the layer of the source
    packed[16] = OWN_MUL_MAT
    packed[17] = record[17]
    packed.writeUInt32LE(NONE, 24)
    source.copy(packed, 28, 128, 136)
    if (source[142] === 0) source.copy(packed, 36, 144, 152)
    source.copy(packed, 44, 136, 140)
    packed[48] = NO_EXPERT
    packed[52] = NO_EXPERT
    packed[53] = NO_EXPERT
    if (bytes === 128) textOf(source.subarray(0, 128)).copy(packed, 64, 0, 63)
    return packed
  })
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [bytes, from, to] = process.argv.slice(2)
  writeFileSync(to, repack(readFileSync(from), Number(bytes)))
}
