import { putAt } from '../../model/by-id.ts'
import { getOrMake } from '../../model/default-map.ts'
import type { Phase, TensorEvent } from '../../model/events.ts'
import type { ModelShape } from '../../model/model-shape.ts'
import { plural } from '../../model/units.ts'
import type { Undetermined } from '../common/figures.ts'
import type { CallParts, Statistic } from '../common/statistic.ts'
import type { Defined } from '../graph/defined.ts'
import { Caches, type ExpertCacheSize } from './caches.ts'
import { type Choice, choicesOf, type ExpertNodes } from './choices.ts'
import type { ExpertChoices, ExpertFigures, ExpertLayer, ExpertTotals } from './figures.ts'
import { Layer, type LayerShape } from './layer.ts'
import { ReusePairs } from './reuse-pairs.ts'

/** The figures of all layers, by phase. */
function totalsOf(layers: readonly ExpertLayer[]): Partial<Record<Phase, ExpertTotals>> {
  const byPhase = new Map<Phase, ExpertChoices[]>()
  for (const { by_phase } of layers) {
    for (const [phase, choices] of Object.entries(by_phase) as [Phase, ExpertChoices][])
      byPhase.set(phase, [...(byPhase.get(phase) ?? []), choices])
  }
  return Object.fromEntries([...byPhase].map(([phase, choices]) => [phase, totalOf(choices)]))
}

function totalOf(layers: readonly ExpertChoices[]): ExpertTotals {
  const sum = (figureOf: (layer: ExpertChoices) => number) => layers.reduce((sum, layer) => sum + figureOf(layer), 0)
  const mean = (figureOf: (layer: ExpertChoices) => number, weight: (layer: ExpertChoices) => number = () => 1) => {
    const weights = sum(weight)
    return weights > 0 ? sum((layer) => weight(layer) * figureOf(layer)) / weights : null
  }
  const activations = sum((layer) => layer.activations)
  const distinct = sum(({ batches, distinct_per_batch }) => batches * distinct_per_batch)
  const followers = ({ repeated }: ExpertChoices) => repeated?.tokens ?? 0
  const reused = ({ reuse }: ExpertChoices) => reuse.count
  return {
    activations,
    entropy_share: mean(({ balance }) => balance.entropy_share)!,
    gini: mean(({ balance }) => balance.gini)!,
    top_share: mean(({ balance }) => balance.top_share)!,
    unused: sum(({ balance }) => balance.unused),
    repeated_share: mean(({ repeated }) => repeated?.share ?? 0, followers),
    independent_share: mean(({ repeated }) => repeated?.independent_share ?? 0, followers),
    mean_reuse_tokens: mean(({ reuse }) => reuse.mean_tokens ?? 0, reused),
    mean_reuse_experts: mean(({ reuse }) => reuse.mean_experts ?? 0, reused),
    distinct_per_batch: distinct / sum(({ batches }) => batches),
    tokens_per_expert: distinct > 0 ? activations / distinct : 0,
  }
}

/** What the weights of matrix products with experts say of their layers, by number. `isProduct`: is a node such a product? */
function layerShapes(
  tensors: readonly (TensorEvent | undefined)[],
  isProduct: (tensor: number) => boolean,
): Map<number, LayerShape> {
  const weights = new Map<number, Map<number, TensorEvent>>()
  for (const tensor of tensors) {
    const source = tensor?.sources[0]
    if (!tensor || source === undefined || !isProduct(tensor.id)) continue
    const ofLayer = getOrMake(weights, tensor.layer, () => new Map<number, TensorEvent>())
    const weight = tensors[source]!
    ofLayer.set(weight.name, weight)
  }
  return new Map([...weights].map(([layer, events]) => [layer, shapeOf([...events.values()])]))
}

function shapeOf(weights: readonly TensorEvent[]): LayerShape {
  const experts = weights.find(({ ne }) => ne !== undefined)?.ne?.[2]
  const areKnown = experts !== undefined && weights.every(({ sizeBytes }) => sizeBytes >= 0)
  const bytes = weights.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)
  return { experts, expertBytes: areKnown ? bytes / experts : null }
}

