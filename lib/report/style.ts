import { COLOURS, THEMES } from './colours.ts'

type ThemeName = keyof typeof THEMES

function variables(theme: ThemeName): string {
  const own = Object.entries(THEMES[theme]).map(([name, value]) => `--${name}:${value}`)
  const data = COLOURS.map(([light, dark], i) => `--k${i}:${theme === 'light' ? light : dark}`)
  return `color-scheme:${theme};${[...own, ...data].join(';')}`
}

/** A drawing on white paper, in dark: light and dark change places, hues remain. */
const DARK_PAPER = '.paper{filter:invert(.92) hue-rotate(180deg)}'

/** The styles of the page. A theme is chosen with radio buttons, without a script; paper is always light. */
export const STYLE = `:root{${variables('light')}}
@media (prefers-color-scheme:dark){:root{${variables('dark')}}:root:not(:has(#theme-light:checked)) ${DARK_PAPER}}
:root:has(#theme-light:checked){${variables('light')}}
:root:has(#theme-dark:checked){${variables('dark')}}
:root:has(#theme-dark:checked) ${DARK_PAPER}
*{box-sizing:border-box}
html{scroll-padding-top:1rem}
body{margin:0;background:var(--bg);color:var(--fg);font:16px/1.5 system-ui,sans-serif}
header,main,footer,nav{max-width:940px;margin:0 auto;padding:0 1.25rem}
header{padding-top:1rem}
h1{font-size:1.6rem;line-height:1.25;margin:.5rem 0;overflow-wrap:anywhere}
h2{font-size:1.3rem;margin:2.5rem 0 .5rem;padding-top:.75rem;border-top:1px solid var(--line)}
h3{font-size:1.05rem;margin:1.25rem 0 .25rem}
p{margin:.25rem 0 .75rem;overflow-wrap:anywhere}
a{color:var(--accent)}
a:focus-visible,summary:focus-visible,input:focus-visible,.scroll:focus-visible,svg:focus-visible{outline:3px solid var(--accent);outline-offset:2px}
.skip{position:absolute;left:-99rem}.skip:focus{left:1rem;top:.5rem;background:var(--bg);padding:.5rem;z-index:3}
.lead{color:var(--muted)}
.verdict{font-size:1.15em;font-weight:600}
.gauge{position:relative;height:1.1rem;border-radius:4px;background:var(--panel);border:1px solid var(--line);margin:.5rem 0 .25rem;overflow:hidden;print-color-adjust:exact}
.gauge span{position:absolute;inset:0 auto 0 0;background:var(--k0)}.gauge .running{background:var(--k0);opacity:.35}
dl.heroes{display:flex;flex-wrap:wrap;gap:.5rem 2rem;margin:.75rem 0}
.heroes dd{font-size:1.6rem;line-height:1.2;font-variant-numeric:tabular-nums;margin:0}.heroes dt{font-size:.85rem}
fieldset.theme{border:0;padding:0;margin:0;display:flex;gap:.9rem;font-size:.9rem;flex-wrap:wrap}
fieldset.theme legend{float:left;margin-right:.9rem;color:var(--muted);padding:0}
nav ul{list-style:none;display:flex;flex-wrap:wrap;gap:.25rem 1rem;padding:0;margin:.75rem 0}
figure{margin:0 0 1.75rem;break-inside:avoid}
figcaption p,.source,.note{color:var(--muted);font-size:.9rem}
code{font:.85em/1.45 ui-monospace,monospace;overflow-wrap:anywhere;background:var(--panel);padding:.05rem .25rem;border-radius:3px}
.chart svg{display:block;max-width:100%;height:auto;overflow:visible;color:var(--fg);--plot-background:var(--bg)}
.scroll.paper{background:#fff;color:#000;max-height:36rem}.paper svg{max-width:none;color:#000}
.wide{overflow-x:auto}.chart .wide svg{max-width:none}.chart text{white-space:pre}
.narrow{display:none}
.legend{list-style:none;display:flex;flex-wrap:wrap;gap:.15rem .9rem;padding:0;margin:.25rem 0;font-size:.85rem}
.key{display:inline-block;width:.8rem;height:.8rem;border-radius:2px;margin-right:.35rem;vertical-align:-.05rem;print-color-adjust:exact}
details{margin:.25rem 0}summary{cursor:pointer;color:var(--accent)}
.scroll{overflow-x:auto;max-height:28rem;overflow-y:auto;margin:.5rem 0}
table{border-collapse:collapse;font-size:.85rem;font-variant-numeric:tabular-nums}
caption{text-align:left;color:var(--muted);padding:.25rem 0;white-space:nowrap}
th,td{padding:.2rem .6rem;border-bottom:1px solid var(--line);vertical-align:top;font-weight:400}
thead th{font-weight:600;background:var(--panel);position:sticky;top:0}
.number{text-align:right;white-space:nowrap}.text{text-align:left;overflow-wrap:anywhere;min-width:6rem}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.15rem 1rem;margin:.5rem 0}
dt{color:var(--muted)}dd{margin:0;overflow-wrap:anywhere}
ol.findings{padding-left:1.5rem}ol.findings>li{margin-bottom:1rem;break-inside:avoid}
ol.findings strong{font-size:1.05rem}
#tip{position:fixed;z-index:4;max-width:min(24rem,90vw);background:var(--fg);color:var(--bg);font-size:.85rem;padding:.35rem .6rem;border-radius:4px;pointer-events:none;white-space:pre-line;overflow-wrap:anywhere}
#tip[hidden]{display:none}
.at:not(g){stroke:var(--fg)!important;stroke-width:2.5px!important;stroke-opacity:1!important}
g.at{opacity:.75}
footer{color:var(--muted);font-size:.85rem;padding-bottom:2rem}
@media (max-width:640px){.wide{display:none}.narrow{display:block}dl{grid-template-columns:1fr}dd{margin-bottom:.4rem}header,main,footer,nav{padding-left:.9rem;padding-right:.9rem}}
@media print{:root,:root:has(#theme-dark:checked){${variables('light')}}nav,fieldset.theme,.skip,#tip{display:none!important}body{font-size:11pt}.wide{display:block}.narrow{display:none}h2,h3{break-after:avoid}.scroll{max-height:none;overflow:visible}table{font-size:7.5pt}th,td{padding:.1rem .3rem}.number,.text{white-space:normal;min-width:0}*{print-color-adjust:exact}.scroll.paper{max-height:none;filter:none!important}.paper svg,.chart .wide svg{max-width:100%}}
`
