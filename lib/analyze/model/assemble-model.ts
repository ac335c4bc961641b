import { UsageError } from '../../errors.ts'
import type { ModelShape } from '../../model/model-shape.ts'
import { plural } from '../../model/units.ts'
import type { Undetermined } from '../common/figures.ts'
import type { OperatorRow } from '../operators/figures.ts'
import type { RunFacts } from '../run/figures.ts'
import type { CallTotals, CallWorkResult } from './call-work.ts'
import { knownPeaks } from './devices.ts'
import type { ActivationFigures, ModelFigures, PeakFigures, Roofline } from './figures.ts'
import { type Measured, rooflineOf, rooflinesOf } from './rooflines.ts'
import { modelFigures, type StaticOptions } from './static.ts'

/** What is known of a run's model and machine, in addition to its log. */
export interface ModelOptions extends StaticOptions {
  /** The model, from a GGUF or a config.json; by default from the recorded graph. */
  readonly shape?: ModelShape | undefined
  readonly peaks?: PeakFigures | undefined
  /** For logs without operators: FLOP of a token. */
  readonly flopsPerToken?: number | undefined
}

/** What a log contributes. */
export interface ModelLog {
  /** The machine that it was recorded on; and GPUs, as profilers name them. */
  readonly run: Pick<RunFacts, 'cpu' | 'cpus' | 'workers'>
  readonly gpus: string | null
  readonly rows: readonly OperatorRow[]
  readonly shape: ModelShape | undefined
  readonly activations: ActivationFigures | null
  readonly work: CallWorkResult
  /** Work of PyTorch's operators. */
  readonly products: readonly Measured[]
}

/** The parts `model` and `rooflines` of the Analysis, and what they lack. */
export interface ModelParts {
  readonly model: ModelFigures | null
  readonly rooflines: readonly Roofline[]
  readonly undetermined: readonly Undetermined[]
}

/** Makes them. */
export function modelParts(log: ModelLog, given: ModelOptions): ModelParts {
  const { gpus, rows, shape: recorded, activations, work, products } = log
  const shape = given.shape ?? recorded
  const undetermined: Undetermined[] = []
  const options = { ...given, peaks: peaksFor(log, given.peaks, undetermined) ?? knownPeaks(gpus) }
  let model: ModelFigures | null = null
  if (shape) {
    const cacheTypes = options.cacheTypes ?? recorded?.cacheTypes
    const figures = modelFigures(shape, { cacheTypes })
    const read = recordedWeights(rows, work)
    model = { ...figures.model, activations, recorded_matmul_weight_bytes: read }
    undetermined.push(...figures.undetermined.filter(({ what }) => !activations || what !== 'model.activations'))
    undetermined.push(...otherModel(model, shape))
  } else {
    undetermined.push({
      what: 'model',
      why: 'the inputs contain no weights with shapes',
      hint: "give the model's GGUF or config.json too",
    })
  }
  const known = rooflinesOf(rows, work, options.peaks)
  const roof = { flopPerS: options.peaks?.flop_per_s ?? null, bytesPerS: options.peaks?.bytes_per_s ?? null }
  const ofProducts = products.filter(({ timeNs }) => timeNs > 0).map((product) => rooflineOf(product, roof))
  const ofTokens = known.some(({ scope }) => scope === 'phase') ? [] : fromTokens(model, work, options)
  const rooflines = [...known, ...ofTokens, ...ofProducts]
  undetermined.push(...missingOf(rooflines, options.peaks))
  return { model, rooflines, undetermined }
}

/** Peaks that were measured apply to the machine that they were measured on. */
function peaksFor(
  log: ModelLog,
  peaks: PeakFigures | undefined,
  undetermined: Undetermined[],
): PeakFigures | undefined {
  if (peaks?.origin !== 'measured') return peaks
  const why = otherMachine(log.run, peaks)
  if (why === undefined) return peaks
  undetermined.push({ what: 'rooflines', why, hint: 'give --peak-gflops and --peak-gbs of the machine that recorded' })
  return peaks.backends && { ...peaks, flop_per_s: null, int8_op_per_s: null, bytes_per_s: null }
}

/** Why peaks that were measured are not those of a log. */
function otherMachine({ cpu, cpus, workers }: ModelLog['run'], peaks: PeakFigures): string | undefined {
  const { device, cpus: measured, by_threads, is_kept = false } = peaks
  if (is_kept && (cpu === null || cpus === null))
    return 'the log does not name its machine: the peaks that were kept on this one may be of another'
  if (cpu === null) return undefined
  if (cpu !== device) return `the peaks were measured on "${device}", the log was recorded on "${cpu}"`
  if (measured == null || cpus === null) return undefined
  if (measured !== cpus)
    return `the peaks were measured on a machine of ${plural(measured, 'CPU')}, the log was recorded on one of ${cpus}`
  const threads = by_threads?.at(-1)?.threads ?? measured
  if (workers > threads && threads < cpus)
    return `the peaks were measured with ${plural(threads, 'thread')}, the log has ${plural(workers, 'worker')}`
  return undefined
}

