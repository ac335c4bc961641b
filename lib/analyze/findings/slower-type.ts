import type { Analysis, CallTime, OperatorRow } from '../analysis.ts'
import { confidenceOf, found, type Limit, type Looked, phasesOf, type Rule } from './rule.ts'
import { slicesIn, text } from './sql.ts'
import { number, percent, shares } from './words.ts'

const TIMES: Limit = {
  value: 1.5,
  why: 'usual mixtures of types are below it: a weight of q6_K has 1.46 × the bytes of one of q4_K',
}
const SHARE: Limit = { value: 0.05, why: 'a gain of 5 % is the least that is worth quantising a model again' }
const COMPARED: Limit = {
  value: 0.1,
  why: 'of the phase, in products of the other types: the speed of a few small products is no measure',
}

/** Products with weights of one type are slower than those of the other types. */
export const slowerType: Rule = {
  id: 'slower-type',
  title: 'Weights of one type are slower than the others',
  limits: { times: TIMES, share: SHARE, compared: COMPARED },
  advice:
    'Quantise these weights as the others are (llama-quantize --tensor-type). Where their time is longer than their bytes explain, the backend ' +
    'has no fast kernel for the type: llama-quantize falls back to one where rows are no multiple of 256 elements',
  look: (analysis) => phasesOf(analysis).flatMap((time) => lookAt(analysis, time)),
}

/** Matrix products of one op, backend and number of columns, with weights of one type in one role. */
interface Products {
  readonly row: OperatorRow
  readonly columns: string
  flop: number
  bytes: number
  steps: number
  /** Of computing, all workers together, with all time in its slices, and without what it had no CPU or was blocked. */
  timeNs: number
  computingNs: number
}

/** Products of a type, in what they exceed the time of as much work in other types. */
interface Slower {
  readonly of: Products
  readonly others: { readonly type: string; readonly flop: number; readonly bytes: number; readonly ns: number }
  readonly lostNs: number
}

function lookAt(analysis: Analysis, { phase, calls, time_ns }: CallTime): Looked[] {
  const all = productsOf(analysis.operators.rows.filter((row) => row.phase === phase))
  const slower = all.flatMap((products) => comparedTo(products, all, COMPARED.value * time_ns))
  const keyOf = ({ of: { row } }: Slower) => `${row.op} ${row.type}`
  return [...new Set(slower.map(keyOf))].flatMap((key) => {
    const list = slower.filter((slower) => keyOf(slower) === key)
    const { op, type } = list[0]!.of.row
    const sum = (value: (slower: Slower) => number) => list.reduce((sum, slower) => sum + value(slower), 0)
    const ns = sum(({ of: products }) => products.computingNs)
    // What the same work would take, and read, in the other types.
    const [otherNs, otherBytes] = [
      sum(({ of: products, others }) => (products.flop * others.ns) / others.flop),
      sum(({ of: products, others }) => (products.flop * others.bytes) / others.flop),
    ]
    const [times, bytesTimes] = [ns / otherNs, sum(({ of: products }) => products.bytes) / otherBytes]
    const lostNs = sum(({ lostNs }) => lostNs)
    const roles = shares(list.map(({ of: products, lostNs }) => [products.row.role || op, lostNs / time_ns]))
    const sentence =
      `weights in ${type} take ${number(times)} × as long as those in ${list[0]!.others.type}, with ${number(bytesTimes)} × the bytes: ` +
      `${percent(lostNs / time_ns)} of ${phase}${roles === '' ? '' : ` (${roles})`}`
    if (times < TIMES.value || lostNs < SHARE.value * time_ns) return { figure: sentence }
    const sliceNs = sum(({ of: products }) => products.timeNs)
    const names = [...new Set(list.map(({ of: { row } }) => text(row.role === '' ? op : `${row.role} ${op}`)))]
    return found(sentence, {
      time_ns: lostNs,
      ...confidenceOf(analysis, calls),
      evidence: {
        ...{ phase, op, type, compared_to: list[0]!.others.type, times, bytes_times: bytesTimes },
        ...{ lost_share: lostNs / time_ns, products_time_ns: sliceNs },
      },
      check: {
        sql:
          `select sum(s.dur) ${slicesIn(phase, 'operator')} and extract_arg(s.arg_set_id, 'debug.src0_type') = ${text(type)} ` +
          `and s.name in (${names.join(', ')})`,
        evidence: 'products_time_ns',
      },
    })
  })
}

/** Matrix products with weights, of workers of the CPU. */
function productsOf(rows: readonly OperatorRow[]): Products[] {
  const products = new Map<string, Products>()
  for (const row of rows) {
    const { op, role, type, backend, shape, workers } = row
    if (!op.startsWith('MUL_MAT') || workers.length === 0 || row.flop <= 0 || row.weight_bytes <= 0) continue
    const columns = shape.split('×')[1] ?? ''
    const key = JSON.stringify([op, role, type, backend, columns])
    const product = products.get(key) ?? { row, columns, flop: 0, bytes: 0, steps: 0, timeNs: 0, computingNs: 0 }
    products.set(key, product)
    product.flop += row.flop
    product.bytes += row.weight_bytes
    product.steps += row.steps
    product.timeNs += row.operator_time_ns
    product.computingNs += row.operator_time_ns - (row.preempted_ns ?? 0) - (row.blocked_ns ?? 0)
  }
  return [...products.values()]
}

/**
 * Products of one type against those of others with as many columns, the nearest in size that are not larger: a part of the time of each
 * product does not depend on its size, so smaller ones compute less in the same time, whatever their type.
 */
function comparedTo(products: Products, all: readonly Products[], leastNs: number): Slower[] {
  const { op, backend, type, workers } = products.row
  const smaller = all.filter(
    ({ row, columns, flop, steps }) =>
      row.op === op &&
      row.backend === backend &&
      row.type !== type &&
      columns === products.columns &&
      flop / steps <= products.flop / products.steps,
  )
  const nearest = Math.max(...smaller.map(({ flop, steps }) => flop / steps)) / 2
  const others = smaller.filter(({ flop, steps }) => flop / steps >= nearest)
  const sum = (value: (products: Products) => number) => others.reduce((sum, other) => sum + value(other), 0)
  const compared = {
    flop: sum(({ flop }) => flop),
    bytes: sum(({ bytes }) => bytes),
    ns: sum((products) => products.computingNs),
  }
  const most = others.toSorted((a, b) => b.computingNs - a.computingNs)[0]
  if (most === undefined || compared.ns < leastNs * workers.length) return []
  const lostNs = products.computingNs - (products.flop * compared.ns) / compared.flop
  return lostNs > 0
    ? [{ of: products, others: { type: most.row.type, ...compared }, lostNs: lostNs / workers.length }]
    : []
}
