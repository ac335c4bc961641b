import { DefaultMap } from '../../model/default-map.ts'

/** Values of one fact that are listed. */
const VALUES_MAX = 16
const TEXT_MAX = 1000

/** Facts of an input with all their values, as one file may be of several builds, models or contexts. */
export class AllFacts {
  private readonly values = new DefaultMap<string, Set<string | number>>(() => new Set())

  add(key: string, value: string | number): void {
    const values = this.values.of(key)
    const shown = typeof value === 'string' ? value.slice(0, TEXT_MAX) : value
    if (values.size < VALUES_MAX) values.add(shown)
    else if (!values.has(shown)) values.add('…')
  }

  /** A single value as it is; several as a text, in their order. */
  attributes(): Record<string, string | number> {
    return Object.fromEntries(
      [...this.values].map(([key, values]) => [key, values.size === 1 ? [...values][0]! : [...values].join(', ')]),
    )
  }
}
