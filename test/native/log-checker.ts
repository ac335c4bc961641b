/**
 * Reads a .ggtrace log by docs/reference/ggtrace-format.md, and by nothing else: the reader of lib and the writer of native/ are not
 * looked at, so that the three can be wrong in different ways only.
 */

export const MAGIC = 0x30544747
export const Kind = { run: 1, definitions: 2, events: 3, ring: 4 }
const HEADER_BYTES = 48

export interface LogRecord {
  readonly type: number
  /** In the file. */
  readonly offset: number
  readonly size: number
}

export interface Block {
  readonly offset: number
  readonly isOpen: boolean
  readonly kind: number
  readonly writer: number
  readonly sequence: number
  readonly tid: number
  readonly base: bigint
  readonly needs: number
  readonly dropped: number
  readonly worker: number
  readonly call: number
  readonly records: readonly LogRecord[]
}

export interface Log {
  readonly view: DataView
  readonly blocks: readonly Block[]
  /** Bytes that are not zero and in no block, but for what an open block may leave behind. */
  readonly strayBytes: number
}

export function checksum(view: DataView, begin: number, end: number): number {
  const lanes = Uint32Array.from({ length: 8 }, (_, lane) => 0x811c9dc5 + lane)
  for (let at = begin, i = 0; at < end; at += 4, i++) {
    lanes[i & 7] = Math.imul(lanes[i & 7]! ^ view.getUint32(at, true), 0x01000193)
  }
  return lanes.reduce((sum, lane, n) => (sum ^ ((lane << (4 * n)) | (n && lane >>> (32 - 4 * n)))) >>> 0, 0)
}

/** Throws where a sealed block, or a record, is not what the page says. */
export function readLog(bytes: Uint8Array): Log {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const blocks: Block[] = []
  let strayBytes = 0
  let isBehindOpen = false
  for (let at = 0; at + 8 <= bytes.length; ) {
    const word = view.getUint32(at, true)
    if (word === MAGIC && at + HEADER_BYTES <= bytes.length) {
      const block = readBlock(view, at)
      blocks.push(block)
      isBehindOpen = block.isOpen
      const last = block.records.at(-1)
      const end = last ? last.offset + last.size : at + HEADER_BYTES
      at = block.isOpen ? Math.ceil(end / 8) * 8 : at + view.getUint32(at + 4, true)
      continue
    }
    if ((word !== 0 || view.getUint32(at + 4, true) !== 0) && !isBehindOpen) strayBytes += 8
    at += 8
  }
  return { view, blocks, strayBytes }
}

function readBlock(view: DataView, offset: number): Block {
  const u32 = (at: number) => view.getUint32(offset + at, true)
  const size = u32(4)
  const isOpen = size === 0
  const kind = view.getUint16(offset + 12, true)
  const end = isOpen ? view.byteLength : offset + size
  const place = `block at ${offset}`
  if (size % 8 !== 0 || end > view.byteLength || size > 1 << 20) throw new Error(`${place}: size ${size}`)
  if (!isOpen && checksum(view, offset + 12, kind === Kind.ring ? offset + HEADER_BYTES : end) !== u32(8))
    throw new Error(`${place}: checksum`)
  return {
    offset,
    isOpen,
    kind,
    writer: view.getUint16(offset + 14, true),
    sequence: u32(16),
    tid: u32(20),
    base: view.getBigUint64(offset + 24, true),
    needs: u32(32),
    dropped: u32(36),
    worker: u32(40),
    call: u32(44),
    records: kind === Kind.ring ? [] : readRecords(view, offset + HEADER_BYTES, end, isOpen),
  }
}

