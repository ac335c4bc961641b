import type { GraphEvent, OperatorEvent, TensorEvent, TokenEvent } from './events.ts'

/**
 * Events whose fields are all "not known", for readers of formats with few fields: spread one and add the fields of the log,
 * as in `{ ...UNKNOWN.tensor, id, name }`.
 */
export const UNKNOWN = {
  tensor: {
    kind: 'tensor',
    layer: -1,
    op: 0,
    type: 0,
    ne: undefined,
    sources: [],
    sizeBytes: -1,
    buffer: -1,
    offset: undefined,
    address: 0,
    structAddress: 0,
    inferred: 0,
  } satisfies Omit<TensorEvent, 'id' | 'name'>,
  operator: {
    kind: 'operator',
    worker: 0,
    tid: -1,
    cpu: -1,
    call: -1,
    experts: undefined,
    inferred: 0,
  } satisfies Omit<OperatorEvent, 'tensor' | 'startNs' | 'endNs' | 'waitEndNs'>,
  graph: {
    kind: 'graph',
    backend: 0,
    nodes: 0,
    call: -1,
    inferred: 0,
  } satisfies Omit<GraphEvent, 'startNs' | 'endNs'>,
  token: {
    kind: 'token',
    tokens: -1,
    tid: -1,
    inferred: 0,
  } satisfies Omit<TokenEvent, 'call' | 'phase' | 'startNs' | 'endNs'>,
} as const
