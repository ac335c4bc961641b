import type { Finding } from '../lib/cli.ts'
import { duration, inUnit, labelOf } from './units.ts'

/** Findings in the last lines of a command. */
const SHOWN = 3

/**
 * The most important findings, a line each, and the command that shows all with their evidence; no line without findings. `areEstimates`: not
 * all calls were looked at.
 */
export function describeFindings(findings: readonly Finding[], command: string, areEstimates: boolean): string[] {
  if (findings.length === 0) return []
  const [first, ...others] = findings.slice(0, SHOWN).map(({ sentence }) => sentence)
  const more = findings.length > SHOWN ? ` (${findings.length - SHOWN} more)` : ''
  return [
    `why: ${first}`,
    ...others.map((sentence) => `     ${sentence}`),
    `     ${areEstimates ? 'estimated from some of the calls; of all calls, with ' : ''}evidence and checks${more}: ${command}`,
  ]
}

/** A finding with its evidence, and how to check it. `query`: the command that runs SQL on the trace of the same logs. */
export function describeFinding(finding: Finding, number: number, query: string): string[] {
  const { sentence, time_ns, confidence, confidence_reason, evidence, check, advice } = finding
  const indent = ' '.repeat(`${number}. `.length)
  const figures = Object.entries(evidence).map(([key, value]) => `${labelOf(key)} ${valueText(key, value)}`)
  const shown = labelOf(check.evidence)
  return [
    `${number}. ${sentence}`,
    ...(time_ns > 0 ? [`${indent}time       ${duration(time_ns)}`] : []),
    `${indent}confidence ${confidence}: ${confidence_reason}`,
    `${indent}evidence   ${figures.join(' · ')}`,
    `${indent}check      ${check.sql === undefined ? check.command : `${query} "${check.sql}"`}`,
    `${indent}           shows: ${shown}`,
    `${indent}to do      ${advice}`,
  ]
}

function valueText(key: string, value: string | number): string {
  if (typeof value === 'string') return value
  // Whole numbers are counts and identifiers, of processes for instance.
  return inUnit(key, value) ?? String(Number.isInteger(value) ? value : Number(value.toPrecision(4)))
}
