import { type Fleet, type FleetOptions, fleet, type TemplateRow } from '../../scripts/fleet/rows.mjs'
import type { Rows } from './datasets.ts'

/** Roles of a decode call of examples/moe.ggtrace.gz, with their share of its time. */
const ROLES = [
  ['Qcur', 'MUL_MAT', 0.1],
  ['Kcur', 'MUL_MAT', 0.08],
  ['FLASH_ATTN_EXT', 'FLASH_ATTN_EXT', 0.08],
  ['attn_out', 'MUL_MAT', 0.1],
  ['ffn_moe_gate', 'MUL_MAT_ID', 0.2],
  ['ffn_moe_up', 'MUL_MAT_ID', 0.2],
  ['ffn_moe_down', 'MUL_MAT_ID', 0.2],
  ['result_output', 'MUL_MAT', 0.04],
] as const

const callOf = (ns: number): TemplateRow[] =>
  ROLES.flatMap(([role, op, share], node) =>
    [0, 1].map((worker) => ({
      node,
      worker,
      role,
      op,
      dur_ns: Math.round(ns * share),
      layer: 0,
      type: 'Q4_0',
      backend: 'CPU',
      inner_wait_ns: 0,
      bytes_read: 1000,
      flop: 2000,
      bytes_are_max: false,
    })),
  )

const TEMPLATE = { prefill: Object.assign(callOf(900_000), { tokens: 16 }), decode: callOf(100_000) }

/** A small synthetic fleet: what is planted, and the rows of all runs. */
export function smallFleet(options: FleetOptions): { truth: Fleet['truth']; rows: Rows; runs: number } {
  const made = fleet(TEMPLATE, options)
  const rows: Record<string, unknown[]> = {}
  let runs = 0
  for (const { tables } of made.runs()) {
    runs++
    for (const [name, of] of Object.entries(tables)) {
      rows[name] ??= []
      rows[name].push(...of)
    }
  }
  return { truth: made.truth, rows: rows as Rows, runs }
}
