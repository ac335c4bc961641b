import { ANALYSIS_SCHEMA, type Analysis } from '../analyze/analysis.ts'
import { ANALYSIS_HINT, checkGiven } from '../analyze/common/given.ts'
import { COMPARISON_SCHEMA, type Comparison } from '../analyze/compare/figures.ts'
import type { WhatIf } from '../analyze/what-if/figures.ts'
import { checkNames } from '../errors.ts'
import { REPORT_HTML_OPTIONS } from '../generated/option-names.ts'
import { comparisonPage } from './comparison.ts'
import { baseName, type Context, contextOf, type LayerDrawing } from './context.ts'
import type { Section } from './figure.ts'
import { headHtml } from './head.ts'
import { pageHtml } from './page.ts'
import { accessesSection } from './sections/accesses.ts'
import { blocksSection } from './sections/blocks.ts'
import { callTimeSection } from './sections/call-time.ts'
import { expertsSection } from './sections/experts.ts'
import { findingsSection } from './sections/findings.ts'
import { firstTokenSection } from './sections/first-token.ts'
import { gpuSection } from './sections/gpu.ts'
import { graphSection } from './sections/graph.ts'
import { issuesSection, unknownSection } from './sections/limits.ts'
import { matmulSection } from './sections/matmul.ts'
import { memorySection } from './sections/memory.ts'
import { numaSection } from './sections/numa.ts'
import { phasesSection } from './sections/phases.ts'
import { placementSection } from './sections/placement.ts'
import { rooflineSection } from './sections/roofline.ts'
import { runSection } from './sections/run.ts'
import { threadsSection } from './sections/threads.ts'
import { weightMemorySection } from './sections/weights.ts'
import { whatIfSection } from './sections/what-if.ts'
import { workersSection } from './sections/workers.ts'

/** How a report is made. */
export interface ReportOptions {
  /** The title of the page; by default the name of the model, or of the log. */
  readonly title?: string | undefined
  /** The graph of one layer ({@link layerToShow}), drawn by the caller: its layout needs a large library. */
  readonly drawing?: LayerDrawing | undefined
  /** Predictions of this run that are shown, results of `whatIf`. */
  readonly predictions?: readonly WhatIf[] | undefined
}

/** Parts of a report that a log may have no data for; without a title, they are no part of most runs. */
const PARTS: readonly (readonly [title: string, section: (context: Context) => Section | undefined])[] = [
  ['', whatIfSection],
  ['first token', firstTokenSection],
  ['time of calls', callTimeSection],
  ['prefill and decode', phasesSection],
  ['parts of the model', blocksSection],
  ['roofline', rooflineSection],
  ['matrix products', matmulSection],
  ['workers', workersSection],
  ['', placementSection],
  ['', weightMemorySection],
  ['machine and threads', threadsSection],
  ['', numaSection],
  ['memory', memorySection],
  ['samples of memory', accessesSection],
  ['experts', expertsSection],
  ['graph of a layer', graphSection],
  ['GPU', gpuSection],
]

/**
 * A report as one HTML page that needs nothing else: drawings are SVG, and its policy forbids every request. Of an Analysis: verdict, findings, figures with
 * their data, the run; `series.calls` adds figures over calls. Of a comparison: both sides. Texts of inputs are escaped; the host's name and folders of
 * logs are not in it.
 */
export function reportHtml(subject: Analysis | Comparison, options: ReportOptions = {}): string {
  checkNames('reportHtml', options, REPORT_HTML_OPTIONS)
  checkGiven('reportHtml', subject, [ANALYSIS_SCHEMA, COMPARISON_SCHEMA], ANALYSIS_HINT)
  if (subject.schema === COMPARISON_SCHEMA) return pageHtml(comparisonPage(subject, options.title))
  const context = contextOf(subject, options.drawing, options.predictions)
  const parts = PARTS.map(([title, make]) => ({ title, section: make(context) }))
  const missing = parts.flatMap(({ title, section }) => (section || title === '' ? [] : [title]))
  const sections = [
    findingsSection(context),
    ...parts.flatMap(({ section }) => section ?? []),
    runSection(context),
    issuesSection(context),
    unknownSection(context, missing),
  ]
  const { run, inputs } = subject
  const title = options.title ?? run.model ?? baseName(inputs[0]?.name ?? 'report')
  return pageHtml({ title, lead: headHtml(subject), sections })
}
