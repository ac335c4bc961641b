import { visible } from '../bytes/visible.ts'
import { VIEWER } from '../query/view.ts'

/** What follows the address of a trace in that of its page. */
export const PAGE_SUFFIX = '.html'

/** How often the page asks whether the UI is ready, in ms. */
const ASK_MS = 100

/** What a page needs. */
export interface PostPage {
  /** The name of the trace. */
  readonly name: string
  /** The address of the UI, with what it is to show. */
  readonly viewer: string
  /** Permits the page's own script and style. */
  readonly nonce: string
}

/** The policy of a page: nothing of other sites, and no frame around it. */
export const pagePolicy = (nonce: string): string =>
  `default-src 'none'; script-src 'nonce-${nonce}'; style-src 'nonce-${nonce}'; connect-src 'self'; frame-ancestors 'none'`

/**
 * A page that fetches the trace from its own address without {@link PAGE_SUFFIX}, and passes it to the UI in a tab that its button opens: browsers let a page open
 * a tab only when the user asks for it. Such pages of this machine need no permission of the UI's content security policy, so they may be on any port. The
 * UI answers PING when it is ready. Source: Perfetto v55.3, ui/src/frontend/post_message_handler.ts.
 */
export function postPage({ name, viewer, nonce }: PostPage): string {
  const facts = JSON.stringify({ name: visible(name), viewer, origin: VIEWER }).replaceAll('<', '\\u003c')
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>ggml2perfetto</title>
<style nonce="${nonce}">body { font: 1rem sans-serif; margin: 4rem auto; max-width: 40rem } button { font: inherit; padding: 0.5rem 1rem }</style>
<p id="state">Fetching the trace …</p>
<button id="open" disabled>Open it in ui.perfetto.dev</button>
<script type="module" nonce="${nonce}">
const { name, viewer, origin } = ${facts}
const button = document.querySelector('#open')
const say = (text) => { document.querySelector('#state').textContent = text }
const fetchTrace = async () => {
  const response = await fetch(location.pathname.slice(0, -${PAGE_SUFFIX.length}))
  if (!response.ok) throw new Error(await response.text())
  return response.arrayBuffer()
}
try {
  const buffer = await fetchTrace()
  say(\`\${name} is in this page. The button opens a tab and passes it there; it does not leave this machine.\`)
  button.disabled = false
  button.addEventListener('click', () => {
    const tab = window.open(viewer)
    if (!tab) return say('The browser does not let this page open a tab: allow it, and click again.')
    button.disabled = true
    say('The tab is loading …')
    const stop = new AbortController()
    const end = (text) => { clearInterval(asking); stop.abort(); say(text) }
    const asking = setInterval(() => {
      if (!tab.closed) return tab.postMessage('PING', '*')
      end('The tab was closed: the button opens it again.')
      button.disabled = false
    }, ${ASK_MS})
    addEventListener('message', (event) => {
      if (event.source !== tab || event.origin !== origin || event.data !== 'PONG') return
      end('The tab has the trace: this page can be closed.')
      tab.postMessage({ perfetto: { buffer, title: name, fileName: name, localOnly: false } }, origin)
    }, { signal: stop.signal })
  })
} catch (error) {
  say(\`The trace cannot be fetched (\${error.message}): run the command again.\`)
}
</script>
`
}