function readRecords(view: DataView, begin: number, end: number, isOpen: boolean): LogRecord[] {
  const records: LogRecord[] = []
  let at = begin
  while (at + 4 <= end && view.getUint32(at, true) !== 0) {
    if (isOpen && at % 8 === 0 && view.getUint32(at, true) === MAGIC) break
    const record = { type: view.getUint16(at, true), offset: at, size: view.getUint16(at + 2, true) }
    if (record.size < 4 || record.size % 4 !== 0 || at + record.size > end) throw new Error(`record at ${at}`)
    records.push(record)
    at += record.size
  }
  for (let rest = at; !isOpen && rest < end; rest += 4) {
    if (view.getUint32(rest, true) !== 0 || end - at > 4) throw new Error(`record at ${at}: padding`)
  }
  return records
}

/** The records of one type, in the order of the file. */
export const recordsOf = (log: Log, type: number): LogRecord[] =>
  log.blocks.flatMap(({ records }) => records.filter((record) => record.type === type))

/**
 * What is wrong with the row of blocks: of each writer 0, 1, 2 …, at most the last one open, serials in order. A
 * ring's event writers may begin with another.
 */
export function problemsOf(log: Log): string[] {
  const problems: string[] = []
  const isRing = log.blocks[0]?.kind === Kind.ring
  if (log.strayBytes > 0) problems.push(`${log.strayBytes} bytes in no block`)
  const last = new Map<number, Block>()
  let serial = 0
  for (const block of log.blocks) {
    const before = last.get(block.writer)
    if (before?.isOpen) problems.push(`writer ${block.writer}: a block after an open one`)
    const first = isRing && block.kind === Kind.events ? block.sequence : 0
    if (block.sequence !== (before ? before.sequence + 1 : first)) problems.push(`${block.writer}: lost block`)
    if (before && block.dropped < before.dropped) problems.push(`${block.writer}: dropped ${block.dropped}`)
    last.set(block.writer, block)
    if (block.kind !== Kind.definitions) continue
    if (block.needs < serial) problems.push(`serial ${block.needs} after ${serial}`)
    serial = block.needs + block.records.length
  }
  for (const block of log.blocks) {
    if (block.kind === Kind.events && !block.isOpen && block.needs > serial) problems.push(`needs ${block.needs}`)
  }
  return problems
}

/** The totals of the END record, or undefined. */
export function endOf(log: Log): { written: number; dropped: number } | undefined {
  const [end] = recordsOf(log, 3)
  if (!end) return undefined
  return {
    written: Number(log.view.getBigUint64(end.offset + 12, true)),
    dropped: Number(log.view.getBigUint64(end.offset + 20, true)),
  }
}

/** All event records, of any type. */
export const eventCount = (log: Log): number =>
  log.blocks.reduce((sum, { kind, records }) => sum + (kind === Kind.events ? records.length : 0), 0)

export interface LoggedOperator {
  readonly type: number
  readonly tensor: number
  readonly start: number
  readonly compute: number
  readonly wait: number
}

/** The operators of a block, by the rules of the cursor. */
export function operatorsOf({ view }: Log, { base, records }: Block): LoggedOperator[] {
  const operators: LoggedOperator[] = []
  let cursor = Number(base)
  const add = (operator: LoggedOperator) => {
    operators.push(operator)
    cursor = operator.start + operator.compute + operator.wait
  }
  for (const { type, offset } of records) {
    const [u32, u64] = [
      (at: number) => view.getUint32(offset + at, true),
      (at: number) => Number(view.getBigUint64(offset + at, true)),
    ]
    if (type === 35) cursor = u64(4)
    if (type >= 32 && type <= 34) add({ type, tensor: u32(4), start: cursor + u32(8), compute: u32(12), wait: u32(16) })
    if (type === 45) add({ type, tensor: u32(28), start: u64(4), compute: u64(12) - u64(4), wait: u64(20) - u64(12) })
    if (type >= 71 && type <= 73) {
      const packed = view.getBigUint64(offset + 4, true)
      const bits = (from: number, count: number) => Number((packed >> BigInt(from)) & ((1n << BigInt(count)) - 1n))
      add({ type, tensor: bits(0, 20), start: cursor, compute: bits(40, 24), wait: bits(20, 20) })
    }
  }
  return operators
}
