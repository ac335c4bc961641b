import {
  hasOtherBackend,
  layersOf,
  layersText,
  movedOps,
  opsText,
  rangesText,
  reasonText,
  weightsText,
} from '../../analyze/placement/words.ts'
import { duration, size, threeDigits } from '../../model/units.ts'
import { type Context, known } from '../context.ts'
import { type Section, sourceHtml, tableHtml, tableOf } from '../figure.ts'
import { html } from '../html.ts'

/** Where the model is, and where it is computed; only where another backend than the CPU computes. */
export function placementSection({ analysis: { placement }, stats }: Context): Section | undefined {
  if (!placement || !hasOtherBackend(placement)) return undefined
  const layers = tableOf(placement.layers, {
    '<layers': (row) => rangesText(layersOf(row)),
    '<of': ({ backend }) => backend ?? 'not known',
    '<weights in': weightsText,
    '<KV cache in': ({ kv_cache }) => kv_cache.join(', '),
  })
  const splits = tableOf(
    placement.phases.flatMap(({ by_backend, ...row }) => by_backend.map((part) => ({ ...row, part }))),
    {
      '<phase': ({ phase }) => phase,
      '<backend': ({ part }) => part.backend || 'CPU',
      'splits a call': ({ part, calls }) => threeDigits(part.splits / calls),
      'nodes a call': ({ part, calls }) => threeDigits(part.nodes / calls),
      '<ops': ({ part }) => opsText(part),
      'time a call': ({ part, calls }) => duration(part.time_ns / calls),
    },
  )
  const copies = tableOf(placement.phases, {
    '<phase': ({ phase }) => phase,
    'splits a call': ({ splits, calls }) => threeDigits(splits / calls),
    'copied a call': ({ copied_bytes, calls }) => size(copied_bytes / calls),
    'copying a call': ({ copying_ns, calls }) => duration(copying_ns / calls),
    'waiting a call': ({ waiting_ns, calls }) => known(waiting_ns, (ns) => duration(ns / calls)),
  })
  const moved = tableOf(placement.moved, {
    '<operators': movedOps,
    '<phase': ({ phase }) => phase,
    '<computed by': ({ backend }) => backend,
    '<layers of': ({ layer_backend }) => layer_backend,
    '<layers': (row) => rangesText(row.layers),
    'splits a call': ({ splits, calls }) => threeDigits(splits / calls),
    'time a call': ({ time_ns, calls }) => duration(time_ns / calls),
    '<why': reasonText,
    '<types and shapes of one': ({ example }) => example,
  })
  const tables: readonly (readonly [string, typeof layers])[] = [
    ['Layers by where their weights are', layers],
    ['Splits of the graphs of calls', splits],
    ['What the splits cost', copies],
    ['Operators that another backend than that of their layer computes', moved],
  ]
  return {
    id: 'placement',
    title: 'Placement',
    content: [
      html`<p>Layers: ${layersText(placement)}.</p>`,
      ...(placement.options.length > 0 ? [html`<p>Options: ${placement.options.join(', ')}.</p>`] : []),
      ...tables.filter(([, { rows }]) => rows.length > 0).map(([caption, table]) => tableHtml(table, caption)),
      sourceHtml(`${stats('--json')} (placement)`),
    ],
  }
}
