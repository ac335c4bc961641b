import { CellsBatch, CellType } from '../generated/trace_processor.ts'
import type { Message } from './message.ts'

/** A value in a query's result. Integers are exact: a number if it is safe, else a bigint. */
export type Cell = null | number | bigint | string | Uint8Array

/**
 * Appends the cells of `batch`, a `CellsBatch`, to `rows` of `width` cells; the last row may be incomplete until the
 * next batch.
 * @throws RangeError if the batch is damaged
 */
export function appendBatch(rows: Cell[][], width: number, batch: Message): void {
  const next = readers(batch)
  let row = rows.at(-1) ?? []
  for (const kind of batch.bytes(CellsBatch.cells)) {
    if (row.length === width || rows.length === 0) {
      row = []
      rows.push(row)
    }
    const read = next[kind]
    if (!read) throw new RangeError(`a cell of unknown kind ${kind}`)
    row.push(read())
  }
}

/** For each kind of cell, a function that returns the next value of that kind. */
function readers(batch: Message): Record<number, () => Cell> {
  const integers = integerReader(batch.bytes(CellsBatch.varint_cells))
  const floats = batch.bytes(CellsBatch.float64_cells)
  const floatView = new DataView(floats.buffer, floats.byteOffset, floats.byteLength)
  const strings = batch.text(CellsBatch.string_cells).split('\0')
  const blobs = batch.all(CellsBatch.blob_cells)
  let [float, string, blob] = [0, 0, 0]
  return {
    [CellType.CELL_NULL]: () => null,
    [CellType.CELL_VARINT]: integers,
    [CellType.CELL_FLOAT64]: () => floatView.getFloat64(8 * float++, true),
    [CellType.CELL_STRING]: () => present(strings[string++]),
    [CellType.CELL_BLOB]: () => present(blobs[blob++]),
  }
}

function present<T>(value: T | undefined): T {
  if (value === undefined) throw new RangeError('fewer values than cells')
  return value
}

const lowBits = 2 ** 49
const highSign = 2 ** 14

/** Returns a function that reads packed int64 varints one by one: seven bytes into `low`, the rest (15 bits) into `high`. */
export function integerReader(bytes: Uint8Array): () => number | bigint {
  let at = 0
  return () => {
    let [low, high] = [0, 0]
    for (let scale = 1; ; scale *= 128) {
      const byte = present(bytes[at++])
      if (scale < lowBits) low += (byte & 127) * scale
      else high += (byte & 127) * (scale / lowBits)
      if (byte < 128) break
    }
    // Only one bit of the tenth byte counts, so `high` has 15: the highest is the sign.
    if (high >= highSign) high -= 2 * highSign
    const value = high * lowBits + low
    return Number.isSafeInteger(value) ? value : BigInt(high) * BigInt(lowBits) + BigInt(low)
  }
}
