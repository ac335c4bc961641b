import { UNKNOWN } from '../../../lib/core.ts'
import { type Analysis, type AnalyzeOptions, analyze, type EventInput, type Names } from '../../../lib/index.ts'
import type {
  CallBatch,
  InputEvent,
  OperatorEvent,
  SequenceEvent,
  SequenceSpan,
  TensorEvent,
  TokenEvent,
} from '../../../lib/model/events.ts'

/** Runs that tests make: calls, and operators of two workers in each. */

/** An operator of a call: its node, and the time on worker 0 of computing and of waiting. */
export interface MadeOperator {
  readonly node: string
  readonly ns: number
  readonly waitNs?: number
}

/** A call. Operators follow each other from its start. */
export interface MadeCall extends Partial<Omit<TokenEvent, 'batch'>> {
  readonly startNs: number
  readonly endNs: number
  readonly spans?: readonly SequenceSpan[]
  readonly context?: number
  readonly result?: number
  readonly areAllOutput?: boolean
  readonly operators?: readonly MadeOperator[]
  /** Sequences of its context that are cut at its start, from these positions on. */
  readonly cuts?: readonly { readonly sequence: number; readonly from: number }[]
}

export const span = (position: number, tokens = 1, sequence = 0): SequenceSpan => ({ sequence, position, tokens })

const INPUT: InputEvent = { kind: 'input', format: 'test', clock: 'MONOTONIC', originNs: 1_000n, attributes: {} }

function batchOf({ spans, context, result = 0, areAllOutput = false }: MadeCall): { batch: CallBatch } | undefined {
  if (!spans) return undefined
  return { batch: { function: 'llama_decode', areAllOutput, isLeftOut: false, result, spans, context: context ?? 1 } }
}

const cutsOf = ({ cuts = [], context = 1, startNs: atNs, tid = 7 }: MadeCall): SequenceEvent[] =>
  cuts.map((cut) => {
    const at = { atNs, tid, context, to: -1, end: -1, delta: 0, isDone: true }
    return { kind: 'sequence', what: 'remove', ...at, ...cut }
  })

/** A log of calls. Nodes are named `role-layer OP`. */
export function logOf(calls: readonly MadeCall[], attributes: InputEvent['attributes'] = {}): EventInput {
  const tokens = ({ tokens, spans }: MadeCall) => tokens ?? spans?.reduce((sum, { tokens }) => sum + tokens, 0) ?? 1
  return {
    name: 'made',
    *events(names: Names) {
      const tensors = new Map<string, TensorEvent>()
      yield [{ ...INPUT, attributes }]
      for (const [call, made] of calls.entries()) {
        const { operators = [], spans, context, result, areAllOutput, cuts: _, ...fields } = made
        yield cutsOf(made)
        const inCall: (OperatorEvent | TensorEvent)[] = []
        let now = made.startNs
        for (const { node, ns, waitNs = 0 } of operators) {
          const [name, op] = node.split(' ') as [string, string]
          if (!tensors.has(node)) {
            const tensor = { ...UNKNOWN.tensor, id: tensors.size, name: names.id(name), op: names.id(op) }
            tensors.set(node, tensor)
            inCall.push(tensor)
          }
          const { id: tensor } = tensors.get(node)!
          const [endNs, waitEndNs] = [now + ns, now + ns + waitNs]
          const both = { ...UNKNOWN.operator, tensor, call, startNs: now, waitEndNs }
          inCall.push({ ...both, tid: 7, endNs }, { ...both, worker: 1, tid: 8, endNs: now + (ns >> 1) })
          now = waitEndNs
        }
        yield inCall
        const phase = made.phase ?? (tokens(made) === 1 ? 'decode' : 'prefill')
        yield [{ kind: 'token', call, tid: 7, inferred: 0, ...fields, phase, tokens: tokens(made), ...batchOf(made) }]
      }
    },
  }
}

/** Analyses a log of these calls. */
export function analysed(calls: readonly MadeCall[], options: AnalyzeOptions = {}): Promise<Analysis> {
  return analyze(logOf(calls), options)
}
