import type { OpTable } from '../../model/op-tables.ts'

/**
 * The record layouts of the TensorTrace logger, as tables. Offsets are in bytes from the record's start. Common fields:
 *
 *     0  u64 timestamp_ns   CLOCK_MONOTONIC; 0 = empty record
 *     8  u32 token_id       always 0
 *    12  u16 layer_id       65535 = none
 *    14  u16 thread_id      low 16 bits of the Linux tid
 *    16  u8  operation_type ggml_op of the logging version; in access records a number of the logger
 *    17  u8  phase          0 PROMPT, 1 GENERATE
 *    18  u8  num_sources    0 … 4; padding in access records
 */
export interface Layout {
  readonly recordBytes: number
  /** The result's name; access records have none. */
  readonly result: Field | undefined
  readonly sources: SourceLayout
  /** Ranges, multiples of four bytes, that together with layer, op and number of sources identify a node. */
  readonly identity: readonly Range[]
  /** Padding: always zero. */
  readonly zeros: readonly Range[]
  /** A list of expert ids and its length. */
  readonly experts: { readonly ids: number; readonly count: number; readonly most: number } | undefined
  /** One expert id as a byte; 255 = none. */
  readonly expert: number | undefined
  /** The op numbers of the logger, where these are not ggml's. */
  readonly ops: OpTable | undefined
}

/** Offsets of a source's fields, from the source's start. */
export interface SourceLayout {
  readonly at: number
  readonly bytes: number
  /** Maximum number of sources; if 1, there is always one. */
  readonly most: number
  readonly name: Field | undefined
  readonly pointer: number
  readonly size: number
  readonly layer: number
  /** 0 DISK, 1 BUFFER; without this field, a source with a place is in the model file. */
  readonly memory: number | undefined
  /** Offset in the model file, or the buffer's id. */
  readonly place: number
}

/** A text, terminated by NUL unless it fills its field. */
export interface Field {
  readonly at: number
  readonly bytes: number
}

type Range = readonly [start: number, end: number]

const COUNT = 18
const OWN_OPS: OpTable = {
  name: 'tensor-trace',
  about: "the logger's own numbers: 1 MUL_MAT, 2 ADD, 3 ROPE",
  ops: ['NONE', 'MUL_MAT', 'ADD', 'ROPE'],
}

/** Versions 3 and 4 (2026-01-13 on); version 3 has zeros for experts. One record per operator. */
const RECORDS_1024: Layout = {
  recordBytes: 1024,
  result: { at: 24, bytes: 128 },
  sources: {
    ...{ at: 152, bytes: 160, most: 4 },
    name: { at: 0, bytes: 128 },
    ...{ pointer: 128, size: 136, layer: 140, memory: 142, place: 144 },
  },
  identity: [[24, 792]],
  zeros: [
    [19, 24],
    [857, 1024],
  ],
  experts: { ids: 792, count: 856, most: 16 },
  expert: undefined,
  ops: undefined,
}

/** 2026-01-07 … 12. One record per operator; names are cut to 23 and 19 bytes. */
const RECORDS_256: Layout = {
  recordBytes: 256,
  result: { at: 24, bytes: 24 },
  sources: {
    ...{ at: 48, bytes: 52, most: 4 },
    name: { at: 0, bytes: 20 },
    ...{ pointer: 20, size: 28, layer: 32, memory: 34, place: 36 },
  },
  identity: [[24, 256]],
  zeros: [[19, 24]],
  experts: undefined,
  expert: undefined,
  ops: undefined,
}

/** 2026-01-02 … 06: access records, one per source of a MUL_MAT. */
const RECORDS_128: Layout = {
  recordBytes: 128,
  result: undefined,
  sources: {
    ...{ at: 0, bytes: 128, most: 1 },
    name: { at: 64, bytes: 64 },
    ...{ pointer: 28, size: 44, layer: 12, memory: undefined, place: 36 },
  },
  identity: [
    [24, 48],
    [64, 128],
  ],
  zeros: [
    [18, 24],
    [50, 52],
    [56, 64],
  ],
  experts: undefined,
  expert: 52,
  ops: OWN_OPS,
}

/** 2025-12-30 … 2026-01-02: the same without the name. */
const RECORDS_64: Layout = {
  ...RECORDS_128,
  recordBytes: 64,
  sources: { ...RECORDS_128.sources, bytes: 64, name: undefined },
  identity: [[24, 48]],
}

