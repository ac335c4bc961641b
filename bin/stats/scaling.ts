import {
  type Analysis,
  eventsOf,
  isLaw,
  isModel,
  Names,
  type PhaseScaling,
  type RoleScalingFigures,
  type ScalingFigures,
  scaling,
  scalingSentence,
  UsageError,
} from '../../lib/cli.ts'
import { asLog, openAny } from '../inputs.ts'
import { percent } from '../units.ts'
import { analysisOf, type StatsInputs } from './inputs.ts'
import { known, number, type Section, tableOf, text } from './section.ts'

/**
 * The inputs of each run: an Analysis is one, a log of another process than those before it begins one, and inputs that name no process
 * (recordings of the scheduler, companions, models) belong to the run before them. A client of ggml-rpc and its server are one run.
 */
export async function runsOf({ inputs, from }: StatsInputs): Promise<string[][]> {
  if (inputs.length < 2 || inputs.includes('-')) return [[...inputs]]
  const runs: { readonly key: string; readonly connections: string[]; readonly inputs: string[] }[] = []
  let leading: string[] = []
  for (const input of inputs) {
    const { key, connections } = await processOf(input, from as string | undefined)
    const isKnown = (run: (typeof runs)[number]) =>
      run.key === key || run.connections.some((connection) => connections.includes(connection))
    const known = key === undefined ? runs.at(-1) : runs.find(isKnown)
    if (known) {
      known.inputs.push(input)
      known.connections.push(...connections)
    } else if (key === undefined) leading.push(input)
    else {
      runs.push({ key, connections: [...connections], inputs: [...leading, input] })
      leading = []
    }
  }
  return runs.length > 0 ? runs.map(({ inputs }) => inputs) : [[...inputs]]
}

interface OfProcess {
  /** Process and boot that a log names; the path of an Analysis; undefined: neither. */
  readonly key: string | undefined
  /** Connections of ggml-rpc: the address of each end. */
  readonly connections: readonly string[]
}

const OF_NONE: OfProcess = { key: undefined, connections: [] }
/** Batches of a log that are read at most. */
const BATCHES_MAX = 16

async function processOf(path: string, from: string | undefined): Promise<OfProcess> {
  const opened = await openAny(path)
  if (opened.kind === 'analysis') {
    await opened.source.return()
    return { key: `analysis ${path}`, connections: [] }
  }
  // A description of a model is of no process, and no log.
  if (isModel(opened.head)) {
    await opened.source.return()
    return OF_NONE
  }
  const names = new Names()
  let key: string | undefined
  const connections = new Set<string>()
  let batches = 0
  for await (const batch of eventsOf(await asLog(opened), names, { from })) {
    const [first] = batch
    if (batches === 0) {
      if (first?.kind !== 'input' || first.attributes['pid'] === undefined) return OF_NONE
      const { pid, boot_id = '' } = first.attributes
      key = `${pid} ${boot_id}`
    }
    for (const event of batch)
      if (event.kind === 'rpc' && event.client > 0)
        connections.add(`${names.text(event.client)} ${names.text(event.server)}`)
    if (connections.size > 0 || ++batches === BATCHES_MAX) break
  }
  return { key, connections: [...connections] }
}

/** Options for one run. */
const OF_ONE_RUN = ['by', 'top', 'sort', 'calls', 'experts', 'expertCache', 'csv'] as const

/** How speed depends on the number of threads, of several runs. Throws UsageError for options for one run. */
export async function scalingOf(
  runs: readonly (readonly string[])[],
  args: StatsInputs & Readonly<Partial<Record<(typeof OF_ONE_RUN)[number], unknown>>>,
): Promise<ScalingFigures> {
  const given = OF_ONE_RUN.find((option) => args[option] !== undefined && args[option] !== false)
  if (given)
    throw new UsageError(
      `--${given.replace('C', '-c')} is for one run; these logs are of ${runs.length}, which are compared`,
    )
  const analyses: Analysis[] = []
  for (const inputs of runs) {
    const clocks = Object.entries(args.clock ?? {}).filter(([name]) => inputs.some((path) => path.endsWith(name)))
    const clock = clocks.length > 0 ? Object.fromEntries(clocks) : undefined
    analyses.push(await analysisOf({ ...args, inputs, clock }))
  }
  return scaling(analyses)
}

/** What the runs do not show, and why. */
export const notKnown = ({ undetermined }: ScalingFigures) =>
  undetermined.map(({ what, why }) => `${what} is not known: ${why}`)

/** The figures for people. */
export function scalingSections(figures: ScalingFigures): Section[] {
  const { decode, prefill, roles, gain_share_min, findings } = figures
  const rule = `a thread pays if it adds at least ${percent(gain_share_min)} of what one thread computes in the run with the fewest`
  return [
    ...(decode ? [phaseSection('decode', decode)] : []),
    ...(prefill ? [phaseSection('prefill', prefill)] : []),
    ...(roles.length > 0 ? [roleSection(roles)] : []),
    ...(findings.length > 0 ? [{ title: 'findings', lines: findings.map(({ sentence }) => sentence) }] : []),
    { title: 'how to read it', lines: [...(decode || prefill ? [rule] : []), ...notKnown(figures)] },
  ]
}

function phaseSection(title: 'decode' | 'prefill', scaling: PhaseScaling): Section {
  const { counts, fit } = scaling
  const table = tableOf(counts, {}, [
    number('threads', ({ workers }) => `${workers}`),
    number('tok/s', ({ tokens_per_s }) => tokens_per_s.toFixed(1)),
    number('speed-up', ({ speedup }) => `${speedup.toFixed(2)}×`),
    number('efficiency', ({ efficiency }) => percent(efficiency)),
    number('gain per thread', ({ gain_share }) => known(gain_share, percent)),
  ])
  const lines = [scalingSentence(title, scaling)]
  if (isLaw(fit)) {
    const { contention, coherency, r2, workers_of_peak } = fit
    const peak = workers_of_peak === null ? '' : `, fastest with ${workers_of_peak.toFixed(1)} threads`
    const parameters = `contention ${percent(contention)}, coherency ${percent(coherency)}${peak}`
    lines.push(`Universal Scalability Law: ${parameters}; R² ${r2.toFixed(3)} of ${counts.length} numbers of threads`)
  }
  return { title, tables: [table], lines }
}

function roleSection(roles: readonly RoleScalingFigures[]): Section {
  const last = ({ counts }: RoleScalingFigures) => counts.at(-1)!
  const table = tableOf(roles, {}, [
    text('operator', ({ role, op }) => `${role} ${op}`.trim()),
    number('speed-up', (figures) => `${last(figures).speedup.toFixed(2)}× with ${last(figures).workers}`),
    number('threads that pay', ({ knee }) => (knee === null ? 'all' : `${knee}`)),
  ])
  return { title: `${roles[0]!.phase} by role`, tables: [table] }
}
