import type { Cell } from '../lib/sql.ts'

/** A loaded trace. */
interface Queried {
  query(sql: string): { readonly rows: readonly Cell[][] }
}

const factOf = (name: string) => `(SELECT int_value FROM metadata WHERE name = 'trace_attribute.${name}')`

/** SQL: the `ts` of the input's origin in a trace of one input. */
export const ORIGIN_TS = factOf('origin_ts')

/** SQL: the absolute time of `ts` 0. It is 0 only in a trace of several inputs. */
export const ZERO_NS = `ifnull(${factOf('origin_ns')} - ${ORIGIN_TS}, 0)`

/** The absolute time of `ts` 0. */
export const zeroOf = (trace: Queried): bigint =>
  BigInt(trace.query(`SELECT ${ZERO_NS}`).rows[0]![0] as number | bigint)
