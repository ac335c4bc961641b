import type { SqliteRows } from '../../../input/sqlite/rows.ts'
import type { NvtxPayload } from '../../../model/nvtx-events.ts'
import { Beside } from '../../common/spans.ts'

/** What the 64 bits of a payload are. `json`: the number of a name. */
export type PayloadKind = NvtxPayload['type'] | 'json'

const scratch = new DataView(new ArrayBuffer(8))

/** Payloads of some of a thread's ranges, by their ids: 8 bytes each. */
export class Payloads {
  private readonly high = new Beside()
  private readonly low = new Beside()

  set(id: number, high: number, low: number): void {
    this.high.set(id, high)
    this.low.set(id, low)
  }

  /** For `json`, the number of a name. */
  at(id: number, type: PayloadKind): number | bigint | undefined {
    const [high, low] = [this.high.at(id), this.low.at(id)]
    if (type === 'unknown') return undefined
    if (type === 'json') return low
    scratch.setUint32(0, high)
    scratch.setUint32(4, low)
    if (type === 'f64' || type === 'f32') return scratch.getFloat64(0)
    const value = (type === 'u64' ? high : high | 0) * 2 ** 32 + low
    if (Number.isSafeInteger(value)) return value
    return type === 'u64' ? scratch.getBigUint64(0) : scratch.getBigInt64(0)
  }
}

/** A value that goes with a range, as 64 bits. */
export interface PayloadBits {
  readonly type: PayloadKind
  readonly high: number
  readonly low: number
}

/** The one payload value that a row has in the columns from `first` on, which are those of `types`. */
export function payloadOf(
  row: SqliteRows,
  first: number,
  types: readonly NvtxPayload['type'][],
): PayloadBits | undefined {
  for (let i = 0; i < types.length; i++) {
    if (row.isNull(first + i)) continue
    const type = types[i]!
    if (type !== 'f64' && type !== 'f32') return { type, high: row.high(first + i), low: row.low(first + i) }
    scratch.setFloat64(0, row.number(first + i)) // which may be stored as an integer
    return { type, high: scratch.getUint32(0), low: scratch.getUint32(4) }
  }
  return undefined
}
