import * as Plot from '@observablehq/plot'
import type { Changes, Predicted, WhatIf } from '../../analyze/what-if/figures.ts'
import { duration, plural, threeDigits } from '../../model/units.ts'
import { chart, fitting } from '../chart.ts'
import { colour } from '../colours.ts'
import type { Context } from '../context.ts'
import { figureHtml, type Section, tableOf } from '../figure.ts'
import { type Html, html } from '../html.ts'

/** Colours of what is faster, slower, and neither with certainty. */
const COLOURS = { faster: 3, slower: 9, unknown: 7 }
const LABEL_PIXELS = { wide: 270, narrow: 130 }

/** What the run would be without what disturbed it, and with other changes that were predicted; undefined without predictions. */
export function whatIfSection(context: Context): Section | undefined {
  const { predictions } = context
  if (predictions.length === 0) return undefined
  const basis = [...new Set(predictions.flatMap((prediction) => prediction.basis))]
  const rests = html`<details><summary>What the predictions rest on</summary><ul>${basis.map((text) => html`<li>${text}</li>`)}</ul></details>`
  return { id: 'what-if', title: 'What if', content: [figureOf(predictions, context), rests] }
}

function figureOf(predictions: readonly WhatIf[], { command }: Context): Html {
  const drawn = predictions.flatMap((prediction) => pointOf(prediction) ?? [])
  const now = drawn[0]?.now ?? 0
  const labels = drawn.map(({ label }) => label)
  return figureHtml({
    title: 'Predicted speed of decode',
    about:
      'The vertical line is the run as it was. A point is what it would be with one change, its line the interval in which 90 % of such predictions are. They are made from the times of ' +
      'the calls of the run.',
    chart:
      drawn.length === 0
        ? html`<p>No prediction is of decode.</p>`
        : chart('Predicted speed of decode in tokens per second', (_, isNarrow) => {
            const pixels = isNarrow ? LABEL_PIXELS.narrow : LABEL_PIXELS.wide
            return {
              height: 56 + 22 * drawn.length,
              marginLeft: pixels,
              x: { label: 'tok/s', grid: true, domain: [0, 1.05 * Math.max(now, ...drawn.map(({ high }) => high))] },
              y: {
                ...{ domain: labels, label: null, tickSize: 0 },
                tickFormat: (label: string) => fitting(label, pixels),
              },
              marks: [
                Plot.ruleX([now], { strokeWidth: 2 }),
                Plot.ruleY(drawn, {
                  ...{ x1: 'low', x2: 'high', y: 'label', stroke: 'colour', strokeWidth: 3, strokeOpacity: 0.6 },
                }),
                Plot.dot(drawn, { x: 'expected', y: 'label', r: 5, fill: 'colour', title: 'text' }),
              ],
              color: { type: 'identity' },
            }
          }),
    table: tableOf(predictions, {
      '<change': ({ changes }) => changesText(changes),
      'tok/s': ({ decode_tokens_per_s }) => text(decode_tokens_per_s, threeDigits),
      TPOT: ({ tpot_ns }) => text(tpot_ns, duration),
      TTFT: ({ ttft_ns }) => text(ttft_ns, duration),
      '<cannot be said': ({ tpot_ns, ttft_ns }) =>
        [...new Set([tpot_ns.why, ttft_ns.why])].flatMap((why) => why ?? []).join('; '),
    }),
    source: command('what-if', optionsOf(predictions[0]!.changes)),
  })
}

function pointOf({ changes, decode_tokens_per_s }: WhatIf) {
  const { now, expected, low, high } = decode_tokens_per_s
  if (now === null || expected === null || low === null || high === null) return undefined
  const label = changesText(changes)
  const kind = low > now ? 'faster' : high < now ? 'slower' : 'unknown'
  const lines = [
    label,
    `${threeDigits(now)} → ${threeDigits(expected)} tok/s`,
    `${threeDigits(low)} … ${threeDigits(high)}`,
  ]
  return { now, expected, low, high, label, colour: colour(COLOURS[kind]), text: lines.join('\n') }
}

/** `171 (150 … 190)`; empty where it cannot be said. */
function text({ expected, low, high }: Predicted, unit: (value: number) => string): string {
  if (expected === null) return ''
  return low === high ? unit(expected) : `${unit(expected)} (${unit(low!)} … ${unit(high!)})`
}

/** `without preempted, 4 threads`. */
function changesText({ without = [], threads, context, batch, type }: Changes): string {
  return [
    ...without.map((what) => `without ${what}`),
    ...(threads === undefined ? [] : [plural(threads, 'thread')]),
    ...(context === undefined ? [] : [`context of ${plural(context, 'token')}`]),
    ...(batch === undefined ? [] : [plural(batch, 'sequence')]),
    ...(type === undefined ? [] : [`weights in ${type}`]),
  ].join(', ')
}

const optionsOf = ({ without, ...others }: Changes): string =>
  [
    ...(without ? [`--without ${without.join(',')}`] : []),
    ...Object.entries(others).flatMap(([name, value]) => (value === undefined ? [] : [`--${name} ${value}`])),
    ...(others.threads === undefined ? [] : ['--with <logs>']),
  ].join(' ')
