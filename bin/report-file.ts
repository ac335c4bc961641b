import { basename, resolve } from 'node:path'
import {
  type Analysis,
  type Comparison,
  dagOf,
  draw,
  drawSvg,
  fleetFigures,
  openDataset,
  type WhatIf,
} from '../lib/cli.ts'
import { inputName } from './inputs.ts'
import { writeTrace } from './output.ts'
import { note } from './terminal.ts'
import { size } from './units.ts'

/** `<input>.html`, or with another ending, in the current folder. */
export function reportOutput(input: string, ending = 'html'): string {
  return `${basename(resolve(inputName(input))).replace(/(?<=.)\.gz$/, '')}.${ending}`
}

/** The graph of a layer in the middle of the model, without the name of the log; undefined where no graph was recorded. */
async function drawingOf(subject: Analysis | Comparison): Promise<{ layer: number; svg: string } | undefined> {
  const graph = 'series' in subject ? subject.series?.graph : undefined
  const { layerToShow } = await import('../lib/report.ts')
  const layer = graph && layerToShow(graph.nodes)
  if (layer === undefined) return undefined
  const dag = dagOf(graph!, { layers: [layer, layer] })
  const svg = await drawSvg(draw(dag, { name: `layer ${layer}`, views: false, weights: false }))
  return { layer, svg }
}

/** Writes a report; the file appears only when it is complete. The library that draws is loaded here only. */
export async function writeReport(
  subject: Analysis | Comparison,
  output: string,
  title: string | undefined,
  predictions: readonly WhatIf[] = [],
): Promise<void> {
  const { reportHtml } = await import('../lib/report.ts')
  await writePage(reportHtml(subject, { title, drawing: await drawingOf(subject), predictions }), output)
}

/** Writes the report of a dataset. */
export async function writeFleetReport(dataset: string, output: string, title: string | undefined): Promise<void> {
  const opened = await openDataset(dataset)
  try {
    const { fleetReportHtml } = await import('../lib/report.ts')
    await writePage(fleetReportHtml(await fleetFigures(opened, basename(resolve(dataset))), { title }), output)
  } finally {
    opened.close()
  }
}

async function writePage(html: string, output: string): Promise<void> {
  const page = new TextEncoder().encode(html)
  await writeTrace(output, pieces(page), () => undefined, 'report')
  if (output !== '-') await note(`wrote ${output} (${size(page.length)}), a page for browsers`)
}

async function* pieces(page: Uint8Array): AsyncGenerator<Uint8Array, void> {
  yield page
}
