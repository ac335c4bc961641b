import { plural } from '../../model/units.ts'
import { baseName, type Context } from '../context.ts'
import { columns, type Section, sourceHtml, tableHtml } from '../figure.ts'
import { html } from '../html.ts'

/** Issues and losses of the recording. */
export function issuesSection({ analysis: { inputs, run }, stats }: Context): Section {
  const rows = inputs.flatMap(({ name, issues }) =>
    Object.entries(issues).map(([code, count]) => [baseName(name), code, String(count)]),
  )
  const losses = Object.entries(run.losses).map(([code, count]) => `${code}: ${count}`)
  const content =
    rows.length === 0
      ? html`<p>None: the logs were read without an issue, and nothing was lost.</p>`
      : html`<p>${plural(rows.length, 'kind')} of issues.${losses.length > 0 ? ` Losses: ${losses.join(', ')}.` : ' No losses.'}</p>
${tableHtml({ columns: columns('<log', '<issue', 'times'), rows }, 'Issues by their code')}${sourceHtml(`${stats('--json')} (inputs, run.losses)`)}`
  return { id: 'issues', title: 'Issues and losses', content: [content] }
}

/** What the logs do not contain; figures with the same reason together. `missing`: parts of the report without data. */
export function unknownSection({ analysis: { undetermined } }: Context, missing: readonly string[]): Section {
  const byReason = new Map<string, string[]>()
  for (const { what, why, hint } of undetermined) {
    const reason = hint === undefined ? why : `${why} (${hint})`
    byReason.set(reason, [...(byReason.get(reason) ?? []), what])
  }
  const lines = [...byReason].map(([reason, whats]) => html`<li><strong>${whats.join(', ')}</strong>: ${reason}</li>`)
  const parts = missing.length === 0 ? undefined : html`<li>Not in this report: ${missing.join(', ')}</li>`
  const none = lines.length + missing.length === 0 ? html`<li>Nothing is missing.</li>` : undefined
  return { id: 'unknown', title: 'Not known', content: [html`<ul>${parts}${lines}${none}</ul>`] }
}
