import type { Analysis } from '../analysis.ts'
import type { RequestRow } from '../requests/figures.ts'
import { CALLS } from '../run/losses.ts'
import { type Confidence, confidenceOf } from './rule.ts'

/** `task 12`, as the server's log has it; else `request 3`. */
export const nameOf = (id: number, task: number | null) => (task === null ? `request ${id}` : `task ${task}`)

/** Confidence in figures of requests. `inferred`: what of them is inferred; empty: nothing. */
export function confidenceOfRequests(analysis: Analysis, inferred: string): Confidence {
  const { confidence, confidence_reason } = confidenceOf(analysis, Infinity, [...CALLS, 'requests'])
  if (confidence === 'low') return { confidence, confidence_reason }
  const { slowest, count } = analysis.requests!
  const isAny = (what: RequestRow['inferred'][number]) => slowest.some(({ inferred }) => inferred.includes(what))
  const borders = isAny('borders') ? 'borders of requests' : ''
  const parts = isAny('parts') ? 'parts of requests, from what the server writes of them' : ''
  const what = [borders, parts, inferred].filter((text) => text !== '').join(', and ')
  const counted = `${count} request${count === 1 ? '' : 's'}`
  if (what === '') return { confidence: 'high', confidence_reason: `measured in ${counted}, of which nothing is lost` }
  return { confidence: 'medium', confidence_reason: `inferred: ${what}; ${counted}` }
}
