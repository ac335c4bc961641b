import { plural } from '../../model/units.ts'
import type { Analysis } from '../analysis.ts'
import type { Difference } from './figures.ts'

/** A fact of a run: its text, and whether another one explains other times by itself. */
interface Fact {
  readonly what: string
  readonly of: (analysis: Analysis) => string | number | null
  readonly isObstacle?: boolean
}

const FACTS: readonly Fact[] = [
  { what: 'architecture', of: ({ run }) => run.architecture, isObstacle: true },
  { what: 'parameters', of: ({ run }) => run.parameters, isObstacle: true },
  { what: 'layers', of: ({ run }) => run.layers, isObstacle: true },
  { what: 'prompt', of: promptOf, isObstacle: true },
  { what: 'decode calls', of: ({ calls }) => calls.by_phase.decode?.calls ?? 0, isObstacle: true },
  { what: 'tokens a decode call', of: batchOf, isObstacle: true },
  { what: 'workers', of: ({ run }) => run.workers, isObstacle: true },
  { what: 'CPU', of: ({ run }) => run.cpu, isObstacle: true },
  { what: 'CPUs', of: ({ run }) => run.cpus, isObstacle: true },
  { what: 'host', of: ({ run }) => run.host, isObstacle: true },
  { what: 'recording level', of: ({ run }) => run.level, isObstacle: true },
  { what: 'recorded', of: ({ run }) => [...run.recorded].sort().join(', '), isObstacle: true },
  { what: 'counters', of: ({ run }) => [...run.counters].sort().join(', '), isObstacle: true },
  { what: 'limited to', of: ({ run }) => JSON.stringify(run.limited_to), isObstacle: true },
  { what: 'calls left out', of: ({ run }) => run.left_out?.calls ?? null, isObstacle: true },
  { what: 'format', of: ({ inputs }) => inputs[0]?.format ?? null, isObstacle: true },
  { what: 'model', of: ({ run }) => run.model },
  { what: 'model files', of: ({ run }) => run.model_files.join(', ') },
  { what: 'weights', of: weightsOf },
  { what: 'build', of: ({ run }) => run.build },
  { what: 'backends', of: ({ run }) => [...run.backends].sort().join(', ') },
  { what: 'kernel', of: ({ run }) => run.kernel },
  { what: 'command', of: ({ run }) => run.command },
]

/**
 * In what the runs of two sides differ, obstacles first. A fact that no run of a side contains is no difference; what runs of both sides
 * have in common is no obstacle: lengths of answers vary from run to run.
 */
export function differencesOf(before: readonly Analysis[], after: readonly Analysis[]): Difference[] {
  const differences = FACTS.flatMap(({ what, of: factOf, isObstacle = false }): Difference[] => {
    const [a, b] = [valuesOf(before, factOf), valuesOf(after, factOf)]
    if (a.length === 0 || b.length === 0 || a.join('\n') === b.join('\n')) return []
    return [
      {
        what,
        before: a.join('; '),
        after: b.join('; '),
        is_obstacle: isObstacle && !a.some((value) => b.includes(value)),
      },
    ]
  })
  return differences.sort((a, b) => Number(b.is_obstacle) - Number(a.is_obstacle))
}

function valuesOf(runs: readonly Analysis[], factOf: Fact['of']): string[] {
  const values = runs.map(factOf).filter((value) => value !== null && value !== '' && value !== '{}')
  return [...new Set(values.map(String))].sort()
}

/** Tokens of each prefill on average, and their number. */
function promptOf({ calls }: Analysis): string | null {
  const { prefill } = calls.by_phase
  return prefill ? `${plural(prefill.tokens, 'token')} in ${plural(prefill.calls, 'call')}` : null
}

function batchOf({ calls }: Analysis): string | null {
  const { decode } = calls.by_phase
  return decode ? (decode.tokens / decode.calls).toPrecision(3) : null
}

function weightsOf({ run }: Analysis): string | null {
  const bytes = (run.weights ?? []).reduce((sum, { bytes }) => sum + bytes, 0)
  if (bytes === 0) return null
  const mix = run.weights!.map((weight) => `${weight.type} ${((100 * weight.bytes) / bytes).toFixed(1)} %`).join(', ')
  return `${(bytes / 2 ** 20).toFixed(1)} MiB: ${mix}`
}
