import type { Arg } from '../../model/args.ts'
import { Inferred } from '../../model/events.ts'
import type { SliceSum, SumsEvent } from '../../model/sums.ts'
import type { Label } from '../../sink/label.ts'
import type { TrackContext } from '../context.ts'
import { type ArgMaker, countArgs, labelOf, PALE } from '../labels.ts'
import type { Lanes } from '../tracks.ts'

/** Names that are interned: stretches of calls have few different counts. */
const NAMES_MAX = 1 << 14

/** The name of a sum of slices of one name. The sign comes first: viewers cut names at the end. */
export const sumName = (name: string, count: number) => `Σ ${name} ×${count}`

/** What a sum is of: the name of the slices, their number, the first call and the last one. */
export function sumArgs(
  make: ArgMaker,
  name: number,
  { count, call, toCall }: { readonly count: number; readonly call: number; readonly toCall: number },
): Arg[] {
  const args = [make.name('summed', name), make.int('count', count), make.int('call', call)]
  return toCall > call ? [...args, make.int('to_call', toCall)] : args
}

/** Draws sums of slices: one after the other, in the time of what they sum. */
export class Sums {
  /** By name of the slices: the name of their sum, by count. */
  private readonly names = new Map<number, Map<number, number>>()
  private named = 0

  constructor(private readonly context: TrackContext) {}

  /** Draws all sums of an event in a row. */
  place(event: SumsEvent, lanes: Lanes): void {
    let atNs = event.startNs
    for (const sum of event.sums) {
      lanes.place(atNs, atNs + sum.sumNs, this.label(sum, event))
      atNs += sum.sumNs
    }
  }

  private label(sum: SliceSum, event: SumsEvent): Label {
    const { make, names, counters } = this.context
    const { what, name, count, innerWaitNs, counts } = sum
    const extra = sumArgs(make, name, { count, call: event.call, toCall: event.toCall })
    if (innerWaitNs > 0) extra.push(...make.time('inner_wait', innerWaitNs))
    if (counts) extra.push(...countArgs(make, counters, counts))
    extra.push(...make.inferred(Inferred.Place))
    return labelOf(this.nameOf(sum), `${what}_sum`, make.shown(extra), names.id(PALE)) // in the colour of an operator, it would look like one
  }

  private nameOf({ name, count }: SliceSum): number | string {
    const { names } = this.context
    const byCount = this.names.get(name)
    const known = byCount?.get(count)
    if (known !== undefined) return known
    const text = sumName(names.text(name), count)
    if (this.named >= NAMES_MAX) return text
    this.named++
    const id = names.id(text)
    if (byCount) byCount.set(count, id)
    else this.names.set(name, new Map([[count, id]]))
    return id
  }
}
