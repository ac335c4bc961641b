import type { Comparison } from '../analyze/compare/comparison.ts'
import { html } from './html.ts'
import type { Page } from './page.ts'

/** The page of a comparison. */
export function comparisonPage({ before, after }: Comparison, title: string | undefined): Page {
  return { title: title ?? `${before.name} and ${after.name}`, lead: html`<p></p>`, sections: [] }
}
