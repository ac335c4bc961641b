import type { Comparison, Gate } from '../../../lib/cli.ts'
import { callOf, type ToolCall, withMost } from '../answer.ts'
import type { Place } from '../places.ts'
import { FROM, list, object, paths, runOn, type Session, type Tool } from '../tool.ts'

interface Arguments {
  readonly before: readonly string[]
  readonly after: readonly string[]
  readonly fail_above_percent?: number
  readonly from?: number
}

/** Exit codes of the command with --fail-above that are answers. */
const CODES = [0, 2, 3]
/** Differences and findings that an answer names. */
const NAMED = 4
/** How much a reader wants to know an effect. */
const ORDER: Readonly<Record<string, number>> = { slower: 0, faster: 0, more: 0, less: 0, new: 1, gone: 1 }

/** The tool `compare`. */
export const compareTool: Tool<Arguments> = {
  name: 'compare',
  title: 'Comparison of runs',
  description:
    'Is one side slower, by how much, and in what? The unit is the run: 3 a side at least, 5 are better. What is not certain says so.',
  input: {
    before: paths('Logs or folders of logs of one side'),
    after: paths('Those of the other side'),
    fail_above_percent: {
      ...{ type: 'number', minimum: 0, maximum: 1000 },
      description: 'Also the gate of CI: within, worse (slower by more than this), or inconclusive',
    },
    from: FROM,
  },
  required: ['before', 'after'],
  evidence: {
    gate: object('The answer of the gate, with what is worse'),
    is_comparable: { type: 'boolean', description: 'false: the sides differ in what explains other times by itself' },
    runs: object('Runs of each side'),
    differences: list('In what the sides differ: the first ones'),
    differences_count: { type: 'integer', description: 'Number of differences' },
    findings: list('Findings that appeared or vanished: the first ones'),
    findings_count: { type: 'integer', description: 'Number of these findings' },
    effects: list('Figures of both sides with the interval of their change: speed first, then what changed'),
    from: { type: 'integer', description: 'The number of the first effect, from 0' },
  },
  isReadOnly: true,
  async run(args, session, call) {
    const { before, after, fail_above_percent: percent, from = 0 } = args
    const [a, b] = [await sideOf(before, session), await sideOf(after, session)]
    const pathsOf = (places: readonly Place[]) => places.map(({ path }) => path)
    const gated = percent === undefined ? [] : ['--fail-above', `${percent}%`]
    const command = ['compare', ...pathsOf(a), '--with', ...pathsOf(b), '--json', ...gated]
    const { stdout } = await runOn([...a, ...b], command, session, call, { codes: CODES })
    const { gate, ...comparison } = JSON.parse(stdout) as Comparison & { readonly gate?: Gate }
    const effects = comparison.effects.toSorted((x, y) => rankOf(x) - rankOf(y))
    return withMost(effects.slice(from), (shown) => {
      const count = effects.length - from - shown.length
      const next = callOf('compare', { ...args, from: from + shown.length }, 'further figures')
      return {
        verdict: comparison.verdict,
        evidence: {
          ...(gate && { gate }),
          is_comparable: comparison.is_comparable,
          runs: { before: comparison.before.runs, after: comparison.after.runs },
          ...(from === 0 && firstOf(comparison)),
          from,
          effects: shown,
        },
        check: [oneRun('summary', comparison, 'one run of the later side alone')],
        next: [oneRun('why', comparison, 'why one run of the later side is slow'), ...(count > 0 ? [next] : [])],
        left: count > 0 ? { what: 'figures', count, next } : null,
      }
    })
  },
}

/** A call about the first run of the later side. */
const oneRun = (tool: string, { after }: Comparison, why: string): ToolCall => ({
  ...{ tool, arguments: { logs: after.inputs[0] ?? [] }, why },
})

/** What an answer contains once, and not where it continues. */
function firstOf({ differences, findings }: Comparison) {
  const sorted = differences.toSorted((x, y) => Number(y.is_obstacle) - Number(x.is_obstacle))
  return {
    ...{ differences_count: differences.length, differences: sorted.slice(0, NAMED) },
    ...{ findings_count: findings.length, findings: findings.slice(0, NAMED) },
  }
}

const sideOf = (given: readonly string[], { places }: Session): Promise<Place[]> =>
  Promise.all(given.map((path) => places.input(path, 'file or folder')))

const rankOf = ({ group, verdict }: Comparison['effects'][number]) => (group === 'speed' ? -1 : (ORDER[verdict] ?? 2))
