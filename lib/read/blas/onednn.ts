// The log of oneDNN with ONEDNN_VERBOSE=1, and with ONEDNN_VERBOSE_TIMESTAMP=1 (DNNL_VERBOSE in version 1):
//
//   onednn_verbose,1795446170564.528076,exec,cpu,matmul,brg:avx512_core,undef,src_f32::blocked:ab:f0 wei_f32::blocked:ba:f0 …,,,32x512:512x1536:32x1536,7.65894
//   onednn_verbose,v1,1795446170796.875000,primitive,exec,cpu,matmul,brg_matmul:avx512_core,undef,src:f32::blocked:ab::f0 …,,,32x512:512x1536,10.7109
//
// The time is that of the start in milliseconds since 1970, the last column the duration in milliseconds. Attributes may contain commas:
// columns are counted from both ends.

import { LineCursor } from '../../input/line-cursor.ts'
import type { BlasCall, BlasProduct } from '../../model/blas-events.ts'
import { Inferred } from '../../model/events.ts'
import { type IssueCode, issueOf } from '../../model/issues.ts'
import { TIME_NS_MAX } from '../../model/limits.ts'
import { AllFacts } from '../common/all-facts.ts'
import { wholeLines } from '../common/head.ts'
import { holding } from '../common/holdings.ts'
import { LineReader } from '../common/line-reader.ts'
import type { Format } from '../format.ts'
import { type CallFacts, CallSet, productOf, sizeOf } from './calls.ts'

/** A memory descriptor: `src:f32::blocked:ab::f0` (version 3), `src_f32::blocked:ab:f0` (version 2). */
interface Memory {
  /** `src`, `wei`, `bia`, `dst`, … */
  readonly name: string
  readonly type: string
  /** Order of the dimensions in memory, outermost first: `ab`; empty where it is not plain. */
  readonly layout: string
}

/** The memory descriptors of a primitive. */
function memoriesOf(text: string): Memory[] {
  return text.split(' ').flatMap((text): Memory[] => {
    const [, name, type, layout] = /^([a-z]+(?:_?\d+)?)[_:]([a-z][a-z0-9_]*):[^:]*:[^:]*:([^:]*)/.exec(text) ?? []
    return name === undefined ? [] : [{ name, type: type!, layout: layout! }]
  })
}

/** The matrix product of a primitive; undefined where it is none, or its sizes are not known. */
function onednnProduct(primitive: string, problem: string, memories: readonly Memory[]): BlasProduct | undefined {
  if (primitive === 'matmul') return matmulOf(problem, memories)
  return primitive === 'inner_product' ? innerProductOf(problem) : undefined
}

/** A product of groups of rows, each with its own matrix of weights: how the rows are divided is not in the log. */
const isGrouped = (memories: readonly Memory[]) =>
  memories.some(({ name, layout }) => name === 'src' && layout === 'grouped')

/**
 * `32x512:512x1536`, in older versions with the result: `32x512:512x1536:32x1536`; dimensions before the last two are batches. Of groups,
 * the weights alone have them: `16x32:3x32x24`. Version 1: `b1408m52n64k52`.
 */
function matmulOf(problem: string, memories: readonly Memory[]): BlasProduct | undefined {
  const first = /^(?:b(?<b>\d+))?m(?<m>\d+)n(?<n>\d+)k(?<k>\d+)$/.exec(problem)?.groups
  if (first) return productOf({ m: first['m'], n: first['n'], k: first['k'] }, transposesOf(memories), first['b'])
  const [a, b] = problem.split(':').map((word) => word.split('x').map((text) => sizeOf(text)))
  if (!a || !b || a.length < 2) return undefined
  if (isGrouped(memories) && b.length === a.length + 1) b.shift()
  if (a.length !== b.length) return undefined
  const [m, k, n] = [a.at(-2)!, a.at(-1)!, b.at(-1)!]
  // A dimension of 1 is repeated.
  const batch = a.slice(0, -2).reduce((product, size, i) => product * Math.max(size, b[i]!), 1)
  const isWhole = m > 0 && k > 0 && n > 0 && b.at(-2) === k && batch > 0 && Number.isSafeInteger(batch)
  return isWhole ? { m, n, k, batch, transposes: transposesOf(memories) } : undefined
}

/** `mb32ic512oc1536`, with the sizes of an image: `mb1ic256ih6oc4096kh6`. */
function innerProductOf(problem: string): BlasProduct | undefined {
  const sizeOfKey = (key: string) => {
    const text = new RegExp(`(?:^|[\\d_])${key}(\\d+)`).exec(problem)?.[1]
    return text === undefined ? undefined : sizeOf(text)
  }
  const [m, n, channels] = [sizeOfKey('mb'), sizeOfKey('oc'), sizeOfKey('ic')]
  if (!m || !n || !channels) return undefined
  const k = channels * (sizeOfKey('id') ?? 1) * (sizeOfKey('ih') ?? 1) * (sizeOfKey('iw') ?? 1)
  return Number.isSafeInteger(k) && k > 0 ? { m, n, k, batch: 1, transposes: '' } : undefined
}