/** Largest first. */
const LAYOUTS: readonly Layout[] = [RECORDS_1024, RECORDS_256, RECORDS_128, RECORDS_64]

/**
 * Detects the layout of a file by its first bytes, as there is no header; undefined if none fits. With `isSure` the format is
 * known: the likeliest layout is returned, even if most records are damaged.
 */
export function detectLayout(head: Uint8Array, isSure = false): Layout | undefined {
  const scored = LAYOUTS.map((layout) => ({ layout, score: scoreOf(head, layout) }))
  const best = Math.max(...scored.map(({ score }) => score))
  return best < (isSure ? -head.length : 0) ? undefined : scored.find(({ score }) => score === best)!.layout
}

/** The layout if none is detected, but the user named the format. */
export const DEFAULT_LAYOUT = RECORDS_1024

/** Number of sources of a record. */
export function sourceCount(record: Uint8Array, start: number, { sources: { most } }: Layout): number {
  return most === 1 ? 1 : record[start + COUNT]!
}

/** Number of plausible records minus the others; below 0: probably another format. Empty records do not count. */
function scoreOf(head: Uint8Array, layout: Layout): number {
  const { recordBytes } = layout
  const records: Uint8Array[] = []
  for (let at = 0; at + recordBytes <= head.length; at += recordBytes) {
    const record = head.subarray(at, at + recordBytes)
    if (!isZero(record, 0, recordBytes)) records.push(record)
  }
  // Few records prove little: they must have a thread id. (Among many records, the low bits of a tid may be 0.)
  if (records.length < RECORDS_MIN && records.some((record) => isZero(record, 14, 16))) return -Infinity
  const ages = records.map(ageOf)
  let right = 0
  for (const [i, record] of records.entries()) {
    const isNear = records.length === 1 || areNear(ages[i]!, ages[i - 1]) || areNear(ages[i]!, ages[i + 1])
    if (isNear && looksLikeRecord(record, layout)) right++
  }
  return right === 0 ? -Infinity : 2 * right - records.length
}

/** With at least so many records, thread ids of 0 are plausible. */
const RECORDS_MIN = 4
/** High half of the time: units of 4.3 s. */
const ageOf = (record: Uint8Array) => new DataView(record.buffer, record.byteOffset).getUint32(4, true)
/** Two days in these units, more than between records of one log. */
const AGES_MAX = 40_000
const areNear = (a: number, b: number | undefined) => b !== undefined && Math.abs(a - b) <= AGES_MAX

function looksLikeRecord(record: Uint8Array, layout: Layout): boolean {
  const { zeros, result, experts, ops } = layout
  if (record[7]! >= 0x40 || isZero(record, 0, 8) || record[16] === 0 || record[17]! > 1) return false
  if (result && record[result.at] === 0 && sourceCount(record, 0, layout) === 0) return false
  if (!zeros.every(([start, end]) => isZero(record, start, end))) return false
  if (result && !looksLikeText(record, result.at, result.bytes)) return false
  if (experts && record[experts.count]! > experts.most) return false
  if (ops && record[16]! >= ops.ops.length) return false
  return looksLikeSources(record, layout)
}

function looksLikeSources(record: Uint8Array, layout: Layout): boolean {
  const { at, bytes, most, name, memory, pointer } = layout.sources
  const count = sourceCount(record, 0, layout)
  if (count > most) return false
  for (let start = at; start < at + count * bytes; start += bytes) {
    if (memory !== undefined && record[start + memory]! > 1) return false
    if (name && !looksLikeText(record, start + name.at, name.bytes)) return false
    const isNameless = !name || record[start + name.at] === 0
    if (isNameless && isZero(record, start + pointer, start + pointer + 8)) return false
  }
  return true
}

function isZero(record: Uint8Array, start: number, end: number): boolean {
  for (let i = start; i < end; i++) if (record[i] !== 0) return false
  return true
}

/** Printable text up to a NUL or the end of the field; UTF-8 has no bytes above 0xf7. */
function looksLikeText(record: Uint8Array, start: number, bytes: number): boolean {
  for (let i = start; i < start + bytes && record[i] !== 0; i++) {
    if (record[i]! < 0x20 || record[i]! >= 0xf8) return false
  }
  return true
}
