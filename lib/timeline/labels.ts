import type { Arg, ArgFields, ArgValue } from '../model/args.ts'
import type { CounterSet } from '../model/counters.ts'
import { DefaultMap } from '../model/default-map.ts'
import { inferredText } from '../model/inferred.ts'
import type { Names } from '../model/names.ts'
import { duration } from '../model/units.ts'
import type { ArgSet, Label } from '../sink/label.ts'
import type { Detail } from './options.ts'

/**
 * The colour of slices in which nothing is computed. The Perfetto UI derives colours from hashes of texts; that of this text is
 * one of the palest and, with the palette "common", a grey blue (v55.3 and v58.2, ui/src/components/colorizer.ts).
 */
export const PALE = 'nothing'

/** A time from this on is also an argument with its unit: so many nanoseconds are hard to read. */
export const ROUNDED_NS_MIN = 1e6

/** Labels that are cached by their names. */
const LABELS_MAX = 1 << 15

/** A label of one slice. It has all fields, also undefined ones: objects of one shape are fast. */
export function labelOf(
  name: Label['name'],
  category: Label['category'],
  extra?: Label['extra'],
  colour?: Label['colour'],
  arrowsOut?: Label['arrowsOut'],
  arrowsIn?: Label['arrowsIn'],
): Label {
  return shaped(undefined, name, category, undefined, colour, extra, arrowsOut, arrowsIn)
}

function shaped(
  id: Label['id'],
  name: Label['name'],
  category: Label['category'],
  args: Label['args'],
  colour: Label['colour'],
  extra?: Label['extra'],
  arrowsOut?: Label['arrowsOut'],
  arrowsIn?: Label['arrowsIn'],
  flows?: Label['flows'],
  flowEnds?: Label['flowEnds'],
  launched?: Label['launched'],
): Label {
  return {
    // Fields that are read for each slice come first, those that are read once per label last.
    ...{ id, extra, flows, flowEnds, arrowsOut, arrowsIn, launched },
    ...{ name, category, args, colour },
  }
}

/** An integer argument; `key` is the id of its name. */
export const intArg = (key: number, int: number): Arg => argOf(key, int, undefined, undefined, undefined)

/** An argument of the frequent kinds. It has the fields of all of them: objects of one shape are fast. */
function argOf(
  key: number,
  int: number | undefined,
  double: number | undefined,
  name: number | undefined,
  text: string | undefined,
): Arg {
  return { key, int, double, name, text } as ArgFields as Arg
}

/** Makes arguments: interns their keys, and numbers the sets that slices share. */
export class ArgMaker {
  private sets = 0
  private labels = 0
  private readonly byCategory = new DefaultMap<string, Map<number, Label>>(() => new Map())
  private remembered = 0
  private readonly inferredArgs = new DefaultMap((bits: number) => [this.word('inferred', inferredText(bits))])

  constructor(
    readonly names: Names,
    readonly detail: Detail,
  ) {}

  arg(key: string, value: ArgValue): Arg {
    return { key: this.names.id(key), ...value }
  }

  double(key: string, value: number): Arg {
    return argOf(this.names.id(key), undefined, value, undefined, undefined)
  }

  /** A text that is interned already: `name` is its id. */
  name(key: string, name: number): Arg {
    return argOf(this.names.id(key), undefined, undefined, name, undefined)
  }

  /** An integer; as a double if it is not a safe integer. */
  int(key: string, value: number): Arg {
    return Number.isSafeInteger(value) ? intArg(this.names.id(key), value) : this.double(key, value)
  }

  /** `latency_ns`, exact; and, of a millisecond or more, `latency`: rounded, with its unit. `rounded`: its key, where that is something else. */
  time(key: string, ns: number, rounded = key): Arg[] {
    const exact = this.int(`${key}_ns`, ns)
    return ns < ROUNDED_NS_MIN ? [exact] : [exact, this.text(rounded, duration(ns))]
  }

  /** A text that is not interned. */
  text(key: string, text: string): Arg {
    return argOf(this.names.id(key), undefined, undefined, undefined, text)
  }

  /** A text that many slices have: interned. */
  word(key: string, text: string): Arg {
    return this.name(key, this.names.id(text))
  }

  /** Arguments of one slice, if slices have arguments. */
  shown(args: readonly Arg[]): readonly Arg[] | undefined {
    return this.detail === 'names' || args.length === 0 ? undefined : args
  }

  set(args: readonly Arg[]): ArgSet | undefined {
    return args.length > 0 ? { id: this.sets++, args } : undefined
  }

  /** A cached or a new label; not all are cached if there are very many different ones. */
  common(name: number, category: Label['category']): Label {
    const labels = this.byCategory.of(category)
    let label = labels.get(name)
    if (label) return label
    if (this.remembered >= LABELS_MAX) return labelOf(name, category)
    this.remembered++
    label = this.label({ name, category })
    labels.set(name, label)
    return label
  }

  /** A label for many slices, see {@link Label.id}. */
  label({ name, category, args, colour }: Pick<Label, 'name' | 'category' | 'args' | 'colour'>): Label {
    return shaped(this.labels++, name, category, args, colour)
  }

  /** A label that differs from `label` in these fields. */
  with(
    { id, name, category, args, colour }: Label,
    extra: Label['extra'],
    arrowsIn?: Label['arrowsIn'],
    flows?: Label['flows'],
    flowEnds?: Label['flowEnds'],
    launched?: Label['launched'],
  ): Label {
    return shaped(id, name, category, args, colour, extra, undefined, arrowsIn, flows, flowEnds, launched)
  }

  /** The argument that lists inferred facts, if any. */
  inferred(bits: number): readonly Arg[] {
    return bits === 0 ? [] : this.inferredArgs.of(bits)
  }
}

/** Counts as arguments: `page_faults`, `task_clock_ns`; without zeros. */
export function countArgs(make: ArgMaker, set: CounterSet, counts: readonly number[]): Arg[] {
  return counts.flatMap((count, index) => {
    const counter = set.counters[index]
    return counter && count !== 0 ? [make.int(counter.key, count)] : []
  })
}