/** By the last two dimensions in memory: in order (N) or exchanged (T); empty where a layout is another. */
function transposesOf(memories: readonly Memory[]): string {
  const orderOf = (name: string) => {
    const layout = memories.find((memory) => memory.name === name)?.layout ?? ''
    if (!/^[a-l]{2,}$/.test(layout)) return ''
    const plain = [...layout].sort().join('')
    if (layout === plain) return 'N'
    return layout === `${plain.slice(0, -2)}${plain.at(-1)}${plain.at(-2)}` ? 'T' : ''
  }
  const [a, b] = [orderOf('src'), orderOf('wei')]
  return a === '' || b === '' ? '' : a + b
}

/** Primitives whose lines are recognised; with more, it begins again. */
const KNOWN_MAX = 1 << 14
const PREFIX = /^(?:onednn|dnnl)_verbose,/

export const onednn: Format = {
  name: 'onednn',
  title: "oneDNN's log of its primitives (ONEDNN_VERBOSE)",
  sniff: (head) => wholeLines(head).some((line) => PREFIX.test(line)),
  read: (source) => new OnednnLog(new LineCursor(source, onednn.name, true)).batches(),
}

class OnednnLog extends LineReader {
  private readonly calls = new CallSet()
  /** By the columns of a line, without time and duration. */
  private readonly known = new Map<string, BlasCall>()
  private readonly facts = new AllFacts()
  /** Undefined: the log has no times, or nothing was executed yet. */
  private originNs: bigint | undefined
  private lastNs = 0
  private executed = 0
  private untimed = 0
  /** Lines of the program. */
  private otherLines = 0

  protected override readLine({ text }: LineCursor): void {
    if (PREFIX.test(text)) this.read(text)
    else if (text !== '') this.otherLines++
  }

  /** Most lines are executions of a few primitives: what follows the time, and precedes the duration, is read once. */
  private read(text: string): void {
    const [begin, end] = [text.indexOf(',exec,'), text.lastIndexOf(',')]
    const call = begin < 0 ? undefined : this.known.get(text.slice(begin, end))
    if (!call) return this.readColumns(text.split(','))
    const head = text.slice(0, begin)
    const time = head.slice(head.lastIndexOf(',') + 1)
    // Of version 3, the component is between time and operation.
    const at =
      time === 'primitive'
        ? head.slice(head.lastIndexOf(',', head.length - time.length - 2) + 1, -time.length - 1)
        : time
    this.execute(call, timeOf(at), text.slice(end + 1))
  }

  private readColumns(columns: readonly string[]): void {
    const exec = columns.indexOf('exec')
    const isPrimitive = exec > 0 && exec <= 4 && columns.length >= exec + 8 && !columns.slice(0, exec).includes('graph')
    if (isPrimitive) return this.first(columns, exec)
    if (columns.includes('info')) this.learn(columns)
    else if (exec > 0 && exec <= 4 && !columns.includes('graph')) this.unreadable(`${columns.length} columns`)
    else this.batch.leftOut.add(`lines of ${kindOf(columns)}`)
  }

  /** `info,oneDNN v2.6.3 (commit N/A)`, `info,cpu,isa:Intel AVX-512 …`, `info,cpu,runtime:OpenMP,nthr:2` */
  private learn(columns: readonly string[]): void {
    for (const column of columns.slice(2)) {
      const version = /^(?:one)?DNNL? v(\S+)/i.exec(column)?.[1]
      const [, key, value] = /^(isa|runtime|nthr):(.*)$/.exec(column) ?? []
      if (version !== undefined) this.facts.add('onednn', version)
      else if (key !== undefined && columns.includes('cpu')) this.facts.add(NAMES[key]!, value!)
    }
  }

  /** The first execution of a primitive. */
  private first(columns: readonly string[], exec: number): void {
    const atNs = timeOf(columns[exec - 1] ?? '') ?? timeOf(columns[exec - 2] ?? '')
    const facts = factsOf(columns, exec)
    if (!facts.product && /^(?:matmul|inner_product)$/.test(facts.name))
      this.batch.leftOut.add(UNKNOWN_SIZES, 1, UNKNOWN_HINT)
    const call = this.calls.of(facts)
    if (this.known.size >= KNOWN_MAX) this.known.clear()
    this.known.set(`,${columns.slice(exec, -1).join(',')}`, call)
    this.execute(call, atNs, columns.at(-1)!)
  }

