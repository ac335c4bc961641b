import type { Arg } from '../model/args.ts'
import type { TrackContext } from './context.ts'
import type { Span, SubjectSpans } from './subject-spans.ts'

/** What made the run of an input slow; a `Finding` of its Analysis. */
export interface Found {
  readonly rule: string
  readonly sentence: string
  readonly time_ns: number
  readonly confidence: string
  readonly confidence_reason: string
  readonly evidence: Readonly<Record<string, string | number>>
  readonly check: { readonly sql?: string | undefined; readonly command?: string | undefined }
  readonly advice: string
}

/**
 * The row Findings: a slice over each span that a finding is about, the calls of its phase or its request, or over the whole run. `whole`: from the
 * first event to the last.
 */
export function drawFindings(
  { tracks, make }: Pick<TrackContext, 'tracks' | 'make'>,
  verdict: string | undefined,
  findings: readonly Found[],
  spans: SubjectSpans,
  whole: Span,
): void {
  const rows = tracks.lanes('findings', { verdict }, true)
  for (const finding of findings) {
    const label = { name: finding.sentence, category: 'finding', colour: make.names.id(finding.rule) }
    const args = argsOf(finding)
    for (const { startNs, endNs, covers } of spansOf(finding, spans, whole)) {
      const extra = covers === undefined ? args : [...args, make.int('parts', covers)]
      rows.place(startNs, endNs, { ...label, extra: make.shown(extra) })
    }
  }

  function argsOf({ rule, time_ns, confidence, confidence_reason, evidence, check, advice }: Found): Arg[] {
    return [
      make.text('advice', advice),
      make.word('rule', rule),
      make.text('about', `docs/reference/findings.md#${rule}`),
      ...make.time('explains', Math.round(time_ns)),
      make.text('confidence', `${confidence}: ${confidence_reason}`),
      ...Object.entries(evidence).flatMap(([key, value]) => {
        if (typeof value === 'string') return [make.text(`evidence.${key}`, value)]
        return key.endsWith('_ns')
          ? make.time(`evidence.${key.slice(0, -3)}`, value)
          : [make.int(`evidence.${key}`, value)]
      }),
      ...(check.sql === undefined ? [] : [make.text('check_sql', check.sql)]),
      ...(check.command === undefined ? [] : [make.text('check_command', check.command)]),
    ]
  }
}

/** Evidence has the phase, the request, or the time of loading that a finding is about. */
function spansOf({ evidence }: Found, spans: SubjectSpans, whole: Span): readonly Span[] {
  const { phase, request, load_ns } = evidence
  const found =
    typeof request === 'number' ? spans.ofRequest(request) : spans.ofPhase(load_ns === undefined ? `${phase}` : 'load')
  return found.length > 0 ? found : [whole]
}