/** What a model's own file says of a layer's experts: of the weights that have them in their name, as llama.cpp calls these. */
function shapeInModel({ experts, weights }: ModelShape, layer: number): LayerShape {
  const ofExperts = weights.filter(({ name }) => name.startsWith(`blk.${layer}.`) && name.endsWith('_exps.weight'))
  const areKnown = experts !== null && experts > 0 && ofExperts.length > 0 && ofExperts.every(({ bytes }) => bytes >= 0)
  const bytes = ofExperts.reduce((sum, { bytes }) => sum + bytes, 0)
  return { experts: experts || undefined, expertBytes: areKnown ? bytes / experts : null }
}

/** Layers that are distinguished. */
const LAYERS_MAX = 512
/** Counters of page faults, the first one first. */
const FAULTS = ['major_faults', 'page_faults', 'minor_faults']

/** What a log contains of its experts. */
export interface ExpertsOfInput {
  readonly figures: ExpertFigures | null
  readonly undetermined: readonly Undetermined[]
}

/** Statistics of the choices of experts, call by call. */
export class ExpertStatistics implements Statistic {
  readonly needsChoices = true
  private readonly layers = new Map<number, Layer>()
  private readonly nodes: ExpertNodes
  private readonly pairs = new ReusePairs()
  /** What simulates caches, and the shapes of layers, both from the first choice on. */
  private caches: Caches | undefined
  private shapes: ReadonlyMap<number, LayerShape> = new Map()
  /** By tensor: is it a product with experts? */
  private readonly products: (boolean | undefined)[] = []
  private tokensOfOthers = 0
  private outside = 0
  private firstTokensOnly = 0

  /** `sizes`: of simulated caches. `model`: its file, for what the log does not contain. */
  constructor(
    private readonly defined: Defined,
    private readonly sizes: readonly ExpertCacheSize[],
    private readonly model: ModelShape | undefined,
  ) {
    this.nodes = { tensors: defined.tensors, isProduct: (tensor) => this.isProduct(tensor) }
  }

  call({ operators, steps }: CallParts): void {
    const { event, choices, experts } = operators
    if (choices.length + experts.length === 0) return
    if (!event || event.call < 0 || event.phase === 'warm-up') {
      this.outside += Math.max(choices.length, experts.length)
      return
    }
    this.caches ??= this.begin()
    const found = choicesOf(operators, steps, this.nodes, this.faultIndex)
    if (event.tokens > 1 && found.some(({ tensor }) => tensor < 0)) this.firstTokensOnly++
    const reuses = found.map((choice) => this.addChoice(choice, event.phase))
    if (event.phase === 'decode') this.addPairs(found, reuses, operators.isFurther)
  }

  /** Returns the mean distance of its reused experts. */
  private addChoice(choice: Choice, phase: Phase): number | undefined {
    let layer = this.layers.get(choice.layer)
    if (!layer) {
      if (this.layers.size === LAYERS_MAX) {
        this.tokensOfOthers += choice.parts.reduce((sum, { length }) => sum + length / Math.max(choice.k, 1), 0)
        return undefined
      }
      const shape = this.shapes.get(choice.layer) ?? UNKNOWN_SHAPE
      layer = new Layer({ number: choice.layer, place: this.layers.size }, shape, this.caches!.ofLayer(shape))
      this.layers.set(choice.layer, layer)
    }
    return layer.add(choice, phase, this.caches!.user(layer.place, phase))
  }

