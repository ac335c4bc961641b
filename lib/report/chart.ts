import * as Plot from '@observablehq/plot'
import { coloursOf } from './colours.ts'
import { type Html, html, raw } from './html.ts'
import { svgDocument } from './svg-document.ts'

/** Widths in pixels of the two drawings of a chart: for a screen or paper, and for a phone. */
const WIDTHS = { wide: 860, narrow: 340 } as const
const FONT = 12

/** What is drawn at a width. */
export type PlotOptions = Plot.PlotOptions

/**
 * A chart as SVG, in two widths of which the page shows the one that fits. `options` makes what is drawn for a width in pixels; `isNarrow`: for a
 * phone. `label` is its name for screen readers.
 */
export function chart(label: string, options: (width: number, isNarrow: boolean) => PlotOptions): Html {
  const drawn = (['wide', 'narrow'] as const).map((kind) => {
    const width = WIDTHS[kind]
    const plot = Plot.plot({
      document: svgDocument(),
      width,
      ariaLabel: label,
      ...options(width, kind === 'narrow'),
      style: { fontSize: `${FONT}px` },
    })
    return html`<div class="${kind}">${raw(String(plot).replace('<svg ', '<svg role="img" '))}</div>`
  })
  return html`<div class="chart">${drawn}</div>`
}

/** Colours with their names; of one name nothing. */
export function legend(names: readonly string[]): Html | undefined {
  if (names.length < 2) return undefined
  const { range } = coloursOf(names)
  const items = names.map((name, i) => html`<li><span class="key" style="background:${range[i]}"></span>${name}</li>`)
  return html`<ul class="legend">${items}</ul>`
}

/** `options` of a scale of colours by name. */
export const byName = (names: readonly string[]) => ({ ...coloursOf(names), type: 'ordinal' }) as const

/** A part of a bar. */
export interface Part {
  readonly row: string
  readonly name: string
  readonly value: number
  readonly text: string
}

/** Bars of parts in the colours of their names, one for each row, and the legend. A grid begins at a line. */
export function stackedBars(
  label: string,
  parts: readonly Part[],
  names: readonly string[],
  {
    rows,
    x,
    ...size
  }: {
    readonly rows: readonly string[]
    readonly height: number
    readonly marginLeft: number
    readonly x: Plot.ScaleOptions
  },
): { readonly legend: Html | undefined; readonly chart: Html } {
  const stack = Plot.stackX({ x: 'value', y: 'row', fill: 'name', order: [...names], inset: 0.5, title: 'text' })
  const options = {
    ...{ ...size, x, y: { domain: rows, label: null, tickSize: 0 }, color: byName(names) },
    marks: [Plot.barX(parts, stack), ...(x.grid ? [Plot.ruleX([0])] : [])],
  }
  return { legend: legend(names), chart: chart(label, () => options) }
}

/** The width of a text, about. */
export const textPixels = (text: string): number => text.length * FONT * 0.6

/** A text that fits into so many pixels; empty where less than three characters would. */
export function fitting(text: string, pixels: number): string {
  const characters = Math.floor(pixels / (FONT * 0.6))
  if (text.length <= characters) return text
  return characters < 4 ? '' : `${text.slice(0, characters - 1)}…`
}

/** An axis with a logarithmic scale, with labels at powers of ten, and between them where there are few. `values` are above 0. */
export function logarithmic(label: string, values: readonly number[], text: (value: number) => string) {
  const [first, last] = [Math.floor(Math.log10(Math.min(...values))), Math.ceil(Math.log10(Math.max(...values)))]
  const decades = last - first
  // Where there is no space for all labels, the library leaves out some.
  const steps = decades > 2 ? [1] : [1, 2, 5]
  const every = Math.ceil(decades / 9)
  const powers = Array.from({ length: decades + 1 }, (_, i) => first + i).filter((_, i) => i % every === 0)
  const [low, high] = [Math.min(...values) / 1.5, Math.max(...values) * 1.5]
  const ticks = powers
    .flatMap((power) => steps.map((step) => step * 10 ** power))
    .filter((tick) => tick >= low && tick <= high)
  return { type: 'log', label, grid: true, domain: [low, high], ticks, tickFormat: text } as const
}
