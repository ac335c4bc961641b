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
  const { budget_bytes, scheduler_bytes } = thinned
  if (scheduler_bytes > budget_bytes)
    lines.push(
      `  the scheduler's events alone take about ${size(scheduler_bytes)}, more than the budget; they are all in it`,
    )
  else if (bytes !== undefined && bytes > 1.25 * budget_bytes)
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
  const { budget_bytes, all_bytes, calls, calls_in_full, kept, operators, operators_in_full, operators_outside_calls } =
    thinned
  const all = all_bytes === null ? 'too large a trace' : `a trace of about ${size(all_bytes)}`
  const which = [
    ...(kept.first > 0 ? [`the first ${count(kept.first)}`] : []),
    ...(kept.prefill > 0 ? [plural(kept.prefill, 'prefill')] : []),
    ...(kept.slow > 0 ? [`${count(kept.slow)} of the slowest`] : []),
    ...(kept.spread > 0 ? [`${count(kept.spread)} evenly spread`] : []),
  ]
  const lines = [
    `note: ${name}: in full it is ${all}, over the budget of ${size(budget_bytes)}: ${count(calls_in_full)} of ` +
      `${plural(calls, 'call')} are in full${which.length > 0 ? ` (${which.join(', ')})` : ''}`,
    `  the other ${plural(operators - operators_in_full - operators_outside_calls, 'operator')} are summed up by worker and ` +
      'name: pale slices "Σ … ×n", with their exact times',
  ]
  if (operators_outside_calls > 0)
    lines.push(`  ${plural(operators_outside_calls, 'operator')} of no call are never summed up`)
  return lines
}
