import type { Arg } from '../../model/args.ts'
import {
  BLAS_TITLES,
  type BlasCall,
  type BlasEvent,
  type BlasLibrary,
  flopOf,
  shapeOf,
} from '../../model/blas-events.ts'
import { getOrMake } from '../../model/default-map.ts'
import type { Label } from '../../sink/label.ts'
import type { TrackContext } from '../context.ts'
import type { Lanes } from '../tracks.ts'

/** Draws calls of math libraries, a row for each library; calls at the same time are in further rows. */
export class BlasArea {
  private readonly rows = new Map<BlasLibrary, Lanes>()
  /** By id of the call. */
  private readonly labels: (Label | undefined)[] = []

  constructor(private readonly context: TrackContext) {}

  take({ of: call, startNs, endNs, count, inferred }: BlasEvent): void {
    const { make } = this.context
    const label = this.labels[call.id] ?? this.labelOf(call)
    const extra = count === 1 ? make.inferred(inferred) : [make.int('count', count), ...make.inferred(inferred)]
    this.rowsOf(call.library).place(startNs, endNs, extra.length > 0 ? { ...label, extra: make.shown(extra) } : label)
  }

  private rowsOf(library: BlasLibrary): Lanes {
    return getOrMake(this.rows, library, () =>
      this.context.tracks.lanes('blasLibrary', { library: BLAS_TITLES[library], nth: this.rows.size }, true),
    )
  }

  private labelOf(call: BlasCall): Label {
    const { make, names, detail } = this.context
    const { name, product, problem, types, compute, algorithm } = call
    const args: Arg[] = []
    if (product) {
      const { m, n, k, batch, transposes } = product
      args.push(make.int('m', m), make.int('n', n), make.int('k', k))
      if (batch !== 1) args.push(make.int('batch', batch))
      if (transposes !== '') args.push(make.word('transposes', transposes))
      args.push(make.int('flop', flopOf(call)))
    }
    const texts = { problem, types, compute, algorithm }
    for (const [key, text] of Object.entries(texts)) if (text !== '') args.push(make.word(key, text))
    const title = [name, product ? shapeOf(product) : problem].join(' ').trim()
    const set = detail === 'names' ? undefined : make.set(args)
    const label = make.label({ name: names.id(title), category: 'blas', args: set, colour: undefined })
    this.labels[call.id] = label
    return label
  }
}
