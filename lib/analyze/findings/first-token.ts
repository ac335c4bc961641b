import type { Finding, FirstTokenFigures, FirstTokenPart } from '../analysis.ts'

/** The same with what is unusual in each part. */
export function withFindings(
  figures: FirstTokenFigures | null,
  findings: readonly Finding[],
): FirstTokenFigures | null {
  if (!figures) return null
  const rulesOf = (part: FirstTokenPart) =>
    part.time_ns === null ? [] : findings.filter((finding) => isIn(part, finding)).map(({ rule }) => rule)
  const parts = figures.parts.map((part) => ({ ...part, findings: [...new Set(rulesOf(part))] }))
  return { ...figures, parts }
}

/** Is a finding one of this part? What slows down all decode calls is none of the first. */
function isIn({ what, stages }: FirstTokenPart, { rule, evidence }: Finding): boolean {
  if (rule === 'slow-load') return stages.some(({ stage }) => stage === evidence['stage'])
  if (what === 'first decode') return rule === 'first-call' && evidence['phase'] === 'decode'
  return rule !== 'roofline' && evidence['phase'] === what
}
