import { checkNames, UsageError } from '../../errors.ts'
import type { Arg, Nested } from '../../model/args.ts'
import { DefaultMap } from '../../model/default-map.ts'
import { I64_MAX } from '../../model/limits.ts'
import { Names } from '../../model/names.ts'
import type { Label } from '../../sink/label.ts'

/** Values by their names: texts, numbers, bigints, booleans, and lists and objects of them. Those that are null or undefined are left out. */
export type TraceArgs = Readonly<Record<string, unknown>>

/** Category, arguments and arrows of a slice or an instant. */
export interface Details {
  /** Its kind, for SQL and for filters of the viewer. */
  readonly category?: string | undefined
  readonly args?: TraceArgs | undefined
  /** Whole numbers of arrows, from 0: slices with the same number are joined in order of time, up to the one that has it in `flowEnds`. */
  readonly flows?: readonly number[] | undefined
  readonly flowEnds?: readonly number[] | undefined
}

const DETAILS: Readonly<Record<keyof Details, true>> = { category: true, args: true, flows: true, flowEnds: true }
const DETAIL_NAMES = Object.keys(DETAILS)
/** The names of the first details are checked, and those of each 1024th: that costs more than the slice. */
const NO_DETAILS: Details = {}
const CHECKED = 16
const EACH_CHECKED = 1023

/** Texts that are written once and referred to: so many at most, and none that is longer. */
const TEXTS_MAX = 1 << 16
const TEXT_CHARS_MAX = 200
/** Values in values. */
const DEPTH_MAX = 32

/** Names and arguments of slices, as writers expect them. */
export class Labels {
  readonly names = new Names()
  /** By category, and by the id of the name. */
  private readonly common = new DefaultMap((_: string) => new Map<number, Label>())
  private count = 0
  private details = 0

  of(name: string, details: Details = NO_DETAILS): Label {
    const count = this.details++
    if (count < CHECKED || (count & EACH_CHECKED) === 0) checkNames(name, details, DETAIL_NAMES)
    const { category = '', args, flows, flowEnds } = details
    const common = this.commonOf(`${name}`, category)
    if (!args && !flows && !flowEnds) return common
    const { id, name: known } = common // not by `...`, which is several times slower
    return {
      id,
      name: known,
      category,
      extra: args && this.args(args),
      flows: flows && checkedFlows(name, flows),
      flowEnds: flowEnds && checkedFlows(name, flowEnds),
    }
  }

  args(args: TraceArgs): Arg[] {
    const found: Arg[] = []
    for (const key in args) {
      const value = args[key]
      if (value !== null && value !== undefined) found.push(this.arg(key, value))
    }
    return found
  }

  private commonOf(text: string, category: string): Label {
    const name = this.interned(text)
    if (typeof name === 'string') return { name, category }
    const ofCategory = this.common.of(category)
    let label = ofCategory.get(name)
    if (!label) {
      label = { id: this.count++, name: text === '' ? '' : name, category }
      ofCategory.set(name, label)
    }
    return label
  }

  private arg(key: string, value: unknown): Arg {
    const name = this.names.id(key)
    switch (typeof value) {
      case 'number':
        return Number.isSafeInteger(value) ? { key: name, int: value } : { key: name, double: value }
      case 'bigint':
        return value <= I64_MAX && value >= -I64_MAX ? { key: name, big: value } : { key: name, text: `${value}` }
      case 'string': {
        const text = this.interned(value)
        return typeof text === 'number' ? { key: name, name: text } : { key: name, text }
      }
      default:
        return { key: name, json: plain(key, value) as boolean | readonly Nested[] }
    }
  }

  private interned(text: string): number | string {
    if (text.length > TEXT_CHARS_MAX) return text
    return this.names.known(text) ?? (this.names.size < TEXTS_MAX ? this.names.id(text) : text)
  }
}

/** The value without what JSON would leave out. */
function plain(key: string, value: unknown, depth = 0): Nested {
  if (depth > DEPTH_MAX) {
    throw new UsageError(
      `argument ${key}: expected at most ${DEPTH_MAX} values in one another\nhint: does the value contain itself?`,
    )
  }
  if (typeof value === 'function' || typeof value === 'symbol') return undefined
  if (typeof value !== 'object' || value === null) return value as Nested
  if ('toJSON' in value && typeof value.toJSON === 'function') return plain(key, value.toJSON(), depth + 1)
  if (Array.isArray(value)) return value.map((item) => plain(key, item, depth + 1))
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, plain(key, item, depth + 1)]))
}

function checkedFlows(name: string, flows: readonly number[]): readonly number[] {
  for (const flow of flows) {
    if (Number.isSafeInteger(flow) && flow >= 0) continue
    throw new UsageError(`slice "${name}": expected whole numbers of flows from 0, found ${flow}`)
  }
  return flows
}
