import { expect, test } from '@jest/globals'
import type { Analysis } from '../../lib/analysis.ts'
import { isIn, memoryOf } from '../../lib/analyze/what-if/memory.ts'

/** What memory weights are in, by what the run contains of it. */

type Rows = NonNullable<Analysis['weight_memory']>['rows']
const row = { op: 'MUL_MAT', detail: '', refused_by: [], tensors: 1, bytes: 1, roles: [] }
const memory = (rows: Rows) => memoryOf({ weight_memory: { repacking: [], rows } })
const mapped = { ...row, type: 'q8_0', buffer: 'mapped file', reason: 'refused' as const }
const read = { ...mapped, buffer: 'CPU' }
const repacked = { ...row, type: 'q4_0', buffer: 'CPU_REPACK', reason: 'repacked' as const }

test.each<[what: string, rows: Rows, type: string, fits: string[]]>([
  ['weights of a mapped file', [mapped], 'q8_0', ['mapped file']],
  ['weights that were read', [read], 'q8_0', ['CPU']],
  ['repacked weights of a mapped file', [mapped, repacked], 'q4_0', ['CPU_REPACK']],
  ['another type, of a mapped file', [mapped], 'q4_K', ['CPU_REPACK', 'mapped file']],
  ['another type, of a file that is read', [read], 'q4_K', ['CPU_REPACK', 'CPU']],
  ['another type where nothing is repacked', [{ ...mapped, reason: 'not-asked' }], 'q4_K', ['mapped file']],
  ['a run whose memory is not known', [], 'q8_0', ['CPU_REPACK', 'mapped file', 'CPU']],
])('%s', (_, rows, type, fits) => {
  const own = memory(rows)(type, false)
  expect(['CPU_REPACK', 'mapped file', 'CPU'].filter((buffer) => isIn(own, buffer))).toEqual(fits)
})
