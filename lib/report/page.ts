import type { Section } from './figure.ts'
import { documentText, type Html, html, raw } from './html.ts'
import { SCRIPT, SCRIPT_HASH } from './script.ts'
import { STYLE } from './style.ts'

/** No request at all; only the page's script and styles. */
const POLICY = `default-src 'none'; script-src 'sha256-${SCRIPT_HASH}'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'`

/** What a page contains. */
export interface Page {
  readonly title: string
  readonly lead: Html
  readonly sections: readonly Section[]
}

const THEMES = [
  ['system', 'as the system'],
  ['light', 'light'],
  ['dark', 'dark'],
] as const

/** A whole HTML document that needs nothing else. */
export function pageHtml({ title, lead, sections }: Page): string {
  const theme = THEMES.map(
    ([id, label], i) =>
      html`<label><input type="radio" name="theme" id="theme-${id}"${i === 0 ? raw(' checked') : undefined}> ${label}</label>`,
  )
  return documentText(html`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${POLICY}">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="robots" content="noindex">
<meta name="generator" content="ggml2perfetto">
<title>${title}</title>
<style>${raw(STYLE)}</style>
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header><h1>${title}</h1>${lead}
<fieldset class="theme"><legend>Theme</legend>${theme}</fieldset></header>
<nav aria-label="Parts of the report"><ul>${sections.map(({ id, title }) => html`<li><a href="#${id}">${title}</a></li>`)}</ul></nav>
<main id="main" tabindex="-1">
${sections.map(({ id, title, content }) => html`<section aria-labelledby="${id}"><h2 id="${id}">${title}</h2>\n${content}</section>\n`)}</main>
<footer><p>Made by ggml2perfetto report. The page contains all its data and makes no request.</p></footer>
<div id="tip" role="status" aria-live="polite" hidden></div>
<script>${raw(SCRIPT)}</script>
</body>
</html>
`)
}
