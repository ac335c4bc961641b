import type { Finding } from '../../analyze/analysis.ts'
import { duration } from '../../model/units.ts'
import type { Context } from '../context.ts'
import { columns, type Section, tableHtml } from '../figure.ts'
import { type Html, html } from '../html.ts'

/** What made the run slow, most time first. */
export function findingsSection({ analysis: { findings } }: Context): Section {
  const content =
    findings.length > 0
      ? html`<ol class="findings">${findings.map(findingHtml)}</ol>`
      : html`<p>No findings in what was recorded.</p>`
  return { id: 'findings', title: 'Findings', content: [content] }
}

function findingHtml(finding: Finding, index: number): Html {
  const { sentence, time_ns, confidence, confidence_reason, evidence, check, advice, rule } = finding
  const rows = Object.entries(evidence).map(([name, value]) => [name, String(value)])
  const table = tableHtml({ columns: columns('<figure', '<value'), rows }, `Evidence of finding ${index + 1}`)
  const how = check.sql ?? check.command
  return html`<li><strong>${sentence}</strong><p class="note">${time_ns > 0 ? `explains ${duration(time_ns)} · ` : ''}confidence: ${confidence} (${confidence_reason}) · rule ${rule}</p>
<p>${advice}</p><details><summary>Evidence and check of finding ${index + 1}</summary>${table}${how === undefined ? undefined : html`<p class="source">${check.evidence}: <code>${how}</code></p>`}</details></li>
`
}
