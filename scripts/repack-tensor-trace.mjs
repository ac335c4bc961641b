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
