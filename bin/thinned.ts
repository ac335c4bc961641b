import type { Summary } from '../lib/cli.ts'
import { note } from './terminal.ts'
import { count, plural, size } from './units.ts'

/**
 * Says what is in a trace only as sums, on standard error. `bytes`: size of the trace, if it is known. The hint is about an option of
 * the command.
 */
export async function noteThinned(
  names: readonly string[],
  summaries: readonly Summary[],
  bytes?: number,
): Promise<void> {
  const lines = names.flatMap((name, i) => describeThinned(name, summaries[i]!))
  const thinned = summaries.find((summary) => summary.thinned)?.thinned
  if (!thinned) return
  const { budgetBytes, schedulerBytes } = thinned
  if (schedulerBytes > budgetBytes)
    lines.push(
      `  the scheduler's events alone take about ${size(schedulerBytes)}, more than the budget; they are all in it`,
    )
  else if (bytes !== undefined && bytes > 1.25 * budgetBytes)
    lines.push(
      `  the trace has ${size(bytes)}: calls, sums and events that are never summed up alone exceed the budget`,
    )
  await note([
    ...lines,
    'hint: --all: everything in full; --tokens 100..120: these calls in full; --budget: another size',
  ])
}

function describeThinned(name: string, { thinned }: Summary): string[] {
  if (!thinned) return []
  const { budgetBytes, allBytes, calls, callsInFull, kept, operators, operatorsInFull, operatorsOutsideCalls } = thinned
  const all = allBytes === undefined ? 'too large a trace' : `a trace of about ${size(allBytes)}`
  const which = [
    ...(kept.first > 0 ? [`the first ${count(kept.first)}`] : []),
    ...(kept.prefill > 0 ? [plural(kept.prefill, 'prefill')] : []),
    ...(kept.slow > 0 ? [`${count(kept.slow)} of the slowest`] : []),
    ...(kept.spread > 0 ? [`${count(kept.spread)} evenly spread`] : []),
  ]
  const lines = [
    `note: ${name}: in full it is ${all}, over the budget of ${size(budgetBytes)}: ${count(callsInFull)} of ` +
      `${plural(calls, 'call')} are in full${which.length > 0 ? ` (${which.join(', ')})` : ''}`,
    `  the other ${plural(operators - operatorsInFull - operatorsOutsideCalls, 'operator')} are summed up by worker and ` +
      'name: slices "… ×n (sum)", with their exact times',
  ]
  if (operatorsOutsideCalls > 0)
    lines.push(`  ${plural(operatorsOutsideCalls, 'operator')} of no call are never summed up`)
  return lines
}
