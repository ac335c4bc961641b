import { basename } from 'node:path'
import type { Analysis, Comparison } from '../lib/index.ts'
import { inputName } from './inputs.ts'
import { writeTrace } from './output.ts'
import { note } from './terminal.ts'
import { size } from './units.ts'

/** `<input>.html`, in the current folder. */
export function reportOutput(input: string): string {
  return `${basename(inputName(input)).replace(/(?<=.)\.gz$/, '')}.html`
}

/** Writes a report; the file appears only when it is complete. The library that draws is loaded here only. */
export async function writeReport(of: Analysis | Comparison, output: string, title: string | undefined): Promise<void> {
  const { reportHtml } = await import('../lib/report.ts')
  const page = new TextEncoder().encode(reportHtml(of, { title }))
  await writeTrace(output, pieces(page), () => undefined, 'report')
  if (output !== '-') await note(`wrote ${output} (${size(page.length)}), a page for browsers`)
}

async function* pieces(page: Uint8Array): AsyncGenerator<Uint8Array, void> {
  yield page
}