/** Bytes of weights that the matrix products of one decode call read. */
function recordedWeights(rows: readonly OperatorRow[], { phases }: CallWorkResult): number | null {
  const calls = phases.find(({ phase }) => phase === 'decode')?.count ?? 0
  const products = rows.filter(({ phase, op }) => phase === 'decode' && op.startsWith('MUL_MAT'))
  if (calls === 0 || products.some(({ weight_bytes }) => weight_bytes < 0)) return null
  return products.reduce((sum, { weight_bytes }) => sum + weight_bytes, 0) / calls
}

/** A dense model reads the same weights for each call: others are another model's. */
function otherModel(
  { recorded_matmul_weight_bytes: read, decode, experts }: ModelFigures,
  { source }: ModelShape,
): Undetermined[] {
  const own = decode.matmul_weight_bytes
  if (source === 'graph' || !read || own === null || experts !== 0 || Math.abs(read / own - 1) < 0.001) return []
  const why = `the operators read ${read} bytes of weights in a decode call, the model has ${own}: it may be another one`
  return [{ what: 'model', why, hint: 'give the model that ran' }]
}

/** Rates, and FLOP of a token, that no machine and no model exceeds: ratios of others would not be numbers. */
const MACHINE_MAX = 1e24

/** Throws UsageError for peaks or FLOP of a token that cannot be. */
export function checkMachine({ peaks, flopsPerToken }: Pick<ModelOptions, 'peaks' | 'flopsPerToken'>): void {
  const given: [string, number | null][] = [['flopsPerToken', flopsPerToken ?? null]]
  for (const backendPeaks of peaks ? [peaks, ...Object.values(peaks.backends ?? {})] : [])
    given.push(['flop_per_s of peaks', backendPeaks.flop_per_s], ['bytes_per_s of peaks', backendPeaks.bytes_per_s])
  if (peaks) given.push(['int8_op_per_s of peaks', peaks.int8_op_per_s])
  for (const [what, value] of given)
    if (value !== null && !(value >= 1 && value <= MACHINE_MAX))
      throw new UsageError(`${what}: expected a number from 1 to ${MACHINE_MAX}, found ${value}`)
}

/** Phases of a log without operators: the work of its tokens, from the model or from `flopsPerToken`. */
function fromTokens(model: ModelFigures | null, { all }: CallWorkResult, options: ModelOptions): Roofline[] {
  const { peaks, flopsPerToken } = options
  const flop = flopsPerToken ?? model?.decode.flop?.constant
  if (flop === undefined) return []
  const roof = { flopPerS: peaks?.flop_per_s ?? null, bytesPerS: peaks?.bytes_per_s ?? null }
  const weights = flopsPerToken === undefined ? (model?.decode.weight_bytes ?? -1) : -1
  const note = (phase: CallTotals['phase']) =>
    flopsPerToken !== undefined
      ? 'FLOP are those given for a token'
      : `computed from the model: without the products of attention${phase === 'decode' ? ' and the KV cache' : ''}`
  return all
    .filter(({ tokens, timeNs }) => tokens > 0 && timeNs > 0)
    .map(({ phase, calls, tokens, timeNs }) => {
      // Experts of a prefill: at least those of one token.
      const bytes = weights < 0 || (phase !== 'decode' && model?.experts !== 0) ? -1 : weights * calls
      const measured = { scope: 'phase' as const, what: phase, phase, count: calls, timeNs, bytes }
      return rooflineOf({ ...measured, flop: flop * tokens, note: note(phase) }, roof)
    })
}

function missingOf(rooflines: readonly Roofline[], peaks: PeakFigures | undefined): Undetermined[] {
  if (rooflines.length === 0) {
    const why = 'the log contains neither operators with shapes nor calls with tokens and a model'
    const hint = "give the model's GGUF or config.json too, or --flops-per-token"
    return [{ what: 'rooflines', why, hint }]
  }
  const missing: Undetermined[] = []
  if (rooflines.some(({ scope, bytes }) => scope === 'phase' && bytes === null)) {
    const why = 'the log contains no sizes of tensors, or not of all'
    missing.push({ what: 'rooflines.bytes', why, hint: 'record the run with ggml2perfetto record' })
  }
  if (!peaks) {
    const why = "the machine's peak rates are not known"
    const hint = '--peak-gflops and --peak-gbs, --peaks measure (now, on the machine that recorded), or --peaks <file>'
    missing.push({ what: 'rooflines.mfu_share', why, hint })
    return missing
  }
  const without = rooflines.filter(({ scope, mbu_share, mfu_share }) => scope === 'backend' && !mbu_share && !mfu_share)
  const backend = without.find(({ phase, flop }) => phase !== 'none' && flop > 0)?.what
  if (backend) {
    const why = `the peaks of ${peaks.source} are not those of ${backend}`
    const hint = `--peak-gflops ${backend}=… and --peak-gbs ${backend}=…`
    missing.push({ what: 'rooflines.mfu_share', why, hint })
    return missing
  }
  const why = `the peaks of ${peaks.source} do not contain it`
  if (peaks.flop_per_s === null) missing.push({ what: 'rooflines.mfu_share', why })
  if (peaks.bytes_per_s === null) missing.push({ what: 'rooflines.mbu_share', why })
  return missing
}