  private addPairs(choices: readonly Choice[], reuses: readonly (number | undefined)[], isPart: boolean): void {
    const sum = { reuse: 0, count: 0, timeNs: 0, faults: 0 }
    for (const [i, { layer, products, timeNs, faults }] of choices.entries()) {
      sum.timeNs += timeNs
      sum.faults += faults
      const reuse = reuses[i]
      if (reuse === undefined) continue
      sum.reuse += reuse
      sum.count++
      if (products > 0) this.layers.get(layer)!.pairs.add(reuse, timeNs, faults)
    }
    const isWhole = !isPart && choices.every(({ products }) => products > 0)
    if (isWhole && sum.count > 0) this.pairs.add(sum.reuse / sum.count, sum.timeNs, sum.faults)
  }

  private begin(): Caches {
    const { model } = this
    const recorded = layerShapes(this.defined.tensors, this.nodes.isProduct)
    this.shapes = new Map(
      [...recorded].map(([layer, shape]) => [
        layer,
        shape.experts === undefined && model ? shapeInModel(model, layer) : shape,
      ]),
    )
    return new Caches(this.sizes, this.shapes)
  }

  private isProduct(tensor: number): boolean {
    const known = this.products[tensor]
    if (known !== undefined) return known
    const { tensors, names } = this.defined
    const isProduct = names.text(tensors[tensor]!.op) === 'MUL_MAT_ID'
    putAt(this.products, tensor, isProduct, undefined)
    return isProduct
  }

  /** Index of the counter of page faults; -1: none. */
  private get faultIndex(): number {
    return this.defined.counterAt(...FAULTS)
  }

  finish(): { readonly experts: ExpertsOfInput } {
    return { experts: this.figures() }
  }

  private figures(): ExpertsOfInput {
    const { caches, outside } = this
    if (!caches) return { figures: null, undetermined: outside > 0 ? [outsideOf(outside)] : [] }
    const layers = [...this.layers.values()].sort((a, b) => a.number - b.number)
    const counter = this.defined.counters.counters[this.faultIndex]?.key ?? null
    const figures = {
      layers: layers.map((layer) => layer.finish(counter)),
      reuse_and_time: this.pairs.finish(counter),
      caches: caches.finish(layers),
      tokens_of_other_layers: this.tokensOfOthers,
    }
    return { figures: { ...figures, by_phase: totalsOf(figures.layers) }, undetermined: this.unknownOf(figures) }
  }

  private unknownOf({ layers, caches }: Pick<ExpertFigures, 'layers' | 'caches'>): Undetermined[] {
    const unknown: Undetermined[] = []
    if (this.outside > 0) unknown.push(outsideOf(this.outside))
    if (this.firstTokensOnly > 0) {
      const calls = `${plural(this.firstTokensOnly, 'call')} with several tokens`
      const why = `the log contains the experts of only the first token of a batch: of ${calls} the others are not counted`
      unknown.push({ what: 'experts.layers.by_phase', why, hint: 'record the run with ggml2perfetto record' })
    }
    if (layers.some((layer) => layer.experts_are_min)) {
      const why = 'the shapes of their weights were not recorded: the highest number that was chosen, plus one'
      unknown.push({ what: 'experts.layers.experts', why, hint: GIVE_MODEL })
    }
    const sizes = new Set(caches.map(({ size }) => size)).size
    if (sizes < this.sizes.length) {
      const why = `the sizes of experts were not recorded: ${this.sizes.length - sizes} of ${this.sizes.length} sizes of caches are left out`
      unknown.push({ what: 'experts.caches', why, hint: GIVE_MODEL })
    } else if (caches.some(({ by_phase }) => Object.values(by_phase).some(({ lfu_share }) => lfu_share === null))) {
      const why = 'the number of experts was not known when the first ones were chosen'
      unknown.push({ what: 'experts.caches.by_phase.lfu_share', why, hint: GIVE_MODEL })
    }
    return unknown
  }
}

const GIVE_MODEL = "give the model's GGUF too"
const UNKNOWN_SHAPE: LayerShape = { experts: undefined, expertBytes: null }

function outsideOf(choices: number): Undetermined {
  const why = `without ${plural(choices, 'choice')} of warm-ups, or outside of recorded calls`
  return { what: 'experts', why }
}
