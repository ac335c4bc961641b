import { cpusOfWorker, kindsOfWorker, machineWords } from '../../analyze/threads/machine-words.ts'
import type { Context } from '../context.ts'
import { columns, type Section, tableHtml } from '../figure.ts'
import { html } from '../html.ts'

const TITLE = 'Machine and threads'

/** The machine's CPUs, whose threads the workers are, and where they ran. */
export function threadsSection({ analysis }: Context): Section | undefined {
  const facts = machineWords(analysis)
  if (facts.length === 0) return undefined
  const workers = analysis.threads?.places?.workers ?? []
  const list = html`<dl>${facts.map(([key, value]) => html`<dt>${key}</dt><dd>${value}</dd>`)}</dl>`
  const table = {
    columns: columns('<worker', '<may use', '<began graphs on', '<kinds of cores', 'moves'),
    rows: workers.map((place) => [
      String(place.worker),
      place.allowed.map(({ cpus }) => cpus).join('; '),
      cpusOfWorker(place),
      kindsOfWorker(place),
      String(place.moves),
    ]),
  }
  return { id: 'threads', title: TITLE, content: [list, ...(workers.length > 0 ? [tableHtml(table, TITLE)] : [])] }
}