  private execute(call: BlasCall, atNs: bigint | undefined, duration: string): void {
    const durationNs = Math.round(Number(duration || NaN) * 1e6)
    if (!this.batch.hasBegun) this.begin(atNs)
    if (!(durationNs >= 0 && durationNs <= TIME_NS_MAX))
      return this.unreadable(`a duration of "${duration.slice(0, 40)}"`)
    const startNs = this.startOf(atNs)
    const inferred = this.originNs === undefined ? Inferred.Laid : 0
    this.executed++
    this.lastNs = Math.max(this.lastNs, startNs + durationNs)
    this.batch.add({ kind: 'blas', of: call, startNs, endNs: startNs + durationNs, count: 1, inferred })
  }

  private startOf(atNs: bigint | undefined): number {
    if (this.originNs === undefined) return this.lastNs
    if (atNs !== undefined) return Number(atNs - this.originNs)
    this.untimed++
    return this.lastNs
  }

  private begin(originNs: bigint | undefined): void {
    this.originNs = originNs
    const isTimed = originNs !== undefined
    const times = isTimed
      ? 'starts of the primitives'
      : 'none in the log: each primitive is drawn at the end of the one before it'
    this.batch.begin({
      kind: 'input',
      format: onednn.name,
      clock: isTimed ? 'REALTIME' : 'unknown',
      originNs: originNs ?? 0n,
      times: isTimed ? 'recorded' : 'durations',
      attributes: { times },
      capabilities: { operators: false },
    })
    if (!isTimed)
      this.issue('calls-without-time', 'expected a time in the lines (ONEDNN_VERBOSE_TIMESTAMP=1), found none')
  }

  protected override finish(): void {
    if (!this.batch.hasBegun) this.begin(undefined)
    const { facts, executed, untimed, otherLines } = this
    const { contents, attributes } = holding({ 'executed primitive': executed }, 'no executed primitives')
    const others = { ...(otherLines > 0 && { other_lines: otherLines }) }
    this.batch.add({ kind: 'facts', contents, attributes: { ...facts.attributes(), ...others, ...attributes } })
    if (untimed > 0) this.issue('calls-without-time', `expected a time in each line, found none in ${untimed}`)
    this.batch.end(this.lines)
  }

  private unreadable(found: string): void {
    if (!this.batch.hasBegun) this.begin(undefined)
    const code = this.lines.isTorn ? 'torn-record' : 'unreadable-call'
    this.issue(code, `expected an executed primitive with its duration, found ${found}; left out`)
  }

  private issue(code: IssueCode, detail: string): void {
    this.batch.add(issueOf(code, detail, this.lines.position, this.lastNs))
  }
}

/** Of a primitive whose problem has a form that is not known; it is counted at its first execution. */
const UNKNOWN_SIZES = 'sizes of problems of matmul and inner_product'
const UNKNOWN_HINT = 'the problem is printed in another form: the primitive is drawn, and its FLOP are not known'

/** What a line is about: `primitive create:cache_miss`, `graph exec`. */
function kindOf(columns: readonly string[]): string {
  const words = columns.slice(1).filter((column) => /^[a-z_]+(?::[a-z_]+)?$/.test(column) && column.length <= 40)
  return words.slice(0, 2).join(' ') || 'another kind'
}

const NAMES: Readonly<Record<string, string>> = { isa: 'isa', runtime: 'runtime', nthr: 'threads' }

/** Columns: operation, engine, primitive, implementation, kind of propagation, memory, attributes, auxiliary, problem, duration. */
function factsOf(columns: readonly string[], exec: number): CallFacts {
  const [name, implementation, memory] = [columns[exec + 2]!, columns[exec + 3]!, columns[exec + 5]!]
  const memories = memoriesOf(memory)
  const problem = columns.at(-2)!
  const product = onednnProduct(name, problem, memories)
  const typeOf = (...names: readonly string[]) => memories.find((memory: Memory) => names.includes(memory.name))?.type
  const types = [typeOf('src', 'src0', 'src_0'), typeOf('wei', 'src1', 'src_1'), typeOf('dst')]
  return {
    library: 'onednn',
    name,
    product,
    problem: product && !isGrouped(memories) ? '' : problem,
    types: types.filter((type) => type !== undefined).join(' '),
    compute: '',
    algorithm: implementation,
  }
}

/** Milliseconds since 1970 with up to 6 decimals, as nanoseconds; undefined for anything else. */
function timeOf(text: string): bigint | undefined {
  const [, ms, fraction = ''] = /^(\d{1,15})(?:\.(\d{1,9}))?$/.exec(text) ?? []
  return ms === undefined ? undefined : BigInt(ms) * 1_000_000n + BigInt(fraction.padEnd(6, '0').slice(0, 6))
}
