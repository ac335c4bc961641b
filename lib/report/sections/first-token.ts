import * as Plot from '@observablehq/plot'
import { hasStart } from '../../analyze/requests/waterfall.ts'
import { duration, percent, threeDigits } from '../../model/units.ts'
import { byName, chart } from '../chart.ts'
import type { Context } from '../context.ts'
import { columns, figureHtml, type Section } from '../figure.ts'
import { html } from '../html.ts'

/** What precedes the first token: only where more is known than calls. */
export function firstTokenSection({ analysis: { first_token, findings }, stats }: Context): Section | undefined {
  if (!hasStart(first_token)) return undefined
  let end = 0
  const bars = first_token.parts.flatMap((part) => {
    const { what, time_ns, share, is_inferred } = part
    if (time_ns === null) return []
    const start = end
    end += time_ns
    const label = `${duration(time_ns)}, ${percent(share!)}${is_inferred ? ', inferred' : ''}`
    return [{ what, from: start / 1e6, to: end / 1e6, middle: (start + end) / 2 < first_token.time_ns / 2, label }]
  })
  const names = bars.map(({ what }) => what)
  const unusual = first_token.parts.flatMap((part) =>
    part.findings.flatMap((rule) =>
      findings.filter((finding) => finding.rule === rule).map(({ sentence }) => [part.what, sentence]),
    ),
  )
  const missing = first_token.parts.filter(({ time_ns }) => time_ns === null).map(({ what }) => what)
  const figure = figureHtml({
    title: 'Time to the first token, part by part',
    about: `Each part begins where the one before it ends; the time between them is in the table.${missing.length > 0 ? ` Not recorded: ${missing.join(', ')}.` : ''}`,
    chart: chart('Time to the first token by part, in milliseconds', () => ({
      height: 60 + 34 * bars.length,
      marginLeft: 84,
      x: { label: 'ms', grid: true, tickFormat: threeDigits },
      y: { domain: names, label: null, tickSize: 0 },
      color: byName(names),
      marks: [
        Plot.barX(bars, {
          x1: 'from',
          x2: 'to',
          y: 'what',
          fill: 'what',
          title: ({ what, label }) => `${what}\n${label}`,
        }),
        ...([true, false] as const).map((isLeft) =>
          Plot.text(
            bars.filter(({ middle }) => middle === isLeft),
            {
              x: isLeft ? 'to' : 'from',
              y: 'what',
              text: 'label',
              textAnchor: isLeft ? 'start' : 'end',
              dx: isLeft ? 5 : -5,
            },
          ),
        ),
        Plot.ruleX([0]),
      ],
    })),
    table: {
      columns: columns('<part', '<stage', 'time', 'share', 'time before it'),
      rows: first_token.parts.flatMap(({ what, time_ns, share, before_ns, stages }) => [
        [
          what,
          '',
          time_ns === null ? 'not recorded' : duration(time_ns),
          share === null ? '' : percent(share),
          before_ns === null ? '' : duration(before_ns),
        ],
        ...(stages.length < 2 ? [] : stages.map((stage) => ['', stage.stage, duration(stage.time_ns), '', ''])),
      ]),
    },
    source: `${stats('--json')} (first_token)`,
  })
  const notes = unusual.map(([what, sentence]) => html`<li>${what}: ${sentence}</li>`)
  const content = notes.length > 0 ? [figure, html`<p>Unusual:</p><ul>${notes}</ul>`] : [figure]
  return { id: 'first-token', title: 'From loading to the first token', content }
}
