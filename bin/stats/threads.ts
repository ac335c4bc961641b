import { type Analysis, cpusOfWorker, kindsOfWorker, machineWords } from '../../lib/cli.ts'
import { count, percent } from '../units.ts'
import { number, type Section, tableOf, text } from './section.ts'

/** The machine's CPUs, whose threads the workers are, and where they ran. */
export function threadsSection(analysis: Analysis): Section | undefined {
  const facts = machineWords(analysis)
  if (facts.length === 0) return undefined
  const places = analysis.threads?.places
  const table =
    places &&
    tableOf(places.workers, {}, [
      text('worker', ({ worker }) => String(worker)),
      text('may use', ({ allowed }) =>
        allowed.map(({ cpus, share }) => listed(cpus, share, allowed.length)).join('; '),
      ),
      text('began graphs on', cpusOfWorker),
      text('kinds of cores', kindsOfWorker),
      number('moves', ({ moves }) => count(moves)),
    ])
  return { title: 'machine and threads', facts, ...(table && { tables: [table] }) }
}

/** The share is shown where there are several. */
const listed = (cpus: string, share: number, lists: number) => (lists > 1 ? `${cpus} ${percent(share)}` : cpus)
