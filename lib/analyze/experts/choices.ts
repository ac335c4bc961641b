import { sameIds } from '../../model/by-id.ts'
import type { ExpertsEvent, TensorEvent } from '../../model/events.ts'
import type { CallOperators } from '../graph/operators/call-operators.ts'
import type { Steps } from '../graph/operators/steps.ts'

/** The choice of one router in one graph run. */
export interface Choice {
  readonly layer: number
  readonly atNs: number
  /** Tensor that contains it; -1: operators contain it. */
  readonly tensor: number
  /** Experts of a token. */
  readonly k: number
  /** Ids, token by token; a large batch has several parts. */
  readonly parts: ArrayLike<number>[]
  /** Wall time of the matrix products that use it, and page faults in them. */
  timeNs: number
  faults: number
  /** Number of these products. */
  products: number
}

/** The nodes of a log, as far as their experts matter. */
export interface ExpertNodes {
  readonly tensors: readonly TensorEvent[]
  /** Is the node a matrix product with experts? */
  isProduct(tensor: number): boolean
}

/** The choices of a call in order of time, with the time of the products that use them. `faultIndex`: that of the counter, or -1. */
export function choicesOf(
  operators: CallOperators,
  steps: Steps,
  nodes: ExpertNodes,
  faultIndex: number,
): readonly Choice[] {
  const recorded = ofEvents(operators.choices, nodes.tensors)
  const choices = recorded.length > 0 ? recorded : ofOperators(operators, steps, nodes)
  if (choices.length > 0) addTimes(choices, operators, steps, nodes, faultIndex)
  return choices
}

const NO_TIME = { timeNs: 0, faults: 0, products: 0 }

function ofEvents(events: ExpertsEvent[], tensors: readonly TensorEvent[]): Choice[] {
  const choices: Choice[] = []
  const latest = new Map<number, Choice>()
  for (const { tensor, atNs, k, ids } of events.sort((a, b) => a.atNs - b.atNs)) {
    const before = latest.get(tensor)
    // A large batch needs several records.
    if (before?.atNs === atNs) before.parts.push(ids)
    else {
      const choice = { layer: tensors[tensor]!.layer, atNs, tensor, k, parts: [ids], ...NO_TIME }
      choices.push(choice)
      latest.set(tensor, choice)
    }
  }
  return choices
}

/** Each product contains the choice of its layer; it is another one where ids differ, or where a node is computed again. */
function ofOperators(operators: CallOperators, steps: Steps, { tensors }: ExpertNodes): Choice[] {
  const idsOfStep = new Map<number, readonly number[]>()
  for (const [at, ids] of operators.experts) {
    const step = steps.of[at]!
    if (step >= 0 && !idsOfStep.has(step)) idsOfStep.set(step, ids)
  }
  const choices: Choice[] = []
  const open = new Map<number, { readonly choice: Choice; readonly nodes: Set<number> }>()
  for (const [step, ids] of [...idsOfStep].sort(([a], [b]) => a - b)) {
    const tensor = steps.tensor[step]!
    const { layer } = tensors[tensor]!
    const known = open.get(layer)
    if (known && !known.nodes.has(tensor) && sameIds(known.choice.parts[0]!, ids)) known.nodes.add(tensor)
    else {
      const choice = { layer, atNs: steps.startNs[step]!, tensor: -1, k: ids.length, parts: [ids], ...NO_TIME }
      choices.push(choice)
      open.set(layer, { choice, nodes: new Set([tensor]) })
    }
  }
  return choices
}

/** Each product uses the last choice in its source, or of its layer, before its end. */
function addTimes(
  choices: readonly Choice[],
  operators: CallOperators,
  steps: Steps,
  { tensors, isProduct }: ExpertNodes,
  faultIndex: number,
): void {
  const open = new Map<number, Choice>()
  const used = new Map<number, Choice>()
  const hasFaults = faultIndex >= 0 && operators.counts.length > 0
  let next = 0
  for (let step = 0; step < steps.count; step++) {
    if (!isProduct(steps.tensor[step]!)) continue
    const endNs = steps.waitEndNs[step]!
    for (; next < choices.length && choices[next]!.atNs <= endNs; next++)
      open.set(keyOf(choices[next]!), choices[next]!)
    const { sources, layer } = tensors[steps.tensor[step]!]!
    const choice = open.get(sources[2] ?? -1) ?? open.get(keyOf({ tensor: -1, layer }))
    if (!choice) continue
    choice.timeNs += endNs - steps.startNs[step]!
    choice.products++
    if (hasFaults) used.set(step, choice)
  }
  if (!hasFaults) return
  for (let i = 0; i < operators.count; i++) {
    const choice = isProduct(operators.tensor[i]!) ? used.get(steps.of[i]!) : undefined
    if (choice) choice.faults += operators.counts[i]?.[faultIndex] ?? 0
  }
}

/** The tensor that contains a choice; below -1: its layer. */
const keyOf = ({ tensor, layer }: Pick<Choice, 'tensor' | 'layer'>) => (tensor >= 0 ? tensor : -3 - layer)
