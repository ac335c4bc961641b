import { type Arg, type Nested, nestedOf } from '../../model/args.ts'
import { getOrMake } from '../../model/default-map.ts'
import type { Names } from '../../model/names.ts'
import type { OwnSliceEvent } from '../../model/own-events.ts'
import type { Statistic } from '../common/statistic.ts'
import type { GpuFigures } from '../gpu/figures.ts'
import type { Measured } from './rooflines.ts'

type Dims = readonly (readonly number[])[]

const product = (numbers: readonly number[]) => numbers.reduce((product, n) => product * n, 1)

/** a: rows × k, b: k × columns; each with the same batches before them. */
function matrixFlop(a: readonly number[] = [], b: readonly number[] = []): number {
  return a.length >= 2 && b.length >= 2 && a.at(-1) === b.at(-2) ? 2 * product(a) * b.at(-1)! : -1
}

/** Of query, key and value with four dimensions, of which `position` and `head` are two: both products, as if no mask left out any. */
function attentionFlop(dims: Dims, position: number, head: number): number {
  const [q, k, v] = dims
  if (q?.length !== 4 || k?.length !== 4 || v?.length !== 4) return -1
  return 2 * q[0]! * q[head]! * q[position]! * k[position]! * (q[3]! + v[3]!)
}

/**
 * Operators of PyTorch that compute matrix products themselves; those that call them (`aten::linear`, `aten::matmul`) would count twice.
 * Dims are those of the function's arguments (aten/src/ATen/native/native_functions.yaml).
 */
const FLOPS: Readonly<Record<string, (dims: Dims) => number>> = {
  'aten::mm': ([a, b]) => matrixFlop(a, b),
  'aten::addmm': ([, a, b]) => matrixFlop(a, b),
  'aten::bmm': ([a, b]) => matrixFlop(a, b),
  'aten::baddbmm': ([, a, b]) => matrixFlop(a, b),
  'aten::_flash_attention_forward': (dims) => attentionFlop(dims, 1, 2),
  'aten::_efficient_attention_forward': (dims) => attentionFlop(dims, 1, 2),
  'aten::_scaled_dot_product_flash_attention_for_cpu': (dims) => attentionFlop(dims, 2, 1),
}

interface OpSum {
  readonly name: string
  count: number
  /** Products whose shapes are others: their FLOP are not known. */
  unknown: number
  timeNs: number
  flop: number
}

/** Time of GPU work by the operator that launched it. */
function timesOnGpu({ devices }: GpuFigures): ReadonlyMap<string, number> {
  const times = new Map<string, number>()
  const launchers = devices.flatMap((device) => device.launchers)
  const operators = launchers.filter(({ kind, level }) => kind === 'operator' && level === 'innermost')
  for (const { name, time_ns } of operators.flatMap(({ rows }) => rows))
    times.set(name, (times.get(name) ?? 0) + time_ns)
  return times
}

/** FLOP of PyTorch's operators from the shapes that its profiler recorded (Kineto's `Input Dims`). */
export class DimsWork implements Statistic<object, 'own-slice'> {
  readonly kinds = ['own-slice'] as const
  /** By name of the slice; null: no matrix product. */
  private readonly ops: (OpSum | null | undefined)[] = []
  private readonly key: number
  private readonly flops = new Map<number, number>()

  /** `gpu`: the figures of the GPUs of the input. */
  constructor(
    private readonly names: Names,
    private readonly gpu: () => GpuFigures | undefined,
  ) {
    this.key = names.id('Input Dims')
  }

  event({ name, args, startNs, endNs }: OwnSliceEvent): void {
    let op = this.ops[name]
    if (op === undefined) {
      const text = this.names.text(name)
      op = Object.hasOwn(FLOPS, text) ? { name: text, count: 0, unknown: 0, timeNs: 0, flop: 0 } : null
      this.ops[name] = op
    }
    if (op === null || !Array.isArray(args)) return
    const arg = (args as readonly Arg[]).find(({ key }) => key === this.key)
    if (!arg) return
    const dims = 'json' in arg ? arg.json : undefined
    const flop = typeof dims === 'number' ? this.known(name, op.name, dims) : flopOf(op.name, dims)
    if (flop < 0) {
      op.unknown++
      return
    }
    op.count++
    op.timeNs += endNs - startNs
    op.flop += flop
  }

  /**
   * Each operator, and all of them: their FLOP by the time in which they compute, which is that of their slices, or of the GPU's work that they
   * launched. Of a GPU that is known for all products of an operator only: operators of which some have other shapes are left out.
   */
  finish(): { readonly products: readonly Measured[] } {
    const gpu = this.gpu()
    const ops = this.ops.flatMap((op) => (op && op.count + op.unknown > 0 ? [op] : []))
    const onGpu = gpu?.devices.length ? timesOnGpu(gpu) : undefined
    const timed = ops.flatMap(({ name, count, unknown, flop, ...rest }) => {
      const timeNs = onGpu ? (unknown === 0 && onGpu.get(name)) || 0 : rest.timeNs
      return count > 0 && timeNs > 0 ? [{ what: name, count, timeNs, flop }] : []
    })
    if (timed.length === 0) return { products: [] }
    const total = (figureOf: (op: (typeof timed)[number]) => number) => timed.reduce((sum, op) => sum + figureOf(op), 0)
    const count = total((op) => op.count)
    const left = ops.reduce((sum, op) => sum + op.count + op.unknown, -count)
    const time = onGpu ? "the time of the GPU's work that they launched" : 'the time of their slices'
    const unknown = left > 0 ? `; without ${left} of other shapes${onGpu ? ', or that launched no work' : ''}` : ''
    const note = `by the shapes of their arguments (Input Dims), in ${time}${unknown}`
    const sums = { count, timeNs: total((op) => op.timeNs), flop: total((op) => op.flop) }
    const common = { phase: null, bytes: -1 }
    const products = [
      { ...common, scope: 'run' as const, what: 'matrix products', ...sums, note },
      ...timed.map((op) => ({ ...common, scope: 'operator' as const, ...op })),
    ]
    return { products }
  }

  private known(name: number, op: string, dims: number): number {
    const key = name * 2 ** 26 + dims
    return getOrMake(this.flops, key, () => flopOf(op, nestedOf(this.names.text(dims))))
  }
}

/** -1: not known. */
function flopOf(op: string, dims: Nested): number {
  const isDims = Array.isArray(dims) && dims.every((dim) => Array.isArray(dim) && dim.every(Number.isSafeInteger))
  return isDims ? FLOPS[op]!(dims as Dims) : -1
}
