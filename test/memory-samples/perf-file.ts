/** Writes perf.data files with samples of data addresses: as `perf mem record` does, with values that are known. */

/** Bits of `sample_type`. */
export const TYPE = {
  ip: 1,
  tid: 1 << 1,
  time: 1 << 2,
  addr: 1 << 3,
  cpu: 1 << 7,
  period: 1 << 8,
  branchStack: 1 << 11,
  userRegisters: 1 << 12,
  weight: 1 << 14,
  dataSource: 1 << 15,
  identifier: 1 << 16,
  weightStruct: 1 << 24,
} as const

export interface PerfEventSpec {
  readonly name: string
  readonly type: number
  readonly config: number
  readonly sampleType: number
  /** Samples have a fixed period. */
  readonly period?: number
}

/** Fields of 8 bytes of a record's body, after the header. */
export type Record = readonly [type: number, ...fields: readonly (bigint | Uint8Array)[]]

const u64 = (...values: readonly (number | bigint)[]) => {
  const bytes = Buffer.alloc(8 * values.length)
  for (const [i, value] of values.entries()) bytes.writeBigUInt64LE(BigInt(value), 8 * i)
  return bytes
}
const u32 = (...values: readonly number[]) =>
  Buffer.concat(values.map((value) => Buffer.from(Uint32Array.of(value).buffer)))

/** Two numbers of 32 bits. */
export const pair = (low: number, high: number): bigint => BigInt(low) | (BigInt(high) << 32n)

/** A text as perf stores it: its length, padded. */
const textOf = (text: string) => {
  const bytes = Buffer.alloc((text.length + 64) & ~63)
  bytes.write(text)
  return Buffer.concat([u32(bytes.length), bytes])
}

const ATTR_BYTES = 136
const attrOf = ({ type, config, sampleType, period }: PerfEventSpec) => {
  const attr = Buffer.alloc(ATTR_BYTES)
  attr.writeUInt32LE(type, 0)
  attr.writeUInt32LE(ATTR_BYTES, 4)
  attr.writeUInt32LE(config, 8)
  attr.writeUInt32LE(period ?? 4000, 16)
  attr.writeUInt32LE(sampleType, 24)
  // sample_id_all, clockid; frequency without a period.
  attr.writeUInt32LE(((1 << 18) | (1 << 25) | (period === undefined ? 1 << 10 : 0)) >>> 0, 40)
  attr.writeUInt32LE(0b1011, 80) // sample_regs_user: three registers
  attr.writeInt32LE(1, 92) // CLOCK_MONOTONIC
  return attr
}

const recordOf = ([type, ...fields]: Record) => {
  const body = Buffer.concat(fields.map((field) => (typeof field === 'bigint' ? u64(field) : field)))
  const head = Buffer.alloc(8)
  head.writeUInt32LE(type, 0)
  head.writeUInt16LE(8 + body.length, 6)
  return Buffer.concat([head, body])
}

/** A file with these events, whose ids are 1, 2 …, these records, and NUMA nodes with CPUs (`0-1`). */
export function perfFile(
  events: readonly PerfEventSpec[],
  records: readonly Record[],
  nodes: readonly string[],
): Uint8Array {
  const data = Buffer.concat(records.map(recordOf))
  const idsAt = 104 + events.length * (ATTR_BYTES + 16)
  const dataAt = idsAt + 8 * events.length
  const attrs = events.flatMap((event, i) => [attrOf(event), u64(idsAt + 8 * i, 8)])
  const names = Buffer.concat([
    u32(events.length, ATTR_BYTES),
    ...events.flatMap((event, i) => [attrOf(event), u32(1), textOf(event.name), u64(i + 1)]),
  ])
  const topology = Buffer.concat([
    u32(nodes.length),
    ...nodes.flatMap((cpus, node) => [u32(node), u64(1 << 30, 1 << 20), textOf(cpus)]),
  ])
  const featuresAt = dataAt + data.length
  const table = u64(featuresAt + 32, names.length, featuresAt + 32 + names.length, topology.length)
  const bits = Buffer.alloc(32)
  bits.writeUInt32LE((1 << 12) | (1 << 14), 0)
  const head = Buffer.concat([
    Buffer.from('PERFILE2'),
    u64(104, ATTR_BYTES + 16, 104, events.length * (ATTR_BYTES + 16), dataAt, data.length, 0, 0),
    bits,
  ])
  const ids = u64(...events.map((_, i) => i + 1))
  return new Uint8Array(Buffer.concat([head, ...attrs, ids, data, table, names, topology]))
}
