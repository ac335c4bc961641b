import type { Section } from './figure.ts'
import { documentText, type Html, html, raw } from './html.ts'
import { STYLE } from './style.ts'

/**
 * The script of the page: numbers under the pointer, by touch and by keyboard. Without it (in a mail viewer) all figures are there, and
 * browsers show the same numbers as titles.
 */
export const SCRIPT = `(()=>{
const tip=document.getElementById('tip'),texts=new WeakMap(),marks=new WeakMap();let shown;
for(const svg of document.querySelectorAll('.chart svg')){const all=[];
for(const title of svg.querySelectorAll('title')){const mark=title.parentNode;if(mark===svg)continue;texts.set(mark,title.textContent);title.remove();all.push(mark);
if(mark.hasAttribute('role'))mark.setAttribute('aria-label',texts.get(mark))}
if(all.length===0)continue;marks.set(svg,{all,at:-1});svg.tabIndex=0;
const label=svg.getAttribute('aria-label');if(label)svg.setAttribute('aria-label',label+'. '+all.length+' values: arrow keys read them')}
const hide=()=>{tip.hidden=true;if(shown)shown.classList.remove('at');shown=undefined};
const show=mark=>{hide();shown=mark;mark.classList.add('at');tip.textContent=texts.get(mark);tip.hidden=false;place()};
const place=()=>{if(!shown)return;const of=shown.getBoundingClientRect(),own=tip.getBoundingClientRect();
tip.style.left=Math.max(4,Math.min(innerWidth-own.width-4,of.left+of.width/2-own.width/2))+'px';
tip.style.top=(of.top-own.height-8>0?of.top-own.height-8:Math.min(innerHeight-own.height-4,of.bottom+8))+'px'};
const markAt=target=>{for(let node=target;node&&node.closest;node=node.parentNode){if(texts.has(node))return node;if(node.tagName==='svg')return}};
document.addEventListener('pointerover',event=>{const mark=markAt(event.target);if(mark)show(mark);else hide()});
document.addEventListener('click',event=>{const mark=markAt(event.target);if(mark)show(mark)});
document.addEventListener('scroll',place,{passive:true,capture:true});
document.addEventListener('focusout',hide);
document.addEventListener('keydown',event=>{if(event.key==='Escape')return hide();
const of=marks.get(event.target);if(!of)return;const step={ArrowRight:1,ArrowDown:1,ArrowLeft:-1,ArrowUp:-1}[event.key];
if(step)of.at=Math.max(0,Math.min(of.all.length-1,of.at+step));else if(event.key==='Home')of.at=0;else if(event.key==='End')of.at=of.all.length-1;else return;
event.preventDefault();show(of.all[of.at])});
})()`

/** SHA-256 of {@link SCRIPT} in base64: the page's policy runs no other script. A test computes it. */
export const SCRIPT_HASH = '7Ms8Y6wdpKtcf/QBdz2XVmO6vXwyTgAzteWxKt0FLaY='

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
